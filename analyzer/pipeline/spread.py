"""Dissection apart from reassembly: one task per connection does what needs its order (reassembly,
frames, pairs) and sends the pairs to all tasks, which decode and count them.

For captures in which few connections have most of the bytes. The rows are the same; the bytes of
messages are moved once more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafkascope.analyzer.bodies import facts, fetch_sessions
from kafkascope.analyzer.bodies.dissection import PRODUCE, dissect_request, dissect_response
from kafkascope.analyzer.bodies.fetch_sessions import FetchSession, Implied
from kafkascope.analyzer.bodies.waits import WAITING
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.phases import STATEFUL
from kafkascope.analyzer.exchanges.internal import learn_from_log
from kafkascope.analyzer.model import (
    Exchange,
    Frame,
    Note,
    Part,
    Request,
    Response,
    ZooKeeperFacts,
)
from kafkascope.analyzer.pipeline.schemas import SentSchemas
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.collect import TableCollector, TableOptions, Told
from kafkascope.analyzer.pipeline.tables.facts import dumped
from kafkascope.analyzer.pipeline.tables.schemas import PAIRS
from kafkascope.captures.model import Connection, Endpoint, TlsSummary
from kafkascope.dissectors.codec.jsonform import loads
from kafkascope.dissectors.registry import RequestHeader
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    from kafkascope.analyzer.model import Side, Undecoded
    from kafkascope.dissectors.registry import Decoded

NEEDED: Final = STATEFUL | fetch_sessions.KEYS | WAITING | {PRODUCE}
"""Keys of the APIs that are decoded by the connection's own task, too: later messages depend on
their acks, sessions and waits."""
MOST_IMPLIED: Final = 1000
"""Partitions of a fetch session that are sent with each of its requests."""
ROWS: Final = 4096
BYTES: Final = 8 << 20
"""Bytes of a batch of pairs."""


class Pairs:
    """Exchanges to be sent to other tasks."""

    def __init__(self, options: TableOptions) -> None:
        self._all_parts = options.frames
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0
        self._packed = 0

    def take(self, exchange: Exchange) -> bool:
        """Add an exchange; return False when the rows are better made here: it has no body to
        decode elsewhere, or needs too much context."""
        session = exchange.fetch_session
        if exchange.api_key is None or (
            session is not None
            and session.implied is not None
            and session.implied.size > MOST_IMPLIED
        ):
            return False
        asked, answer = _payload(exchange.request), _payload(exchange.response)
        about = dumped(_about(exchange, self._all_parts))
        self._rows.append((PAIRS.name, exchange.number, about, asked, answer))
        self._bytes += len(about) + len(asked or b"") + len(answer or b"")
        return True

    def ready(self, *, last: bool = False) -> Iterator[Told]:
        """Yield the batch, when it is full or the last one."""
        if self._rows and (last or self._bytes > BYTES or len(self._rows) >= ROWS):
            yield PAIRS.name, record_batch(self._rows, PAIRS.schema)
            self._rows.clear()
            self._bytes = 0

    def packed(self, table: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of another table in the form of pairs, to be sent along with them."""
        self._packed += 1
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        row = (table, self._packed, "", sink.getvalue().to_pybytes(), None)
        return record_batch([row], PAIRS.schema)


class Dissection:
    """One of the other tasks: takes batches of pairs, yields rows of tables, and facts at the
    end."""

    def __init__(
        self,
        options: TableOptions,
        schemas: SentSchemas | None = None,
        topics: Mapping[bytes, str] | None = None,
    ) -> None:
        """`topics`: names that are known in advance."""
        self._context = Context(options.decode_as)
        self._context.names.learn_all(topics or {})
        self._collector = TableCollector(self._context, options, schemas=schemas)

    def feed(self, batch: pa.RecordBatch) -> Iterator[Told]:
        """Decode and count pairs; pass on rows of other tables."""
        for table, place, about, asked, answer in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if table != PAIRS.name:
                yield from ((table, each) for each in pa.ipc.open_stream(asked))
                continue
            exchange = self._exchange(place, loads(about), asked, answer)
            learn_from_log(exchange, self._context.names)
            self._collector.tell(exchange)
            yield from self._collector.ready()

    def finish(self) -> Iterator[Told]:
        """Return the remaining rows."""
        return self._collector.finish()

    def _exchange(
        self, number: int, about: Any, asked: bytes | None, answer: bytes | None
    ) -> Exchange:
        id_, state, ends, side, header, who, notes, frames, session, *rest = about
        ended_ns, wait_ns, tls, spoken = rest
        key, version, correlation_id, client_id, end = header
        api, software, user, mechanism, reason = who
        connection = _connection(ends)
        client, broker = connection.ends(side)
        head = RequestHeader(key, version, correlation_id, client_id, [], end)
        request = response = None
        undecoded: tuple[Undecoded, ...] = ()
        bodies: list[Decoded | None] = [None, None]
        if asked is not None:
            frame = _frame(asked, frames[0])
            bodies[0], undecoded = dissect_request(frame, head)
            request = Request(frame, head, bodies[0])
        if answer is not None:
            frame = _frame(answer, frames[1])
            bodies[1], more = dissect_response(frame, head)
            undecoded += more
            response = Response(frame, head.correlation_id, bodies[1])
        for decoded in bodies:
            if decoded is not None:
                facts.learn(decoded.layout, decoded.body, self._context.names)
        return Exchange(
            number,
            id_,
            state,
            connection,
            client,
            broker,
            key,
            api,
            version,
            correlation_id,
            client_id,
            request,
            response,
            software,
            user,
            mechanism,
            reason,
            undecoded,
            _notes(notes, bodies),
            None if session is None else _session(session),
            ended_ns,
            wait_ns,
            None if tls is None else TlsSummary(*tls),
            zookeeper=None if spoken is None else ZooKeeperFacts(*spoken),
        )


def dissected(
    batches: Iterable[pa.RecordBatch],
    options: TableOptions,
    schemas: SentSchemas | None = None,
    topics: Mapping[bytes, str] | None = None,
) -> Iterator[Told]:
    """Yield the rows of one of the other tasks."""
    task = Dissection(options, schemas, topics)
    for batch in batches:
        yield from task.feed(batch)
    yield from task.finish()


def _payload(side: Request | Response | None) -> bytes | None:
    return None if side is None else side.frame.payload


def _about(exchange: Exchange, all_parts: bool) -> list[Any]:
    """Return all values of an exchange except the bytes of its messages and what follows from
    them."""
    connection, session = exchange.connection, exchange.fetch_session
    request = exchange.request
    end = 0 if request is None or request.header is None else request.header.end
    header = (exchange.api_key, exchange.api_version, exchange.correlation_id)
    return [
        exchange.id,
        exchange.state,
        [
            *(connection.number, *connection.a, *connection.b, connection.first_ns),
            *(connection.handshake, connection.last_ns, connection.handshake_ns),
            connection.gap_bytes,
            *(connection.via, connection.origin),
        ],
        exchange.client_end,
        [*header, exchange.client_id, end],
        [exchange.api, exchange.software, exchange.user, exchange.mechanism, exchange.reason],
        # Notes that follow from bodies are made again.
        [list(each) for each in exchange.notes if each.severity != "chat"],
        [
            None if side is None else _place(side.frame, all_parts)
            for side in (request, exchange.response)
        ],
        None if session is None else _told(session),
        exchange.ended_ns,
        exchange.wait_ns,
        exchange.tls,
        exchange.zookeeper,
    ]


def _place(frame: Frame, all_parts: bool) -> list[Any]:
    parts = frame.parts if all_parts else frame.parts[:1]
    return [frame.offset, frame.size, frame.first_ns, frame.last_ns, parts, frame.cut]


def _frame(payload: bytes, place: list[Any]) -> Frame:
    offset, size, first_ns, last_ns, parts, cut = place
    return Frame(
        payload, offset, size, first_ns, last_ns, tuple(Part(*each) for each in parts), cut
    )


def _connection(values: list[Any]) -> Connection:
    number, a, a_port, b, b_port, first_ns, handshake, last_ns, handshake_ns, *rest = values
    gap_bytes, via, origin = rest
    return Connection(
        number,
        Endpoint(a, a_port),
        Endpoint(b, b_port),
        first_ns,
        handshake,
        last_ns,
        handshake_ns,
        gap_bytes=gap_bytes,
        via=via,
        origin=None if origin is None else Endpoint(*origin),
    )


def _notes(values: list[Any], bodies: list[Decoded | None]) -> tuple[Note, ...]:
    """Return the notes in a conversation's order: of the response's frame, of the bodies, of the
    bytes before."""
    notes = [Note(*each) for each in values]
    sides: tuple[Side, Side] = ("request", "response")
    said = [
        Note("chat", decoded.note, side)
        for decoded, side in zip(bodies, sides, strict=True)
        if decoded is not None and decoded.note
    ]
    own = [each for each in notes if each.side]
    return (*own, *said, *(each for each in notes if not each.side))


def _told(session: FetchSession) -> str:
    """Return a session as text, which is mostly the same as the previous one."""
    implied = session.implied
    topics = partitions = None
    if implied is not None:
        places = {topic: place for place, topic in enumerate(implied.topics)}
        topics = [["", t.hex()] if isinstance(t, bytes) else [t, ""] for t in implied.topics]
        partitions = [[places[topic], number] for topic, number in implied.partitions or ()]
    return dumped([session.id, session.epoch, topics, partitions, session.incremental])


@lru_cache(maxsize=64)
def _session(text: str) -> FetchSession:
    id_, epoch, topics, partitions, incremental = loads(text)
    implied = None
    if topics is not None:
        known = [Uuid(bytes.fromhex(topic_id)) if topic_id else name for name, topic_id in topics]
        pairs = [(known[place], number) for place, number in partitions]
        implied = Implied(len(pairs), tuple(pairs), tuple(known))
    return FetchSession(id_, epoch, implied, incremental)


__all__ = ["NEEDED", "Dissection", "Pairs", "dissected"]
