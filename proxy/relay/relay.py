"""The machine between a client and a broker: bytes of either side in, actions out. Sans-I/O.

A frame that nobody needs is forwarded as it comes, the very same bytes; only sizes and heads are
looked at. A frame that has to change, or that a rule has to see, is kept until it is whole. When a
rule waits, the socket is not read: nothing piles up here.

    read ─► boundaries ─► head ─► pass │ collect ─► addresses, versions ─► rules ─► send
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.proxy.relay.entries import Entry
from kafkascope.proxy.relay.requests import Requests
from kafkascope.proxy.relay.responses import Responses
from kafkascope.proxy.relay.state import SLICE_S
from kafkascope.proxy.relay.way import COLLECT, DISCARD, HIDE, PASS, TAIL, WALK, Stop, Way
from kafkascope.proxy.rules.actions import BROKER, CLIENT, Action, Data, End, Read, Send

if TYPE_CHECKING:
    from kafkascope.proxy.rules.verdicts import Verdict

NOTHING: Final[list[Action]] = []


class Relay(Requests, Responses):
    """One connection. `feed` returns None for "forward these bytes as they are"."""

    # --- events

    def feed(self, side: int, data: Data, now_ns: int) -> list[Action] | None:
        """Bytes of a side. They are valid during the call only."""
        way = self.ways[side]
        size = len(data)
        self.hub.metrics.bytes[side] += size
        if way.stop is not None:
            way.backlog.append(bytes(data))
            return NOTHING
        if way.left > size and way.mode == PASS and not way.rate:
            way.left -= size
            if self.tap is not None:
                self.tap.client(side, data, now_ns)
            return None
        self._now = now_ns
        if (
            way.frames
            and (way.left == 0 or way.mode == PASS)
            and not (way.head or way.rate or way.opaque or self._tokens or self._answers)
        ):
            quick = self._quick_requests if side == CLIENT else self._quick_responses
            at = quick(way, data, size)
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
            self._pass(way, view[:at])
            self._walk(way, view[at:])
            return out
        self._walk(way, data if type(data) is memoryview else memoryview(data))
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
        way = self.ways[side]
        way.eof = True
        if not self.cause:
            self.cause = ("client", "broker")[side]
        if way.stop is None:
            self._finish(way)
        return out

    def woken(self, token: Any, now_ns: int) -> list[Action]:
        """The time of a `WakeUp` is over."""
        way = self.ways[token[0]]
        if self.over or way.stop is None or way.stop is not token[1]:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        self._resume(way)
        return out

    def awaited(self, token: Any, verdict: Any, now_ns: int) -> list[Action]:
        """A rule that took its time has decided."""
        side, message, rules, whole = token[0], token[2], token[3], token[4]
        stop: Stop = token[1]
        way = self.ways[side]
        if self.over or way.stop is not stop:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        stop.go = lambda: self._judge(way, message, rules, whole, verdict)
        self._resume(way)
        return out

    def release(self, side: int, stop: Stop, verdict: Verdict, now_ns: int) -> list[Action]:
        """Somebody decided about a held frame; `verdict` is carried out in place of the rule's."""
        way = self.ways[side]
        if self.over or way.stop is not stop:
            return NOTHING
        self._now = now_ns
        out: list[Action] = []
        self._out = out
        go = stop.go
        stop.go = lambda: self._released(way, stop.message, verdict, go)
        self._resume(way)
        return out

    def closed(self) -> None:
        """The connection is over; nothing comes any more."""
        self.over = True
        stop = self.ways[BROKER].stop
        if stop is not None and not stop.forever and stop.message is not None:
            # It was delayed or held up to the end: the client never got it.
            message, stop.message = stop.message, None
            if message.original is not None:
                self._tap_lost(message, message.original)
        for way in self.ways:
            if way.stop is not None and way.stop.held is not None and self.hub.held is not None:
                self.hub.held.forget(way.stop.held)
            way.backlog.clear()
            way.body = bytearray()

    # --- boundaries

    def _walk(self, way: Way, view: memoryview) -> None:
        """Forward what passes, in as few pieces as possible; see to the rest."""
        at = start = 0
        end = len(view)
        while at < end:
            if way.stop is not None or self.over:
                break
            if way.left == 0:
                if way.opaque:
                    at = end
                elif way.head:
                    take = min(way.want - len(way.head), end - at)
                    way.head += view[at : at + take]
                    at = start = at + take
                    if len(way.head) == way.want:
                        self._decide_kept(way)
                else:
                    if start < at and self._careful:
                        self._pass(way, view[start:at])
                        start = at
                    need = self._decide(way, view, at, end)
                    if need:
                        self._pass(way, view[start:at])
                        take = min(need, end - at)
                        way.head = bytearray(view[at : at + take])
                        way.want = need
                        at = start = at + take
                    elif way.stop is not None or way.mode in (COLLECT, DISCARD, HIDE):
                        self._pass(way, view[start:at])
                        start = at
                continue
            take = min(way.left, end - at)
            mode = way.mode
            if mode in (PASS, WALK, HIDE):
                if way.rate:
                    take = min(take, max(1, int(way.rate * SLICE_S)))
                if mode == WALK:
                    tail = self._look(way, view[at : at + take])
                    take = take if tail is None else tail
                at += take
                way.left -= take
                if way.rate or way.mode in (TAIL, HIDE):
                    self._pass(way, view[start:at], hidden=mode == HIDE)
                    start = at
                    if way.rate and take:
                        self._pace(way, take)
                    if way.mode == TAIL:
                        continue
            else:
                if mode != DISCARD:
                    way.body += view[at : at + take]
                    if self.hub.memory is not None:
                        self.hub.memory.grew(take)
                at += take
                way.left -= take
                start = at
            if way.left == 0:
                if start < at and self._careful:
                    self._pass(way, view[start:at])
                    start = at
                self._end(way)
        if start < at:
            self._pass(way, view[start:at])
        if at < end and not self.over:
            way.backlog.append(bytes(view[at:]))

    def _decide_kept(self, way: Way) -> None:
        """As `_decide`, for a head that came in pieces."""
        head = bytes(way.head)
        view = memoryview(head)
        need = self._decide(way, view, 0, len(head))
        if need > len(head):
            way.want = need
            return
        way.head = bytearray()
        if way.stop is not None:
            way.backlog.insert(0, head)
        elif way.opaque:
            self._pass(way, view)
        else:
            self._walk(way, view)

    def _decide(self, way: Way, view: memoryview, at: int, end: int) -> int:
        """What to do with the frame at `at`: sets mode and left. More than 0: bytes it needs."""
        if way.side == CLIENT:
            return self._decide_request(way, view, at, end)
        return self._decide_response(way, view, at, end)

    def _end(self, way: Way) -> None:
        """The last byte of a frame is here."""
        mode = way.mode
        if mode == COLLECT:
            frame, way.body = bytes(way.body), bytearray()
            if way.side == CLIENT:
                if way.entry is not None and way.entry.token:
                    self._tap_frame(CLIENT, way.entry, frame)
                    self._out.append(Send(BROKER, frame))
                    self._expect(way)
                else:
                    self._whole_request(way, frame)
            else:
                self._whole_response(way, frame)
                if way.stop is None:
                    self._through(way)
            return
        if mode == TAIL:
            self._tail(way)
        if way.side == BROKER:
            self._through(way)

    def _resume(self, way: Way) -> None:
        """Go on where the stop came."""
        stop = way.stop
        assert stop is not None
        way.stop = None
        stop.go()
        if way.stop is None and way.side == BROKER and way.left == 0 and way.entry is not None:
            self._through(way)
        while way.stop is None and way.backlog and not self.over:
            data = way.backlog.pop(0)
            rest, way.backlog = way.backlog, []
            self._walk(way, memoryview(data))
            way.backlog += rest
        if way.stop is None and not self.over:
            if way.eof:
                self._finish(way)
            self._out.append(Read(way.side, True))

    def _finish(self, way: Way) -> None:
        """A side is at its end: the other one hears of it."""
        if way.head:
            self._cut_short(way, self._nameless(way), way.head)
            way.head = bytearray()
        if way.mode in (COLLECT, TAIL) and way.body:
            self._cut_short(way, way.entry or self._nameless(way), way.body)
            way.body = bytearray()
        if not way.closing:
            way.closing = True
            self._out.append(End(1 - way.side, "half"))

    def _cut_short(self, way: Way, entry: Entry, part: bytearray) -> None:
        """What was kept of a frame goes on, for its rest does not come. A secret may be in it."""
        data = bytes(part)
        self._tap_frame(way.side, entry, data)
        self._out.append(Send(1 - way.side, data))

    def _nameless(self, way: Way) -> Entry:
        """What is known of a frame of which too little has come: whether it is a SASL token."""
        entry = Entry(-1, 0, 0, self._now)
        front = self.waiting.front()
        entry.token = self._tokens if way.side == CLIENT else front is not None and front.token
        return entry
