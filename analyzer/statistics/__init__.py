"""Statistics over exchanges: accumulators that merge, so that one definition serves the commands,
the screens, the report and the batch pipeline.

`add` an exchange, `merge` another part, `rows` for the table; `dump` and `load` carry the state.
"""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.statistics.clients import Clients
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.latency import Latency
from kafkascope.analyzer.statistics.model import Column, Line, Statistic, WrongState
from kafkascope.analyzer.statistics.producers.producers import Producers
from kafkascope.analyzer.statistics.rates import Rates
from kafkascope.analyzer.statistics.sizes import SizesOf
from kafkascope.analyzer.statistics.throughput import Throughput
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper

STATISTICS: Final[dict[str, type[Statistic]]] = {
    "apis": Throughput,
    "latency": Latency,
    "errors": Errors,
    "topics": Topics,
    "connections": Connections,
    "sizes": SizesOf,
    "rates": Rates,
    "clients": Clients,
    "groups": Groups,
    "cluster": Cluster,
    "producers": Producers,
    "delivery": Delivery,
    "zookeeper": ZooKeeper,
}
"""Name of the state -> accumulator."""

OF_ROWS: Final = (Throughput, Latency, Errors, Rates)
"""Accumulators that count rows (and the handshake of their connection), not messages."""

__all__ = [
    "OF_ROWS",
    "STATISTICS",
    "Clients",
    "Cluster",
    "Column",
    "Connections",
    "Delivery",
    "Errors",
    "Groups",
    "Latency",
    "Line",
    "Producers",
    "Rates",
    "SizesOf",
    "Statistic",
    "Throughput",
    "Topics",
    "WrongState",
    "ZooKeeper",
]
