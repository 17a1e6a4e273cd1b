"""The interface of `Requests` and `Responses`: what a direction asks about its frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kafkascope.proxy.relay.direction import Direction
    from kafkascope.proxy.relay.pairing import PendingRequest
    from kafkascope.proxy.rules.intercepted import InterceptedFrame
    from kafkascope.proxy.rules.verdicts import Data, Verdict


class FrameHandler:
    """Decides about the frames of a direction."""

    # One class of directions with a handler each, instead of two classes of directions: the code
    # that all bytes pass through meets objects of one type only, as the interpreter likes it.

    __slots__ = ()

    direction: Direction

    def skim(self, data: Data, size: int) -> int:
        """Skip frames that need no attention. Returns the offset of the first that does, or of the
        end. `decide` would let all of them pass; this is faster. Called between frames, or in one
        that passes."""
        raise NotImplementedError

    def decide(self, view: memoryview, at: int, end: int) -> int:
        """Begin the frame at `at` in a mode, perhaps with rules. Returns 0, or how many of its
        bytes are needed to decide."""
        raise NotImplementedError

    def passes(self, size: int) -> bool:
        """Follow a frame in mode WALK over the next `size` bytes without looking at them; False:
        they have to be looked at."""
        return False

    def scan(self, piece: memoryview) -> int | None:
        """Follow a frame in mode WALK. Returns where its node endpoints start, if that is in this
        piece."""
        raise NotImplementedError

    def on_frame(self, data: bytes) -> None:
        """Handle a whole frame that was kept."""
        raise NotImplementedError

    def on_tail(self, data: bytes) -> None:
        """Handle the end of a frame that mode TAIL kept."""
        raise NotImplementedError

    def on_end(self) -> None:
        """Finish a frame about which nothing is left to decide."""

    def conclude_kept(self, frame: InterceptedFrame, verdict: Verdict, whole: bytes) -> None:
        """Carry out what was decided about a frame that was kept."""
        raise NotImplementedError

    def unread(self) -> PendingRequest:
        """A placeholder for a frame of which too little has come: it says whether it is a SASL
        token."""
        raise NotImplementedError
