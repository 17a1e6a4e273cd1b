"""Names of the fields that decoded keys and values have, for completion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Decoded, Payloads
    from kafkascope.analyzer.payloads.framing import Side
    from kafkascope.analyzer.payloads.model import Schema

MOST_NAMES: Final = 5000
"""Paths that are remembered."""
LOOKED_AT: Final = 16
"""Values of each schema whose fields are remembered."""
DEEPEST: Final = 8
"""Steps of a path that is remembered."""
LONGEST: Final = 1 << 20
"""Characters of a schema beyond which its fields are learned from values alone."""
BARE: Final = re.compile(r"[\w-]+\Z")


class FieldNames:
    """Remembers the fields of values that were decoded, and of schemas that are known."""

    def __init__(self) -> None:
        self._looked: dict[Any, int] = {}
        self._learned: set[tuple[str, str]] = set()
        """Format and text of the schemas whose fields are known."""
        self._paths: dict[Side, dict[str, None]] = {"key": {}, "value": {}}

    def of(self, side: Side) -> list[str]:
        """Return the paths of keys, or of values; those of values that were seen come first."""
        return list(self._paths[side])

    def look(self, side: Side, decoded: Decoded) -> None:
        """Remember the fields of the first values of each schema."""
        key = (side, decoded.key)
        count = self._looked.get(key, 0)
        if count >= LOOKED_AT or len(self._looked) >= MOST_NAMES:
            return
        self._looked[key] = count + 1
        self._remember(side, _paths(decoded.value, "", 0))

    def learn(self, payloads: Payloads) -> None:
        """Remember the fields of the schemas that are known by now; asks nobody for more. May take
        a while: for threads."""
        from kafkascope.analyzer.payloads.known import field_paths

        found: list[tuple[Schema, tuple[Side, ...]]]
        found = [(each, _sides(each)) for each in payloads.known]
        found += [(each.schema, (side,)) for (_, side), each in payloads.known.assigned.items()]
        for schema, sides in found:
            key = (schema.format, schema.text)
            if key in self._learned or len(schema.text) > LONGEST:
                continue
            self._learned.add(key)
            paths = [".".join(spelled(str(step)) for step in path) for path in field_paths(schema)]
            for side in sides:
                self._remember(side, paths)

    def _remember(self, side: Side, paths: Iterable[str]) -> None:
        known = self._paths[side]
        for path in paths:
            if len(known) >= MOST_NAMES:
                return
            known[path] = None


def _sides(schema: Schema) -> tuple[Side, ...]:
    """Return what a schema is of, keys or values, as far as its subjects say so."""
    ends = {name.rpartition("-")[2] for name, _ in schema.subjects}
    sides: tuple[Side, ...] = ("key", "value")
    return tuple(side for side in sides if side in ends) or sides


def spelled(step: str) -> str:
    """Return the name of a field as a path has it: in quotes where it needs them."""
    if BARE.match(step):
        return step
    return '"' + step.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _paths(value: Any, front: str, depth: int) -> Iterator[str]:
    if isinstance(value, list):
        for each in value[:LOOKED_AT]:
            yield from _paths(each, front, depth)
    elif isinstance(value, dict) and depth < DEEPEST:
        for name, inner in value.items():
            path = f"{front}.{spelled(name)}" if front else spelled(name)
            yield path
            yield from _paths(inner, path, depth + 1)
