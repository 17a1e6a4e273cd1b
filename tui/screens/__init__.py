"""Screens 2 to 9: boards, each in a module of its own, imported when it is first shown.

How to add a screen:

- a subclass of `board.Board` defines its table (`make_sheet`, `lines_of`), the tabs below
  (`show_tab`) and the filter for the exchanges behind a line (`evidence`);
- its numbers are accumulators of `analyzer.statistics`, by name (`STATISTICS`, `self.statistic`),
  so that it shows what a command prints; `tui.data.numbers` counts them;
- what else it needs of the program is in `tui.host`;
- it is listed here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafkascope.tui.screens.board import Board

SCREENS: Final = {
    2: ("Connections", "kafkascope.tui.screens.connections:ConnectionsBoard"),
    3: ("Clients", "kafkascope.tui.screens.clients:ClientsBoard"),
    4: ("Topics", "kafkascope.tui.screens.topics:TopicsBoard"),
    5: ("Groups", "kafkascope.tui.screens.groups:GroupsBoard"),
    6: ("Latency", "kafkascope.tui.screens.latency:LatencyBoard"),
    7: ("Findings", "kafkascope.tui.screens.findings:FindingsBoard"),
    8: ("Live", "kafkascope.tui.screens.live:LiveBoard"),
    9: ("ZooKeeper", "kafkascope.tui.screens.zookeeper:ZooKeeperBoard"),
}
"""Number -> (title, home). 1 is the list of exchanges."""


def board_class(number: int) -> type[Board]:
    """Return the board of a number; `KeyError`."""
    module, _, name = SCREENS[number][1].partition(":")
    found: Any = getattr(import_module(module), name)
    kind: type[Board] = found
    return kind
