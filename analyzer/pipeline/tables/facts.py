"""Facts across connections: each task yields its own, and one process merges them.

Nothing here depends on the order in which parts are merged.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.findings import Findings, accumulators
from kafkascope.analyzer.payloads.model import SchemaKey
from kafkascope.analyzer.pipeline.moments import Awaited, Order, Questions
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import Endpoint
from kafkascope.dissectors.codec.jsonform import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.pipeline.schemas import SentSchemas
    from kafkascope.analyzer.statistics.model import Statistic

WHOLE: Final = "whole"
"""Name of the state of findings that are not only of what a filter chose."""


class Facts:
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
        self.brokers: dict[Endpoint, int] = {}
        """Endpoints that answered as Kafka, with the first packet that showed it. `sensitive` has
        those that connections needed to know and did not, with the last packet that asked."""
        self.sensitive: dict[Endpoint, int] = {}
        self.awaited: set[str] = set()
        """Topic ids that a filter was applied to before their names were known."""
        self.missing: set[SchemaKey] = set()
        """Ids of schemas that keys and values name and that nobody had."""
        self.late: list[tuple[int, Awaited]] = []
        """Turns of exchanges that came with deadlines."""
        self.order = Order()
        """Where these belong, once that is known."""
        self.tls: list[str] = []
        """Notes for `analyzer.pipeline.keys.Agreement`."""
        self.payloads = None if schemas is None else schemas.payloads(self.missing)
        self.statistics: dict[str, Statistic] = accumulators(self.payloads)
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
        """Return the names in the form that rows use."""
        names = TopicNames()
        for topic_id, name in sorted(self.topics.items()):
            names.learn(topic_id, name)
        return names

    def told(self) -> Iterator[tuple[str, str]]:
        """Yield all facts as (kind, JSON), to be merged elsewhere: see `states`."""
        for topic_id, name in self.topics.items():
            yield "topic", dumped([topic_id.hex(), name])
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
        """Yield the name, version and state of each statistic, and let go of it before the next:
        whoever takes them holds them all once more."""
        self._whole = None
        # First those that read the others.
        names = sorted(self.statistics, key=lambda name: name not in (Findings.NAME, WHOLE))
        for name in names:
            yield self._taken(name)

    def _taken(self, name: str) -> tuple[str, int, Any]:
        """Return the name, version and state of a statistic that nobody needs any longer."""
        statistic = self.statistics.pop(name)
        return name, statistic.VERSION, statistic.dump()

    def merge(self, kind: str, text: str) -> None:
        """Add one result of `told`."""
        if kind == "tls":
            self.tls.append(text)
            return
        value = loads(text)
        if kind == "topic":
            self.learn(bytes.fromhex(value[0]), value[1])
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
        elif kind == "late":
            self.late += [(turn, Awaited(*late)) for turn, *late in value]
        elif kind == "broker":
            endpoint = Endpoint(value[0], value[1])
            self.brokers[endpoint] = min(value[2], self.brokers.get(endpoint, value[2]))
        elif kind == "sensitive":
            endpoint = Endpoint(value[0], value[1])
            self.sensitive[endpoint] = max(value[2], self.sensitive.get(endpoint, 0))
        else:
            name = kind.partition(" ")[2]
            mine = self.whole() if name == WHOLE else self.statistics[name]
            if name in self._merged:
                mine.merge(type(mine)().load(value))
            else:
                self._merged.add(name)
                mine.load(value)

    def merge_all(self, batch: pa.RecordBatch) -> None:
        """Add all facts of a batch."""
        for kind, text in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            self.merge(kind, text)

    def put_in_order(self, ask: Callable[[Questions], Iterable[pa.RecordBatch]]) -> None:
        """Learn where late turns belong; `ask` returns what the packets answer."""
        if self.late:
            asked = Questions(late for _, late in self.late)
            found = (batch.columns for batch in ask(asked)) if asked.questions else ()
            answers = [
                pair
                for columns in found
                for pair in zip(*(column.to_pylist() for column in columns), strict=True)
            ]
            self.order = Order(self.late, answers)

    def unsettled(self) -> bool:
        """Return whether another round would give other rows: a connection would have been read
        differently with the facts of others, or a filter would have seen a name that came later."""
        if any(
            self.brokers.get(endpoint, asked) < asked for endpoint, asked in self.sensitive.items()
        ):
            return True
        names = self.names() if self.awaited else TopicNames()
        return any(names.late(each) != each for each in self.awaited)


def dumped(value: Any) -> str:
    """Return a value as JSON; `jsonform.loads` restores names that are not UTF-8."""
    return dumps(value).decode()
