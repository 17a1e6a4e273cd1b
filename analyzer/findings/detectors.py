"""The list of all detectors."""

from __future__ import annotations

from typing import Final

from analyzer.findings.addresses import Addresses
from analyzer.findings.detector import Detector
from analyzer.findings.errors import ErrorCodes
from analyzer.findings.rebalances import Rebalances
from analyzer.findings.unanswered import Unanswered
from analyzer.findings.versions import Versions

DETECTORS: Final[tuple[type[Detector], ...]] = (
    Versions,
    Rebalances,
    Addresses,
    Unanswered,
    ErrorCodes,
)
"""In the order of the questions that they answer."""
