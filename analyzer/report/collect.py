"""One pass over a capture into everything that a report tells: the commands' own accumulators."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from analyzer.commands.counting import count
from analyzer.commands.remarks import nothing_found, remarks
from analyzer.findings import Finding, Findings
from analyzer.statistics import Errors, Rates
from analyzer.statistics.rates import SECOND

if TYPE_CHECKING:
    from analyzer.commands.reading import Reading
    from analyzer.topics import TopicNames

SLICES: Final = 120
"""Of the chart over time, at most."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was counted."""

    inputs: tuple[str, ...]
    """Names of files without folders: a report travels."""
    filter_text: str
    findings: Findings
    errors: Errors
    rates: Rates
    names: TopicNames
    found: list[Finding]
    packets: int
    connections: int
    captured_bytes: int
    remarks: list[str]
    """Sentences on what is missing or odd about the capture."""

    @property
    def first_ns(self) -> int | None:
        """Begin of the first exchange."""
        return self.findings.span.first_ns

    @property
    def last_ns(self) -> int | None:
        """End of the last exchange."""
        return self.findings.span.last_ns

    @property
    def exchanges(self) -> int:
        """How many were counted."""
        return self.findings.span.exchanges


def collect(reading: Reading) -> Facts:
    """Read it all and count."""
    findings, errors, rates = Findings(), Errors(), Rates(SECOND, SLICES)
    wish = reading.wish
    count(reading, findings, errors, rates, watch=not wish.filter_text)
    source = reading.capture.source.statistics
    names = reading.capture.context.names
    said = list(remarks(reading.capture, verbose=True))
    if not reading.told:
        said.insert(0, nothing_found(reading.capture))
    said += [str(damage) for damage in source.damage]
    return Facts(
        tuple("stdin" if name == "-" else PurePath(name).name or name for name in wish.inputs),
        wish.filter_text,
        findings,
        errors,
        rates,
        names,
        findings.told(names),
        source.packets,
        source.connections,
        source.captured_bytes,
        said,
    )
