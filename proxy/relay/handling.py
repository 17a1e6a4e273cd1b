"""What a direction asks about its frames: the interface of `Requests` and `Responses`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkascope.proxy.relay.direction import Direction
    from kafkascope.proxy.relay.pairing import PendingRequest
    from kafkascope.proxy.rules.actions import Data
    from kafkascope.proxy.rules.intercepted import InterceptedFrame
    from kafkascope.proxy.rules.verdicts import Verdict


class FrameHandler:
    """Decides about the frames of a direction."""

    # One class of directions with a handler each, instead of two classes of directions: the code
    # that all bytes pass through meets objects of one type only, as the interpreter likes it.

    __slots__ = ()

    direction: Direction

    def skim(self, data: Data, size: int) -> int:
        """Follow frames that are nothing special, as far as they go: the offset of the first that
        is, or of the end. `decide` would let all of them pass; this is quicker. Called between
        frames, or in one that passes."""
        raise NotImplementedError

    def decide(self, view: memoryview, at: int, end: int) -> int:
        """Begin the frame at `at`: with a mode, perhaps with rules. More than 0: how many of its
        bytes are needed to decide."""
        raise NotImplementedError

    def scan(self, piece: memoryview) -> int | None:
        """Follow a frame in mode WALK; where its node endpoints start, if that is in this piece."""
        raise NotImplementedError

    def on_frame(self, data: bytes) -> None:
        """A frame that was kept is here."""
        raise NotImplementedError

    def on_tail(self, data: bytes) -> None:
        """What mode TAIL kept is here."""
        raise NotImplementedError

    def on_end(self) -> None:
        """A frame is through, and nothing about it is to be decided any more."""

    def conclude_kept(self, frame: InterceptedFrame, verdict: Verdict, whole: bytes) -> None:
        """Carry out what was decided about a frame that was kept."""
        raise NotImplementedError

    def unread(self) -> PendingRequest:
        """What is known of a frame of which too little has come: whether it is a SASL token."""
        raise NotImplementedError
