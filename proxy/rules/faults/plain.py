"""Frames that vanish, and clients that are left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.faults.fault import Action
from kafkascope.proxy.rules.verdicts import Drop, Hold

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame


class DropAction(Action):
    """Swallow a frame."""

    word = "drop"
    usage = "drop"
    doc = "the response never arrives, though the broker did its part; `on request`: the request"
    sides = (BROKER, CLIENT)

    def act(self, frame: InterceptedFrame) -> Drop:
        """Swallow."""
        return Drop()


class BlackHoleAction(Action):
    """Read nothing more of a client."""

    word = "black-hole"
    usage = "black-hole"
    doc = "from this frame on the connection is not read any more, and stays open"

    def act(self, frame: InterceptedFrame) -> Hold:
        """Never go on."""
        return Hold(forever=True)


class HoldAction(Action):
    """Wait for somebody to decide."""

    word = "hold"
    usage = "hold"
    doc = "wait until it is released, dropped or edited (control channel, --hold)"
    whole = True

    def act(self, frame: InterceptedFrame) -> Hold:
        """Wait."""
        return Hold()
