"""The machine between a client and a broker: bytes of either side in, actions out. Sans-I/O.

A frame that nobody needs is forwarded as it comes, the very same bytes; only sizes and heads are
looked at. A frame that has to change, or that a rule has to see, is kept until it is whole. When a
rule waits, the socket is not read: nothing piles up here.

    read ─► boundaries ─► head ─► pass │ collect ─► addresses, versions ─► rules ─► send
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.proxy.relay.direction import (
    COLLECT,
    DISCARD,
    HIDE,
    PASS,
    TAIL,
    WALK,
    Direction,
    Stop,
)
from kafkascope.proxy.relay.pairing import PendingRequest
from kafkascope.proxy.relay.requests import Requests
from kafkascope.proxy.relay.responses import Responses
from kafkascope.proxy.relay.state import SLICE_S
from kafkascope.proxy.rules.actions import BROKER, CLIENT, Action, Data, End, Read, Send

if TYPE_CHECKING:
    from kafkascope.proxy.rules.verdicts import Verdict

NOTHING: Final[list[Action]] = []


class Relay(Requests, Responses):
    """One connection. `feed` returns None for "forward these bytes as they are"."""

    # --- events

    def feed(self, side: int, data: Data, now_ns: int) -> list[Action] | None:
        """Bytes of a side. They are valid during the call only."""
        direction = self.directions[side]
        size = len(data)
        self.hub.metrics.bytes[side] += size
        if direction.stop is not None:
            direction.backlog.append(bytes(data))
            return NOTHING
        if direction.left > size and direction.mode == PASS and not direction.rate:
            direction.left -= size
            if self.tap is not None:
                self.tap.client(side, data, now_ns)
            return None
        self._now = now_ns
        if (
            direction.frames
            and (direction.left == 0 or direction.mode == PASS)
            and not (
                direction.head
                or direction.rate
                or direction.opaque
                or self._tokens
                or self._answers
            )
        ):
            quick = self._quick_requests if side == CLIENT else self._quick_responses
            at = quick(direction, data, size)
            if at == size:
                if self.tap is not None:
                    self.tap.client(side, data, now_ns)
                return None
        else:
            at = 0
        out: list[Action] = []
        self._out = out
        if at:
            view = memoryview(data)
            self._pass(direction, view[:at])
            self._walk(direction, view[at:])
            return out
        self._walk(direction, data if type(data) is memoryview else memoryview(data))
        if len(out) == 1:
            only = out[0]
            if type(only) is Send and type(only.data) is memoryview and len(only.data) == size:
                return None
        return out

    def eof(self, side: int, now_ns: int) -> list[Action]:
        """A side sends no more."""
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        direction = self.directions[side]
        direction.eof = True
        if not self.cause:
            self.cause = ("client", "broker")[side]
        if direction.stop is None:
            self._finish(direction)
        return out

    def woken(self, token: Any, now_ns: int) -> list[Action]:
        """The time of a `WakeUp` is over."""
        direction = self.directions[token[0]]
        if self.over or direction.stop is None or direction.stop is not token[1]:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        self._resume(direction)
        return out

    def awaited(self, token: Any, verdict: Any, now_ns: int) -> list[Action]:
        """A rule that took its time has decided."""
        side, intercepted, rules, whole = token[0], token[2], token[3], token[4]
        stop: Stop = token[1]
        direction = self.directions[side]
        if self.over or direction.stop is not stop:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        stop.go = lambda: self._judge(direction, intercepted, rules, whole, verdict)
        self._resume(direction)
        return out

    def release(self, side: int, stop: Stop, verdict: Verdict, now_ns: int) -> list[Action]:
        """Somebody decided about a held frame; `verdict` is carried out in place of the rule's."""
        direction = self.directions[side]
        if self.over or direction.stop is not stop:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        go = stop.go
        stop.go = lambda: self._released(direction, stop.frame, verdict, go)
        self._resume(direction)
        return out

    def closed(self) -> None:
        """The connection is over; nothing comes any more."""
        self.over = True
        stop = self.directions[BROKER].stop
        if stop is not None and not stop.forever and stop.frame is not None:
            # It was delayed or held up to the end: the client never got it.
            intercepted, stop.frame = stop.frame, None
            if intercepted.original is not None:
                self._tap_lost(intercepted, intercepted.original)
        for direction in self.directions:
            if (
                direction.stop is not None
                and direction.stop.held is not None
                and self.hub.held is not None
            ):
                self.hub.held.forget(direction.stop.held)
            direction.backlog.clear()
            direction.body = bytearray()

    # --- boundaries

    def _walk(self, direction: Direction, view: memoryview) -> None:
        """Forward what passes, in as few pieces as possible; see to the rest."""
        at = start = 0
        end = len(view)
        while at < end:
            if direction.stop is not None or self.over:
                break
            if direction.left == 0:
                if direction.opaque:
                    at = end
                elif direction.head:
                    take = min(direction.want - len(direction.head), end - at)
                    direction.head += view[at : at + take]
                    at = start = at + take
                    if len(direction.head) == direction.want:
                        self._decide_kept(direction)
                else:
                    if start < at and self._careful:
                        self._pass(direction, view[start:at])
                        start = at
                    need = self._decide(direction, view, at, end)
                    if need:
                        self._pass(direction, view[start:at])
                        take = min(need, end - at)
                        direction.head = bytearray(view[at : at + take])
                        direction.want = need
                        at = start = at + take
                    elif direction.stop is not None or direction.mode in (COLLECT, DISCARD, HIDE):
                        self._pass(direction, view[start:at])
                        start = at
                continue
            take = min(direction.left, end - at)
            mode = direction.mode
            if mode in (PASS, WALK, HIDE):
                if direction.rate:
                    take = min(take, max(1, int(direction.rate * SLICE_S)))
                if mode == WALK:
                    tail = self._look(direction, view[at : at + take])
                    take = take if tail is None else tail
                at += take
                direction.left -= take
                if direction.rate or direction.mode in (TAIL, HIDE):
                    self._pass(direction, view[start:at], hidden=mode == HIDE)
                    start = at
                    if direction.rate and take:
                        self._pace(direction, take)
                    if direction.mode == TAIL:
                        continue
            else:
                if mode != DISCARD:
                    direction.body += view[at : at + take]
                    if self.hub.memory is not None:
                        self.hub.memory.grew(take)
                at += take
                direction.left -= take
                start = at
            if direction.left == 0:
                if start < at and self._careful:
                    self._pass(direction, view[start:at])
                    start = at
                self._end(direction)
        if start < at:
            self._pass(direction, view[start:at])
        if at < end and not self.over:
            direction.backlog.append(bytes(view[at:]))

    def _decide_kept(self, direction: Direction) -> None:
        """As `_decide`, for a head that came in pieces."""
        head = bytes(direction.head)
        view = memoryview(head)
        need = self._decide(direction, view, 0, len(head))
        if need > len(head):
            direction.want = need
            return
        direction.head = bytearray()
        if direction.stop is not None:
            direction.backlog.insert(0, head)
        elif direction.opaque:
            self._pass(direction, view)
        else:
            self._walk(direction, view)

    def _decide(self, direction: Direction, view: memoryview, at: int, end: int) -> int:
        """What to do with the frame at `at`: sets mode and left. More than 0: bytes it needs."""
        if direction.side == CLIENT:
            return self._decide_request(direction, view, at, end)
        return self._decide_response(direction, view, at, end)

    def _end(self, direction: Direction) -> None:
        """The last byte of a frame is here."""
        mode = direction.mode
        if mode == COLLECT:
            frame, direction.body = bytes(direction.body), bytearray()
            if direction.side == CLIENT:
                if direction.request is not None and direction.request.token:
                    self._tap_frame(CLIENT, direction.request, frame)
                    self._out.append(Send(BROKER, frame))
                    self._expect(direction)
                else:
                    self._whole_request(direction, frame)
            else:
                self._whole_response(direction, frame)
                if direction.stop is None:
                    self._through(direction)
            return
        if mode == TAIL:
            self._tail(direction)
        if direction.side == BROKER:
            self._through(direction)

    def _resume(self, direction: Direction) -> None:
        """Go on where the stop came."""
        stop = direction.stop
        assert stop is not None
        direction.stop = None
        stop.go()
        if (
            direction.stop is None
            and direction.side == BROKER
            and direction.left == 0
            and direction.request is not None
        ):
            self._through(direction)
        while direction.stop is None and direction.backlog and not self.over:
            data = direction.backlog.pop(0)
            rest, direction.backlog = direction.backlog, []
            self._walk(direction, memoryview(data))
            direction.backlog += rest
        if direction.stop is None and not self.over:
            if direction.eof:
                self._finish(direction)
            self._out.append(Read(direction.side, True))

    def _finish(self, direction: Direction) -> None:
        """A side is at its end: the other one hears of it."""
        if direction.head:
            self._cut_short(direction, self._nameless(direction), direction.head)
            direction.head = bytearray()
        if direction.mode in (COLLECT, TAIL) and direction.body:
            self._cut_short(
                direction, direction.request or self._nameless(direction), direction.body
            )
            direction.body = bytearray()
        if not direction.closing:
            direction.closing = True
            self._out.append(End(1 - direction.side, "half"))

    def _cut_short(self, direction: Direction, request: PendingRequest, part: bytearray) -> None:
        """What was kept of a frame goes on, for its rest does not come. A secret may be in it."""
        data = bytes(part)
        self._tap_frame(direction.side, request, data)
        self._out.append(Send(1 - direction.side, data))

    def _nameless(self, direction: Direction) -> PendingRequest:
        """What is known of a frame of which too little has come: whether it is a SASL token."""
        request = PendingRequest(-1, 0, 0, self._now)
        front = self.pairing.front()
        request.token = (
            self._tokens if direction.side == CLIENT else front is not None and front.token
        )
        return request
