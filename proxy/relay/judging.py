"""Frames before the rules: ask in turn, carry out what was decided."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.conversation.tampering import BETWEEN, RULE, named
from kafkascope.proxy.relay.entries import SIZE
from kafkascope.proxy.relay.state import SLICE_S, State
from kafkascope.proxy.relay.way import DISCARD, Stop, Way
from kafkascope.proxy.rules.actions import BROKER, CLIENT, Ask, End, Send
from kafkascope.proxy.rules.message import Message
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
    from kafkascope.proxy.relay.entries import Entry
    from kafkascope.proxy.rules.rules import Rule


class Judging(State):
    """What rules want, done."""

    def _judge(
        self,
        way: Way,
        message: Message,
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
                    self._conclude(way, message, Forward(), whole)
                    return
                verdict = self._ask(rule, message)
            if verdict is None or isinstance(verdict, Forward):
                continue
            name = message.rule if rule is None else rule.name
            if name and not message.comment:
                plain = name.replace(BETWEEN, ", ").replace("[", "(")  # as comments are taken apart
                message.comment = f"{RULE}{plain}"
            if isinstance(verdict, Delay):
                self._record(message, message.comment)
                go = partial(self._judge, way, message, rules, whole)
                stop = self._sleep(way, go, verdict.delay_ns)
                stop.message = message
                self._keep(stop, whole)
                return
            if isinstance(verdict, Throttle):
                message.rate = verdict.bytes_per_s
                continue
            if isinstance(verdict, Hold):
                message.rule = rule.name if rule is not None else ""
                self._hold(way, message, rules, whole, verdict)
                return
            if isinstance(verdict, Replace | Answer | Drop | Close):
                self._conclude(way, message, verdict, whole)
                return
            message.rule = name
            self._record(message, message.comment)
            stop = self._stop(way, lambda: None)
            self._keep(stop, whole)
            self._out.append(Ask(verdict, (way.side, stop, message, rules, whole)))
            return

    def _ask(self, rule: Rule, message: Message) -> Any:
        try:
            return rule.judge(message)
        except Exception as error:
            # A rule that fails must not take the traffic with it.
            self.hub.metrics.add("errors_total")
            self.hub.once(
                f"rule {rule.name}", f"rule {rule.name} fails, it is passed over: {error!r}"
            )
            return None

    def _hold(
        self, way: Way, message: Message, rules: Iterator[Rule], whole: bytes | None, hold: Hold
    ) -> None:
        self._record(message, message.comment)
        if hold.forever and way.side == BROKER and whole is not None:
            self._tap_lost(message, whole)
        stop = self._stop(way, lambda: self._judge(way, message, rules, whole), hold.forever)
        message.whole = whole
        stop.message = message
        self._keep(stop, whole)
        if not hold.forever and self.hub.held is not None:
            stop.held = self.hub.held.add(self, way.side, stop, message)

    def _released(self, way: Way, message: Message | None, verdict: Verdict, go: Any) -> None:
        if message is None or isinstance(verdict, Forward):
            go()
            return
        self._conclude(way, message, verdict, message.whole)

    def _conclude(self, way: Way, message: Message, verdict: Verdict, whole: bytes | None) -> None:
        """Carry out what was decided about a frame."""
        told = isinstance(verdict, Replace | Answer)  # beside the other frame
        self._record(message, "" if told else message.comment)
        if whole is None:
            self._conclude_head(way, message, verdict)
        elif way.side == CLIENT:
            self._conclude_request(way, message, verdict, whole)
        else:
            self._conclude_response(way, message, verdict, whole)

    def _conclude_head(self, way: Way, message: Message, verdict: Verdict) -> None:
        """The frame is not here yet: only its mode is decided."""
        way.rate = message.rate
        if isinstance(verdict, Drop):
            way.mode = DISCARD
            way.body = bytearray()
        elif isinstance(verdict, Close):
            self._close(way, verdict)

    def _conclude_request(self, way: Way, message: Message, verdict: Verdict, whole: bytes) -> None:
        entry = message.entry
        expected, way.entry = way.entry is not None, None
        if isinstance(verdict, Answer):
            entry.comment = message.comment
            if expected:
                self._answer(entry, verdict.payload)
            return
        if isinstance(verdict, Drop):
            return
        if isinstance(verdict, Close):
            self._close(way, verdict, whole)
            return
        frame = whole
        if isinstance(verdict, Replace):
            frame = SIZE.pack(len(verdict.payload)) + verdict.payload
            if self.tap is not None:
                seen = self._hidden(CLIENT, entry, frame)
                self.tap.broker(CLIENT, seen, self._now, self._about(entry, message.comment))
                entry.raw = b""
        if expected:
            self.waiting.add(entry)
        self._send(way, frame, message)

    def _conclude_response(
        self, way: Way, message: Message, verdict: Verdict, whole: bytes
    ) -> None:
        original = message.original
        frame = whole
        if isinstance(verdict, Replace):
            frame = SIZE.pack(len(verdict.payload)) + verdict.payload
        gone = isinstance(verdict, Drop | Close)
        if self.tap is not None and original is not None and (gone or frame != original):
            self._tap_lost(message, original, message.comment if gone else "")
        if isinstance(verdict, Drop):
            return
        if isinstance(verdict, Close):
            seen = self._hidden(BROKER, message.entry, frame) if self.tap is not None else b""
            self._close(way, verdict, frame, seen)
            return
        self._send(way, frame, message)

    def _record(self, message: Message, comment: str = "") -> None:
        """Record a request, once, as the client sent it."""
        frame, message.pending = message.pending, None
        if frame is not None:
            self._tap_frame(CLIENT, message.entry, frame, comment)

    def _about(self, entry: Entry, comment: str) -> str:
        """A comment on the broker's leg that says which exchange of the client's leg it is about:
        there is nothing of it there, or not what was changed."""
        whom = named(self.client, entry.correlation_id)
        return f"{comment} [{whom}]" if comment else ""

    def _tap_lost(self, message: Message, frame: bytes, comment: str | None = None) -> None:
        """Record an answer as the broker gave it: the client gets another, or none."""
        if self.tap is None:
            return
        entry = message.entry
        if entry.raw:
            self.tap.broker(CLIENT, self._hidden(CLIENT, entry, entry.raw), self._now)
        seen = self._hidden(BROKER, entry, frame)
        comment = message.comment if comment is None else comment
        self.tap.broker(BROKER, seen, self._now, self._about(entry, comment))

    def _send(self, way: Way, frame: bytes, message: Message) -> None:
        answer = way.side == BROKER  # requests were recorded as they came
        if not message.rate:
            if answer:
                self._tap_frame(BROKER, message.entry, frame, message.comment)
            self._out.append(Send(1 - way.side, frame))
            return
        # The frame is kept already; it goes in slices all the same.
        step = max(1, int(message.rate * SLICE_S))
        size = len(frame)
        recorded = answer and self.tap is not None
        seen = self._hidden(BROKER, message.entry, frame) if recorded else b""
        at = 0

        def next_piece() -> None:
            nonlocal at
            begin, at = at, min(at + step, size)
            self._out.append(Send(1 - way.side, frame[begin:at]))
            if seen and self.tap is not None:
                self.tap.client(BROKER, seen[begin:at], self._now, message.comment)
                message.comment = ""
            go = next_piece if at < size else lambda: None
            self._sleep(way, go, int((at - begin) / message.rate * 1e9)).kept = size - at

        next_piece()

    def _close(self, way: Way, verdict: Close, frame: bytes = b"", seen: bytes = b"") -> None:
        """End the connection in the way that the rule wants. `seen`: an answer as it may be
        recorded; requests were, as they came."""
        other = 1 - way.side
        if verdict.first and frame:
            self._out.append(Send(other, frame[: verdict.first]))
            if seen and self.tap is not None:
                self.tap.client(BROKER, seen[: verdict.first], self._now, "cut by kafkascope")
        self.cause = self.cause or "rule"
        if verdict.how == "half":
            way.closing = True
            self._out.append(End(other, "half"))
            way.mode = DISCARD
            self._stop(way, lambda: None, forever=True)
            return
        self.over = True
        self._out += [End(CLIENT, verdict.how), End(BROKER, verdict.how)]

    def _keep(self, stop: Stop, whole: bytes | None) -> None:
        """A frame waits: it, and the payload that rules look at."""
        if whole is not None:
            stop.kept = 2 * len(whole)
            if self.hub.memory is not None:
                self.hub.memory.grew(len(whole))
