"""Both directions of one Kafka connection: chunks in, exchanges out.

Pairs requests with responses by correlation id, knows when no answer is to come (acks=0), the SASL
phases and what happens at gaps and at the end. The only place that turns a `DissectError` into an
`Undecoded`: one bad frame never ends a connection. Sans-I/O; time arrives with the data.
"""

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
from kafkascope.analyzer.conversation.ordinary import ACKS_0, Ordinary, teaches
from kafkascope.analyzer.conversation.pending import (
    SASL_TOKEN,
    InFlight,
    Pending,
    loaded,
    partial_note,
)
from kafkascope.analyzer.conversation.phases import STATEFUL, Phases
from kafkascope.analyzer.conversation.resync import RequestSense, ResponseSense
from kafkascope.analyzer.conversation.sasl import is_token
from kafkascope.analyzer.conversation.tampering import notes_of
from kafkascope.analyzer.conversation.zookeeper import (
    EVENT_XID,
    AnswerSense,
    AskSense,
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

LEAST: Final = 4

LOST_SHOWN: Final = 16
"""Of bytes that begin no frame, as many as a row shows: they may be of the payload before them."""

_INT = struct.Struct(">i")
_int_at = _INT.unpack_from
_HEAD_OF_NONE = struct.Struct(">hh")

KNOWN: Final = frozenset(
    (api.key, version)
    for api in APIS.values()
    for version in range(api.versions.low, api.versions.high + 1)
)
"""(key, version) of all requests that can be read."""


def _origin_of(frame: Frame) -> Origin:
    return Origin(frame.parts[0].packet, frame.offset)


class Conversation(Resumable):
    """One connection that is known to be Kafka's, with `client` as the client's direction."""

    STATE = (
        "connection",
        "client",
        "_known",
        "_sense",
        "_in_flight",
        "_requests",
        "_responses",
        "_early",
        "_hole",
        "_begins",
        "_skipped",
        "_unbroken",
        "_sound",
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
        self._known = False
        """It answered, and the context knows that."""
        self._context = context
        self._heard = context.heard if zookeeper is None else None
        self._zookeeper = zookeeper
        self._sense = RequestSense()
        self._sense.lenient = True
        self._in_flight = InFlight(context.limits)
        if zookeeper is None:
            self._requests = FrameBuffer(self._sense)
            self._responses = FrameBuffer(ResponseSense(self._in_flight.ids))
        else:
            self._requests = FrameBuffer(AskSense())
            self._responses = FrameBuffer(AnswerSense(self._in_flight.ids))
        if midstream:
            self._requests.hunt()
            self._responses.hunt()
        self._half: Pending | None = None
        """A request that is not whole yet, though its answer was seen."""
        self._early: list[Frame] = []
        """Not many: a deque takes 750 bytes on each connection that never has any."""
        self._hole = ""
        """Why bytes of the responses are missing since the last one that paired."""
        self._begins = 0
        """Where the responses begin, or go on behind the last hole, in their stream."""
        self._sound = not midstream and zookeeper is None
        """The same of the responses as `_unbroken` says."""
        self._skipped = 0
        """Bytes skipped since the last exchange."""
        self._unbroken = not midstream and zookeeper is None
        """Nothing is missing of the requests, and each followed the one before."""
        self._acknowledged = False
        """A Produce of which the capture lacks the acks was answered."""
        self._ended = ""
        """How the connection ended, as far as that is known."""
        self._ended_ns: int | None = None
        self._closed = [False, False]
        self.phases = Phases()
        self._fetching = fetch_sessions.FetchSessions(context)
        self._waits = Waits(context)
        self._out: list[Exchange] = []
        self._ordinary: Ordinary | None = None

    def dump(self) -> Dump:
        self.leave()
        return {
            **super().dump(),
            "half": None if self._half is None else self._half.dump(),
            "zookeeper": None if self._zookeeper is None else self._zookeeper.dump(),
        }

    def load(self, state: Dump) -> Self:
        self._half = None if state["half"] is None else loaded(state["half"])
        if self._zookeeper is not None:
            self._zookeeper.load(state["zookeeper"])
        return super().load(state)

    @property
    def over(self) -> bool:
        return all(self._closed)

    @property
    def synchronized(self) -> bool:
        """Whether chunks of a direction may be joined: the connection is Kafka's, no response waits
        for its request, and frames follow each other."""
        if not self._known or self._early:
            return False
        return not (self._requests.hunting or self._responses.hunting)

    # --- events

    def feed(self, event: StreamEvent) -> list[Exchange]:
        """Return the exchanges that this event completes."""
        if self._ordinary is not None:
            if type(event) is not Chunk:
                return self.leave() + self.feed(event)
            found, ordinary = self._ordinary.take(event)
            if not ordinary:
                return found + self.leave()
            self._read_at_once()
            return found
        if type(event) is Chunk:
            if event.direction == self.client:
                self._ask(event)
            else:
                for units in self._responses.each(event):
                    self._take_responses(units)
        elif isinstance(event, Gap):
            if event.direction == self.client:
                self._unbroken = False
                self._take_requests(self._requests.gap(event))
            else:
                self._hole, self._sound = IN_A_GAP, False
                self._take_responses(self._responses.gap(event))
                self._begins = event.offset + (event.size or 0)
        elif isinstance(event, Closed):
            self._close(event)
        out = self._out
        if out:
            self._out = []
        if self._known and not self._in_flight and type(event) is Chunk and self._in_step():
            self._ordinary = Ordinary(
                self.connection,
                self.client,
                self._ends,
                self._context,
                self.phases,
                self._fetching,
                self._waits,
            )
            self._read_at_once()
        return out

    def _read_at_once(self) -> None:
        """Let the kernel have the bytes before they become events (`Context.direct`)."""
        connection, ordinary = self.connection, self._ordinary
        apart = connection.tls is None and not connection.compared
        if self._context.direct and ordinary is not None and apart:
            connection.reader = ordinary.reader

    def _in_step(self) -> bool:
        """Return whether nothing waits, and nothing was odd of late."""
        requests, responses = self._requests, self._responses
        remarks = self._context.remarks
        return not (
            requests.partial
            or responses.partial
            or requests.hunting
            or responses.hunting
            or self._early
            or self._half is not None
            or self._hole
            or self._skipped
            or self._ended
            or self.phases.tokens
            or self._in_flight.tokens
            or self._in_flight.passed is not None
            or self._zookeeper is not None
            or self._heard is not None
            or (remarks is not None and remarks.files)
            or self.connection.forwarded
        )

    def leave(self) -> list[Exchange]:
        """Go on without the kernel from where it is: with requests in flight, and with bytes that
        are no whole frame, or not an ordinary one. Return the exchanges that these are."""
        ordinary, self._ordinary = self._ordinary, None
        self.connection.reader = None
        if ordinary is None:
            return []
        waiting, chunks = ordinary.leave()
        for pending, frame in waiting:
            header = pending.header
            assert header is not None
            pending.frame = frame
            pending.id = self._context.identify(self.connection, self.client, frame)
            pending.software = self.phases.software
            pending.decoded, pending.undecoded = dissect_request(frame, header)
            pending.body = None if pending.decoded is None else pending.decoded.body
            self._in_flight.add(header.correlation_id, pending)
            self._context.waiting += pending.held
        return [each for chunk in chunks for each in self.feed(chunk)]

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
            self._retry(event.time_ns + 1)
        if (over or event.direction == broker) and not self._closed[broker]:
            self._closed[broker] = True
            self._take_responses(self._responses.close())
        if all(self._closed):
            self._retry(None)
        if self._closed[broker]:
            for pending in self._in_flight.all():
                self._unanswered(pending)

    @property
    def held(self) -> int:
        """Memory that requests without an answer take, frames that are not whole, and what is
        remembered of partitions."""
        waiting = self._in_flight.held + self._requests.held + self._responses.held
        if self._ordinary is not None:
            waiting += self._ordinary.reader.held
        return waiting + self._fetching.held + self._waits.held

    def forget(self) -> int:
        """Forget what is remembered of partitions, and costs no exchange; return the memory that
        it took."""
        held = self._fetching.held + self._waits.held
        if held:
            self._fetching.relieve()
            self._waits.relieve()
            self._context.forgotten += 1
        return held

    def relieve(self) -> list[Exchange]:
        """Give up the requests that wait and all but the heads of frames that are not whole: other
        connections need the memory."""
        left = self.leave()
        self._requests.relieve()
        self._responses.relieve()
        self._give_up(self._in_flight.oldest(0, 0))
        out, self._out = self._out, []
        return left + out

    def _give_up(self, dropped: list[Pending]) -> None:
        for pending in dropped:
            self._unanswered(pending, "none was seen while many later requests were sent")

    def _unanswered(self, pending: Pending, reason: str = "") -> None:
        """Tell a request that no answer will come to."""
        spoken = self.connection.server
        if not reason and self._strange:
            reason = NOT_A_RESPONSE
            if spoken != UNKNOWN_SERVER:
                reason = f"the server sent {spoken.partition(':')[0]}, not Kafka"
        if not reason and self._hole:
            reason = self._hole
        if not reason and self._zookeeper is None:
            overtaking = self._in_flight.overtaking(pending)
            reason = "" if overtaking is None else overtaking.reason()
        if pending.blind and not self._acknowledged:
            self._emit(pending, "no-reply", None, NO_ACKS)
        elif reason or self._ended:
            self._emit(pending, "lost", None, reason or self._ended)
        else:
            self._emit(pending, "open", None, "in flight when the capture ends")

    def unsettled(self, begun: list[Origin]) -> int:
        """Add the origins of the exchanges that have begun; return the first packet in which one
        may be found to begin yet, or `BEHIND_ALL`."""
        if self._ordinary is not None:
            return self._ordinary.unsettled(begun)
        if len(self._in_flight) or self._in_flight.tokens:
            begun += self._in_flight.origins()
        requests, responses = self._requests, self._responses
        if not (requests.waits or responses.waits or self._early):
            return BEHIND_ALL
        first = BEHIND_ALL
        if requests.sized:
            # Whatever it turns out to be, it is told.
            begun.append(requests.origin)
        elif requests.waits:
            first = requests.first_packet
        if responses.waits:
            head = responses.head()
            known = len(head) >= 4 and _int_at(head)[0] in self._in_flight
            if responses.hunting or not known:
                first = min(first, responses.first_packet)
        return min([first, *(frame.parts[0].packet for frame in self._early)])

    # --- requests

    def _ask(self, event: Chunk) -> None:
        # Time tells which response waits in vain, so packets count, not how many come at once.
        for chunk in event.by_piece() if self._early else (event,):
            for units in self._requests.each(chunk):
                self._take_requests(units)
            if self._early:
                self._retry(chunk.pieces[-1].time_ns)

    def _take_requests(self, units: list[Unit]) -> None:
        for unit in units:
            if type(unit) is Frame:
                self._request(unit)
            else:
                assert isinstance(unit, Skipped)
                self._skip_requests(unit)

    def _request(self, frame: Frame) -> None:
        half, self._half = self._half, None
        if half is not None:
            self._complete(half, frame)
            return
        if self._zookeeper is not None:
            self._begin(frame, self._header_of(frame.payload))
            return
        if (self.phases.tokens or not frame.offset) and self.phases.is_token(frame):
            self._token(frame)
            return
        header = self._header_of(frame.payload)
        known = header is not None and (header.api_key, header.api_version) in KNOWN
        if not known and is_token(frame.payload):
            # Without its handshake in the capture: what is not known for a token would be shown.
            self._token(frame)
            return
        if header is None and frame.cut:
            header = header_of_cut(frame.payload, self._sense.client_id)
        self._begin(frame, header)

    def _begin(self, frame: Frame, header: RequestHeader | None) -> None:
        """Take in a request of which the header, or that there is none, is known."""
        if header is None:
            self._opaque(frame)
            return
        pending = Pending(_origin_of(frame), header, api_name(header.api_key))
        self._complete(pending, frame)

    def _header_of(self, payload: bytes) -> RequestHeader | None:
        """Return the header of a request; None when the bytes are no request of whatever
        release."""
        if self._zookeeper is not None:
            return self._zookeeper.header_of(payload)
        try:
            header = read_request_header(payload)
        except DissectError:
            return None
        if header.api_key in APIS or (0 <= header.api_key < 1024 and header.api_version >= 0):
            return header
        return None

    def _complete(self, pending: Pending, frame: Frame) -> None:
        """Take note that all of a request was seen that there is to see."""
        header = pending.header
        if header is None:
            return
        if self._heard is not None:
            self._heard("request", frame, header)
        pending.frame = frame
        pending.id = self._context.identify(self.connection, self.client, frame)
        whole = not frame.cut or header.end < len(frame.payload)
        if whole:
            self._sense.know(header.client_id)
        self._read(pending, header, frame)
        if self._zookeeper is None:
            self.phases.saw_request(header, pending.decoded)
        else:
            self._zookeeper.saw_request(header, pending.decoded)
        pending.software = self.phases.software
        if pending.answer is not None:
            self._answered(pending, pending.answer)
            return
        acks = None
        if header.api_key == PRODUCE:
            acks = acks_of(frame.payload, header, pending.body)
            pending.blind = acks is None and bool(frame.cut)
        if acks == 0:
            self._emit(pending, "no-reply", None, ACKS_0)
        else:
            dropped = self._in_flight.add(header.correlation_id, pending)
            if dropped:
                self._give_up(dropped)
            self._context.waiting += pending.held

    def _read(self, pending: Pending, header: RequestHeader, frame: Frame) -> None:
        decoded, pending.undecoded = dissect_request(frame, header)
        if decoded is None:
            if pending.undecoded[0].reason == HEADER:  # what was read of the client id is none
                pending.header = header._replace(client_id=self.phases.client_id)
            return
        pending.decoded, pending.body = decoded, decoded.body
        self._learn(decoded)
        if header.api_key in fetch_sessions.KEYS:
            pending.session = self._fetching.request(header.api_key, pending.body)

    def _opaque(self, frame: Frame) -> None:
        """Take in a frame of the client that is no request."""
        if self._heard is not None:
            self._heard("request", frame, None)
        reason = f"{HEADER_MISSING} ({frame.cut})" if frame.cut else NO_HEADER
        undecoded = None if frame.cut else header_misfit(frame.payload)
        if undecoded is None and self._unbroken and frame.offset and not frame.cut:
            said = ", ".join(map(str, _HEAD_OF_NONE.unpack_from(frame.payload.ljust(4, b"\0"))))
            what = f"a frame of {frame.size} bytes with api_key and api_version {said}"
            self._unbroken = False
            self._lose("request", frame, frame.wire_bytes, what)
            return
        if undecoded is None:
            undecoded = Undecoded("request", frame.cut or "opaque", 0, frame.size, reason)
        else:
            reason = f"{NO_HEADER}: {undecoded.text}"
        self._emit_unpaired("opaque", Request(frame, None, None), None, reason, (undecoded,))

    @property
    def _strange(self) -> bool:
        """Whether the broker speaks something else than Kafka."""
        return bool(self.connection.server) and not self._known

    def _greeted(self, offset: int, head: bytes) -> bool:
        """Return whether bytes of the broker that are no response are its first ones, or the first
        ones behind a hole, and take note of what they speak in place of Kafka."""
        connection = self.connection
        if offset != self._begins or self._known or self._zookeeper:
            return False
        if offset or self.client or not connection.handshake:
            spoken = words_amid(head, "server")
        elif len(head) < LEAST:
            spoken = words_of(head, "server")
        else:
            spoken = words_of(head, "server") or UNKNOWN_SERVER
        connection.server = spoken or connection.server
        return bool(spoken)

    def _lose(self, side: Side, frame: Frame, size: int, what: str) -> None:
        """Take in bytes of a side, right behind a whole frame, that begin no frame."""
        who = "client" if side == "request" else "broker"
        text = f"at byte {frame.offset} of the {who}'s stream: {what}"
        undecoded = (Undecoded(side, FRAMING, 0, size, text),)
        reason = f"{FRAMING_LOST} {text}"
        if side == "request":
            self._emit_unpaired("opaque", Request(frame, None, None), None, reason, undecoded)
        else:
            self._emit_unpaired("orphan", None, Response(frame, None, None), reason, undecoded)

    def _lose_at(self, side: Side, unit: Skipped) -> None:
        """Do the same where the size is none."""
        if unit.lost_at is None or not unit.offset or len(unit.head) < 4:
            return
        size, head, now = _int_at(unit.head)[0], unit.head, unit.time_ns
        parts = (unit.lost_at,)
        frame = Frame(head[4:LOST_SHOWN], unit.offset, max(0, unit.size - 4), now, now, parts, "")
        what = f"{head[:4].hex(' ')} in place of a size ({size})"
        if head[:4] == MASKED:
            what = "bytes that begin no frame, masked in the recording"
        sign = protocol_of(head)
        self._lose(side, frame, unit.size, f"{what}: {sign}" if sign else what)

    def _skip_requests(self, unit: Skipped) -> None:
        unbroken, self._unbroken = self._unbroken, False
        if unbroken:
            self._lose_at("request", unit)
        self._skip(unit)

    def _skip_responses(self, unit: Skipped) -> None:
        sound, self._sound = self._sound, False
        if sound and unit.lost_at is not None:
            self._hole = NO_FRAMING
            self._lose_at("response", unit)
        self._hole = self._hole or IN_A_GAP
        self._skip(unit)

    def _skip(self, unit: Skipped) -> None:
        self._skipped += unit.size
        self._context.skipped_bytes += unit.size

    # --- responses

    def _take_responses(self, units: list[Unit]) -> None:
        for unit in units:
            if type(unit) is Frame:
                self._response(unit)
            else:
                assert isinstance(unit, Skipped)
                if not (self._greeted(unit.offset, unit.head) or self._strange):
                    self._skip_responses(unit)

    def _response(self, frame: Frame) -> None:
        payload = frame.payload
        if self._heard is not None:
            self._heard("response", frame, None)
        if frame.cut == "end":
            self._half_answer(frame)
            return
        if self._in_flight.tokens:
            known = len(payload) >= 4 and _INT.unpack_from(payload)[0] in self._in_flight
            if not known:
                self.phases.saw_token_answer()
                self._emit(self._in_flight.tokens.pop(0), "answered", frame)
                return
            for token in self._in_flight.tokens:
                self._emit(token, "no-reply", None, "no response follows the last token")
            self._in_flight.tokens = []
        if len(payload) < 4:
            if frame.size < 4 and frame.offset and self._sound:
                # No response is shorter than its correlation id.
                self._sound, self._hole = False, NO_FRAMING
                words = (
                    f"{frame.size.to_bytes(4, 'big').hex(' ')} in place of a size ({frame.size})"
                )
                self._lose("response", frame, frame.wire_bytes, words)
            else:
                self._orphan(frame)
            return
        if self._zookeeper is not None and is_event(payload):
            decoded, undecoded = dissect_response(frame, EVENT_HEADER)
            event = Response(frame, EVENT_XID, decoded)
            self._emit_unpaired("event", None, event, "", undecoded, EVENT_HEADER)
            return
        # Pings have all one id: behind a hole the last one is answered, as the others were in it.
        latest = bool(self._hole) and self._zookeeper is not None
        pending = self._in_flight.take(_INT.unpack_from(payload)[0], latest=latest)
        if pending is not None:
            self._answered(pending, frame)
        elif self._partial_request(frame):
            pass
        elif self._in_flight.late:
            # Its request was told as lost, and without it nothing of this can be read.
            self._in_flight.late -= 1
            self._context.late = True
        else:
            self._early.append(frame)
            if len(self._early) > self._context.limits.early_responses:
                self._orphan(self._early.pop(0))

    def _half_answer(self, frame: Frame) -> None:
        """Drop a response that the end cut off: its request stays without."""
        if not frame.offset and not self._known:
            # A record of TLS, or a frame of HTTP/2, has a size that a response could have.
            head = frame.size.to_bytes(4, "big") + frame.payload[:HEAD]
            if words_of(head, "server") and self._greeted(0, head):
                return
        pending = None
        if len(frame.payload) >= 4:
            pending = self._in_flight.take(_INT.unpack_from(frame.payload)[0])
        if pending is not None:
            pending.notes = (partial_note(frame, self._ended_ns),)
            pending.blind = False
            self._unanswered(pending)

    def _partial_request(self, frame: Frame) -> bool:
        """Return whether the answer belongs to the request whose last bytes are still missing."""
        if not self._requests.partial or self._half is not None:
            return False
        header = self._header_of(self._requests.head())
        if header is None or header.correlation_id != _INT.unpack_from(frame.payload)[0]:
            return False
        pending = Pending(self._requests.origin, header, api_name(header.api_key))
        pending.answer = frame
        self._half = pending
        return True

    def _retry(self, until_ns: int | None) -> None:
        """Look again for the requests of responses that came early; those of requests that would
        have been sent before `until_ns` have none."""
        for _ in range(len(self._early)):
            frame = self._early.pop(0)
            pending = self._in_flight.take(_INT.unpack_from(frame.payload)[0])
            if pending is not None:
                self._answered(pending, frame)
            elif self._partial_request(frame):
                continue
            elif until_ns is None or frame.first_ns < until_ns:
                self._orphan(frame)
            else:
                self._early.append(frame)

    def _answered(self, pending: Pending, frame: Frame) -> None:
        if self._hole:
            # Brokers answer in order: what was asked before this is answered inside the hole.
            hole, self._hole = self._hole, ""
            for missed in self._in_flight.before(pending.origin.offset):
                self._unanswered(missed, hole)
            self._in_flight.passed = None
        elif self._in_flight.passed is not None and self._zookeeper is None:
            overtaking = self._in_flight.overtaking(pending)
            if overtaking is not None:
                pending.notes += (overtaking.note(),)
        if not self._known:
            self._known = True
            if not self.connection.handshake:
                self.connection.server = ""  # what it began with was the middle of a response
            context = self._context
            (context.brokers if self._zookeeper is None else context.zookeepers).add(self._ends[1])
        self._acknowledged = self._acknowledged or pending.blind
        self._emit(pending, "answered", frame)

    # --- raw SASL tokens

    def _token(self, frame: Frame) -> None:
        if self._heard is not None:
            self._heard("request", frame, None)
        pending = Pending(_origin_of(frame), None, SASL_TOKEN)
        pending.frame = frame
        pending.id = self._context.identify(self.connection, self.client, frame)
        pending.undecoded = cut_of(frame, "request")
        pending.software = self.phases.software
        self.phases.saw_token(frame.payload)
        self._in_flight.tokens.append(pending)
        if len(self._in_flight.tokens) > self._context.limits.tokens:
            self._give_up([self._in_flight.tokens.pop(0)])

    # --- telling

    def _learn(self, decoded: Decoded) -> None:
        if teaches(decoded.layout):
            body_facts.learn(decoded.layout, decoded.body, self._context.names)
            nodes.learn(decoded.layout, decoded.body, self._context.nodes)

    def _notes(self, *sides: tuple[Side, Decoded | None]) -> tuple[Note, ...]:
        notes = [
            Note("chat", decoded.note, side)
            for side, decoded in sides
            if decoded is not None and decoded.note
        ]
        if self._skipped:
            text = f"{self._skipped} bytes before it belong to no recognizable frame"
            notes.append(Note("warning", text))
            self._skipped = 0
        return tuple(notes)

    def _emit(self, pending: Pending, state: State, answer: Frame | None, reason: str = "") -> None:
        header, asked = pending.header, pending.decoded
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
            request = Request(pending.frame, header, asked)
        notes = pending.notes
        if self._skipped or (asked and asked.note) or (decoded and decoded.note):
            notes += self._notes(("request", asked), ("response", decoded))
        client, broker = self._ends
        remarks = self._context.remarks
        if remarks is not None and remarks.files:
            correlation_id = None if header is None else header.correlation_id
            notes += notes_of(remarks, pending.frame, answer, client, correlation_id)
        phases, tls = self.phases, self.connection.tls
        spoken = self._zookeeper
        if spoken is not None:
            notes += spoken.notes(decoded)
        # By position: this is done for every exchange.
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
                None if header is None or spoken is not None else header.api_version,
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
                zookeeper=None if spoken is None else spoken.facts(asked, decoded),
            )
        )
        if spoken is not None:
            self._out[-1].user = spoken.user

    def _read_answer(
        self, pending: Pending, answer: Frame
    ) -> tuple[Decoded | None, tuple[Undecoded, ...]]:
        """Return the body of a response, after the state has learned from it."""
        header = pending.header
        if header is None:
            return None, cut_of(answer, "response") if answer.cut else ()
        decoded, undecoded = dissect_response(answer, header)
        if decoded is not None:
            self._learn(decoded)
            if self._zookeeper is not None:
                self._zookeeper.saw_response(header.api_key, decoded)
            elif header.api_key in STATEFUL:
                self.phases.saw_response(header.api_key, decoded)
            elif header.api_key in fetch_sessions.KEYS and pending.body is not None:
                self._fetching.response(header.api_key, pending.body, decoded.body)
        return decoded, undecoded

    def _orphan(self, frame: Frame) -> None:
        """Make an exchange of a response whose request was not seen: what it holds cannot be
        known."""
        payload = frame.payload
        correlation_id = _INT.unpack_from(payload)[0] if len(payload) >= 4 else None
        size = len(payload) - 4 if correlation_id is not None else len(payload)
        left = Undecoded("response", "orphan", len(payload) - size, size, "its request is unknown")
        self._emit_unpaired(
            "orphan",
            None,
            Response(frame, correlation_id, None),
            "response to a request that was not seen",
            (left, *cut_of(frame, "response")) if size else cut_of(frame, "response"),
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
        """Tell a message that has no other one; `header`: what it is, where that is known."""
        client, broker = self._ends
        tls, spoken = self.connection.tls, self._zookeeper
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
                zookeeper=None if spoken is None else spoken.facts(None, decoded),
            )
        )
