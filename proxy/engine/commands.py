"""What our layer says and hears beyond mitmproxy's own commands and events.

Plain commands, not connection commands: TLS layers hand them through.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from mitmproxy.proxy import commands, events


class Reading(commands.Command):
    """Read from a side (0 client, 1 broker) or do not."""

    def __init__(self, side: int, on: bool) -> None:
        self.side = side
        self.on = on


class Reset(commands.Command):
    """End the connection of a side with RST."""

    def __init__(self, side: int) -> None:
        self.side = side


class Wake(commands.Command):
    """Come back with `Woken(token)` after a time."""

    def __init__(self, delay_s: float, token: Any) -> None:
        self.delay_s = delay_s
        self.token = token


class Await(commands.Command):
    """Come back with `Awaited(token, result)` when that is there."""

    def __init__(self, what: Awaitable[Any], token: Any) -> None:
        self.what = what
        self.token = token


class Acted(events.Event):
    """The relay wants this done."""

    def __init__(self, actions: list[Any]) -> None:
        self.actions = actions


class Woken(events.Event):
    """The time is over."""

    def __init__(self, token: Any) -> None:
        self.token = token


class Awaited(events.Event):
    """What was waited for; `error` when it failed."""

    def __init__(self, token: Any, result: Any, error: BaseException | None) -> None:
        self.token = token
        self.result = result
        self.error = error


class Steer(events.Event):
    """Something from outside that this connection's layer has to do."""

    def __init__(self, what: Any) -> None:
        self.what = what
