"""What a connection's relay remembers, and the small steps that all its parts share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.conversation.detect import describe
from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.relay import secrets
from kafkascope.proxy.relay.direction import PASS, Direction, Stop
from kafkascope.proxy.relay.pairing import SIZE, Pairing, PendingRequest
from kafkascope.proxy.rules.actions import BROKER, CLIENT, Action, Data, End, Read, Send, WakeUp

if TYPE_CHECKING:
    from kafkascope.captures.model import Endpoint
    from kafkascope.proxy.engine.hub import Hub, Tap

MAX_COLLECT: Final = 100 * 1024 * 1024
"""A frame that is kept for a change; brokers take such requests (socket.request.max.bytes)."""
SLICE_S: Final = 0.05
"""A throttled frame goes in pieces of so much time."""

SIGN: Final = 16
"""Bytes at the start that tell what a connection speaks."""
OTHERS: Final = {
    "TLS": "TLS, which this listener does not speak (--tls)",
    "HTTP": "HTTP, not Kafka",
    "SSH": "SSH, not Kafka",
}
"""Protocols of which a broker could make nothing, and what to say of them."""

PRODUCE: Final = 0
SASL_HANDSHAKE: Final = 17
API_VERSIONS: Final = 18


class State:
    """One connection between a client and a broker."""

    def __init__(self, hub: Hub, number: int, client: Endpoint, broker: Endpoint) -> None:
        self.hub = hub
        self.number = number
        self.client = client
        self.broker = broker
        self.advertise_host = ""
        """The address of ours that this client came to."""
        self.pairing = Pairing()
        self.directions = (Direction(CLIENT), Direction(BROKER))
        self.client_id: str | None = None
        self.software = ""
        self.note = ""
        """Comment for the next bytes of the client in the recording."""
        self.tap: Tap | None = None
        self.over = False
        self.cause = ""
        """Why the connection ended."""
        self._tokens = False
        self._answers = 0
        """Answers of our own that wait for their turn."""
        self._out: list[Action] = []
        self._now = 0
        self._quiet: set[tuple[int, int]] = set()
        """Key and version of requests that no rule cares for, while..."""
        self._quiet_for: tuple[int, str | None, bytes] = (0, None, b"")
        """... this edition of the rules holds, and this is the client's id (text and bytes)."""

    @property
    def now_ns(self) -> int:
        """When the event that is handled came."""
        return self._now

    @property
    def busy(self) -> bool:
        """Whether answers are still to come."""
        return len(self.pairing) > 0

    @property
    def kept(self) -> int:
        """Bytes that wait here."""
        return self.directions[0].kept + self.directions[1].kept + self.pairing.kept

    @property
    def _careful(self) -> bool:
        """Whether a decision may send something, which must not overtake what passes."""
        return self.hub.chain is not None or self._answers > 0

    def _pass(self, direction: Direction, data: memoryview, *, hidden: bool = False) -> None:
        if len(data):
            self._out.append(Send(1 - direction.side, data))
            if self.tap is not None:
                comment = ""
                if self.note and direction.side == CLIENT:
                    comment, self.note = self.note, ""
                seen: Data = data
                if direction.opaque and not self.hub.with_secrets:
                    # Nobody can tell what is in it: a token of SASL as well as anything else.
                    seen = secrets.HIDDEN * len(data)
                elif hidden:
                    seen = _hidden_piece(direction, data)
                self.tap.client(direction.side, seen, self._now, comment)

    def _rest(self, direction: Direction, at: int, size: int) -> int:
        """Frames were followed to `at`, which may lie behind the `size` bytes that are here."""
        direction.left = 0
        if at > size:
            direction.left = at - size
            direction.mode = PASS
            direction.rate = 0.0
        return min(at, size)

    def _frame(self, direction: Direction, size: int, mode: int) -> None:
        direction.left = direction.size = 4 + size
        direction.mode = mode
        direction.rate = 0.0
        direction.frames += 1
        if mode != PASS:
            direction.body = bytearray()

    def _expect(self, direction: Direction) -> None:
        """An answer will come."""
        if direction.request is not None:
            self.pairing.add(direction.request)
            direction.request = None

    def _opaque(self, direction: Direction, view: memoryview, at: int, what: str = "") -> int:
        """Framing is lost: everything passes from here on, and we say so."""
        who = ("client", "broker")[direction.side]
        head = bytes(view[at : at + SIGN])
        text = what or describe(head)
        self.hub.metrics.add("opaque_total")
        endpoint = self.client if direction.side == CLIENT else self.broker
        word = text.partition(":")[0].partition(",")[0]
        if direction.side == CLIENT and direction.frames == 0 and word in OTHERS:
            # The broker could only misunderstand it; the client learns more from a closed door.
            said = f"{who} {endpoint}: {OTHERS[word]}: its connection is closed"
            self.hub.once(f"opaque {who} {text}", said)
            if self.tap is not None:
                # Enough to see what it was. What comes behind may be secret.
                sign = head.partition(b" ")[0] + b" " if word == "HTTP" else head
                self.tap.client(CLIENT, sign, self._now)
            self.over = True
            self.cause = "not Kafka"
            self._out += [End(CLIENT, "fin"), End(BROKER, "fin")]
            return 0
        self.hub.once(
            f"opaque {who} {text}", f"{who} {endpoint}: {text}; its bytes pass as they are"
        )
        for each in self.directions:
            each.opaque = True
        return 0

    def _through(self, direction: Direction) -> None:
        """A response is through: the next in the queue may have its answer already."""
        if direction.request is not None and self.pairing.front() is direction.request:
            self.pairing.pop()
        direction.request = None
        self._flush()

    def _flush(self) -> None:
        while (front := self.pairing.front()) is not None and front.response is not None:
            if not self.directions[BROKER].between:
                return
            self.pairing.pop()
            self._answers -= 1
            self._out.append(Send(CLIENT, front.response))
            if self.tap is not None:
                self.tap.client(BROKER, front.response, self._now, front.comment)

    def _answer(self, request: PendingRequest, payload: bytes) -> None:
        """Answer in the broker's place, in turn."""
        request.response = SIZE.pack(len(payload)) + payload
        self.pairing.add(request)
        self._answers += 1
        self._flush()

    def _stop(self, direction: Direction, go: Any, forever: bool = False) -> Stop:
        stop = Stop(go, forever=forever)
        if direction.stop is None:
            self._out.append(Read(direction.side, False))
        direction.stop = stop
        return stop

    def _sleep(self, direction: Direction, go: Any, delay_ns: int) -> Stop:
        """Stop, and go on by itself."""
        stop = self._stop(direction, go)
        stop.ends = True
        self._out.append(WakeUp(delay_ns, (direction.side, stop)))
        return stop

    def _pace(self, direction: Direction, sent: int) -> None:
        self._sleep(direction, lambda: None, int(sent / direction.rate * 1e9))

    def wanted(self, side: int) -> bool:
        """Whether what a side had sent before it left is still to go on, and will."""
        if side == CLIENT or self.over:
            return False  # nobody is there for the answer
        stop, asks = self.directions[BROKER].stop, not self.directions[CLIENT].eof
        if stop is None:
            return asks
        return stop.ends or (asks and not stop.forever)

    def _tap_frame(
        self, side: int, request: PendingRequest, frame: bytes, comment: str = ""
    ) -> None:
        if self.tap is None:
            return
        if self.note and side == CLIENT:
            comment = f"{self.note}; {comment}" if comment else self.note
            self.note = ""
        self.tap.client(side, self._hidden(side, request, frame), self._now, comment)

    def _hidden(self, side: int, request: PendingRequest, frame: bytes) -> bytes:
        """A frame, or the beginning of one, as it may be recorded: of the same length."""
        if self.hub.with_secrets:
            return frame
        masked = secrets.masked_request if side == CLIENT else secrets.masked_response
        return masked(request, frame)

    def _undecoded(self, request: PendingRequest, why: str = "") -> None:
        api = APIS.get(request.key)
        name = api.name if api is not None else str(request.key)
        self.hub.metrics.add("undecoded_total", name)
        self.hub.once(
            f"undecoded {name} {request.version}",
            f"{name} v{request.version} from {self.broker} passes as it is, "
            f"addresses in it are not replaced: {why or 'it cannot be read'}",
        )


def _hidden_piece(direction: Direction, data: memoryview) -> bytes:
    """The bytes of a frame that has come up to these, its header as it is."""
    before = direction.size - direction.left - len(data)
    shown = min(max(direction.shown - before, 0), len(data))
    return bytes(data[:shown]) + secrets.HIDDEN * (len(data) - shown)


def sane(view: memoryview, at: int) -> bool:
    """Whether a size at the start of a connection makes sense: TLS, HTTP and garbage have none."""
    first = view[at]
    if first in (0x14, 0x15, 0x16, 0x17) and view[at + 1] == 3:
        return False
    return first < 0x20
