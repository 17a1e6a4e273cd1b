"""Frames that are held until somebody releases, drops or edits them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

from kafkascope.analyzer.conversation.tampering import BY_HAND
from kafkascope.proxy.relay.connection import Connection
from kafkascope.proxy.relay.context import Context
from kafkascope.proxy.relay.direction import ReadPause
from kafkascope.proxy.relay.edits import RecordsEditor, edited, shown
from kafkascope.proxy.rules.intercepted import InterceptedFrame
from kafkascope.proxy.rules.verdicts import CLIENT, Action, Drop, Forward, Replace, Verdict

# Tells an open connection something with the time, and carries out what it wants then.
Steer: TypeAlias = "Callable[[Callable[[Connection, int], list[Action]]], None]"


class NotHeld(KeyError):
    """No held frame has that number."""

    def __str__(self) -> str:
        return f"no frame {self.args[0]} is held"


class HeldFrames:
    """The held frames, by number."""

    def __init__(self, connections: Callable[[], dict[Context, Steer]]) -> None:
        self._connections = connections
        self._numbers = itertools.count(1)
        self._waiting: dict[int, tuple[ReadPause, InterceptedFrame]] = {}

    def add(self, stop: ReadPause, frame: InterceptedFrame) -> int:
        number = next(self._numbers)
        self._waiting[number] = (stop, frame)
        frame.context.hub.metrics.add("held")
        frame.context.hub.changed()
        return number

    def forget(self, number: int) -> None:
        if number in self._waiting:
            self._take(number)

    def _take(self, number: int) -> tuple[ReadPause, InterceptedFrame]:
        stop, frame = self._waiting.pop(number)
        frame.context.hub.metrics.add("held", count=-1)
        frame.context.hub.changed()
        return stop, frame

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Any:
        return iter(list(self._waiting))

    def frame(self, number: int) -> InterceptedFrame:
        """The frame of that number; `NotHeld`."""
        try:
            return self._waiting[number][1]
        except KeyError:
            raise NotHeld(number) from None

    def list(self, most: int | None = None) -> list[dict[str, Any]]:
        """The held frames, the oldest first, for people and programs; `most` of them."""
        out = []
        for number in itertools.islice(self, most):
            frame = self._waiting[number][1]
            context = frame.context
            out.append(
                {
                    "number": number,
                    "kind": "request" if frame.side == CLIENT else "response",
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
        frame = self.frame(number)
        if frame.decoded is None:
            return None
        return shown(frame.decoded, _editor(frame))

    def release(self, number: int) -> None:
        self._decide(number, Forward())

    def drop(self, number: int) -> None:
        self._decide(number, Drop())

    def edit(self, number: int, body: dict[str, Any]) -> None:
        """Forward it with another body (JSON as `body` gives it); `DissectError` when it does not
        fit."""
        frame = self.frame(number)
        self._decide(number, Replace(edited(frame, body, _editor(frame))))

    def release_all(self) -> int:
        """Forward all; returns how many there were."""
        numbers = list(self)
        connections = self._connections()
        for number in numbers:
            if number in self._waiting:
                self._decide(number, Forward(), connections)
        return len(numbers)

    def _decide(
        self, number: int, verdict: Verdict, connections: dict[Context, Steer] | None = None
    ) -> None:
        self.frame(number)
        stop, frame = self._take(number)
        if isinstance(verdict, Replace | Drop):
            how = "edited" if isinstance(verdict, Replace) else "dropped"
            frame.comment = f"{how}{BY_HAND}"
        steer = (connections or self._connections()).get(frame.context)
        if steer is not None:
            steer(lambda relay, now_ns: relay.release(frame.side, stop, verdict, now_ns))


def _editor(frame: InterceptedFrame) -> RecordsEditor:
    topics = frame.row.topics
    return RecordsEditor(frame.context.hub.payloads(), topics[0] if len(topics) == 1 else "")


def _summary(frame: InterceptedFrame) -> str:
    row = frame.row
    about = [*row.topics, *row.groups, *row.transactional_ids]
    parts = [", ".join(about[:4]) + (", ..." if len(about) > 4 else "")]
    parts += [error.name for error in row.errors[:1]]
    return " ".join(part for part in parts if part)
