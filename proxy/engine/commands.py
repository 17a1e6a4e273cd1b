"""Commands and events of our layer, beyond mitmproxy's own.

Plain commands, not connection commands: TLS layers pass them through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mitmproxy.proxy import commands, events

from kafkascope.proxy.relay.connection import Connection
from kafkascope.proxy.rules.actions import Action


class Do(commands.Command):
    """Carry out an action of the relay: `Read`, `WakeUp` or `Ask`."""

    def __init__(self, action: Action) -> None:
        self.action = action


class Reset(commands.Command):
    """End the connection of a side with RST."""

    def __init__(self, side: int) -> None:
        self.side = side


class Acted(events.Event):
    """The relay wants these actions carried out."""

    def __init__(self, actions: list[Any]) -> None:
        self.actions = actions


class Steer(events.Event):
    """Something but bytes happened to a connection: a time is over, a rule or a user decided.
    `what` tells the relay so, with the time, and returns its actions."""

    def __init__(self, what: Callable[[Connection, int], list[Action]]) -> None:
        self.what = what
