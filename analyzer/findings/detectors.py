"""The list of all detectors, by theme."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.findings.addresses import Addresses
from kafkascope.analyzer.findings.batches import Batches
from kafkascope.analyzer.findings.batching import Batching
from kafkascope.analyzer.findings.circles import Circles
from kafkascope.analyzer.findings.clocks import Clocks
from kafkascope.analyzer.findings.codecs import Codecs
from kafkascope.analyzer.findings.connections import Lives
from kafkascope.analyzer.findings.consumers import Consumers
from kafkascope.analyzer.findings.deleted import Deleted
from kafkascope.analyzer.findings.denied import Denials
from kafkascope.analyzer.findings.detector import Detector
from kafkascope.analyzer.findings.encrypted import Encryption
from kafkascope.analyzer.findings.errors import ErrorCodes
from kafkascope.analyzer.findings.fetchless import FetchlessMembers
from kafkascope.analyzer.findings.framing import Framing
from kafkascope.analyzer.findings.group_protocols import GroupProtocols
from kafkascope.analyzer.findings.lag import Lag
from kafkascope.analyzer.findings.leaders import Leaders
from kafkascope.analyzer.findings.lookups import Lookups
from kafkascope.analyzer.findings.memberships import Memberships
from kafkascope.analyzer.findings.order import ResponseOrder
from kafkascope.analyzer.findings.other_protocols import OtherProtocols
from kafkascope.analyzer.findings.outages import Outages
from kafkascope.analyzer.findings.rebalances import Rebalances
from kafkascope.analyzer.findings.resets import Resets
from kafkascope.analyzer.findings.retries import Retries
from kafkascope.analyzer.findings.schemas import Schemas
from kafkascope.analyzer.findings.security import Security
from kafkascope.analyzer.findings.sending import PiecewiseSending
from kafkascope.analyzer.findings.sequences import Sequences
from kafkascope.analyzer.findings.sessions import Sessions
from kafkascope.analyzer.findings.shares import Shares
from kafkascope.analyzer.findings.sizes import Sizes
from kafkascope.analyzer.findings.skew import Skew
from kafkascope.analyzer.findings.slow import Slowness
from kafkascope.analyzer.findings.starts import Starts
from kafkascope.analyzer.findings.starved import Starvation
from kafkascope.analyzer.findings.storage import Storage
from kafkascope.analyzer.findings.stuck import Readers
from kafkascope.analyzer.findings.tampered import Tampered
from kafkascope.analyzer.findings.tls import TlsFailures
from kafkascope.analyzer.findings.transactions import Transactions
from kafkascope.analyzer.findings.unanswered import Unanswered
from kafkascope.analyzer.findings.versions import Versions
from kafkascope.analyzer.findings.zookeeper import ZooKeeperRequests
from kafkascope.analyzer.findings.zookeeper_groups import ZooKeeperGroups
from kafkascope.analyzer.findings.zookeeper_sessions import ZooKeeperSessions

THEMES: Final[dict[str, tuple[type[Detector], ...]]] = {
    "Versions and formats": (Versions, Batches, Codecs, Framing),
    "Addresses and connections": (Addresses, Outages, Lives),
    "TLS, SASL and authorization": (
        *(OtherProtocols, Security, Sessions, TlsFailures, Encryption, Denials),
    ),
    "Latency and lost requests": (Slowness, PiecewiseSending, Unanswered, ResponseOrder),
    "Errors, lookups and quotas": (ErrorCodes, Storage, Leaders, Lookups, Deleted, Sizes),
    "Group membership": (Rebalances, Memberships, GroupProtocols),
    "Consumer progress": (
        Readers,
        Circles,
        Starvation,
        FetchlessMembers,
        Consumers,
        Lag,
        Resets,
        Starts,
        Shares,
    ),
    "Producers and transactions": (Sequences, Transactions, Retries, Batching, Clocks, Skew),
    "Record schemas": (Schemas,),
    "ZooKeeper": (ZooKeeperSessions, ZooKeeperGroups, ZooKeeperRequests),
}
"""Detectors by the sections of docs/findings.md."""
DETECTORS: Final[tuple[type[Detector], ...]] = (
    *(kind for kinds in THEMES.values() for kind in kinds),
    Tampered,
)
