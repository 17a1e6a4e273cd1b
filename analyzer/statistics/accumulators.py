"""All statistics by name. To use one, import its own module: together they take 25 ms."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.statistics.clients import Clients
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.analyzer.statistics.delivery.delivery import Delivery
from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.journeys.applications import Applications
from kafkascope.analyzer.statistics.journeys.journeys import Journeys
from kafkascope.analyzer.statistics.model import Accumulator
from kafkascope.analyzer.statistics.producers.producers import Producers
from kafkascope.analyzer.statistics.rates import Rates
from kafkascope.analyzer.statistics.topics import Topics
from kafkascope.analyzer.statistics.traffic import Latency, SizesOf, Throughput
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper

STATISTICS: Final[dict[str, type[Accumulator]]] = {
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
    "map": Applications,
    "journeys": Journeys,
}
"""Name of the state -> accumulator."""

OF_ROWS: Final = (Throughput, Latency, Errors, Rates)
"""Accumulators that count rows (and the handshake of their connection), not messages."""
