"""The verdicts: all that rules can do to frames. And the actions: what a connection wants done,
which `engine.layer` turns into mitmproxy's commands. Values only.

Delay and Throttle go together with one of the others; all of them stop reading the socket instead
of keeping what it sends.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

CLIENT: Final = 0
BROKER: Final = 1

Side: TypeAlias = int
Data: TypeAlias = bytes | memoryview
How: TypeAlias = Literal["fin", "half", "reset"]


class Send(NamedTuple):
    """Send bytes to a side."""

    side: Side
    data: Data


class Read(NamedTuple):
    """Read from a side, or stop reading."""

    side: Side
    on: bool


class WakeUp(NamedTuple):
    """Call `woken(token)` after a delay."""

    delay_ns: int
    token: Any


class Ask(NamedTuple):
    """Await a rule's coroutine, then call `awaited(token, result)`."""

    what: Awaitable[Any]
    token: Any


class End(NamedTuple):
    """End a side; `half` ends only our direction."""

    side: Side
    how: How


Action: TypeAlias = Send | Read | WakeUp | Ask | End


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
    """Wait for a decision by the user (`KafkaProxy.held`)."""

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
class DeferredVerdict:
    """A deferred verdict: a thread inspects the frame, which is recorded afterwards, with the
    verdict's comment."""

    verdict: Awaitable[Verdict | None]


Verdict: TypeAlias = Forward | Replace | Respond | Delay | Throttle | Hold | Drop | Close
