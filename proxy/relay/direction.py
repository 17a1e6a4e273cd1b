"""Cuts the bytes of one side into frames, which are passed, kept or discarded as their mode says.

Only sizes are read here; what a frame means is known to its handler. While a direction is stopped
its socket is not read, so nothing piles up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kafkascope.analyzer.conversation.detect import describe
from kafkascope.analyzer.transform import secrets
from kafkascope.captures.signatures import HEAD, PROXY, TEXT, TLS, Side, protocol_of, shown_of
from kafkascope.proxy.hosts import ON_PLAINTEXT
from kafkascope.proxy.relay.context import Context
from kafkascope.proxy.relay.modes import (
    APART,
    COLLECT,
    DISCARD,
    FORWARDED,
    HIDE,
    KEPT,
    PASS,
    TAIL,
    WALK,
    WITHHELD,
    Event,
    Mode,
    transition,
)
from kafkascope.proxy.relay.pairing import Pairing, PendingRequest
from kafkascope.proxy.relay.taps import TapWriter
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Data, End, Read, Send, Verdict, WakeUp

# A throttled frame goes in pieces of so much time.
SLICE_S: Final = 0.05


@dataclass(slots=True, eq=False)
class ReadPause:
    """Why a direction is not read. `go` is called once when it may continue."""

    go: Callable[[], None]
    forever: bool = False
    ends: bool = False
    """By itself, after some time."""
    frame: InterceptedFrame | None = None
    held: int | None = None
    """Number under which the frame can be released from outside."""
    kept: int = 0
    """Bytes that wait with it."""


class FrameHandler:
    """Decides about the frames of a direction."""

    # One class of directions with a handler each, instead of two classes of directions: the code
    # that all bytes pass through meets objects of one type only, as the interpreter likes it.

    __slots__ = ()

    direction: Direction

    def forward_whole_frames(self, data: Data, size: int) -> int:
        """Skip frames that need no attention. Returns the offset of the first that does, or of the
        end. `decide` would let all of them pass; this is faster. Called between frames, or in one
        that passes."""
        raise NotImplementedError

    def decide(self, view: memoryview, at: int, end: int) -> int:
        """Begin the frame at `at` in a mode, perhaps with rules. Returns 0, or how many of its
        bytes are needed to decide."""
        raise NotImplementedError

    def passes(self, size: int) -> bool:
        """Follow a frame in mode WALK over the next `size` bytes without looking at them; False:
        they have to be looked at."""
        return False

    def scan(self, piece: memoryview) -> int | None:
        """Follow a frame in mode WALK. Returns where its node endpoints start, if that is in this
        piece."""
        raise NotImplementedError

    def on_frame(self, data: bytes) -> None:
        """Handle a whole frame that was kept."""
        raise NotImplementedError

    def on_tail(self, data: bytes) -> None:
        """Handle the end of a frame that mode TAIL kept."""
        raise NotImplementedError

    def on_end(self) -> None:
        """Finish a frame about which nothing is left to decide."""

    def conclude_kept(self, frame: InterceptedFrame, verdict: Verdict, whole: bytes) -> None:
        """Carry out what was decided about a frame that was kept."""
        raise NotImplementedError

    def unread(self) -> PendingRequest:
        """A placeholder for a frame of which too little has come: it says whether it is a SASL
        token."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Direction:
    """The bytes of one side, cut into frames about which its handler decides."""

    context: Context
    side: int
    """Where its bytes come from."""
    taps: TapWriter
    pairing: Pairing
    handler: FrameHandler
    left: int = 0
    """Bytes of the current frame that are still to come; 0 between frames."""
    size: int = 0
    """Size of the current frame, size field included."""
    mode: Mode = PASS
    """Mode of the current frame; between frames, of the last one."""
    head: bytearray = field(default_factory=bytearray)
    """The first bytes of a frame, while they are too few to decide."""
    want: int = 0
    """How many they have to be."""
    body: bytearray = field(default_factory=bytearray)
    """What COLLECT and TAIL keep."""
    frames: int = 0
    foreign: bool = True
    """If the next bytes are opaque, they are the first ones of another protocol."""
    request: PendingRequest | None = None
    """The current frame if it is a request, the request it answers if it is a response."""
    rate: float = 0.0
    """Bytes per second for the current frame; 0: as they come."""
    shown: int = 0
    """How many of its first bytes HIDE leaves as they are."""
    stop: ReadPause | None = None
    """Why nothing is taken from this side."""
    backlog: list[bytes] = field(default_factory=list)
    """What had been read when the stop came: one read at most, for the socket is not read."""
    eof: bool = False
    """The side sends no more (the backlog comes first)."""
    closing: bool = False
    """The end was passed on to the other side."""

    # --- bytes

    def receive(self, view: memoryview) -> None:
        """Forward what passes, in as few pieces as possible, and handle the rest."""
        at = start = 0  # what passes, and is not forwarded yet, is from `start` to `at`
        end = len(view)
        while at < end and self.stop is None and not self.context.over:
            if self.left == 0:
                start, at = self._between(view, start, at, end)
                continue
            take = min(self.left, end - at)
            mode = self.mode
            if mode in FORWARDED:
                if self.rate:
                    take = min(take, max(1, int(self.rate * SLICE_S)))
                if mode is WALK:
                    tail = self.handler.scan(view[at : at + take])
                    take = take if tail is None else tail
                at += take
                self.left -= take
                if self.rate or self.mode is TAIL or mode is HIDE:
                    self.forward(view[start:at], hidden=mode is HIDE)
                    start = at
                    if self.rate and take:
                        self.sleep(nothing, int(take / self.rate * 1e9))
                    if self.mode is TAIL:
                        continue
            else:
                if mode is not DISCARD:
                    self._keep(view[at : at + take])
                at += take
                self.left -= take
                start = at
            if self.left == 0:
                if start < at and self._careful:
                    self.forward(view[start:at])
                    start = at
                self._end()
        if start < at:
            self.forward(view[start:at])
        if at < end and not self.context.over:
            self.backlog.append(bytes(view[at:]))

    def _between(self, view: memoryview, start: int, at: int, end: int) -> tuple[int, int]:
        """Decide about the frame that begins at `at`. Returns where to continue, as in
        `receive`."""
        if self.context.opaque:
            return start, end
        if self.head:
            at += self._more_of_head(view[at : at + self.want - len(self.head)])
            return at, at
        if start < at and self._careful:
            self.forward(view[start:at])
            start = at
        need = self.handler.decide(view, at, end)
        if self.context.opaque:
            self.forward(view[start:at], framed=True)
            return at, at
        if need:
            self.forward(view[start:at])
            self.want = need
            at += self._more_of_head(view[at : at + need])
            return at, at
        if start < at and (self.stop is not None or self.mode in APART):
            self.forward(view[start:at])
            start = at
        return start, at

    def _more_of_head(self, piece: memoryview) -> int:
        """Keep the first bytes of a frame until there are enough to decide. Returns how many it
        took."""
        self.head += piece
        if len(self.head) == self.want:
            head = bytes(self.head)
            view = memoryview(head)
            need = self.handler.decide(view, 0, len(head))
            if need > len(head):
                self.want = need
                return len(piece)
            self.head = bytearray()
            if self.stop is not None:
                self.backlog.insert(0, head)
            elif self.context.opaque:
                self.forward(view)
            else:
                self.receive(view)
        return len(piece)

    @property
    def _careful(self) -> bool:
        """Whether a decision may send something, which must not overtake what passes."""
        return self.context.hub.chain is not None or self.pairing.own > 0

    def _keep(self, piece: memoryview) -> None:
        self.body += piece
        self.context.hub.grew(len(piece))

    def _take_kept(self) -> bytes:
        kept, self.body = bytes(self.body), bytearray()
        return kept

    def _end(self) -> None:
        if self.mode is COLLECT:
            self.handler.on_frame(self._take_kept())
            if self.stop is not None:
                return
        elif self.mode is TAIL:
            self.handler.on_tail(self._take_kept())
        self.handler.on_end()

    def begin(self, size: int) -> None:
        self.left = self.size = 4 + size
        self.mode = PASS
        self.rate = 0.0
        self.frames += 1
        self.foreign = False

    def switch(self, event: Event) -> None:
        """Change the mode of the current frame after an event (see `modes`)."""
        self.mode = transition(self.mode, event)

    def rest(self, at: int, size: int) -> int:
        """Skip the frames up to `at`, which may lie after the `size` bytes that have come."""
        self.left = 0
        if at > size:
            self.left = at - size
            self.mode = PASS
            self.rate = 0.0
        return min(at, size)

    def forward(self, data: memoryview, *, hidden: bool = False, framed: bool = False) -> None:
        """Forward bytes. `hidden` ones are masked in the recording, but for the header. `framed`:
        they are frames, though framing is lost after them."""
        if len(data):
            self.context.out.append(Send(1 - self.side, data))
            if self.context.tap is not None:
                if self.context.opaque and not framed and not self.context.hub.with_secrets:
                    self.taps.passed(self.side, self._unread(data))
                else:
                    self.taps.passed(self.side, self._masked(data) if hidden else data)

    def _unread(self, data: memoryview) -> bytes:
        """Mask bytes that are not Kafka, but for those that identify the protocol. The rest may be
        anything, a token of SASL as well."""
        first, self.foreign = self.foreign, False
        shown = shown_of(bytes(data[:HEAD]), self._speaker) if first else b""
        return shown + secrets.HIDDEN * (len(data) - len(shown))

    @property
    def _speaker(self) -> Side:
        return "client" if self.side == CLIENT else "server"

    def _masked(self, data: memoryview) -> bytes:
        before = self.size - self.left - len(data)
        shown = min(max(self.shown - before, 0), len(data))
        return bytes(data[:shown]) + secrets.HIDDEN * (len(data) - shown)

    def fall_back_to_passthrough(self, view: memoryview, at: int, what: str = "") -> int:
        """Treat the bytes at `at` as no frame: from here on everything passes, with a warning."""
        context = self.context
        who = ("client", "broker")[self.side]
        head = bytes(view[at : at + HEAD])
        side = self._speaker
        protocol = protocol_of(head, side)
        looks = describe(head, side)
        if protocol == TLS:
            looks = (ON_PLAINTEXT, f"{TLS}, not plaintext (--upstream-tls)")[self.side]
        elif not protocol and self.side == BROKER:
            looks = looks.replace("request", "response")
        text = what or looks
        context.hub.metrics.add("opaque_total")
        endpoint = context.client if self.side == CLIENT else context.broker
        if self.side == CLIENT and self.frames == 0 and protocol not in ("", TEXT):
            # The broker could only misunderstand it; the client learns more from a closed door.
            reason = looks
            if protocol.startswith(PROXY):
                reason = f"{protocol} header (--proxy-protocol accept)"
            sentence = f"{who} {endpoint}: {reason}: its connection is closed"
            context.hub.once(f"opaque {who} {text}", sentence)
            # Enough to see what it was. What comes after may be secret.
            self.taps.plain(CLIENT, shown_of(head, side))
            context.over = True
            context.cause = "not Kafka"
            context.out += [End(CLIENT, "fin"), End(BROKER, "fin")]
            return 0
        context.hub.once(
            f"opaque {who} {text}", f"{who} {endpoint}: {text}; its bytes are forwarded unchanged"
        )
        context.opaque = self.foreign = True
        return 0

    # --- stops and ends

    def pause(self, go: Callable[[], None], *, forever: bool = False) -> ReadPause:
        """Stop reading until `go` may be called."""
        stop = ReadPause(go, forever=forever)
        if self.stop is None:
            self.context.out.append(Read(self.side, False))
        self.stop = stop
        return stop

    def sleep(self, go: Callable[[], None], delay_ns: int) -> ReadPause:
        """Stop reading for a time."""
        stop = self.pause(go)
        stop.ends = True
        self.context.out.append(WakeUp(delay_ns, (self.side, stop)))
        return stop

    def resume(self) -> None:
        stop = self.stop
        assert stop is not None
        self.stop = None
        stop.go()
        if self.stop is None and self.left == 0 and self.request is not None:
            self.handler.on_end()
        while self.stop is None and self.backlog and not self.context.over:
            data = self.backlog.pop(0)
            rest, self.backlog = self.backlog, []
            self.receive(memoryview(data))
            self.backlog += rest
        if self.stop is None and not self.context.over:
            if self.eof:
                self.finish()
            self.context.out.append(Read(self.side, True))

    def finish(self) -> None:
        """Tell the other side that this one has ended."""
        for part in self.cut_short():
            self.context.out.append(Send(1 - self.side, part))
        if not self.closing:
            self.closing = True
            self.context.out.append(End(1 - self.side, "half"))

    def cut_short(self) -> list[bytes]:
        """Record what was kept of a frame whose rest does not come, masked, and return it."""
        parts = []
        if self.head:
            parts.append((self.handler.unread(), bytes(self.head)))
            self.head = bytearray()
        if self.mode in KEPT and self.body:
            parts.append((self.request or self.handler.unread(), self._take_kept()))
        for request, part in parts:
            self.taps.frame(self.side, request, part)
        return [part for _, part in parts]

    # --- questions

    @property
    def kept(self) -> int:
        stop = self.stop.kept if self.stop is not None else 0
        return len(self.head) + len(self.body) + sum(map(len, self.backlog)) + stop

    @property
    def grows(self) -> bool:
        """Whether a frame is being kept, the rest of which is to come."""
        return self.left > 0 and self.mode in KEPT and len(self.body) > 0

    @property
    def between(self) -> bool:
        """Whether the receiver stands between two frames."""
        return self.left == 0 or self.left == self.size or self.mode in WITHHELD


def nothing() -> None:
    """Go on with nothing in particular."""
