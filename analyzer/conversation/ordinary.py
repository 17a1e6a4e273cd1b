"""The wall between the kernel, which reads a connection while all is ordinary, and the general
conversation, which reads it when something is not: what is handed over, and back.

Requests in flight and bytes of frames that are not whole go to the general conversation; the other
way nothing does, for it hands over only when nothing waits.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.bodies import facts as body_facts
from kafkascope.analyzer.bodies import log_ends, nodes
from kafkascope.analyzer.bodies.contents import counted
from kafkascope.analyzer.bodies.facts import TEXTS, BodyFacts
from kafkascope.analyzer.bodies.fetch_sessions import SHARE_ACKNOWLEDGE, SHARE_FETCH
from kafkascope.analyzer.bodies.trees import node_of
from kafkascope.analyzer.conversation.pending import Pending
from kafkascope.analyzer.conversation.phases import STATEFUL
from kafkascope.analyzer.model import (
    Exchange,
    Frame,
    Later,
    Origin,
    Part,
    Request,
    Response,
    Unmade,
    spot,
)
from kafkascope.captures.model import BEHIND_ALL, Chunk, Piece
from kafkascope.dissectors.codec.reader import reader
from kafkascope.dissectors.registry import (
    APIS,
    Decoded,
    RequestHeader,
    decode_request,
    decode_response,
    layout_of,
    request_header_version,
    response_header_version,
    variants_of,
)
from kafkascope.kernel.pairs import Pair, PairSink, Plan, Reader
from kafkascope.kernel.walker import Facts, walk_request, walk_response

if TYPE_CHECKING:
    from kafkascope.analyzer.bodies.fetch_sessions import FetchSessions
    from kafkascope.analyzer.bodies.waits import Waits
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.conversation.phases import Phases
    from kafkascope.captures.model import Connection, Endpoint
    from kafkascope.dissectors.layout import Layout

GENERAL: Final = STATEFUL | {SHARE_FETCH, SHARE_ACKNOWLEDGE}
"""Keys of the APIs that the general conversation reads."""

Completed: TypeAlias = Exchange | Pair
"""An exchange as either of the two readers completes it; `exchanges.pairs.exchange_of` makes an
object of it."""

PLANS: Final[dict[int, Plan]] = {}
"""By key and version, as far as they were met."""
# Bytes of the size field of a frame.
LEAST: Final = 4
ACKS_0: Final = "acks=0: no response is sent"


def plan_of(key: int, version: int) -> Plan | None:
    """Return how the kernel reads a version; None where the general conversation does."""
    api = APIS.get(key)
    # There are too many keys and versions that nobody has to remember what is not read.
    known = api is not None and version in api.versions and key not in GENERAL
    return _plan(key, version) if known else None


@cache
def _plan(key: int, version: int) -> Plan | None:
    api = APIS[key]
    names = f"{api.name}Request", f"{api.name}Response"
    if any(variants_of(name, version) for name in names):
        return None
    request, response = layouts_of(key, version)
    plan = Plan(api.name, key, version, node_of(request), node_of(response))
    plan.flexible = request_header_version(key, version) == 2
    plan.response_at = 4 + response_header_version(key, version)
    plan.request_teaches, plan.response_teaches = teaches(request), teaches(response)
    return plan


@cache
def layouts_of(key: int, version: int) -> tuple[Layout, Layout]:
    name = APIS[key].name
    return layout_of(f"{name}Request", version), layout_of(f"{name}Response", version)


@cache
def teaches(layout: Layout) -> bool:
    """Return whether a body may hold what the context learns; those of most requests do not."""
    return body_facts.teaches(layout) or nodes.teaches(layout)


class Ordinary:
    """The kernel's reader of one connection, with the state that it shares with the general
    conversation."""

    def __init__(
        self,
        connection: Connection,
        client: int,
        ends: tuple[Endpoint, Endpoint],
        context: Context,
        phases: Phases,
        fetching: FetchSessions,
        waits: Waits,
    ) -> None:
        """`client`: direction in which the requests go; `ends`: client and broker."""
        self.connection = connection
        self._client, self._ends = client, ends
        self._context, self._phases = context, phases
        self._waits = waits
        self.fetch_request, self.fetch_response = fetching.fetch, fetching.fetched
        self.fetch_returned = fetching.returned
        self.reader = kernel = Reader(context.sink, PLANS, TEXTS, self, client)
        kernel.ends, kernel.max_partitions = waits.ends.known, waits.ends.most
        kernel.sent_ns, kernel.answered_ns, kernel.until_ns = waits.clocks
        kernel.client_id, kernel.path = phases.client_id, connection.path
        # These change by messages alone that the general conversation reads.
        self._software, self._mechanism = phases.software, phases.mechanism
        tls = connection.tls
        self._user = phases.user if tls is None else phases.user_within(tls)
        self._tls = None if tls is None else tls.summary

    def take(self, chunk: Chunk) -> tuple[list[Pair], bool]:
        """Return the pairs that bytes complete, and whether all of these were ordinary; if not,
        `leave` has to follow."""
        take, sink = self.reader.take, self.reader.sink
        asks = chunk.direction == self._client
        parts = [chunk] if len(chunk.pieces) == 1 else chunk.by_piece()
        ordinary = True
        for part in parts:
            _, time_ns, packet, file, at = part.pieces[0]
            if not ordinary:
                self.reader.keep(asks, part.data, time_ns, packet, file, at)
            else:
                ordinary = take(asks, part.data, time_ns, packet, file, at, part.offset)
        if not sink.pairs:
            return [], ordinary
        pairs, sink.pairs = sink.pairs, []
        return pairs, ordinary

    def leave(self) -> tuple[list[tuple[Pending, Frame]], list[Chunk]]:
        """Return the requests in flight, and bytes that the general conversation has to read, the
        client's first. Nothing may be taken after it."""
        kernel = self.reader
        self._waits.clocks = kernel.sent_ns, kernel.answered_ns, kernel.until_ns
        self._phases.client_id = kernel.client_id
        waiting = []
        for pair in kernel.flight:
            pending = Pending(Origin(pair.packet, pair.offset), header_of(pair), pair.plan.api)
            pending.session = pair.session
            waiting.append((pending, request_frame(pair)))
        chunks = []
        sides = (self._client, kernel.client), (1 - self._client, kernel.broker)
        for direction, side in sides:
            if side.held:
                pieces = [Piece(*each) for each in side.pieces]
                data = b"".join(side.blocks)
                chunks.append(Chunk(self.connection, direction, side.offset, data, pieces))
        return waiting, chunks

    def exchange(self, pair: Pair) -> Exchange:
        """Return the exchange of a pair."""
        plan, header = pair.plan, header_of(pair)
        request_later, response_later = _later(plan.key, plan.version)
        response = None
        if pair.answered:
            size = pair.response_end - pair.response_begin
            response = Response(
                Unmade(partial(response_frame, pair), pair.response_offset),
                pair.correlation_id,
                response_later,
                spot=spot(
                    (pair.response_packet, pair.response_first_ns, pair.response_last_ns, size)
                ),
                request_header=header,
            )
        size = pair.end - pair.begin
        request = Request(
            Unmade(partial(request_frame, pair), pair.offset),
            header,
            request_later,
            spot=spot((pair.packet, pair.first_ns, pair.last_ns, size)),
        )
        client, broker = self._ends
        return Exchange(
            pair.number,
            self.identify(pair),
            "answered" if pair.answered else "no-reply",
            self.connection,
            client,
            broker,
            plan.key,
            plan.api,
            plan.version,
            pair.correlation_id,
            pair.client_id,
            request,
            response,
            self._software,
            self._user,
            self._mechanism,
            "" if pair.answered else ACKS_0,
            (),
            (),
            pair.session,
            None,
            pair.wait,
            self._tls,
            facts_of(pair),
        )

    def identify(self, pair: Pair) -> str:
        return self._context.identify_at(
            self.connection, self._client, pair.offset, pair.file, pair.place
        )

    def unsettled(self, begun: list[Origin]) -> int:
        """Add the origins of the exchanges that have begun; return the first packet in which one
        may be found to begin yet, or `BEHIND_ALL`."""
        kernel = self.reader
        begun += [Origin(pair.packet, pair.offset) for pair in kernel.flight]
        client, broker, first = kernel.client, kernel.broker, BEHIND_ALL
        if client.total:
            # Whatever it is, it becomes an exchange.
            begun.append(Origin(client.pieces[0][2], client.offset))
        elif client.held:
            first = client.pieces[0][2]
        if broker.held and not (broker.total and kernel.flight):
            first = min(first, broker.pieces[0][2])
        return first

    # What the kernel asks for.

    def plan_of(self, key: int, version: int) -> Plan | None:
        """Return how a version is read that was not met before."""
        plan = plan_of(key, version)
        if plan is not None:
            PLANS[key << 16 | version] = plan
        return plan

    def learn_request(self, pair: Pair) -> None:
        """Take note of names and addresses in a request."""
        layout = layouts_of(pair.plan.key, pair.plan.version)[0]
        self._learn(layout, pair.data, pair.begin + 4 + pair.body_at)

    def learn_response(self, pair: Pair) -> None:
        """Take note of names and addresses in a response."""
        layout = layouts_of(pair.plan.key, pair.plan.version)[1]
        self._learn(layout, pair.response, pair.response_begin + 4 + pair.plan.response_at)

    def _learn(self, layout: Layout, data: bytes, at: int) -> None:
        body, _ = reader(layout)(data, at)
        body_facts.learn(layout, body, self._context.names)
        nodes.learn(layout, body, self._context.nodes)

    def forgot(self) -> None:
        """Take note that there were too many partitions."""
        self._context.forgotten += 1

    def grew(self, count: int) -> None:
        """Take note of partitions that are remembered."""
        self._context.buffered_bytes += count * log_ends.LOG_END_BYTES

    log_end = staticmethod(partial(tuple.__new__, log_ends.LogEnd))
    bytes_before = staticmethod(log_ends.bytes_before)


@cache
def _later(key: int, version: int) -> tuple[Later, Later]:
    request, response = layouts_of(key, version)
    return Later(request, _request), Later(response, _response)


def _request(frame: Frame, header: RequestHeader) -> Decoded:
    return decode_request(frame.payload, header)


def _response(frame: Frame, header: RequestHeader) -> Decoded:
    return decode_response(frame.payload, header.api_key, header.api_version)


def facts_of(pair: Pair) -> BodyFacts:
    facts = pair.facts
    blobs: list[bytes] | tuple[Any, ...] | None = None
    if facts.carries and pair.counted:
        # Without a copy of the records, which may be most of a frame of 50 MB.
        producers = pair.batch_producers, pair.batch_epochs
        blobs = (pair.records, pair.batches, pair.codecs, *producers)
    elif facts.carries:
        blobs = body_facts.blobs_of(facts, pair.data if pair.sends else pair.response)
    return counted(body_facts.facts_of(facts, blobs))


def header_of(pair: Pair) -> RequestHeader:
    plan = pair.plan
    return RequestHeader(
        plan.key, plan.version, pair.correlation_id, pair.client_id, [], pair.body_at
    )


def request_frame(pair: Pair) -> Frame:
    size = pair.end - pair.begin
    last_ns = pair.last_ns
    parts = _parts(pair.file, pair.place, size, pair.packet, pair.pieces)
    payload = pair.data[pair.begin + 4 : pair.end]
    return Frame(payload, pair.offset, size - 4, pair.first_ns, last_ns, parts)


def response_frame(pair: Pair) -> Frame:
    size = pair.response_end - pair.response_begin
    parts = _parts(
        pair.response_file, pair.response_place, size, pair.response_packet, pair.response_pieces
    )
    payload = pair.response[pair.response_begin + 4 : pair.response_end]
    times = pair.response_first_ns, pair.response_last_ns
    return Frame(payload, pair.response_offset, size - 4, *times, parts)


def _parts(
    file: int, place: int, size: int, packet: int, pieces: list[Any] | None
) -> tuple[Part, ...]:
    if pieces is None:
        return (Part(file, place, size, packet),)
    ends = [each[0] for each in pieces[1:]]
    return tuple(
        Part(each[3], each[4], end - each[0], each[2])
        for each, end in zip(pieces, [*ends, size], strict=True)
    )


def reader_of_one_pair() -> Reader:
    """Return a reader of what was read before, for `pair_of`."""
    return Reader(PairSink(), {}, TEXTS, None, 0)


def pair_of(exchange: Exchange, reader: Reader) -> Pair | None:
    """Return an exchange as the kernel reads one; None where it would not, or not to the end."""
    request, response = exchange.request, exchange.response
    header = None if request is None else request.header
    if request is None or response is None or header is None or exchange.zookeeper is not None:
        return None
    plan = plan_of(header.api_key, header.api_version)
    if plan is None or header.tagged_fields:
        return None
    pair = Pair(reader, plan, Facts(TEXTS))
    data, answer = request.frame.payload, response.frame.payload
    if not walk_request(plan.request, data, header.end, len(data), pair.facts):
        return None
    pair.sends = pair.facts.spans is not None
    if not walk_response(plan.response, answer, plan.response_at, len(answer), pair.facts):
        return None
    pair.client_id, pair.number, pair.answered = header.client_id, exchange.number, True
    # Payloads begin after the size field.
    pair.data, pair.begin, pair.end = data, -LEAST, len(data)
    pair.response, pair.response_begin, pair.response_end = answer, -LEAST, len(answer)
    pair.first_ns, pair.last_ns = request.spot.first_ns, request.spot.last_ns
    pair.response_first_ns, pair.response_last_ns = response.spot.first_ns, response.spot.last_ns
    pair.session, pair.wait = exchange.fetch_session, exchange.wait_ns
    reader.count(pair)
    return pair
