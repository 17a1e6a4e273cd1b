"""Frames before the rules: ask in turn, carry out what was decided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from proxy import secrets
from proxy.actions import BROKER, CLIENT, Ask, End, Send, WakeUp
from proxy.entries import SIZE
from proxy.message import Message
from proxy.state import SLICE_S, State
from proxy.verdicts import Answer, Close, Delay, Drop, Forward, Hold, Replace, Throttle, Verdict
from proxy.way import DISCARD, Stop, Way

if TYPE_CHECKING:
    from proxy.rules import Rule


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
            if isinstance(verdict, Delay):
                self._record(message, message.comment)
                stop = self._stop(way, lambda: self._judge(way, message, rules, whole))
                self._keep(stop, whole)
                self._out.append(WakeUp(verdict.delay_ns, (way.side, stop)))
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
            self._record(message)
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
            self._close(way, verdict, b"")

    def _conclude_request(self, way: Way, message: Message, verdict: Verdict, whole: bytes) -> None:
        entry = message.entry
        expected, way.entry = way.entry is not None, None
        if isinstance(verdict, Answer):
            entry.comment = message.comment or "answered by kafkascope"
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
                hidden = frame if self.hub.with_secrets else secrets.masked_request(entry, frame)
                self.tap.broker(CLIENT, hidden, self._now, message.comment or "replaced")
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
            self._close(way, verdict, frame)
            return
        self._send(way, frame, message)

    def _record(self, message: Message, comment: str = "") -> None:
        """Record a request, once, as the client sent it."""
        frame, message.pending = message.pending, None
        if frame is not None:
            self._tap_frame(CLIENT, message.entry, frame, comment)

    def _tap_lost(self, message: Message, frame: bytes, comment: str | None = None) -> None:
        """Record an answer as the broker gave it: the client gets another, or none."""
        if self.tap is None:
            return
        entry = message.entry
        asked = entry.raw
        if not self.hub.with_secrets:
            asked = asked and secrets.masked_request(entry, asked)
            frame = secrets.masked_response(entry, frame)
        if asked:
            self.tap.broker(CLIENT, asked, self._now)
        self.tap.broker(BROKER, frame, self._now, message.comment if comment is None else comment)

    def _send(self, way: Way, frame: bytes, message: Message) -> None:
        answer = way.side == BROKER  # requests were recorded as they came
        if not message.rate:
            if answer:
                self._tap_frame(BROKER, message.entry, frame, message.comment)
            self._out.append(Send(1 - way.side, frame))
            return
        # The frame is kept already; it goes in slices all the same.
        step = max(1, int(message.rate * SLICE_S))
        pieces = [frame[at : at + step] for at in range(0, len(frame), step)]
        seen = frame
        if answer and self.tap is not None and not self.hub.with_secrets:
            seen = secrets.masked_response(message.entry, frame)
        views = [seen[at : at + step] for at in range(0, len(frame), step)]

        def next_piece() -> None:
            piece, view = pieces.pop(0), views.pop(0)
            self._out.append(Send(1 - way.side, piece))
            if answer and self.tap is not None:
                self.tap.client(BROKER, view, self._now, message.comment)
                message.comment = ""
            stop = self._stop(way, next_piece if pieces else lambda: None)
            stop.kept = len(pieces) * step
            self._out.append(WakeUp(int(len(piece) / message.rate * 1e9), (way.side, stop)))

        next_piece()

    def _close(self, way: Way, verdict: Close, frame: bytes) -> None:
        """End the connection in the way that the rule wants."""
        other = 1 - way.side
        if verdict.first and frame:
            part = frame[: verdict.first]
            self._out.append(Send(other, part))
            if way.side == BROKER and self.tap is not None:
                self.tap.client(BROKER, part, self._now, "cut by kafkascope")
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
