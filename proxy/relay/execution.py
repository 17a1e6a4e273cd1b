"""Asks the rules about a frame in turn until one decides, and carries the verdict out.

A rule that changes a frame does not decide: the others see it as it is then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from kafkascope.analyzer.conversation.tampering import BETWEEN, RULE
from kafkascope.proxy.relay.context import Context
from kafkascope.proxy.relay.direction import SLICE_S, Direction, ReadPause, nothing
from kafkascope.proxy.relay.modes import Event
from kafkascope.proxy.relay.taps import TapWriter
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.rules import Rule
from kafkascope.proxy.rules.verdicts import (
    BROKER,
    CLIENT,
    Ask,
    Close,
    DeferredVerdict,
    Delay,
    Drop,
    End,
    Forward,
    Hold,
    Replace,
    Respond,
    Send,
    Throttle,
    Verdict,
)

# Verdicts after which no rule is asked any more.
FINAL: Final = (Respond, Drop, Close)
# Verdicts that put another frame in place of this one, which is recorded without a comment.
IN_PLACE: Final = (Replace, Respond)


@dataclass(slots=True, eq=False)
class RuleExecution:
    """Asks the rules of one connection and carries out their verdicts."""

    context: Context
    taps: TapWriter

    def run(
        self,
        direction: Direction,
        frame: InterceptedFrame,
        rules: Iterator[Rule],
        decided: Any = None,
    ) -> None:
        """Ask `rules` until one decides about a frame. `decided` is the verdict of a rule that was
        a coroutine; the others follow."""
        verdict, name = decided, frame.rule
        while True:
            if verdict is not None and not isinstance(verdict, Forward):
                if name and not frame.comment and not isinstance(verdict, DeferredVerdict):
                    plain = name.replace(BETWEEN, ", ").replace("[", "(")  # as they are taken apart
                    frame.comment = f"{RULE}{plain}"
                if isinstance(verdict, Throttle):
                    frame.rate = verdict.bytes_per_s
                elif isinstance(verdict, Replace):
                    frame.replace(verdict.payload)
                else:
                    self._carry_out(direction, frame, rules, verdict, name)
                    return
            rule = next(rules, None)
            if rule is None:
                changed = frame.changed
                self.conclude(direction, frame, Forward() if changed is None else Replace(changed))
                return
            verdict, name = self._ask(rule, frame), rule.name

    def _carry_out(
        self,
        direction: Direction,
        frame: InterceptedFrame,
        rules: Iterator[Rule],
        verdict: Any,
        name: str,
    ) -> None:
        """Conclude with a verdict, or wait as it says and then go on with the rules."""
        if isinstance(verdict, FINAL):
            self.conclude(direction, frame, verdict)
            return
        if not isinstance(verdict, DeferredVerdict):
            self.taps.request(frame, frame.comment)
        go_on = partial(self.run, direction, frame, rules)
        if isinstance(verdict, Delay):
            stop = direction.sleep(go_on, verdict.delay_ns)
            stop.frame = frame
            self._keep(stop, frame)
            return
        frame.rule = name
        if isinstance(verdict, Hold):
            self._hold(direction, frame, direction.pause(go_on, forever=verdict.forever))
            return
        what = verdict.verdict if isinstance(verdict, DeferredVerdict) else verdict
        stop = direction.pause(nothing)
        self._keep(stop, frame)
        self.context.out.append(Ask(what, (direction.side, stop, frame, rules)))

    def _ask(self, rule: Rule, frame: InterceptedFrame) -> Any:
        try:
            return rule.judge(frame)
        except Exception as error:
            # A rule that fails must not take the traffic with it.
            hub = self.context.hub
            hub.metrics.add("errors_total")
            hub.once(
                f"rule {rule.name}",
                f"rule {rule.name} failed and was skipped: internal error ({error})",
            )
            return None

    def _hold(self, direction: Direction, frame: InterceptedFrame, stop: ReadPause) -> None:
        if stop.forever and direction.side == BROKER and frame.whole is not None:
            self.taps.lost(frame, frame.whole, frame.comment)
        stop.frame = frame
        self._keep(stop, frame)
        held = self.context.hub.held
        if not stop.forever and held is not None:
            stop.held = held.add(stop, frame)

    def _keep(self, stop: ReadPause, frame: InterceptedFrame) -> None:
        """Count the memory of a frame that waits, and of the payload that rules look at."""
        if frame.whole is not None:
            stop.kept = 2 * len(frame.whole)
            self.context.hub.grew(len(frame.whole))

    # --- verdicts

    def conclude(self, direction: Direction, frame: InterceptedFrame, verdict: Verdict) -> None:
        self.taps.request(frame, "" if isinstance(verdict, IN_PLACE) else frame.comment)
        if frame.whole is not None:
            direction.handler.conclude_kept(frame, verdict, frame.whole)
            return
        direction.rate = frame.rate
        if isinstance(verdict, Drop):
            direction.switch(Event.DROPPED)
        elif isinstance(verdict, Close):
            self.close(direction, verdict)

    def send(self, direction: Direction, frame: InterceptedFrame, data: bytes) -> None:
        context, side = self.context, direction.side
        response = side == BROKER  # requests were recorded as they came
        if not frame.rate:
            if response:
                self.taps.frame(BROKER, frame.pending, data, frame.comment)
            context.out.append(Send(1 - side, data))
            return
        # It is here already; it goes in slices all the same.
        step = max(1, int(frame.rate * SLICE_S))
        size = len(data)
        recorded = response and context.tap is not None
        seen = self.taps.masked(BROKER, frame.pending, data) if recorded else b""
        at = 0

        def next_piece() -> None:
            nonlocal at
            begin, at = at, min(at + step, size)
            context.out.append(Send(1 - side, data[begin:at]))
            if seen and context.tap is not None:
                # A masked one may be of another size.
                self.taps.plain(BROKER, seen[begin : at if at < size else None], frame.comment)
                frame.comment = ""
            go = next_piece if at < size else nothing
            direction.sleep(go, int((at - begin) / frame.rate * 1e9)).kept = size - at

        next_piece()

    def close(
        self, direction: Direction, verdict: Close, data: bytes = b"", seen: bytes = b""
    ) -> None:
        """End the connection as a rule wants it. `seen`: a response as it may be recorded; requests
        were recorded as they came."""
        context, receiver = self.context, 1 - direction.side
        if verdict.first and data:
            context.out.append(Send(receiver, data[: verdict.first]))
            if seen:
                self.taps.plain(BROKER, seen[: verdict.first], "cut by kafkascope")
        context.ended_by("rule")
        if verdict.how == "half":
            direction.closing = True
            context.out.append(End(receiver, "half"))
            direction.switch(Event.DROPPED)
            direction.pause(nothing, forever=True)
            return
        context.over = True
        context.out += [End(CLIENT, verdict.how), End(BROKER, verdict.how)]
