"""What a rule may say about a frame. Nothing else happens to traffic.

Delay and Throttle go together with one of the others; all of them stop reading the socket instead
of keeping what it sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Forward:
    """Pass the very bytes on."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Pass another frame on in its place: `payload` is what follows the size field."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Respond:
    """Answer the request without asking the broker: `payload` with the correlation id in front."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait, then go on with the rules that follow."""

    delay_ns: int


@dataclass(frozen=True, slots=True)
class Throttle:
    """Pass the frame on at that many bytes per second."""

    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Hold:
    """Wait until somebody says what to do (`KafkaProxy.held`)."""

    forever: bool = False
    """Nobody will: a black hole. The connection is not read again."""


@dataclass(frozen=True, slots=True)
class Drop:
    """Swallow the frame."""


@dataclass(frozen=True, slots=True)
class Close:
    """End the connection: `fin` both sides, `half` only towards the receiver of this frame, `reset`
    with RST. `first` bytes of the frame are still sent."""

    how: Literal["fin", "half", "reset"] = "fin"
    first: int = 0


Verdict: TypeAlias = Forward | Replace | Respond | Delay | Throttle | Hold | Drop | Close
