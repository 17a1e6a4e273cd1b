"""The verdicts: all that rules can do to frames.

Delay and Throttle go together with one of the others; all of them stop reading the socket instead
of keeping what it sends.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Forward:
    """Forward the frame unchanged."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Forward another frame in its place; `payload` is what follows the size field."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Respond:
    """Respond to the request without asking the broker; `payload` begins with the correlation
    id."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait, then continue with the rules that follow."""

    delay_ns: int


@dataclass(frozen=True, slots=True)
class Throttle:
    """Forward the frame at that many bytes per second."""

    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait until somebody decides (`KafkaProxy.held`)."""

    forever: bool = False
    """Nobody will: a black hole. The connection is not read again."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Discard the frame."""


@dataclass(frozen=True, slots=True)
class Close:
    """End the connection: `fin` both sides, `half` only towards the receiver of this frame, `reset`
    with RST. `first` bytes of the frame are still sent."""

    how: Literal["fin", "half", "reset"] = "fin"
    first: int = 0


@dataclass(frozen=True, slots=True)
class Soon:
    """The verdict comes as soon as a thread has looked at the frame, which is recorded then, with
    what is said about it."""

    verdict: Awaitable[Verdict | None]


Verdict: TypeAlias = Forward | Replace | Respond | Delay | Throttle | Hold | Drop | Close
