"""One connection between a client and a broker: bytes of either side in, actions out. Sans-I/O.

A connection owns two directions and what they share. A frame that nobody needs is forwarded as it
comes, the very same bytes; only sizes and heads are looked at. A frame that has to change, or that
a rule has to see, is kept until it is whole. While a rule waits, the socket is not read.

    read ─► Direction: boundaries, head ─► pass │ keep ─► Endpoints, VersionLimiter ─► rules ─► send
                          Pairing: requests that wait for their responses
"""

from __future__ import annotations

from typing import Any, Final

from kafkascope.captures.model import Endpoint
from kafkascope.proxy.hub import Hub
from kafkascope.proxy.relay.context import Context
from kafkascope.proxy.relay.direction import ReadPause
from kafkascope.proxy.relay.execution import RuleExecution
from kafkascope.proxy.relay.modes import PASS, WALK
from kafkascope.proxy.relay.pairing import Pairing
from kafkascope.proxy.relay.requests import Requests
from kafkascope.proxy.relay.responses import Responses
from kafkascope.proxy.relay.taps import TapWriter
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Action, Data, Forward, Send, Verdict

NOTHING: Final[list[Action]] = []


class Connection:
    """Forwards one connection between a client and a broker."""

    def __init__(self, hub: Hub, number: int, client: Endpoint, broker: Endpoint) -> None:
        self.context = context = Context(hub, number, client, broker)
        self.pairing = pairing = Pairing(hub.limits.pending_requests)
        self.taps = taps = TapWriter(context)
        self.rules = rules = RuleExecution(context, taps)
        self.responses = Responses(context, taps, pairing, rules)
        self.requests = Requests(context, taps, pairing, rules, self.responses.flush)
        self.directions = (self.requests.direction, self.responses.direction)

    # --- events

    def feed(self, side: int, data: Data, now_ns: int) -> list[Action] | None:
        """Handle bytes of a side, which are valid during the call only. None: forward them as they
        are."""
        context = self.context
        direction = self.directions[side]
        size = len(data)
        context.hub.metrics.bytes[side] += size
        if direction.stop is not None:
            direction.backlog.append(bytes(data))
            return NOTHING
        mode = direction.mode
        if (
            direction.left > size
            and not direction.rate
            and (mode is PASS or (mode is WALK and direction.handler.passes(size)))
        ):
            direction.left -= size
            if context.tap is not None:
                context.tap.client(side, data, now_ns)
            return None
        context.now_ns = now_ns
        at = 0
        if direction.left == 0 or mode is PASS:
            at = direction.handler.forward_whole_frames(data, size)
        if at == size:
            if context.tap is not None:
                context.tap.client(side, data, now_ns)
            return None
        out: list[Action] = []
        context.out = out
        view = data if type(data) is memoryview else memoryview(data)
        if at:
            direction.forward(view[:at])
            direction.receive(view[at:])
            return out
        direction.receive(view)
        if len(out) == 1:
            only = out[0]
            if type(only) is Send and type(only.data) is memoryview and len(only.data) == size:
                return None
        return out

    def eof(self, side: int, now_ns: int) -> list[Action]:
        context = self._event(now_ns)
        direction = self.directions[side]
        direction.eof = True
        context.ended_by(("client", "broker")[side])
        if direction.stop is None:
            direction.finish()
        return context.out

    def cut_short(self, side: int) -> list[bytes]:
        """Record what was kept of a frame whose rest does not come, for a side is gone; return what
        may go on to the other one."""
        direction = self.directions[side]
        if self.context.over or direction.stop is not None:
            return []
        parts = direction.cut_short()
        return [] if direction.closing else parts

    def woken(self, token: Any, now_ns: int) -> list[Action]:
        side, stop = token
        if not self._stopped(side, stop):
            return NOTHING
        return self._resume(side, now_ns)

    def awaited(self, token: Any, verdict: Any, now_ns: int) -> list[Action]:
        """Continue with the verdict of a rule that is a coroutine."""
        side, stop, frame, rules = token
        if not self._stopped(side, stop):
            return NOTHING
        stop.go = lambda: self.rules.run(self.directions[side], frame, rules, verdict)
        return self._resume(side, now_ns)

    def release(self, side: int, stop: ReadPause, verdict: Verdict, now_ns: int) -> list[Action]:
        """Continue with a held frame; `verdict` takes the place of the rule's."""
        if not self._stopped(side, stop):
            return NOTHING
        frame = stop.frame
        if frame is not None and not isinstance(verdict, Forward):
            stop.go = lambda: self.rules.conclude(self.directions[side], frame, verdict)
        return self._resume(side, now_ns)

    def closed(self) -> None:
        stop = self.directions[BROKER].stop
        if stop is not None and not stop.forever and stop.frame is not None:
            # It was delayed or held up to the end: the client never got it.
            frame, stop.frame = stop.frame, None
            if frame.original is not None:
                self.taps.lost(frame, frame.original, frame.comment)
        held = self.context.hub.held
        for side, direction in enumerate(self.directions):
            self.cut_short(side)  # nobody is there for it; a recording shows that it came
            if direction.stop is not None and direction.stop.held is not None and held is not None:
                held.forget(direction.stop.held)
            direction.backlog.clear()
            direction.body = bytearray()
        self.context.over = True

    def _event(self, now_ns: int) -> Context:
        self.context.now_ns = now_ns
        self.context.out = []
        return self.context

    def _stopped(self, side: int, stop: ReadPause) -> bool:
        return not self.context.over and self.directions[side].stop is stop

    def _resume(self, side: int, now_ns: int) -> list[Action]:
        context = self._event(now_ns)
        self.directions[side].resume()
        return context.out

    # --- questions

    @property
    def busy(self) -> bool:
        return len(self.pairing) > 0

    @property
    def kept(self) -> int:
        return self.directions[0].kept + self.directions[1].kept + self.pairing.kept

    def must_drain(self, side: int) -> bool:
        """Whether what a side sent before it left has to be forwarded still, and will be."""
        if side == CLIENT or self.context.over:
            return False  # nobody is there for the response
        stop, asks = self.directions[BROKER].stop, not self.directions[CLIENT].eof
        if stop is None:
            return asks
        return stop.ends or (asks and not stop.forever)
