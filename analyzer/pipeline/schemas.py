"""Schemas of keys and values on their way to tasks.

Tasks decode with what they are sent, and report the ids that they lack; the driver asks registries
and looks into the inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.payloads.decoding import Payloads
from kafkascope.analyzer.payloads.known import Assigned, KnownSchemas
from kafkascope.analyzer.payloads.model import Schema, SchemaKey

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.framing import Side

MOST_MISSING: Final = 10_000
"""Ids that one task reports: what looks like an id may be anything."""


@dataclass(frozen=True, slots=True)
class SentSchemas:
    """What a task decodes with: texts, no paths and addresses of the driver."""

    schemas: tuple[Schema, ...] = ()
    assigned: dict[tuple[str, Side], Assigned] = field(default_factory=dict)

    def payloads(self, missing: set[SchemaKey]) -> Payloads:
        """Return what decodes; ids without a schema are added to `missing`."""

        def lacks(key: SchemaKey) -> None:
            if len(missing) < MOST_MISSING:
                missing.add(key)

        known = KnownSchemas(self.schemas, assigned=self.assigned, registry=lacks)
        return Payloads(known, late_names=True)


def sent(known: KnownSchemas) -> SentSchemas:
    """Return what the driver knows, for tasks."""
    return SentSchemas(
        tuple(replace(each, origin="") for each in known),
        {
            key: each._replace(schema=replace(each.schema, origin=""))
            for key, each in known.assigned.items()
        },
    )


def identity_of(known: KnownSchemas) -> list[Any]:
    """Return what tells the schemas that the user gave from others; empty where there are none."""
    all_ = sent(known)
    given = [repr(each) for each in all_.schemas if each.source == "folder"]
    found = [*given, *(repr(each) for each in sorted(all_.assigned.items(), key=repr))]
    return [blake2b("\n".join(found).encode(), digest_size=8).hexdigest()] if found else []


def learned(known: KnownSchemas, missing: Iterable[SchemaKey]) -> bool:
    """Look for the schemas that tasks lacked; return whether there are more now."""
    before = known.changes
    for key in sorted(missing, key=str):
        known.find(key)
    return known.changes != before
