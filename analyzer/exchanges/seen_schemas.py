"""Schemas that a capture holds: in records of registries' topics, and in HTTP with registries.

`schemas_in` reads files once with everything else off. `SeenSchemas` listens to any reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.conversation.phases import STATEFUL
from kafkascope.analyzer.exchanges.records import FETCH, PRODUCE, fields_of, topic_text
from kafkascope.analyzer.payloads import journal, rest
from kafkascope.analyzer.payloads.gathered import Gathered, Hears

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.facts import BodyFacts
    from kafkascope.analyzer.exchanges.offline import Capture, Legs, PathLike
    from kafkascope.analyzer.exchanges.records import RecordField
    from kafkascope.analyzer.model import Exchange, HttpExchange, HttpHead
    from kafkascope.analyzer.payloads.model import Schema, SchemaKey
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.captures.model import StreamEvent
    from kafkascope.dissectors.records.records import Record

METADATA: Final = 3
NEEDED: Final = STATEFUL | {PRODUCE, FETCH, METADATA}
"""Keys of the APIs whose bodies are read; metadata names the topics."""
MOST_TOPICS: Final = 100_000
"""Topics of which it is remembered what their keys are, and as many that hold schemas."""
LONGEST_TOPIC: Final = 249
"""Characters of the name of a topic that brokers take; of others nothing is remembered."""


class SeenSchemas:
    """Collects the schemas of one capture: a listener to its exchanges, and the consumer of its
    HTTP."""

    def __init__(self, names: TopicNames, hears: Hears | None = None) -> None:
        """`names`: of topics, as the capture tells them. `hears`: who puts together what is said,
        in place of this."""
        self._names: Final = names
        self._gathered: Final = Gathered("capture")
        self._hears: Hears = self._gathered if hears is None else hears
        self.journals: dict[str | bytes, bool] = {}
        """Whether the keys of a topic are those of a registry's journal, by its first record."""

    # --- a listener, as `offline.Listener`

    def event(self, event: StreamEvent) -> None:
        """Take no note of events."""

    def exchange(self, exchange: Exchange) -> None:
        """Look for schemas in the records of an exchange."""
        if exchange.api_key not in (PRODUCE, FETCH):
            return
        facts = exchange.facts
        if facts is not None and self._dull(facts):
            return  # its records need not be read
        for field in fields_of(exchange, self._names):
            self.field(field)

    def _dull(self, facts: BodyFacts) -> bool:
        """Return whether no topic of an exchange is worth looking at."""
        journals, names = self.journals, self._names
        return all(journals.get(topic) is False for topic in facts.topics) and all(
            journals.get(names.get(topic_id) or topic_id) is False for topic_id in facts.topic_ids
        )

    def field(self, field: RecordField) -> bool:
        """Look for schemas in a records field; return whether its topic is worth looking at."""
        topic = field.topic or field.topic_id or ""
        if self.journals.get(topic) is False:
            return False
        return all(
            batch.control or self._take(field, opened.records, topic)
            for batch, opened in field.opened()
        )

    def _take(self, field: RecordField, records: Sequence[Record], topic: str | bytes) -> bool:
        """Take the records of a batch; return whether its topic is worth looking at."""
        known = self.journals.get(topic)
        if known is None and records:
            known = journal.is_key(records[0].key)
            room = MOST_TOPICS * (2 if known else 1)
            if len(self.journals) < room and len(topic) <= LONGEST_TOPIC:
                self.journals[topic] = known
        if not known:
            return not records
        name = topic_text(field)
        for record in records:
            found = journal.said_by(record.key, record.value)
            if found is not None:
                self._hears.add(f"topic {name} {found.context}", f"topic {name}", found.said)
        return True

    # --- a consumer of HTTP, as `model.HttpConsumer`

    def wants(self, request: HttpHead) -> bool:
        """Return whether a request may be one to a registry."""
        return rest.wants(request)

    def take(self, exchange: HttpExchange) -> None:
        """Look for schemas in an exchange of HTTP."""
        found = rest.told_by(
            exchange.request, exchange.request_body, exchange.response, exchange.response_body
        )
        server = str(exchange.server)
        self._hears.leave_out(server, exchange.response_body)
        for context, said in found:
            self._hears.add(f"{server} {context}", server, said)

    # --- what was found

    @property
    def changes(self) -> int:
        """Goes up when something new is said about a schema."""
        return self._gathered.changes

    def schemas(self) -> list[Schema]:
        """Return the schemas, those first that were named first."""
        return self._gathered.schemas()

    def since(self, changes: int) -> list[Schema]:
        """Return those of which something was said since `changes` had this value."""
        return self._gathered.since(changes)

    def missing(self) -> dict[SchemaKey, str]:
        """Return the keys that a registry said it does not know, with its address."""
        return self._gathered.missing()

    @property
    def problems(self) -> list[str]:
        """Sentences about schemas that were left out."""
        return self._gathered.problems


def listen(capture: Capture) -> SeenSchemas:
    """Take note of the schemas in what will be read of a capture."""
    seen = SeenSchemas(capture.context.names)
    capture.schemas = capture.context.http = seen
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
        context = capture.context
        context.bodies = False
        context.stateful = NEEDED
        seen = SeenSchemas(context.names)
        context.http = capture.listener = seen
        for _ in capture.exchanges():
            pass
        return seen


def schemas_in(
    inputs: Iterable[PathLike],
    *,
    keylog: Iterable[PathLike] = (),
    decode_as: Iterable[int] = (),
    legs: Legs = "client",
) -> list[Schema]:
    """Return the schemas that captures hold."""
    return seen_in(inputs, keylog=keylog, decode_as=decode_as, legs=legs).schemas()
