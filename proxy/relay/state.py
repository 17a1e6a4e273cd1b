"""What a connection's relay remembers, and the small steps that all its parts share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.conversation.detect import describe
from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.relay import secrets
from kafkascope.proxy.relay.entries import SIZE, Entry, Waiting
from kafkascope.proxy.relay.way import PASS, Stop, Way
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
        self.waiting = Waiting()
        self.ways = (Way(CLIENT), Way(BROKER))
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
        return len(self.waiting) > 0

    @property
    def kept(self) -> int:
        """Bytes that wait here."""
        return self.ways[0].kept + self.ways[1].kept + self.waiting.kept

    @property
    def _careful(self) -> bool:
        """Whether a decision may send something, which must not overtake what passes."""
        return self.hub.chain is not None or self._answers > 0

    def _pass(self, way: Way, data: memoryview, *, hidden: bool = False) -> None:
        if len(data):
            self._out.append(Send(1 - way.side, data))
            if self.tap is not None:
                comment = ""
                if self.note and way.side == CLIENT:
                    comment, self.note = self.note, ""
                seen: Data = data
                if way.opaque and not self.hub.with_secrets:
                    # Nobody can tell what is in it: a token of SASL as well as anything else.
                    seen = secrets.HIDDEN * len(data)
                elif hidden:
                    seen = _hidden_piece(way, data)
                self.tap.client(way.side, seen, self._now, comment)

    def _rest(self, way: Way, at: int, size: int) -> int:
        """Frames were followed to `at`, which may lie behind the `size` bytes that are here."""
        way.left = 0
        if at > size:
            way.left = at - size
            way.mode = PASS
            way.rate = 0.0
        return min(at, size)

    def _frame(self, way: Way, size: int, mode: int) -> None:
        way.left = way.size = 4 + size
        way.mode = mode
        way.rate = 0.0
        way.frames += 1
        if mode != PASS:
            way.body = bytearray()

    def _expect(self, way: Way) -> None:
        """An answer will come."""
        if way.entry is not None:
            self.waiting.add(way.entry)
            way.entry = None

    def _opaque(self, way: Way, view: memoryview, at: int, what: str = "") -> int:
        """Framing is lost: everything passes from here on, and we say so."""
        who = ("client", "broker")[way.side]
        head = bytes(view[at : at + SIGN])
        text = what or describe(head)
        self.hub.metrics.add("opaque_total")
        endpoint = self.client if way.side == CLIENT else self.broker
        word = text.partition(":")[0].partition(",")[0]
        if way.side == CLIENT and way.frames == 0 and word in OTHERS:
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
        for each in self.ways:
            each.opaque = True
        return 0

    def _through(self, way: Way) -> None:
        """A response is through: the next in the queue may have its answer already."""
        if way.entry is not None and self.waiting.front() is way.entry:
            self.waiting.pop()
        way.entry = None
        self._flush()

    def _flush(self) -> None:
        while (front := self.waiting.front()) is not None and front.answer is not None:
            if not self.ways[BROKER].between:
                return
            self.waiting.pop()
            self._answers -= 1
            self._out.append(Send(CLIENT, front.answer))
            if self.tap is not None:
                self.tap.client(BROKER, front.answer, self._now, front.comment)

    def _answer(self, entry: Entry, payload: bytes) -> None:
        """Answer in the broker's place, in turn."""
        entry.answer = SIZE.pack(len(payload)) + payload
        self.waiting.add(entry)
        self._answers += 1
        self._flush()

    def _stop(self, way: Way, go: Any, forever: bool = False) -> Stop:
        stop = Stop(go, forever=forever)
        if way.stop is None:
            self._out.append(Read(way.side, False))
        way.stop = stop
        return stop

    def _sleep(self, way: Way, go: Any, delay_ns: int) -> Stop:
        """Stop, and go on by itself."""
        stop = self._stop(way, go)
        stop.ends = True
        self._out.append(WakeUp(delay_ns, (way.side, stop)))
        return stop

    def _pace(self, way: Way, sent: int) -> None:
        self._sleep(way, lambda: None, int(sent / way.rate * 1e9))

    def wanted(self, side: int) -> bool:
        """Whether what a side had sent before it left is still to go on, and will."""
        if side == CLIENT or self.over:
            return False  # nobody is there for the answer
        stop, asks = self.ways[BROKER].stop, not self.ways[CLIENT].eof
        if stop is None:
            return asks
        return stop.ends or (asks and not stop.forever)

    def _tap_frame(self, side: int, entry: Entry, frame: bytes, comment: str = "") -> None:
        if self.tap is None:
            return
        if self.note and side == CLIENT:
            comment = f"{self.note}; {comment}" if comment else self.note
            self.note = ""
        self.tap.client(side, self._hidden(side, entry, frame), self._now, comment)

    def _hidden(self, side: int, entry: Entry, frame: bytes) -> bytes:
        """A frame, or the beginning of one, as it may be recorded: of the same length."""
        if self.hub.with_secrets:
            return frame
        masked = secrets.masked_request if side == CLIENT else secrets.masked_response
        return masked(entry, frame)

    def _undecoded(self, entry: Entry, why: str = "") -> None:
        api = APIS.get(entry.key)
        name = api.name if api is not None else str(entry.key)
        self.hub.metrics.add("undecoded_total", name)
        self.hub.once(
            f"undecoded {name} {entry.version}",
            f"{name} v{entry.version} from {self.broker} passes as it is, "
            f"addresses in it are not replaced: {why or 'it cannot be read'}",
        )


def _hidden_piece(way: Way, data: memoryview) -> bytes:
    """The bytes of a frame that has come up to these, its header as it is."""
    before = way.size - way.left - len(data)
    shown = min(max(way.shown - before, 0), len(data))
    return bytes(data[:shown]) + secrets.HIDDEN * (len(data) - shown)


def sane(view: memoryview, at: int) -> bool:
    """Whether a size at the start of a connection makes sense: TLS, HTTP and garbage have none."""
    first = view[at]
    if first in (0x14, 0x15, 0x16, 0x17) and view[at + 1] == 3:
        return False
    return first < 0x20
