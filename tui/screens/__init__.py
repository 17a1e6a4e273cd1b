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
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from kafkascope.tui.screens.board import Board


class Entry(NamedTuple):
    """A screen in the bar of tabs."""

    title: str
    short: str
    """The title where the terminal is narrow."""
    about: str
    """What it shows, for help and the palette."""
    home: str = ""
    """Module and class of its board."""


EXCHANGES: Final = 1
"""The list of exchanges, which is no board."""
CONNECTIONS: Final = 2
LIVE: Final = 8
ZOOKEEPER: Final = 9
TABS: Final = {
    EXCHANGES: Entry("Exchanges", "Exch", "exchanges"),
    CONNECTIONS: Entry(
        "Connections",
        "Conns",
        "connections: phases, network, ladder",
        "kafkascope.tui.screens.connections:ConnectionsBoard",
    ),
    3: Entry(
        "Clients",
        "Clients",
        "clients: libraries, API versions, upgrade risks",
        "kafkascope.tui.screens.clients:ClientsBoard",
    ),
    4: Entry(
        "Topics",
        "Topics",
        "topics: partitions, producers, consumers",
        "kafkascope.tui.screens.topics:TopicsBoard",
    ),
    5: Entry(
        "Groups",
        "Groups",
        "groups: timeline, members, lag",
        "kafkascope.tui.screens.groups:GroupsBoard",
    ),
    6: Entry(
        "Latency",
        "Lat",
        "latency: histogram, over time, long polls excluded",
        "kafkascope.tui.screens.latency:LatencyBoard",
    ),
    7: Entry(
        "Findings",
        "Find",
        "findings: problems with cause and fix",
        "kafkascope.tui.screens.findings:FindingsBoard",
    ),
    LIVE: Entry(
        "Live",
        "Live",
        "live: rates, proxy rules, held frames",
        "kafkascope.tui.screens.live:LiveBoard",
    ),
    ZOOKEEPER: Entry(
        "ZooKeeper",
        "ZK",
        "ZooKeeper: znodes, sessions, elections",
        "kafkascope.tui.screens.zookeeper:ZooKeeperBoard",
    ),
}
"""Number, which is the key, -> screen."""
SCREENS: Final = tuple(number for number in TABS if number != EXCHANGES)
"""Numbers of the boards."""


def board_class(number: int) -> type[Board]:
    """Return the board of a number; `KeyError`."""
    module, _, name = TABS[number].home.partition(":")
    found: Any = getattr(import_module(module), name)
    kind: type[Board] = found
    return kind
