"""Frames that are held until somebody releases, drops or edits them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.conversation.tampering import BY_HAND
from kafkascope.proxy.rules.actions import CLIENT
from kafkascope.proxy.rules.verdicts import Drop, Forward, Replace, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.engine.handler import Handler
    from kafkascope.proxy.engine.server import KafkaProxy
    from kafkascope.proxy.relay.context import Context
    from kafkascope.proxy.relay.direction import Stop
    from kafkascope.proxy.rules.intercepted import InterceptedFrame


class NotHeld(KeyError):
    """No held frame has that number."""

    def __str__(self) -> str:
        return f"no frame {self.args[0]} is held"


class HeldFrames:
    """The held frames, by number."""

    def __init__(self, proxy: KafkaProxy) -> None:
        self._proxy = proxy
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[Context, int, Stop, InterceptedFrame]] = {}

    def add(self, context: Context, side: int, stop: Stop, frame: InterceptedFrame) -> int:
        """Add a frame; returns its number."""
        number = next(self._numbers)
        self._waiting[number] = (context, side, stop, frame)
        context.hub.metrics.add("held")
        context.hub.changed()
        return number

    def forget(self, number: int) -> None:
        """Remove a frame whose connection is over."""
        if self._waiting.pop(number, None) is not None:
            self._proxy.hub.metrics.add("held", count=-1)
            self._proxy.hub.changed()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Any:
        return iter(list(self._waiting))

    def frame(self, number: int) -> InterceptedFrame:
        """The frame of that number; `NotHeld`."""
        try:
            return self._waiting[number][3]
        except KeyError:
            raise NotHeld(number) from None

    def list(self, most: int | None = None) -> list[dict[str, Any]]:
        """The held frames, the oldest first, for people and programs; `most` of them."""
        out = []
        for number in itertools.islice(self, most):
            context, side, _, frame = self._waiting[number]
            out.append(
                {
                    "number": number,
                    "kind": "request" if side == CLIENT else "response",
                    "connection": context.number,
                    "api": frame.exchange.api,
                    "version": frame.version,
                    "correlation_id": frame.pending.correlation_id,
                    "client_id": frame.client_id,
                    "client": str(context.client),
                    "broker": str(context.broker),
                    "bytes": frame.size + 4,
                    "since_ns": frame.now_ns,
                    "rule": frame.rule,
                    "summary": _summary(frame),
                    "editable": frame.decoded is not None,
                }
            )
        return out

    def body(self, number: int) -> dict[str, Any] | None:
        """The frame as JSON, secrets hidden; None when it cannot be decoded."""
        from kafkascope.proxy.relay.edits import shown

        frame = self.frame(number)
        if frame.decoded is None:
            return None
        return shown(frame.decoded, self._proxy.schemas.held, _topic(frame))

    def release(self, number: int) -> None:
        """Forward it unchanged."""
        self._decide(number, Forward())

    def drop(self, number: int) -> None:
        """Discard it."""
        self._decide(number, Drop())

    def edit(self, number: int, body: dict[str, Any]) -> None:
        """Forward it with another body (JSON as `body` gives it); `DissectError` when it does not
        fit."""
        from kafkascope.proxy.relay.edits import edited

        frame = self.frame(number)
        new = edited(frame, body, self._proxy.schemas.held, _topic(frame))
        self._decide(number, Replace(new))

    def release_all(self) -> int:
        """Forward all; returns how many there were."""
        numbers = list(self)
        handlers = dict(self._handlers())
        for number in numbers:
            if number in self._waiting:
                self._decide(number, Forward(), handlers)
        return len(numbers)

    def _handlers(self) -> Iterator[tuple[Context, Handler]]:
        for handler in self._proxy.handlers:
            relay = handler.kafka.relay if handler.kafka is not None else None
            if relay is not None:
                yield relay.context, handler

    def _decide(
        self, number: int, verdict: Verdict, handlers: dict[Context, Handler] | None = None
    ) -> None:
        from kafkascope.proxy.engine.commands import Steer

        frame = self.frame(number)
        context, side, stop, _ = self._waiting.pop(number)
        context.hub.metrics.add("held", count=-1)
        context.hub.changed()
        if isinstance(verdict, Replace | Drop):
            how = "edited" if isinstance(verdict, Replace) else "dropped"
            frame.comment = f"{how}{BY_HAND}"
        if handlers is None:
            handler = next((each for theirs, each in self._handlers() if theirs is context), None)
        else:
            handler = handlers.get(context)
        if handler is not None:
            handler.dispatch(Steer(lambda r, now_ns: r.release(side, stop, verdict, now_ns)))


def _topic(frame: InterceptedFrame) -> str:
    """The topic of its records; empty where it has several."""
    topics = frame.row.topics
    return topics[0] if len(topics) == 1 else ""


def _summary(frame: InterceptedFrame) -> str:
    """What a frame is about: topics, groups, and the error of a response."""
    row = frame.row
    about = [*row.topics, *row.groups, *row.transactional_ids]
    parts = [", ".join(about[:4]) + (", ..." if len(about) > 4 else "")]
    parts += [error.name for error in row.errors[:1]]
    return " ".join(part for part in parts if part)
