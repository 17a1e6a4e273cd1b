"""Screens 2 to 9, and 0: boards, each in a module of its own, imported when it is first shown.

How to add a screen:

- a module declares it as `BOARD`, a `board.BoardSpec`: its table, the tabs below, and the filter
  for the exchanges behind a line;
- its numbers are accumulators of `analyzer.statistics`, by name (`Board.statistic`), so that it
  shows what a command prints; `tui.data.numbers` counts them;
- what else it needs of the program is in `tui.host`;
- it is listed here.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Entry(NamedTuple):
    """A screen in the bar of tabs."""

    title: str
    short: str
    """The title where the terminal is narrow."""
    about: str
    """What it shows, for help and the palette."""
    module: str = ""
    """Where its board is declared."""


# The list of exchanges, which is no board.
EXCHANGES: Final = 1
CONNECTIONS: Final = 2
LIVE: Final = 8
ZOOKEEPER: Final = 9
MAP: Final = 0
TABS: Final = {
    EXCHANGES: Entry("Exchanges", "Exch", "exchanges"),
    CONNECTIONS: Entry(
        "Connections", "Conns", "connections: phases, network, ladder", "connections"
    ),
    3: Entry("Clients", "Clients", "clients: libraries, API versions, upgrade risks", "clients"),
    4: Entry("Topics", "Topics", "topics: partitions, producers, consumers", "topics"),
    5: Entry("Groups", "Groups", "groups: timeline, members, lag", "groups"),
    6: Entry("Latency", "Lat", "latency: histogram, over time, long polls excluded", "latency"),
    7: Entry("Findings", "Find", "findings: problems with cause and fix", "findings"),
    LIVE: Entry("Live", "Live", "live: rates, proxy rules, held frames", "live"),
    ZOOKEEPER: Entry("ZooKeeper", "ZK", "ZooKeeper: znodes, sessions, elections", "zookeeper"),
    MAP: Entry("Map", "Map", "map: applications, and the topics between them", "map"),
}
"""Number, which is the key, -> screen."""
SCREENS: Final = tuple(number for number in TABS if number != EXCHANGES)
"""Numbers of the boards."""
