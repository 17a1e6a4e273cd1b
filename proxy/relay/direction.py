"""One direction of a connection: where its frame boundaries are, and what happens to the frame that
is passing. Forwarding state, not decoding: sizes and modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkascope.proxy.relay.pairing import PendingRequest
    from kafkascope.proxy.relay.skipping import Walk
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

PASS: Final = 0
"""Forward as it comes."""
COLLECT: Final = 1
"""Keep the whole frame, then look at it."""
DISCARD: Final = 2
"""Forward nothing of it."""
WALK: Final = 3
"""Forward as it comes, and look out for the tagged section at its end."""
TAIL: Final = 4
"""Keep the rest of the frame, the head of which is gone already."""
HIDE: Final = 5
"""Forward as it comes, and record asterisks: a secret may be in it, and it is too large to keep."""


class Direction:
    """One direction."""

    __slots__ = (
        "at_token",
        "backlog",
        "body",
        "closing",
        "eof",
        "frames",
        "head",
        "left",
        "mode",
        "opaque",
        "rate",
        "request",
        "shown",
        "side",
        "size",
        "stop",
        "tail_at",
        "walk",
        "want",
    )

    def __init__(self, side: int) -> None:
        self.side = side
        """Where its bytes come from."""
        self.left = 0
        """Bytes of the current frame that are still to come; 0 between frames."""
        self.size = 0
        """Of the current frame, size field included."""
        self.mode = PASS
        self.head = bytearray()
        """The first bytes of a frame, while they are too few to decide."""
        self.want = 0
        """How many they have to be."""
        self.body = bytearray()
        """What COLLECT and TAIL keep."""
        self.opaque = False
        """Framing is lost, or never was: all bytes pass."""
        self.frames = 0
        self.request: PendingRequest | None = None
        """The request that the current frame (a response) answers."""
        self.walk: Walk | None = None
        self.tail_at = 0
        self.rate = 0.0
        """Bytes per second for the current frame; 0: as they come."""
        self.shown = 0
        """How many of its first bytes HIDE leaves as they are."""
        self.stop: Stop | None = None
        """Why nothing is taken from this side."""
        self.backlog: list[bytes] = []
        """What had been read when the stop came: one read at most, for the socket is not read."""
        self.eof = False
        """The side sends no more (the backlog comes first)."""
        self.closing = False
        self.at_token = False

    @property
    def kept(self) -> int:
        """Bytes that wait here."""
        stop = self.stop.kept if self.stop is not None else 0
        return len(self.head) + len(self.body) + sum(map(len, self.backlog)) + stop

    @property
    def grows(self) -> bool:
        """Whether a frame is being kept, the rest of which is to come."""
        return self.left > 0 and self.mode in (COLLECT, TAIL) and len(self.body) > 0

    @property
    def between(self) -> bool:
        """Whether the receiver stands between two frames."""
        return self.left == 0 or self.left == self.size or self.mode in (COLLECT, DISCARD)


class Stop:
    """A direction that waits. `go` is called once when it may go on."""

    __slots__ = ("ends", "forever", "frame", "go", "held", "kept")

    def __init__(self, go: Callable[[], None], *, forever: bool = False) -> None:
        self.go = go
        self.forever = forever
        self.ends = False
        """By itself, after some time."""
        self.frame: InterceptedFrame | None = None
        self.held: int | None = None
        """Number under which the frame can be released from outside."""
        self.kept = 0
        """Bytes that wait with it."""
