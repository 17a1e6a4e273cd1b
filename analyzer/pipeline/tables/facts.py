"""Facts across connections: each task yields its own, and one process merges them.

Nothing here depends on the order in which parts are merged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.findings import Findings, accumulators
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.codec.jsonform import dumps, loads
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import Assigned, KnownSchemas
from kafkascope.schemas.model import Schema, SchemaKey

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.statistics.model import Accumulator
    from kafkascope.schemas.framing import Side

# Ids that one task reports: what looks like an id may be anything.
MOST_MISSING: Final = 10_000
WHOLE: Final = "whole"
"""Name of the state of findings that are not only of what a filter chose."""


class TableFacts:
    """Topic names, counts of traffic that is not Kafka, and the states of all statistics."""

    def __init__(
        self, topics: dict[bytes, str] | None = None, schemas: SentSchemas | None = None
    ) -> None:
        """`topics`: names from earlier batches. `schemas`: what keys and values are decoded with
        where they are counted."""
        self.topics: dict[bytes, str] = dict(topics or {})
        self.opaque: Counter[str] = Counter()
        self.skipped_bytes = 0
        self.left_out: set[str] = set()
        """See `Context.left_out`."""
        self.exchanges = 0
        self.rows: Counter[str] = Counter()
        """Counts by table."""
        self.awaited: set[str] = set()
        """Topic ids that a filter was applied to before their names were known."""
        self.missing: set[SchemaKey] = set()
        """Ids of schemas that keys and values name and that nobody had."""
        self.payloads = None if schemas is None else schemas.payloads(self.missing)
        self.statistics: dict[str, Accumulator] = accumulators(self.payloads)
        self._merged: set[str] = set()
        """Names of statistics that have taken in a state."""
        self._whole: Findings | None = None

    def whole(self) -> Findings:
        """Return findings of all exchanges, for tables that hold some of them."""
        if self._whole is None:
            self._whole = self.statistics[WHOLE] = Findings(payloads=self.payloads)
        return self._whole

    def learn(self, topic_id: bytes, name: str) -> None:
        """Add a topic id and its name. Of two names for an id (there should be one) the smaller is
        kept."""
        known = self.topics.get(topic_id)
        if known is None or name < known:
            self.topics[topic_id] = name

    def take(self, context: Context) -> None:
        """Add what the conversations of a task have learned."""
        for topic_id, name in context.names.all().items():
            self.learn(topic_id, name)
        self.opaque.update(context.opaque)
        self.skipped_bytes += context.skipped_bytes
        self.left_out |= context.left_out()

    def names(self) -> TopicNames:
        return names_of(self.topics)

    def serialized(self) -> Iterator[tuple[str, str]]:
        """Yield all facts as (kind, JSON), to be merged elsewhere: see `states`."""
        yield "topics", dumped([[topic_id.hex(), name] for topic_id, name in self.topics.items()])
        rest = [dict(self.opaque), self.skipped_bytes, self.exchanges, dict(self.rows)]
        yield "counts", dumped([*rest, sorted(self.left_out)])
        if self.awaited:
            yield "awaited", dumped(sorted(self.awaited))
        if self.missing:
            yield "missing", dumped([list(each) for each in sorted(self.missing, key=str)])
        for name, _, state in self.states():
            text = dumped(state)
            del state
            yield f"statistic {name}", text

    def states(self) -> Iterator[tuple[str, int, Any]]:
        """Yield the name, version and state of each statistic, and release it before the next: the
        caller holds a copy of each."""
        self._whole = None
        # First those that read the others.
        names = sorted(self.statistics, key=lambda name: name not in (Findings.NAME, WHOLE))
        for name in names:
            statistic = self.statistics.pop(name)
            version, state = statistic.VERSION, statistic.dump()
            del statistic
            yield name, version, state
            del state

    def merge(self, kind: str, text: str) -> None:
        """Add facts of one kind, as JSON."""
        value = loads(text)
        if kind == "topics":
            for topic_id, topic in value:
                self.learn(bytes.fromhex(topic_id), topic)
        elif kind == "counts":
            self.opaque.update(value[0])
            self.skipped_bytes += value[1]
            self.exchanges += value[2]
            self.rows.update(value[3])
            self.left_out.update(value[4])
        elif kind == "awaited":
            self.awaited.update(value)
        elif kind == "missing":
            self.missing.update(SchemaKey(*each) for each in value)
        else:
            name = kind.partition(" ")[2]
            mine = self.whole() if name == WHOLE else self.statistics[name]
            if name in self._merged:
                mine.merge(type(mine)().load(value))
            else:
                self._merged.add(name)
                mine.load(value)

    def unsettled(self) -> bool:
        """Return whether another round would give other rows: a filter, or the schemas of a topic,
        would have seen a name that came later."""
        names = self.names() if self.awaited else TopicNames()
        return any(names.late(each) != each for each in self.awaited)


def names_of(topics: dict[bytes, str]) -> TopicNames:
    """Return names of topic ids in the form that rows use."""
    names = TopicNames()
    for topic_id, name in sorted(topics.items()):
        names.learn(topic_id, name)
    return names


def dumped(value: Any) -> str:
    """Return a value as JSON; `jsonform.loads` restores names that are not UTF-8."""
    return dumps(value).decode()


# --- schemas of keys and values: tasks decode with what they are sent, and report the ids that they
# lack; the driver asks registries and looks into the inputs


@dataclass(frozen=True, slots=True)
class SentSchemas:
    """Schemas for a task: texts, without paths and addresses of the driver."""

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
    """Return a digest of the schemas that the user gave; empty where there are none."""
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
