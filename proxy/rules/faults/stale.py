"""The fault that repeats old Metadata, which does not know of leaders that moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkascope.proxy.rules.actions import BROKER
from kafkascope.proxy.rules.faults.fault import Action
from kafkascope.proxy.rules.verdicts import Replace, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

METADATA = 3


class StaleAction(Action):
    """Repeats the first response to the same request."""

    word = "stale-metadata"
    usage = "stale-metadata"
    doc = "answer a Metadata request with its first response"
    sides = (BROKER,)
    whole = True

    picky = True

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Whether it is Metadata."""
        return key == METADATA

    def __init__(self) -> None:
        self._first: dict[tuple[object, ...], bytes] = {}

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Repeat the first response, or remember this one."""
        if frame.key != METADATA or frame.payload is None:
            return None
        request = frame.request
        body = repr(request.body) if request is not None else ""
        key = (frame.version, frame.context.advertise_host, body)
        known = self._first.get(key)
        if known is None:
            if len(self._first) < 1000:
                self._first[key] = frame.payload
            return None
        return Replace(frame.payload[:4] + known[4:])
