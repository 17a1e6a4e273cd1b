"""A connection whose protocol is not known yet: its events are held until its bytes show it.

From the start of a connection the client's first bytes decide (`detect.look`): brokers never speak
first. Midstream there are three ways, in this order: one end is a known broker or has a port of
Kafka's; one end is a known ZooKeeper server; a search of the bytes finds a whole request
(`_probe`). Sans-I/O.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.conversation.detect import GIVEN_UP, WHOLE_FIRST, describe, look, look_cut
from kafkascope.analyzer.conversation.framing import FrameBuffer, Unit
from kafkascope.analyzer.conversation.http.messages import without_credentials
from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.analyzer.conversation.resync import RequestHeuristic
from kafkascope.analyzer.conversation.zookeeper import (
    ZooKeeperSession,
    is_zookeeper_request,
    look_zookeeper,
)
from kafkascope.analyzer.model import UNNUMBERED, Exchange, Frame, Part, Request, Undecoded
from kafkascope.captures.formats.remarks import OURS
from kafkascope.captures.limits import LIMITS as CAPTURE_LIMITS
from kafkascope.captures.model import BEHIND_ALL, Chunk, Closed, Connection, Gap, Piece, StreamEvent
from kafkascope.captures.proxy_protocol import begins, read_header
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.signatures import HEAD, protocol_of, words_amid
from kafkascope.captures.tls.begin import looks_like_tls

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context


# Memory of an event beside its bytes, with the piece that has their place.
EVENT_BYTES: Final = 400
# Bytes are held twice: in their event, and where a first request is searched for.
BYTES_TWICE: Final = 2

LOOKED_AT: Final = WHOLE_FIRST + 4
"""First bytes of a direction that are held for `look`."""

# First bytes that a row shows.
SHOWN: Final = 64

NOT_KAFKA: Final = "not Kafka"
EMPTY: Final = "no bytes in it"
HEADER_ALONE: Final = "a PROXY protocol header alone"


class Undecided(Resumable):
    """A connection whose protocol is not known yet."""

    synchronized: Final = False
    """Whether chunks may be joined, as those of a `Conversation`."""

    STATE = (
        "connection",
        "events",
        "_heads",
        "_holes",
        "midstream",
        "_bytes",
        "_happened",
        "_closed_sides",
        "over",
        "first_packet",
        "reason",
    )

    def __init__(self, connection: Connection, context: Context) -> None:
        self.connection = connection
        self.events: list[StreamEvent] = []
        """All events, which the conversation is fed with when it is one."""
        self._context = context
        self._heads: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        """The first bytes of each direction, up to the first gap."""
        self._holes = [False, False]
        self.midstream = not connection.handshake
        """The first bytes may be missing."""
        self._probes: list[FrameBuffer | None] = [None, None]
        self._bytes = 0
        self._happened = 0
        """Events, of chunks their packets."""
        self._closed_sides: set[int] = set()
        self.over = False
        self.reason = ""
        """Why it is not Kafka, when that was decided."""
        self.first_packet = BEHIND_ALL
        """Number of the first packet with bytes of its events."""

    def dump(self) -> Dump:
        return {**super().dump(), "probes": [each and each.dump() for each in self._probes]}

    def load(self, state: Dump) -> Self:
        self._probes = [each and _probe().load(each) for each in state["probes"]]
        return super().load(state)

    def feed(self, event: StreamEvent) -> Conversation | str | None:
        """Return a conversation, the description of another protocol, or None while it is not
        known."""
        self.events.append(event)
        if isinstance(event, Chunk):
            # Packet by packet, so that the result does not depend on how many a chunk has.
            first = min(piece.packet for piece in event.pieces)
            self.first_packet = min(self.first_packet, first)
            for packet in event.by_piece():
                self._bytes += len(packet.data)
                decision = self._look(packet) or self._late()
                if decision is not None:
                    return decision
            return None
        if isinstance(event, Gap):
            return self._gap(event) or self._late()
        if isinstance(event, Closed):
            return self._closed(event) or self._late()
        self.midstream = not self.connection.handshake
        return self._late()

    @property
    def held(self) -> int:
        return self._bytes * BYTES_TWICE + self._happened * EVENT_BYTES

    def keep_first(self) -> None:
        """Drop all events but what `row` shows: size and first bytes of the first packet of each
        direction."""
        first: dict[int, StreamEvent] = {}
        for event in self.events:
            if isinstance(event, Chunk) and event.direction not in first:
                first[event.direction] = replace(
                    event, data=event.data[:SHOWN], pieces=_first_piece(event)
                )
        self.events = list(first.values())
        self._bytes = self._happened = 0

    def give_up(self) -> Conversation | str:
        """Decide now, because all connections together take too much memory."""
        return self._forced() or GIVEN_UP

    def _late(self) -> Conversation | str | None:
        """Decide when the limits are reached."""
        self._happened += 1
        if self._bytes <= LIMITS.undecided_bytes and self._happened <= LIMITS.undecided_events:
            return None
        return self._forced() or NOT_KAFKA

    def _forced(self) -> Conversation | None:
        """Return a conversation where Kafka is expected, whatever the bytes are."""
        for direction in (0, 1):
            if self._expected(direction) and self._bytes:
                return self._conversation(direction)
        return None

    def _conversation(self, client: int, zookeeper: ZooKeeperSession | None = None) -> Conversation:
        connection, context = self.connection, self._context
        if zookeeper is None:
            context.brokers.add(connection.ends(client)[1])
        midstream = self.midstream
        return Conversation(connection, context, client, midstream=midstream, zookeeper=zookeeper)

    def _zookeeper(self, client: int) -> Conversation:
        return self._conversation(client, ZooKeeperSession())

    def _expected(self, direction: int, *, final: bool = True) -> bool:
        """Return whether Kafka is expected at the end that a direction leads to. `final`: see
        `Context.is_broker`."""
        end = self.connection.b if direction == 0 else self.connection.a
        return self._context.is_broker(end, final=final)

    def _look(self, chunk: Chunk) -> Conversation | str | None:
        direction = chunk.direction
        head = self._heads[direction]
        most = HEAD if self.midstream and not begins(head) else LOOKED_AT
        if not self._holes[direction] and len(head) < most:
            head += chunk.data[: most - len(head)]
        if not direction and begins(head) and not self._holes[0]:
            more = self._skip_header()
            if more:
                return None
        if self.midstream:
            return self._look_midstream(chunk)
        if direction == 1:
            # A broker never speaks first, though the client's first bytes may be missing. Servers
            # of SSH, SMTP and MySQL greet every client, so that a greeting says nothing about the
            # client, which may speak Kafka to the wrong port.
            wait = self._heads[0] or look(self._heads[1], False) == "other"
            return None if wait else self._other(1)
        kafka_port = self._context.is_broker_port(self.connection.b.port)
        verdict = look(head, kafka_port)
        if verdict != "kafka" and not kafka_port:
            # Other connections are consulted only where a known broker would make a difference: in
            # one of several processes each such lookup is a cross check (`Context.cross_checks`).
            at_broker = look(head, True)
            if at_broker != verdict and self._expected(0, final=verdict != "short"):
                verdict = at_broker
        if verdict != "kafka" or kafka_port:
            greeting = look_zookeeper(head)
            if greeting == "zookeeper" and (verdict != "kafka" or look(head, False) != "kafka"):
                return self._zookeeper(0)
            if greeting == "short" and verdict == "other":
                return None
        if verdict == "short":
            return None
        return self._other(0) if verdict == "other" else self._conversation(0)

    def _skip_header(self) -> bool:
        """Remove the PROXY protocol headers of load balancers from the client's bytes; return
        whether more bytes are needed. Of several headers the last one names the client, because
        each balancer puts its own before the bytes that it received."""
        head, connection = self._heads[0], self.connection
        while begins(head):
            try:
                header = read_header(head)
            except ValueError:
                return False
            if header is None:
                return True
            if connection.proxy_header[1] > CAPTURE_LIMITS.proxy_header_bytes:
                return False  # more than any chain of balancers has
            del head[: header.size]
            self._cut(header.size)
            self.midstream = False  # nothing comes before it
            connection.proxy_header = (header.version, connection.proxy_header[1] + header.size)
            if header.client is not None:
                connection.origin, connection.via = header.client, str(connection.a)
        return not head

    def _cut(self, size: int) -> None:
        """Cut off the first bytes of the client."""
        events: list[StreamEvent] = []
        for event in self.events:
            if size and isinstance(event, Chunk) and not event.direction:
                count = min(size, len(event.data))
                size -= count
                if count == len(event.data):
                    continue
                event = event.behind(count)
            events.append(event)
        self.events = events

    def _other(self, direction: int) -> str:
        return describe(self._heads[direction], "server" if direction else "client")

    def _gap(self, gap: Gap) -> Conversation | None:
        direction, head = gap.direction, self._heads[gap.direction]
        whole = not (self.midstream or direction or self._holes[0] or gap.size is None)
        if whole and look_cut(head, gap.size or 0, self._expected(0)):
            return self._conversation(0)  # the gap is inside a frame whose size is known
        self.midstream = True
        self._holes[direction] = gap.size is not None  # unknown size: nothing was seen before it
        probe = self._probes[direction]
        return None if probe is None else self._probed(direction, probe.gap(gap))

    def _look_midstream(self, chunk: Chunk) -> Conversation | str | None:
        direction = chunk.direction
        if looks_like_tls(chunk.data):
            return describe(chunk.data)
        if self._expected(direction) != self._expected(1 - direction):
            client = direction if self._expected(direction) else 1 - direction
            head = self._heads[client]
            reason = describe(head, "client")
            if reason.startswith(("TLS", "HTTP", "SSH")):
                return reason
            # Bytes that look like text may be part of a record's value: later ones will show it.
            wait = words_amid(head, "client") if head else self.connection.server
            return None if wait else self._conversation(client)
        ends = (self.connection.b, self.connection.a)
        served = [self._context.is_zookeeper(end) for end in ends]
        if served[0] != served[1]:
            return self._zookeeper(0 if served[0] else 1)
        if is_zookeeper_request(chunk.data):
            return self._zookeeper(direction)
        if direction and self.connection.handshake:
            return None  # the side that connected is the client: these are answers
        probe = self._probes[direction]
        if probe is None:
            probe = self._probes[direction] = _probe()
            probe.resync()
        return self._probed(direction, probe.feed(chunk))

    def _probed(self, direction: int, units: list[Unit]) -> Conversation | None:
        for unit in units:
            if not isinstance(unit, Frame):
                continue
            data = unit.size.to_bytes(4, "big") + unit.payload
            if unit.cut:
                # The head of a response may look like that of a Produce, whose key is 0; the rest,
                # which would show the difference, is missing.
                missing = unit.size - len(unit.payload)
                sure = self.connection.handshake or unit.payload[:2] != b"\0\0"
                # Our own recordings begin at the start of a frame.
                sure = sure or self.connection.interface_comment.startswith(OURS)
                is_kafka = sure and look_cut(data, missing, kafka_port=False)
            else:
                is_kafka = look(data, kafka_port=False, first=False) == "kafka"
            if is_kafka:
                return self._conversation(direction)
        return None

    def _closed(self, event: Closed) -> Conversation | str | None:
        if event.direction is not None:
            self._closed_sides.add(event.direction)
            if event.how != "rst" and len(self._closed_sides) < 2:
                return None
        self.over = True
        if not self._bytes:
            return EMPTY
        if self.connection.proxy_header[0] and not self._heads[0]:
            return HEADER_ALONE
        greeted = not self.midstream and not self._heads[0] and bool(self._heads[1])
        if greeted and protocol_of(self._heads[1], "server"):
            return self._other(1)
        for direction in (0, 1):
            if self._expected(direction):
                head = self._heads[direction]
                if head and not self.midstream:
                    return self._other(direction)
                if words_amid(head, "client"):
                    return describe(head, "client")
                if not head and self.connection.server:
                    return describe(self._heads[1 - direction], "server")
                return self._conversation(direction)
        if self._heads[0] and not self.midstream:
            return self._other(0)
        return NOT_KAFKA

    def row(self, reason: str) -> list[Exchange]:
        """Return the one row of a connection on which Kafka was expected."""
        first = next((e for e in self.events if isinstance(e, Chunk)), None)
        if first is None or reason in (NOT_KAFKA, EMPTY, GIVEN_UP):
            return []
        direction = next((d for d in (0, 1) if self._expected(d)), None)
        if direction is None:
            return []
        chunks = [e for e in self.events if isinstance(e, Chunk) and e.direction == direction]
        if not chunks and (self.connection.server or not self.midstream):
            return []  # the server greeted, and the client sent nothing
        first = chunks[0] if chunks else first
        piece = first.pieces[0]
        # Of the first packet alone, so that it does not depend on how many a chunk has.
        size = _first_piece(first)[1].start
        frame = Frame(
            without_credentials(first.data[: min(size, SHOWN)]),
            first.offset,
            size - 4,
            piece.time_ns,
            piece.time_ns,
            (Part(piece.file, piece.at, size, piece.packet),),
        )
        connection = self.connection
        client, broker = connection.ends(direction)
        tls = connection.tls
        return [
            Exchange(
                number=UNNUMBERED,
                id=self._context.identify(connection, first.direction, frame),
                state="opaque",
                connection=connection,
                client=client,
                broker=broker,
                api_key=None,
                api="",
                api_version=None,
                correlation_id=None,
                client_id=None,
                request=Request(frame, None, None),
                response=None,
                reason=reason,
                undecoded=(Undecoded("request", "opaque", 0, size, reason),),
                tls=None if tls is None else tls.summary,
            )
        ]


def _first_piece(chunk: Chunk) -> list[Piece]:
    """Return the first piece, and one that begins where it ends."""
    pieces = chunk.pieces[:2]
    return pieces if len(pieces) > 1 else [*pieces, pieces[0]._replace(start=len(chunk.data))]


def loaded(kind: str, state: Dump, context: Context) -> Conversation | Undecided:
    """Return a conversation, or a connection whose protocol is not known yet, from the name of its
    class and its dump."""
    connection = state["connection"]
    if kind == Conversation.__name__:
        zookeeper = None if state["zookeeper"] is None else ZooKeeperSession()
        return Conversation(connection, context, state["client"], zookeeper=zookeeper).load(state)
    return Undecided(connection, context).load(state)


def _probe() -> FrameBuffer:
    """Return a search for the first request of an unknown client."""
    return FrameBuffer(RequestHeuristic())
