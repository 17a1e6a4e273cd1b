"""Frames before the rules: ask in turn, carry out what was decided."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.conversation.tampering import BETWEEN, RULE, named
from kafkascope.proxy.relay.direction import DISCARD, Direction, Stop
from kafkascope.proxy.relay.pairing import SIZE
from kafkascope.proxy.relay.state import SLICE_S, State
from kafkascope.proxy.rules.actions import BROKER, CLIENT, Ask, End, Send
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import (
    Answer,
    Close,
    Delay,
    Drop,
    Forward,
    Hold,
    Replace,
    Throttle,
    Verdict,
)

if TYPE_CHECKING:
    from kafkascope.proxy.relay.pairing import PendingRequest
    from kafkascope.proxy.rules.rules import Rule


class RuleExecution(State):
    """What rules want, done."""

    def _judge(
        self,
        direction: Direction,
        intercepted: InterceptedFrame,
        rules: Iterator[Rule],
        whole: bytes | None,
        first: Any = None,
    ) -> None:
        """Ask the rules in turn until one decides; then do it. `whole` is the frame, if kept."""
        while True:
            verdict, first = first, None
            rule = None
            if verdict is None:
                rule = next(rules, None)
                if rule is None:
                    self._conclude(direction, intercepted, Forward(), whole)
                    return
                verdict = self._ask(rule, intercepted)
            if verdict is None or isinstance(verdict, Forward):
                continue
            name = intercepted.rule if rule is None else rule.name
            if name and not intercepted.comment:
                plain = name.replace(BETWEEN, ", ").replace("[", "(")  # as comments are taken apart
                intercepted.comment = f"{RULE}{plain}"
            if isinstance(verdict, Delay):
                self._record(intercepted, intercepted.comment)
                go = partial(self._judge, direction, intercepted, rules, whole)
                stop = self._sleep(direction, go, verdict.delay_ns)
                stop.frame = intercepted
                self._keep(stop, whole)
                return
            if isinstance(verdict, Throttle):
                intercepted.rate = verdict.bytes_per_s
                continue
            if isinstance(verdict, Hold):
                intercepted.rule = rule.name if rule is not None else ""
                self._hold(direction, intercepted, rules, whole, verdict)
                return
            if isinstance(verdict, Replace | Answer | Drop | Close):
                self._conclude(direction, intercepted, verdict, whole)
                return
            intercepted.rule = name
            self._record(intercepted, intercepted.comment)
            stop = self._stop(direction, lambda: None)
            self._keep(stop, whole)
            self._out.append(Ask(verdict, (direction.side, stop, intercepted, rules, whole)))
            return

    def _ask(self, rule: Rule, intercepted: InterceptedFrame) -> Any:
        try:
            return rule.judge(intercepted)
        except Exception as error:
            # A rule that fails must not take the traffic with it.
            self.hub.metrics.add("errors_total")
            self.hub.once(
                f"rule {rule.name}", f"rule {rule.name} fails, it is passed over: {error!r}"
            )
            return None

    def _hold(
        self,
        direction: Direction,
        intercepted: InterceptedFrame,
        rules: Iterator[Rule],
        whole: bytes | None,
        hold: Hold,
    ) -> None:
        self._record(intercepted, intercepted.comment)
        if hold.forever and direction.side == BROKER and whole is not None:
            self._tap_lost(intercepted, whole)
        stop = self._stop(
            direction, lambda: self._judge(direction, intercepted, rules, whole), hold.forever
        )
        intercepted.whole = whole
        stop.frame = intercepted
        self._keep(stop, whole)
        if not hold.forever and self.hub.held is not None:
            stop.held = self.hub.held.add(self, direction.side, stop, intercepted)

    def _released(
        self, direction: Direction, intercepted: InterceptedFrame | None, verdict: Verdict, go: Any
    ) -> None:
        if intercepted is None or isinstance(verdict, Forward):
            go()
            return
        self._conclude(direction, intercepted, verdict, intercepted.whole)

    def _conclude(
        self,
        direction: Direction,
        intercepted: InterceptedFrame,
        verdict: Verdict,
        whole: bytes | None,
    ) -> None:
        """Carry out what was decided about a frame."""
        told = isinstance(verdict, Replace | Answer)  # beside the other frame
        self._record(intercepted, "" if told else intercepted.comment)
        if whole is None:
            self._conclude_head(direction, intercepted, verdict)
        elif direction.side == CLIENT:
            self._conclude_request(direction, intercepted, verdict, whole)
        else:
            self._conclude_response(direction, intercepted, verdict, whole)

    def _conclude_head(
        self, direction: Direction, intercepted: InterceptedFrame, verdict: Verdict
    ) -> None:
        """The frame is not here yet: only its mode is decided."""
        direction.rate = intercepted.rate
        if isinstance(verdict, Drop):
            direction.mode = DISCARD
            direction.body = bytearray()
        elif isinstance(verdict, Close):
            self._close(direction, verdict)

    def _conclude_request(
        self, direction: Direction, intercepted: InterceptedFrame, verdict: Verdict, whole: bytes
    ) -> None:
        request = intercepted.pending
        expected, direction.request = direction.request is not None, None
        if isinstance(verdict, Answer):
            request.comment = intercepted.comment
            if expected:
                self._answer(request, verdict.payload)
            return
        if isinstance(verdict, Drop):
            return
        if isinstance(verdict, Close):
            self._close(direction, verdict, whole)
            return
        frame = whole
        if isinstance(verdict, Replace):
            frame = SIZE.pack(len(verdict.payload)) + verdict.payload
            if self.tap is not None:
                seen = self._hidden(CLIENT, request, frame)
                self.tap.broker(CLIENT, seen, self._now, self._about(request, intercepted.comment))
                request.raw = b""
        if expected:
            self.pairing.add(request)
        self._send(direction, frame, intercepted)

    def _conclude_response(
        self, direction: Direction, intercepted: InterceptedFrame, verdict: Verdict, whole: bytes
    ) -> None:
        original = intercepted.original
        frame = whole
        if isinstance(verdict, Replace):
            frame = SIZE.pack(len(verdict.payload)) + verdict.payload
        gone = isinstance(verdict, Drop | Close)
        if self.tap is not None and original is not None and (gone or frame != original):
            self._tap_lost(intercepted, original, intercepted.comment if gone else "")
        if isinstance(verdict, Drop):
            return
        if isinstance(verdict, Close):
            seen = self._hidden(BROKER, intercepted.pending, frame) if self.tap is not None else b""
            self._close(direction, verdict, frame, seen)
            return
        self._send(direction, frame, intercepted)

    def _record(self, intercepted: InterceptedFrame, comment: str = "") -> None:
        """Record a request, once, as the client sent it."""
        frame, intercepted.unrecorded = intercepted.unrecorded, None
        if frame is not None:
            self._tap_frame(CLIENT, intercepted.pending, frame, comment)

    def _about(self, request: PendingRequest, comment: str) -> str:
        """A comment on the broker's leg that says which exchange of the client's leg it is about:
        there is nothing of it there, or not what was changed."""
        whom = named(self.client, request.correlation_id)
        return f"{comment} [{whom}]" if comment else ""

    def _tap_lost(
        self, intercepted: InterceptedFrame, frame: bytes, comment: str | None = None
    ) -> None:
        """Record an answer as the broker gave it: the client gets another, or none."""
        if self.tap is None:
            return
        request = intercepted.pending
        if request.raw:
            self.tap.broker(CLIENT, self._hidden(CLIENT, request, request.raw), self._now)
        seen = self._hidden(BROKER, request, frame)
        comment = intercepted.comment if comment is None else comment
        self.tap.broker(BROKER, seen, self._now, self._about(request, comment))

    def _send(self, direction: Direction, frame: bytes, intercepted: InterceptedFrame) -> None:
        answer = direction.side == BROKER  # requests were recorded as they came
        if not intercepted.rate:
            if answer:
                self._tap_frame(BROKER, intercepted.pending, frame, intercepted.comment)
            self._out.append(Send(1 - direction.side, frame))
            return
        # The frame is kept already; it goes in slices all the same.
        step = max(1, int(intercepted.rate * SLICE_S))
        size = len(frame)
        recorded = answer and self.tap is not None
        seen = self._hidden(BROKER, intercepted.pending, frame) if recorded else b""
        at = 0

        def next_piece() -> None:
            nonlocal at
            begin, at = at, min(at + step, size)
            self._out.append(Send(1 - direction.side, frame[begin:at]))
            if seen and self.tap is not None:
                self.tap.client(BROKER, seen[begin:at], self._now, intercepted.comment)
                intercepted.comment = ""
            go = next_piece if at < size else lambda: None
            self._sleep(direction, go, int((at - begin) / intercepted.rate * 1e9)).kept = size - at

        next_piece()

    def _close(
        self, direction: Direction, verdict: Close, frame: bytes = b"", seen: bytes = b""
    ) -> None:
        """End the connection in the way that the rule wants. `seen`: an answer as it may be
        recorded; requests were, as they came."""
        other = 1 - direction.side
        if verdict.first and frame:
            self._out.append(Send(other, frame[: verdict.first]))
            if seen and self.tap is not None:
                self.tap.client(BROKER, seen[: verdict.first], self._now, "cut by kafkascope")
        self.cause = self.cause or "rule"
        if verdict.how == "half":
            direction.closing = True
            self._out.append(End(other, "half"))
            direction.mode = DISCARD
            self._stop(direction, lambda: None, forever=True)
            return
        self.over = True
        self._out += [End(CLIENT, verdict.how), End(BROKER, verdict.how)]

    def _keep(self, stop: Stop, whole: bytes | None) -> None:
        """A frame waits: it, and the payload that rules look at."""
        if whole is not None:
            stop.kept = 2 * len(whole)
            if self.hub.memory is not None:
                self.hub.memory.grew(len(whole))
