"""Both directions of one Kafka connection: chunks in, exchanges out.

Pairs requests with responses by correlation id, and handles requests without a response (acks=0),
SASL phases, gaps, and the end of the connection. One bad frame never ends a connection: it becomes
an `Undecoded`. Sans-I/O; time arrives with the data.
"""

# How an exchange is made
#
#   chunk of the client -> _take_request_chunk -> FrameBuffer.units -> _request -> _register
#       -> InFlight.add: the request waits, or `_emit` at once (acks=0)
#   chunk of the broker -> FrameBuffer.units -> _response -> InFlight.take
#       -> _emit_answered -> _emit
#
# The difficult cases, and where they are decided:
#
# - Bytes that are no frame: `FrameBuffer` searches for the next one and reports `Skipped`. Where no
#   byte was missing before them, they get a row of their own (`_emit_lost_framing`), because then
#   a sender or a middlebox is wrong, and not the capture.
# - A response whose request is not there yet: reassembly delivers each direction as far as it has
#   it, so that a response may come before the last bytes of its request (`_partial`), or before
#   all of them (`_unmatched_responses`).
# - Gaps in the responses: brokers answer the requests of a connection in order, so that the first
#   response after a gap says which requests were answered inside it (`_emit_answered`).
# - Raw SASL tokens, which have no header: `phases` knows when they are due.
# - Whole requests and responses in order, which most are: the kernel reads them (`_ordinary`,
#   decision 0051). It is left at the first event that it does not read, and entered again when
#   nothing is pending (`_is_ordinary`).

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, Self

from kafkascope.analyzer.bodies import facts as body_facts
from kafkascope.analyzer.bodies import fetch_sessions, nodes
from kafkascope.analyzer.bodies.dissection import (
    FRAMING,
    HEADER,
    PRODUCE,
    acks_of,
    cut_of,
    dissect_request,
    dissect_response,
    header_misfit,
    header_of_cut,
)
from kafkascope.analyzer.bodies.waits import Waits
from kafkascope.analyzer.conversation.detect import FRAMING_LOST, HEADER_MISSING, MASKED, NO_HEADER
from kafkascope.analyzer.conversation.framing import FrameBuffer, Skipped, Unit
from kafkascope.analyzer.conversation.ordinary import ACKS_0, Completed, Ordinary, teaches
from kafkascope.analyzer.conversation.pending import (
    SASL_TOKEN,
    InFlight,
    Pending,
    loaded,
    partial_note,
)
from kafkascope.analyzer.conversation.phases import STATEFUL, Phases
from kafkascope.analyzer.conversation.resync import RequestHeuristic, ResponseHeuristic
from kafkascope.analyzer.conversation.sasl import is_token
from kafkascope.analyzer.conversation.tampering import notes_of
from kafkascope.analyzer.conversation.zookeeper import (
    EVENT_XID,
    ZooKeeperRequestHeuristic,
    ZooKeeperResponseHeuristic,
    ZooKeeperSession,
    is_event,
)
from kafkascope.analyzer.model import (
    UNNUMBERED,
    Exchange,
    Frame,
    Note,
    Origin,
    Request,
    Response,
    Side,
    State,
    Undecoded,
    spot_of,
)
from kafkascope.captures.model import (
    BEHIND_ALL,
    UNKNOWN_SERVER,
    Chunk,
    Closed,
    Connection,
    Gap,
    StreamEvent,
)
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.signatures import HEAD, protocol_of, words_amid, words_of
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import api_name
from kafkascope.dissectors.registry import APIS, Decoded, RequestHeader, read_request_header
from kafkascope.dissectors.zookeeper.frames import EVENT_HEADER

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.captures.model import Endpoint
    from kafkascope.captures.tls.stream import TlsStream


ENDINGS: Final = {
    "fin": "closed by {}",
    "rst": "reset by {}",
    "reuse": "the ports were reused for a new connection",
    "idle": "the connection was idle for too long",
}

NO_ACKS: Final = "none was seen; whether one was due (acks) is not in the capture"
NOT_A_RESPONSE: Final = "the server sent bytes that are not a Kafka response"
IN_A_GAP: Final = "its response fell into a gap in the capture"
NO_FRAMING: Final = "the broker's stream lost its framing"

# From this many first bytes of a server on, an unrecognized protocol is called unknown: fewer may
# be part of the size of a response.
MIN_HEAD_BYTES: Final = 4

# Bytes shown in a row when they begin no frame. They may be payload of the frame before, with
# values of records, so a row must not show many.
SHOWN_BYTES: Final = 16

_INT = struct.Struct(">i")
_int_at = _INT.unpack_from
_KEY_AND_VERSION = struct.Struct(">hh")

DECODABLE: Final = frozenset(
    (api.key, version)
    for api in APIS.values()
    for version in range(api.versions.low, api.versions.high + 1)
)
"""(key, version) of all requests that can be decoded."""


def _origin_of(frame: Frame) -> Origin:
    return Origin(frame.parts[0].packet, frame.offset)


class Conversation(Resumable):
    """One connection that is known to be Kafka's, with `client` as the client's direction."""

    STATE = (
        "connection",
        "client",
        "_has_responded",
        "_heuristic",
        "_in_flight",
        "_requests",
        "_responses",
        "_unmatched_responses",
        "_gap_in_responses",
        "_responses_begin",
        "_skipped_bytes",
        "_requests_unbroken",
        "_responses_unbroken",
        "_acknowledged",
        "_ended",
        "_ended_ns",
        "_closed",
        "phases",
        "_fetching",
        "_waits",
    )

    def __init__(
        self,
        connection: Connection,
        context: Context,
        client: int,
        *,
        midstream: bool = False,
        zookeeper: ZooKeeperSession | None = None,
    ) -> None:
        """`zookeeper`: of a connection that speaks ZooKeeper's protocol."""
        self.connection = connection
        self.client = client
        self._ends: tuple[Endpoint, Endpoint] = connection.ends(client)
        self._has_responded = False
        """A response was paired: the other end is a broker, and is in `Context.brokers`."""
        self._context = context
        self._frame_listener = context.frame_listener if zookeeper is None else None
        self._zookeeper = zookeeper
        self._heuristic = RequestHeuristic()
        self._heuristic.lenient = True
        self._in_flight = InFlight(context.limits)
        if zookeeper is None:
            self._requests = FrameBuffer(self._heuristic)
            self._responses = FrameBuffer(ResponseHeuristic(self._in_flight.ids))
        else:
            self._requests = FrameBuffer(ZooKeeperRequestHeuristic())
            self._responses = FrameBuffer(ZooKeeperResponseHeuristic(self._in_flight.ids))
        if midstream:
            self._requests.resync()
            self._responses.resync()
        self._partial: Pending | None = None
        """The request whose last bytes are missing, though its response was seen."""
        # A list, because it is short: an empty deque takes 750 bytes on each connection.
        self._unmatched_responses: list[Frame] = []
        """Responses whose requests have not been delivered yet, the oldest first."""
        self._gap_in_responses = ""
        """Why response bytes are missing since the last paired response; empty: none are."""
        self._responses_begin = 0
        """Offset at which the responses begin, or continue after the last gap."""
        self._requests_unbroken = not midstream and zookeeper is None
        """No byte of the requests was missing or skipped so far."""
        self._responses_unbroken = not midstream and zookeeper is None
        """No byte of the responses was missing or skipped so far."""
        self._skipped_bytes = 0
        """Bytes skipped since the last exchange, which gets a note about them."""
        self._acknowledged = False
        """A Produce whose acks field the snaplen cut off was answered: others will be, too."""
        self._ended = ""
        """How the connection ended, as far as that is known."""
        self._ended_ns: int | None = None
        self._closed = [False, False]
        self.phases = Phases()
        self._fetching = fetch_sessions.FetchSessions(context, context.limits.bodies)
        self._waits = Waits(context, context.limits.bodies)
        self._out: list[Exchange] = []
        self._ordinary: Ordinary | None = None
        self.opener: TlsStream | None = None
        """Decrypts its bytes, and emits events for what is not ordinary; None for plaintext."""

    def dump(self) -> Dump:
        self.leave_kernel()
        return {
            **super().dump(),
            "partial": None if self._partial is None else self._partial.dump(),
            "zookeeper": None if self._zookeeper is None else self._zookeeper.dump(),
        }

    def load(self, state: Dump) -> Self:
        self._partial = None if state["partial"] is None else loaded(state["partial"])
        if self._zookeeper is not None:
            self._zookeeper.load(state["zookeeper"])
        return super().load(state)

    @property
    def over(self) -> bool:
        return all(self._closed)

    @property
    def synchronized(self) -> bool:
        """Whether chunks of a direction may be joined: a response was paired, no response waits for
        its request, and both directions have their framing."""
        if not self._has_responded or self._unmatched_responses:
            return False
        return not (self._requests.resyncing or self._responses.resyncing)

    # --- events

    def feed(self, event: StreamEvent) -> list[Completed]:
        """Return the exchanges that this event completes."""
        if self._ordinary is not None:
            if type(event) is not Chunk:
                return self.leave_kernel() + self.feed(event)
            pairs, ordinary = self._ordinary.take(event)
            if not ordinary:
                return [*pairs, *self.leave_kernel()]
            self._attach_kernel()
            return [*pairs]
        if type(event) is Chunk:
            if event.direction == self.client:
                self._take_request_chunk(event)
            else:
                for units in self._responses.units(event):
                    self._take_responses(units)
        elif isinstance(event, Gap):
            if event.direction == self.client:
                self._requests_unbroken = False
                self._take_requests(self._requests.gap(event))
            else:
                self._gap_in_responses, self._responses_unbroken = IN_A_GAP, False
                self._take_responses(self._responses.gap(event))
                self._responses_begin = event.offset + (event.size or 0)
        elif isinstance(event, Closed):
            self._close(event)
        out: list[Completed] = [*self._out]
        self._out.clear()
        if (
            self._has_responded
            and not self._in_flight
            and type(event) is Chunk
            and self._is_ordinary()
        ):
            self._ordinary = Ordinary(
                self.connection,
                self.client,
                self._ends,
                self._context,
                self.phases,
                self._fetching,
                self._waits,
            )
            self._attach_kernel()
        return out

    def _attach_kernel(self) -> None:
        """Let reassembly give the kernel bytes before they become events (`Context.direct`)."""
        connection, ordinary = self.connection, self._ordinary
        readable = (connection.tls is None) == (self.opener is None) and not connection.compared
        if self._context.direct and ordinary is not None and readable:
            ordinary.reader.opener = self.opener
            connection.reader = ordinary.reader

    def _is_ordinary(self) -> bool:
        """Return whether the kernel can take over: nothing is pending that the kernel would need,
        and no login, gap or search is in progress, which the kernel cannot read."""
        requests, responses = self._requests, self._responses
        remarks = self._context.remarks
        return not (
            requests.partial
            or responses.partial
            or requests.resyncing
            or responses.resyncing
            or self._unmatched_responses
            or self._partial is not None
            or self._gap_in_responses
            or self._skipped_bytes
            or self._ended
            or self.phases.tokens
            or self._in_flight.tokens
            or self._in_flight.last_overtaking is not None
            or self._zookeeper is not None
            or self._frame_listener is not None
            or (remarks is not None and remarks.files)
            or self.connection.forwarded
        )

    def leave_kernel(self) -> list[Completed]:
        """Continue without the kernel: take over its requests in flight, and the bytes that it has
        not read. Return the exchanges that these bytes complete."""
        ordinary, self._ordinary = self._ordinary, None
        self.connection.reader = None
        if ordinary is None:
            return []
        in_flight, chunks = ordinary.leave()
        for pending, frame in in_flight:
            header = pending.header
            assert header is not None
            pending.frame = frame
            pending.id = self._context.identify(self.connection, self.client, frame)
            pending.software = self.phases.software
            pending.decoded, pending.undecoded = dissect_request(frame, header)
            pending.body = None if pending.decoded is None else pending.decoded.body
            self._in_flight.add(header.correlation_id, pending)
            self._context.buffered_bytes += pending.held
        return [exchange for chunk in chunks for exchange in self.feed(chunk)]

    def _close(self, event: Closed) -> None:
        client, broker = self.client, 1 - self.client
        over = event.direction is None or event.how == "rst"
        if not self._ended and event.how in ENDINGS:
            who = "the client" if event.direction == client else "the broker"
            self._ended = ENDINGS[event.how].format(who)
            self._ended_ns = event.time_ns
        if (over or event.direction == client) and not self._closed[client]:
            self._closed[client] = True
            self._take_requests(self._requests.close())
            self._match_responses(event.time_ns + 1)
        if (over or event.direction == broker) and not self._closed[broker]:
            self._closed[broker] = True
            self._take_responses(self._responses.close())
        if all(self._closed):
            self._match_responses(None)
        if self._closed[broker]:
            for pending in self._in_flight.take_all():
                self._emit_unanswered(pending)

    @property
    def held(self) -> int:
        """Memory in bytes: requests in flight, partial frames, and state of partitions."""
        buffered = self._in_flight.held + self._requests.held + self._responses.held
        if self._ordinary is not None:
            buffered += self._ordinary.reader.held
        return buffered + self._fetching.held + self._waits.held

    def drop_cache(self) -> int:
        """Drop the state of partitions, which loses no exchange; return its memory in bytes."""
        held = self._fetching.held + self._waits.held
        if held:
            self._fetching.evict()
            self._waits.evict()
            self._context.forgotten += 1
        return held

    def evict(self) -> list[Completed]:
        """Evict the requests in flight, and all but the heads of partial frames, because all
        connections together take too much memory."""
        exchanges = self.leave_kernel()
        self._requests.evict()
        self._responses.evict()
        self._emit_evicted(self._in_flight.evict_oldest(0, 0))
        out, self._out = self._out, []
        return exchanges + out

    def _emit_evicted(self, dropped: list[Pending]) -> None:
        for pending in dropped:
            self._emit_unanswered(pending, "none was seen while many later requests were sent")

    def _emit_unanswered(self, pending: Pending, reason: str = "") -> None:
        """Emit a request that gets no response. Without a `reason` the first that applies is taken:
        another protocol, a gap, a later request that was answered first, the end of the connection,
        the end of the capture."""
        protocol = self.connection.server
        if not reason and self._speaks_another_protocol:
            reason = NOT_A_RESPONSE
            if protocol != UNKNOWN_SERVER:
                reason = f"the server sent {protocol.partition(':')[0]}, not Kafka"
        if not reason and self._gap_in_responses:
            reason = self._gap_in_responses
        if not reason and self._zookeeper is None:
            overtaking = self._in_flight.overtaking(pending)
            reason = "" if overtaking is None else overtaking.reason()
        if pending.acks_unknown and not self._acknowledged:
            self._emit(pending, "no-reply", None, NO_ACKS)
        elif reason or self._ended:
            self._emit(pending, "lost", None, reason or self._ended)
        else:
            self._emit(pending, "open", None, "in flight when the capture ends")

    def unsettled(self, begun: list[Origin]) -> int:
        """Add the origins of incomplete exchanges to `begun`; return the watermark: the first
        packet in which another exchange may still be found to begin, or `BEHIND_ALL`. Numbers
        before the watermark are final (decision 0049)."""
        if self._ordinary is not None:
            return self._ordinary.unsettled(begun)
        if len(self._in_flight) or self._in_flight.tokens:
            begun += self._in_flight.origins()
        requests, responses = self._requests, self._responses
        if not (requests.waits or responses.waits or self._unmatched_responses):
            return BEHIND_ALL
        first = BEHIND_ALL
        if requests.sized:
            # Its size is known: it becomes an exchange, whole or cut.
            begun.append(requests.origin)
        elif requests.waits:
            first = requests.first_packet
        if responses.waits:
            head = responses.head()
            paired = len(head) >= 4 and _int_at(head)[0] in self._in_flight
            if responses.resyncing or not paired:
                first = min(first, responses.first_packet)
        return min([first, *(frame.parts[0].packet for frame in self._unmatched_responses)])

    # --- requests

    def _take_request_chunk(self, event: Chunk) -> None:
        # A response is an orphan once a request that was sent later has been read, and its own has
        # not. Packet times decide, so the result does not depend on how many packets are in a
        # chunk.
        for chunk in event.by_piece() if self._unmatched_responses else (event,):
            for units in self._requests.units(chunk):
                self._take_requests(units)
            if self._unmatched_responses:
                self._match_responses(chunk.pieces[-1].time_ns)

    def _take_requests(self, units: list[Unit]) -> None:
        for unit in units:
            if type(unit) is Frame:
                self._request(unit)
            else:
                assert isinstance(unit, Skipped)
                self._skip_requests(unit)

    def _request(self, frame: Frame) -> None:
        partial, self._partial = self._partial, None
        if partial is not None:
            self._register(partial, frame)
            return
        if self._zookeeper is not None:
            self._take_request_of(frame, self._header_of(frame.payload))
            return
        if (self.phases.tokens or not frame.offset) and self.phases.is_token(frame):
            self._token(frame)
            return
        header = self._header_of(frame.payload)
        decodable = header is not None and (header.api_key, header.api_version) in DECODABLE
        if not decodable and is_token(frame.payload):
            # The SaslHandshake before it is not in the capture. An opaque frame would show its
            # bytes, perhaps a password.
            self._token(frame)
            return
        if header is None and frame.cut:
            header = header_of_cut(frame.payload, self._heuristic.client_id)
        self._take_request_of(frame, header)

    def _take_request_of(self, frame: Frame, header: RequestHeader | None) -> None:
        """Register a frame of the client as a request; without a header emit it as opaque."""
        if header is None:
            self._emit_opaque(frame)
            return
        pending = Pending(_origin_of(frame), header, api_name(header.api_key))
        self._register(pending, frame)

    def _header_of(self, payload: bytes) -> RequestHeader | None:
        """Return the header of a request; None for bytes that are no header. Unknown API keys below
        1024 pass: newer releases and vendors add some."""
        if self._zookeeper is not None:
            return self._zookeeper.header_of(payload)
        try:
            header = read_request_header(payload)
        except DissectError:
            return None
        if header.api_key in APIS or (0 <= header.api_key < 1024 and header.api_version >= 0):
            return header
        return None

    def _register(self, pending: Pending, frame: Frame) -> None:
        """Register a request that is as complete as it will be: decode it, and emit it at once or
        wait for its response."""
        header = pending.header
        if header is None:
            return
        if self._frame_listener is not None:
            self._frame_listener("request", frame, header)
        pending.frame = frame
        pending.id = self._context.identify(self.connection, self.client, frame)
        whole = not frame.cut or header.end < len(frame.payload)
        if whole:
            self._heuristic.know(header.client_id)
        self._read(pending, header, frame)
        if self._zookeeper is None:
            self.phases.saw_request(header, pending.decoded)
        else:
            self._zookeeper.saw_request(header, pending.decoded)
        pending.software = self.phases.software
        if pending.answer is not None:
            self._emit_answered(pending, pending.answer)
            return
        acks = None
        if header.api_key == PRODUCE:
            acks = acks_of(frame.payload, header, pending.body)
            pending.acks_unknown = acks is None and bool(frame.cut)
        if acks == 0:
            self._emit(pending, "no-reply", None, ACKS_0)
        else:
            dropped = self._in_flight.add(header.correlation_id, pending)
            if dropped:
                self._emit_evicted(dropped)
            self._context.buffered_bytes += pending.held

    def _read(self, pending: Pending, header: RequestHeader, frame: Frame) -> None:
        decoded, pending.undecoded = dissect_request(frame, header)
        if decoded is None:
            if pending.undecoded[0].reason == HEADER:  # its client id was misread, too
                pending.header = header._replace(client_id=self.phases.client_id)
            return
        pending.decoded, pending.body = decoded, decoded.body
        self._learn_from(decoded)
        if header.api_key in fetch_sessions.KEYS:
            pending.session = self._fetching.request(header.api_key, pending.body)

    def _emit_opaque(self, frame: Frame) -> None:
        """Emit a frame of the client that is no request."""
        if self._frame_listener is not None:
            self._frame_listener("request", frame, None)
        reason = f"{HEADER_MISSING} ({frame.cut})" if frame.cut else NO_HEADER
        undecoded = None if frame.cut else header_misfit(frame.payload)
        if undecoded is None and self._requests_unbroken and frame.offset and not frame.cut:
            key, version = _KEY_AND_VERSION.unpack_from(frame.payload.ljust(4, b"\0"))
            what = f"a frame of {frame.size} bytes with api_key and api_version {key}, {version}"
            self._requests_unbroken = False
            self._emit_lost_framing("request", frame, frame.wire_bytes, what)
            return
        if undecoded is None:
            undecoded = Undecoded("request", frame.cut or "opaque", 0, frame.size, reason)
        else:
            reason = f"{NO_HEADER}: {undecoded.text}"
        self._emit_unpaired("opaque", Request(frame, None, None), None, reason, (undecoded,))

    @property
    def _speaks_another_protocol(self) -> bool:
        """Whether the broker speaks something else than Kafka."""
        return bool(self.connection.server) and not self._has_responded

    def _note_greeting(self, offset: int, head: bytes) -> bool:
        """Note the protocol of bytes that are no response, if they are the server's first, or the
        first after a gap; return whether they are another protocol."""
        connection = self.connection
        if offset != self._responses_begin or self._has_responded or self._zookeeper:
            return False
        if offset or self.client or not connection.handshake:
            protocol = words_amid(head, "server")
        elif len(head) < MIN_HEAD_BYTES:
            protocol = words_of(head, "server")
        else:
            protocol = words_of(head, "server") or UNKNOWN_SERVER
        connection.server = protocol or connection.server
        return bool(protocol)

    def _emit_lost_framing(self, side: Side, frame: Frame, size: int, what: str) -> None:
        """Emit bytes that follow a whole frame and begin no frame; `what` describes them."""
        who = "client" if side == "request" else "broker"
        text = f"at byte {frame.offset} of the {who}'s stream: {what}"
        undecoded = (Undecoded(side, FRAMING, 0, size, text),)
        reason = f"{FRAMING_LOST} {text}"
        if side == "request":
            self._emit_unpaired("opaque", Request(frame, None, None), None, reason, undecoded)
        else:
            self._emit_unpaired("orphan", None, Response(frame, None, None), reason, undecoded)

    def _emit_bad_size(self, side: Side, unit: Skipped) -> None:
        """Emit bytes that follow a whole frame, and do not begin with the size of a frame."""
        if unit.lost_at is None or not unit.offset or len(unit.head) < 4:
            return
        size, head, now = _int_at(unit.head)[0], unit.head, unit.time_ns
        parts = (unit.lost_at,)
        frame = Frame(head[4:SHOWN_BYTES], unit.offset, max(0, unit.size - 4), now, now, parts, "")
        what = f"{head[:4].hex(' ')} in place of a size ({size})"
        if head[:4] == MASKED:
            what = "bytes that begin no frame, masked in the recording"
        protocol = protocol_of(head)
        self._emit_lost_framing(side, frame, unit.size, f"{what}: {protocol}" if protocol else what)

    def _skip_requests(self, unit: Skipped) -> None:
        unbroken, self._requests_unbroken = self._requests_unbroken, False
        if unbroken:
            self._emit_bad_size("request", unit)
        self._skip(unit)

    def _skip_responses(self, unit: Skipped) -> None:
        unbroken, self._responses_unbroken = self._responses_unbroken, False
        if unbroken and unit.lost_at is not None:
            self._gap_in_responses = NO_FRAMING
            self._emit_bad_size("response", unit)
        self._gap_in_responses = self._gap_in_responses or IN_A_GAP
        self._skip(unit)

    def _skip(self, unit: Skipped) -> None:
        self._skipped_bytes += unit.size
        self._context.skipped_bytes += unit.size

    # --- responses

    def _take_responses(self, units: list[Unit]) -> None:
        for unit in units:
            if type(unit) is Frame:
                self._response(unit)
            else:
                assert isinstance(unit, Skipped)
                if not (
                    self._note_greeting(unit.offset, unit.head) or self._speaks_another_protocol
                ):
                    self._skip_responses(unit)

    def _response(self, frame: Frame) -> None:
        payload = frame.payload
        if self._frame_listener is not None:
            self._frame_listener("response", frame, None)
        if frame.cut == "end":
            self._drop_partial_response(frame)
            return
        if self._in_flight.tokens:
            paired = len(payload) >= 4 and _INT.unpack_from(payload)[0] in self._in_flight
            if not paired:
                self.phases.saw_token_answer()
                self._emit(self._in_flight.tokens.pop(0), "answered", frame)
                return
            for token in self._in_flight.tokens:
                self._emit(token, "no-reply", None, "no response follows the last token")
            self._in_flight.tokens = []
        if len(payload) < 4:
            if frame.size < 4 and frame.offset and self._responses_unbroken:
                # No response is shorter than its correlation id.
                self._responses_unbroken, self._gap_in_responses = False, NO_FRAMING
                size = frame.size.to_bytes(4, "big").hex(" ")
                what = f"{size} in place of a size ({frame.size})"
                self._emit_lost_framing("response", frame, frame.wire_bytes, what)
            else:
                self._emit_orphan(frame)
            return
        if self._zookeeper is not None and is_event(payload):
            decoded, undecoded = dissect_response(frame, EVENT_HEADER)
            event = Response(frame, EVENT_XID, decoded)
            self._emit_unpaired("event", None, event, "", undecoded, EVENT_HEADER)
            return
        # All pings of ZooKeeper have one xid, -2: after a gap a response belongs to the last ping,
        # because those to the earlier ones are in the gap.
        latest = bool(self._gap_in_responses) and self._zookeeper is not None
        pending = self._in_flight.take(_INT.unpack_from(payload)[0], latest=latest)
        if pending is not None:
            self._emit_answered(pending, frame)
        elif self._answers_partial_request(frame):
            pass
        elif self._in_flight.responses_after_eviction:
            # Its request was evicted, and emitted as lost: without it the response cannot be read.
            self._in_flight.responses_after_eviction -= 1
            self._context.late_responses = True
        else:
            self._unmatched_responses.append(frame)
            if len(self._unmatched_responses) > self._context.limits.early_responses:
                self._emit_orphan(self._unmatched_responses.pop(0))

    def _drop_partial_response(self, frame: Frame) -> None:
        """Drop a response whose end is missing at the end of the connection; its request is emitted
        as unanswered, with a note about the bytes that arrived."""
        if not frame.offset and not self._has_responded:
            # The first bytes of a TLS record, or of an HTTP/2 frame, read as a plausible size.
            head = frame.size.to_bytes(4, "big") + frame.payload[:HEAD]
            if words_of(head, "server") and self._note_greeting(0, head):
                return
        pending = None
        if len(frame.payload) >= 4:
            pending = self._in_flight.take(_INT.unpack_from(frame.payload)[0])
        if pending is not None:
            pending.notes = (partial_note(frame, self._ended_ns),)
            pending.acks_unknown = False
            self._emit_unanswered(pending)

    def _answers_partial_request(self, frame: Frame) -> bool:
        """Return whether a response belongs to the request whose last bytes are still missing; if
        so, it waits with that request."""
        if not self._requests.partial or self._partial is not None:
            return False
        header = self._header_of(self._requests.head())
        if header is None or header.correlation_id != _INT.unpack_from(frame.payload)[0]:
            return False
        pending = Pending(self._requests.origin, header, api_name(header.api_key))
        pending.answer = frame
        self._partial = pending
        return True

    def _match_responses(self, until_ns: int | None) -> None:
        """Pair responses that came before their requests. One whose first packet is older than
        `until_ns`, up to which the requests are read, is an orphan; None: all of them are."""
        for _ in range(len(self._unmatched_responses)):
            frame = self._unmatched_responses.pop(0)
            pending = self._in_flight.take(_INT.unpack_from(frame.payload)[0])
            if pending is not None:
                self._emit_answered(pending, frame)
            elif self._answers_partial_request(frame):
                continue
            elif until_ns is None or frame.first_ns < until_ns:
                self._emit_orphan(frame)
            else:
                self._unmatched_responses.append(frame)

    def _emit_answered(self, pending: Pending, frame: Frame) -> None:
        if self._gap_in_responses:
            # Brokers answer in order: the responses to earlier requests fell into the gap.
            gap, self._gap_in_responses = self._gap_in_responses, ""
            for missed in self._in_flight.take_before(pending.origin.offset):
                self._emit_unanswered(missed, gap)
            self._in_flight.last_overtaking = None
        elif self._in_flight.last_overtaking is not None and self._zookeeper is None:
            overtaking = self._in_flight.overtaking(pending)
            if overtaking is not None:
                pending.notes += (overtaking.note(),)
        if not self._has_responded:
            self._has_responded = True
            if not self.connection.handshake:
                self.connection.server = ""  # its first bytes were the middle of a response
            context = self._context
            (context.brokers if self._zookeeper is None else context.zookeepers).add(self._ends[1])
        self._acknowledged = self._acknowledged or pending.acks_unknown
        self._emit(pending, "answered", frame)

    # --- raw SASL tokens

    def _token(self, frame: Frame) -> None:
        if self._frame_listener is not None:
            self._frame_listener("request", frame, None)
        pending = Pending(_origin_of(frame), None, SASL_TOKEN)
        pending.frame = frame
        pending.id = self._context.identify(self.connection, self.client, frame)
        pending.undecoded = cut_of(frame, "request")
        pending.software = self.phases.software
        self.phases.saw_token(frame.payload)
        self._in_flight.tokens.append(pending)
        if len(self._in_flight.tokens) > self._context.limits.tokens:
            self._emit_evicted([self._in_flight.tokens.pop(0)])

    # --- exchanges

    def _learn_from(self, decoded: Decoded) -> None:
        if teaches(decoded.layout):
            body_facts.learn(decoded.layout, decoded.body, self._context.names)
            nodes.learn(decoded.layout, decoded.body, self._context.nodes)

    def _notes(self, *sides: tuple[Side, Decoded | None]) -> tuple[Note, ...]:
        notes = [
            Note("chat", decoded.note, side)
            for side, decoded in sides
            if decoded is not None and decoded.note
        ]
        if self._skipped_bytes:
            text = f"{self._skipped_bytes} bytes before it belong to no recognizable frame"
            notes.append(Note("warning", text))
            self._skipped_bytes = 0
        return tuple(notes)

    def _emit(self, pending: Pending, state: State, answer: Frame | None, reason: str = "") -> None:
        header, sent = pending.header, pending.decoded
        response: Response | None = None
        decoded: Decoded | None = None
        undecoded = pending.undecoded
        wait_ns = 0
        if answer is not None:
            decoded, more = self._read_answer(pending, answer)
            undecoded += more
            if header is not None and pending.frame is not None:
                wait_ns = self._waits.response(
                    header.api_key,
                    spot_of(pending.frame),
                    pending.body,
                    spot_of(answer),
                    None if decoded is None else decoded.body,
                    pending.session,
                )
            response = Response(answer, None if header is None else header.correlation_id, decoded)
        request = None
        if pending.frame is not None:
            request = Request(pending.frame, header, sent)
        notes = pending.notes
        if self._skipped_bytes or (sent and sent.note) or (decoded and decoded.note):
            notes += self._notes(("request", sent), ("response", decoded))
        client, broker = self._ends
        remarks = self._context.remarks
        if remarks is not None and remarks.files:
            correlation_id = None if header is None else header.correlation_id
            notes += notes_of(remarks, pending.frame, answer, client, correlation_id)
        phases, tls = self.phases, self.connection.tls
        zookeeper = self._zookeeper
        if zookeeper is not None:
            notes += zookeeper.notes(decoded)
        # By position, not by keyword: this runs for every exchange.
        self._out.append(
            Exchange(
                UNNUMBERED,
                pending.id,
                state,
                self.connection,
                client,
                broker,
                None if header is None else header.api_key,
                pending.api,
                None if header is None or zookeeper is not None else header.api_version,
                None if header is None else header.correlation_id,
                phases.client_id if header is None else header.client_id,
                request,
                response,
                pending.software,
                phases.user if tls is None else phases.user_within(tls),
                phases.mechanism,
                reason,
                undecoded,
                notes,
                pending.session,
                self._ended_ns if state == "lost" and reason == self._ended else None,
                wait_ns,
                None if tls is None else tls.summary,
                zookeeper=None if zookeeper is None else zookeeper.facts(sent, decoded),
            )
        )
        if zookeeper is not None:
            self._out[-1].user = zookeeper.user

    def _read_answer(
        self, pending: Pending, answer: Frame
    ) -> tuple[Decoded | None, tuple[Undecoded, ...]]:
        """Decode a response, and update the state of connection and session from it."""
        header = pending.header
        if header is None:
            return None, cut_of(answer, "response") if answer.cut else ()
        decoded, undecoded = dissect_response(answer, header)
        if decoded is not None:
            self._learn_from(decoded)
            if self._zookeeper is not None:
                self._zookeeper.saw_response(header.api_key, decoded)
            elif header.api_key in STATEFUL:
                self.phases.saw_response(header.api_key, decoded)
            elif header.api_key in fetch_sessions.KEYS and pending.body is not None:
                pending.session = self._fetching.response(
                    header.api_key, pending.body, decoded.body, pending.session
                )
        return decoded, undecoded

    def _emit_orphan(self, frame: Frame) -> None:
        """Emit a response whose request was not seen: without API and version its body cannot be
        decoded."""
        payload = frame.payload
        correlation_id = _INT.unpack_from(payload)[0] if len(payload) >= 4 else None
        size = len(payload) - 4 if correlation_id is not None else len(payload)
        body = Undecoded("response", "orphan", len(payload) - size, size, "its request is unknown")
        self._emit_unpaired(
            "orphan",
            None,
            Response(frame, correlation_id, None),
            "response to a request that was not seen",
            (body, *cut_of(frame, "response")) if size else cut_of(frame, "response"),
        )

    def _emit_unpaired(
        self,
        state: State,
        request: Request | None,
        response: Response | None,
        reason: str,
        undecoded: tuple[Undecoded, ...],
        header: RequestHeader | None = None,
    ) -> None:
        """Emit a message without a counterpart; `header`: its API, where that is known."""
        client, broker = self._ends
        tls, zookeeper = self.connection.tls, self._zookeeper
        decoded = None if response is None else response.decoded
        if response is not None:
            direction, frame = 1 - self.client, response.frame
        else:
            assert request is not None
            direction, frame = self.client, request.frame
        self._out.append(
            Exchange(
                number=UNNUMBERED,
                id=self._context.identify(self.connection, direction, frame),
                state=state,
                connection=self.connection,
                client=client,
                broker=broker,
                api_key=None if header is None else header.api_key,
                api="" if header is None else api_name(header.api_key),
                api_version=None,
                correlation_id=None if response is None else response.correlation_id,
                client_id=self.phases.client_id,
                request=request,
                response=response,
                software=self.phases.software,
                user=self.phases.user if tls is None else self.phases.user_within(tls),
                mechanism=self.phases.mechanism,
                reason=reason,
                undecoded=undecoded,
                notes=self._notes(),
                tls=None if tls is None else tls.summary,
                zookeeper=None if zookeeper is None else zookeeper.facts(None, decoded),
            )
        )
