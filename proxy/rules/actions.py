"""What a connection wants done: values only. `engine.layer` turns them into mitmproxy's
commands."""

from __future__ import annotations

from collections.abc import Awaitable
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
