"""The list of all detectors."""

from __future__ import annotations

from typing import Final

from analyzer.findings.addresses import Addresses
from analyzer.findings.batches import Batches
from analyzer.findings.batching import Batching
from analyzer.findings.clocks import Clocks
from analyzer.findings.codecs import Codecs
from analyzer.findings.connections import Lives
from analyzer.findings.consumers import Consumers
from analyzer.findings.deleted import Deleted
from analyzer.findings.denied import Denials
from analyzer.findings.detector import Detector
from analyzer.findings.errors import ErrorCodes
from analyzer.findings.framing import Framing
from analyzer.findings.lag import Lag
from analyzer.findings.leaders import Leaders
from analyzer.findings.lookups import Lookups
from analyzer.findings.memberships import Memberships
from analyzer.findings.outages import Outages
from analyzer.findings.rebalances import Rebalances
from analyzer.findings.resets import Resets
from analyzer.findings.retries import Retries
from analyzer.findings.security import Security
from analyzer.findings.sequences import Sequences
from analyzer.findings.sessions import Sessions
from analyzer.findings.shares import Shares
from analyzer.findings.sizes import Sizes
from analyzer.findings.skew import Skew
from analyzer.findings.slow import Slowness
from analyzer.findings.starts import Starts
from analyzer.findings.stuck import Readers
from analyzer.findings.tampered import Tampered
from analyzer.findings.tls import TlsFailures
from analyzer.findings.transactions import Transactions
from analyzer.findings.unanswered import Unanswered
from analyzer.findings.versions import Versions

DETECTORS: Final[tuple[type[Detector], ...]] = (
    Versions,
    Rebalances,
    Memberships,
    Addresses,
    Slowness,
    Unanswered,
    ErrorCodes,
    Leaders,
    Security,
    Sessions,
    TlsFailures,
    Readers,
    Consumers,
    Lag,
    Sizes,
    Batching,
    Clocks,
    Deleted,
    Lookups,
    Resets,
    Starts,
    Shares,
    Lives,
    Outages,
    Sequences,
    Transactions,
    Batches,
    Codecs,
    Retries,
    Skew,
    Framing,
    Denials,
    Tampered,
)
"""In the order of the questions that they answer."""
