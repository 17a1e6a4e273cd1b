"""Decodes the records of an exchange by their schemas: the values of the filter language's fields.

State without I/O of its own: the names of fields that were seen, and values of the last exchange.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.exchanges.limits import LIMITS as EXCHANGE_LIMITS
from kafkascope.analyzer.filter.limits import LIMITS
from kafkascope.schemas.framing import worth
from kafkascope.schemas.paths import values as values_at

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.paths import Path
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.records.records import Record
    from kafkascope.schemas.decoding import Decoded, Payloads
    from kafkascope.schemas.framing import Side
    from kafkascope.schemas.model import Schema, SchemaKey


Values: TypeAlias = tuple[Any, ...]
Found: TypeAlias = "tuple[Side, Decoded]"

SIDES: Final[dict[str, Side]] = {"record.key": "key", "record.value": "value"}
LACKING: Final = frozenset({"unknown-schema", "bad-schema"})
"""Reasons that another schema may do away with."""
# Bytes of keys and values of one exchange up to which it is decoded once for all tests of a filter.
KEPT: Final = 1 << 20


class Decoding:
    """Decodes the records of exchanges for filters."""

    def __init__(
        self,
        payloads: Callable[[], Payloads | None],
        names: Callable[[], TopicNames],
        *,
        guard: AbstractContextManager[Any] | None = None,
        enough: Callable[[int], bool] | None = None,
    ) -> None:
        """`payloads`, `names`: called when a filter first needs them. `guard`: held while a key or
        value is decoded, where other threads decode with the same `Payloads`. `enough`: whether no
        more records of an exchange are decoded, after so many bytes of keys, values and headers."""
        self._payloads = payloads
        self._names = names
        self._guard = guard or nullcontext()
        self._last: tuple[Exchange, int, list[Found]] | None = None
        self._fields = FieldNames()
        self._enough = enough
        self.lacked = False
        """Whether a schema was missing for a key or value since `begin`: with more schemas a filter
        may come to another result."""
        self.unknown: dict[SchemaKey, None] = {}
        """The schemas that were missing, as far as keys and values name them; some of many."""
        self.cut = False
        """Whether records were left out."""

    def begin(self) -> None:
        """Forget what was missing: another exchange follows."""
        self.lacked = self.cut = False
        self.unknown.clear()

    def values(self, exchange: Exchange | None, name: str, path: Path) -> Values:
        """Return the values of a field in all records of an exchange."""
        if exchange is None:
            return ()
        return read(self._of(exchange), name, path)

    @property
    def changes(self) -> int:
        """Goes up with every schema that becomes known."""
        payloads = self._payloads()
        return 0 if payloads is None else payloads.known.changes

    def of_record(self, topic: str | None, record: Record) -> Iterator[Found]:
        """Yield the decoded key and value of a record."""
        payloads = self._payloads()
        if payloads is None or _size(record) > EXCHANGE_LIMITS.record_bytes:
            return
        sides: tuple[tuple[Side, bytes | None], ...]
        sides = (("key", record.key), ("value", record.value))
        for side, data in sides:
            if data is None:
                continue
            with self._guard:
                decoded = payloads.decode(topic, side, data, record.headers)
            if decoded is None:
                self.lacked = self.lacked or worth(data, ())
                continue
            if decoded.error is None:
                self._fields.look(side, decoded)
            yield side, decoded

    def _of(self, exchange: Exchange) -> Iterable[Found]:
        payloads = self._payloads()
        if payloads is None:
            return ()
        changes = payloads.known.changes
        if self._last is not None and self._last[0] is exchange and self._last[1] == changes:
            return self._last[2]
        return self._fresh(exchange)

    def _fresh(self, exchange: Exchange) -> Iterator[Found]:
        kept: list[Found] | None = []
        size = 0
        for topic, record in _records(exchange, self._names()):
            size += _size(record)
            if self._enough is not None and self._enough(size):
                self.cut = True
                break
            for found in self.of_record(topic, record):
                if found[1].error is not None:
                    self._missed(found[1])
                if kept is not None:
                    kept.append(found)
                yield found
            if size > KEPT:
                kept = None
        payloads = self._payloads()
        if kept is not None and payloads is not None:
            self._last = exchange, payloads.known.changes, kept

    def _missed(self, decoded: Decoded) -> None:
        assert decoded.error is not None
        self.lacked = self.lacked or decoded.error.reason in LACKING
        key = decoded.key if decoded.error.reason == "unknown-schema" else None
        if key is not None and len(self.unknown) < LIMITS.unknown_schemas:
            self.unknown[key] = None

    def learn(self) -> None:
        """Learn the fields of the schemas that are known by now, for `seen`; requests no schema.
        May take a while: for threads."""
        payloads = self._payloads()
        if payloads is not None:
            with self._guard:
                payloads.known.update()
            self._fields.learn(payloads)

    def seen(self, name: str) -> Iterable[str]:
        """Return the names of fields for `record.value.` and `record.key.`, and the values of the
        fields of schemas, as far as they are known."""
        if name.rstrip(".") in SIDES and name.endswith("."):
            return self._fields.of(SIDES[name[:-1]])
        payloads = self._payloads() if name in ("schema.id", "schema.subject") else None
        if payloads is None:
            return ()
        if name == "schema.id":
            keys = (key for schema in payloads.known for key in schema.keys)
            return dict.fromkeys(str(key.value) for key in keys)
        subjects = (subject for schema in payloads.known for subject, _ in schema.subjects)
        return dict.fromkeys(subjects)


def read(found: Iterable[Found], name: str, path: Path) -> Values:
    """Return the values of a field in decoded keys and values."""
    if path:
        wanted, steps = SIDES[str(path[0])], path[1:]
        return tuple(
            value
            for side, decoded in found
            if side == wanted and decoded.error is None
            for value in values_at(decoded.value, steps)
        )
    get = _OF_SCHEMAS[name]
    return tuple(value for _, decoded in found for value in get(decoded))


def _ids(decoded: Decoded) -> Iterator[Any]:
    if decoded.key is not None:
        yield decoded.key.value
        if decoded.key.namespace == "guid" and decoded.found is not None:
            keys = decoded.found.schema.keys
            yield from (key.value for key in keys if key.namespace == "id")


_OF_SCHEMAS: Final[dict[str, Callable[[Decoded], Iterable[Any]]]] = {
    "schema.id": _ids,
    "schema.subject": lambda d: (d.found.subject,) if d.found and d.found.subject else (),
    "schema.type": lambda d: (
        (d.found.codec.type_name,) if d.found and d.found.codec.type_name else ()
    ),
    "schema.error": lambda d: () if d.error is None else (d.error.reason,),
}


def _records(exchange: Exchange, names: TopicNames) -> Iterator[tuple[str | None, Record]]:
    """Yield the records of an exchange with their topic, as far as they can be read. Internal
    topics have formats of their own."""
    from kafkascope.analyzer.exchanges.records import fields_of
    from kafkascope.dissectors.embedded.internal import is_internal

    for field in fields_of(exchange, names):
        if is_internal(field.topic, field.topic_id):
            continue
        for batch, opened in field.opened():
            if not batch.control:
                yield from ((field.topic, record) for record in opened.records)


def _size(record: Record) -> int:
    size = len(record.key or b"") + len(record.value or b"")
    return size + sum(len(name) + len(value or b"") for name, value in record.headers)


# Values of each schema whose fields are remembered.
LOOKED_AT: Final = 16
# Steps of a path that is remembered.
DEEPEST: Final = 8
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
        if count >= LOOKED_AT or len(self._looked) >= LIMITS.paths:
            return
        self._looked[key] = count + 1
        self._remember(side, _paths(decoded.value, "", 0))

    def learn(self, payloads: Payloads) -> None:
        """Remember the fields of the schemas that are known by now; requests no schema. May take a
        while: for threads."""
        from kafkascope.schemas.known import field_paths

        found: list[tuple[Schema, tuple[Side, ...]]]
        found = [(each, _sides(each)) for each in payloads.known]
        found += [(each.schema, (side,)) for (_, side), each in payloads.known.assigned.items()]
        for schema, sides in found:
            key = (schema.format, schema.text)
            if key in self._learned or len(schema.text) > LIMITS.schema_chars:
                continue
            self._learned.add(key)
            paths = [".".join(spelled(str(step)) for step in path) for path in field_paths(schema)]
            for side in sides:
                self._remember(side, paths)

    def _remember(self, side: Side, paths: Iterable[str]) -> None:
        known = self._paths[side]
        for path in paths:
            if len(known) >= LIMITS.paths:
                return
            known[path] = None


def _sides(schema: Schema) -> tuple[Side, ...]:
    """Return whether a schema is for keys or values, by its subjects."""
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
