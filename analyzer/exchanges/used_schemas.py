"""Which schemas the records of a capture name, by their framing alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import compress
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.analyzer.exchanges.records import fields_of, topic_text
from kafkascope.dissectors.embedded.internal import is_internal

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Chosen, RecordField
    from kafkascope.analyzer.model import Exchange
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.payloads.framing import Side
    from kafkascope.analyzer.payloads.model import SchemaKey
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.records.records import Record

MOST_KEYS: Final = 100_000
"""Keys that are told apart: bytes that only look like ids may name many."""
MOST_TOPICS: Final = 100
"""Topics that are remembered of each."""
MOST_IN_ALL: Final = 500_000
"""The same of all together."""

SIDES: Final[tuple[Side, ...]] = ("key", "value")


class Use(NamedTuple):
    """Who names a schema."""

    counts: dict[Side, int]
    """Records whose key, or value, does."""
    topics: dict[str, None]
    """In the order in which they did first."""


class UsedSchemas:
    """Counts the records that name a schema, by its key. A record that is fetched counts each
    time, as in other statistics of records."""

    def __init__(self, names: TopicNames, payloads: Payloads) -> None:
        self._names: Final = names
        self._payloads: Final = payloads
        self.uses: dict[SchemaKey, Use] = {}
        self._topics = 0
        """Topics that are remembered, of all schemas."""

    def add(self, exchange: Exchange, chosen: Chosen | None = None) -> None:
        """Count the records of an exchange, all or the chosen ones."""
        for number, field in enumerate(fields_of(exchange, self._names)):
            only = True if chosen is None else chosen[number]
            if only and not is_internal(field.topic, field.topic_id):
                topic = topic_text(field)
                records = _records(field)
                for record in records if isinstance(only, bool) else compress(records, only):
                    if record is not None:
                        self._count(topic, record)

    def _count(self, topic: str, record: Record) -> None:
        for side, data in zip(SIDES, (record.key, record.value), strict=True):
            named = self._payloads.named(side, data, record.headers)
            if named is None:
                continue
            key, _ = named
            use = self.uses.get(key)
            if use is None:
                if len(self.uses) >= MOST_KEYS:
                    continue
                use = self.uses[key] = Use({"key": 0, "value": 0}, {})
            use.counts[side] += 1
            if len(use.topics) < MOST_TOPICS and self._topics < MOST_IN_ALL:
                self._topics += topic not in use.topics
                use.topics[topic] = None


def _records(field: RecordField) -> Iterator[Record | None]:
    """Yield the records of a field, as far as they can be read; None for a control record."""
    for batch, opened in field.opened():
        yield from [None] * len(opened.records) if batch.control else opened.records
