"""Schemas that a capture holds: in records of registries' topics, and in HTTP with registries; and
which schemas its records name, by their framing alone.

`schemas_in` reads files once with everything else off. `SeenSchemas` listens to any reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.pairs import api_key_of, exchange_of
from kafkascope.analyzer.exchanges.records import FETCH, PRODUCE, fields_of, topic_text
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.schemas import journal, rest
from kafkascope.schemas.observed import ObservedSchemas

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.facts import BodyFacts
    from kafkascope.analyzer.exchanges.offline import Legs, OpenInput, PathLike
    from kafkascope.analyzer.exchanges.pairs import Item
    from kafkascope.analyzer.exchanges.records import Chosen, RecordField
    from kafkascope.analyzer.model import Exchange, HttpExchange
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.records.records import Record
    from kafkascope.kernel.walker import Facts
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.framing import Side
    from kafkascope.schemas.http_head import HttpHead
    from kafkascope.schemas.model import SchemaKey

SIDES: Final[tuple[Side, ...]] = ("key", "value")


class SeenSchemas(ObservedSchemas):
    """Collects the schemas of one capture: a listener to its exchanges, and the consumer of its
    HTTP."""

    def __init__(self, names: TopicNames) -> None:
        """`names`: of the topics in the capture."""
        super().__init__("capture")
        self._names: Final = names
        self.journals: dict[str | bytes, bool] = {}
        """Whether the keys of a topic are those of a registry's journal, by its first record."""

    def exchange(self, item: Item) -> None:
        """Look for schemas in the records of an exchange."""
        key, facts = api_key_of(item), item.facts
        if key not in (PRODUCE, FETCH):
            return
        if facts is not None and self._dull(facts):
            return  # its records need not be read
        for field in fields_of(exchange_of(item), self._names):
            self.field(field)

    def _dull(self, facts: BodyFacts | Facts) -> bool:
        """Return whether no topic of an exchange is worth looking at."""
        journals, names = self.journals, self._names
        return all(journals.get(topic) is False for topic in facts.topics or ()) and all(
            journals.get(names.get(topic_id) or topic_id) is False
            for topic_id in facts.topic_ids or ()
        )

    def field(self, field: RecordField) -> bool:
        """Look for schemas in a records field; return whether its topic is worth looking at."""
        topic = field.topic or field.topic_id or ""
        if self.journals.get(topic) is False:
            return False
        return all(
            batch.control or self._journal(field, opened.records, topic)
            for batch, opened in field.opened()
        )

    def _journal(self, field: RecordField, records: Sequence[Record], topic: str | bytes) -> bool:
        """Take the records of a batch; return whether its topic is worth looking at."""
        known = self.journals.get(topic)
        if known is None and records:
            known = journal.is_key(records[0].key)
            room = LIMITS.schema_topics * (2 if known else 1)
            if len(self.journals) < room and len(topic) <= LIMITS.topic_chars:
                self.journals[topic] = known
        if not known:
            return not records
        name = topic_text(field)
        for record in records:
            found = journal.schema_in(record.key, record.value)
            if found is not None:
                self.add(f"topic {name} {found.context}", f"topic {name}", found)
        return True

    # --- a consumer of HTTP, as `model.HttpConsumer`

    def wants(self, request: HttpHead) -> bool:
        return rest.wants(request)

    def take(self, exchange: HttpExchange) -> None:
        """Look for schemas in an exchange of HTTP."""
        found = rest.observations(
            exchange.request, exchange.request_body, exchange.response, exchange.response_body
        )
        server = str(exchange.server)
        self.leave_out(server, exchange.response_body)
        for said in found:
            self.add(f"{server} {said.context}", server, said)


def listen(capture: OpenInput) -> SeenSchemas:
    """Take note of the schemas in what will be read of a capture."""
    seen = SeenSchemas(capture.context.names)
    capture.look, capture.context.http = seen.exchange, seen
    return seen


def seen_in(
    inputs: Iterable[PathLike],
    *,
    keylog: Iterable[PathLike] = (),
    decode_as: Iterable[int] = (),
    legs: Legs = "client",
) -> SeenSchemas:
    """Read captures once, for nothing but their schemas; `CaptureError` as `open_capture`."""
    from kafkascope.analyzer.exchanges.offline import open_capture

    with open_capture(inputs, keylog=keylog, decode_as=decode_as, legs=legs) as capture:
        seen = listen(capture)
        for _ in capture.batches():
            pass
        return seen


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
                if len(self.uses) >= LIMITS.schema_ids:
                    continue
                use = self.uses[key] = Use({"key": 0, "value": 0}, {})
            use.counts[side] += 1
            if (
                len(use.topics) < LIMITS.topics_of_schema_id
                and self._topics < LIMITS.topics_of_schema_ids
            ):
                self._topics += topic not in use.topics
                use.topics[topic] = None


def _records(field: RecordField) -> Iterator[Record | None]:
    """Yield the records of a field, as far as they can be read; None for a control record."""
    for batch, opened in field.opened():
        yield from [None] * len(opened.records) if batch.control else opened.records
