"""One pass over a capture into everything that a report tells: the commands' own accumulators."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.findings import Cause, Finding, Findings
from kafkascope.analyzer.findings.causes import unfolded
from kafkascope.analyzer.findings.expected import settled
from kafkascope.analyzer.findings.findings import Span
from kafkascope.analyzer.reading.counting import count
from kafkascope.analyzer.reading.remarks import nothing_found, remarks
from kafkascope.analyzer.statistics import Errors, Rates
from kafkascope.analyzer.statistics.rates import SECOND

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.reading import Reading
    from kafkascope.analyzer.report.disguise import Disguise
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.captures.model import Resolved

SLICES: Final = 120
"""Of the chart over time, at most."""


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """What was counted."""

    inputs: tuple[str, ...]
    """Names of files without folders: a report travels."""
    filter_text: str
    findings: Findings
    errors: Errors
    rates: Rates
    names: TopicNames
    causes: list[Cause]
    """What is worth knowing, the worst first, with what followed from each."""
    packets: int
    connections: int
    captured_bytes: int
    remarks: list[str]
    """Sentences on what is missing or odd about the capture."""
    gaps: list[str]
    """Of these, what makes results incomplete."""

    @property
    def found(self) -> list[Finding]:
        """All findings, consequences behind their cause."""
        return unfolded(self.causes)

    @property
    def span(self) -> Span:
        """How many exchanges were counted, and when they were."""
        return self.findings.span


HIDDEN: Final = "..."
"""In place of a filter, which is made of names."""


_DAMAGE: Final = re.compile(r".*\b(is (?:damaged|cut short)\b.*)", re.DOTALL)
"""What is said of a file behind its name."""


def _nameless(text: str) -> str:
    """A sentence about a damaged file without the file's name."""
    found = _DAMAGE.fullmatch(text)
    return "a file " + (found[1] if found is not None else "is damaged")


def collect(
    reading: Reading, disguise: Disguise | None = None, hosts: Iterable[Resolved] = ()
) -> ReportFacts:
    """Read it all and count; with a disguise what is told has other names throughout. `hosts`:
    what names of brokers stand for."""
    # Reasons why a value does not fit its schema may quote it.
    tables, hidden = reading.stored is not None, disguise is not None
    payloads = None if tables or hidden else reading.payloads
    findings, rates = Findings(payloads=payloads), Rates(SECOND, SLICES)
    options = reading.options
    watch = not options.filter_text
    whole = Findings(payloads=payloads) if reading.is_piece else None
    count(reading, findings, rates, watch=watch, through=disguise, hosts=hosts, whole=whole)
    source = reading.capture.source.statistics
    names = reading.capture.context.names
    inputs = tuple(
        "stdin" if name == "-" else PurePath(name).name or name for name in options.inputs
    )
    said = list(remarks(reading.capture, verbose=True))
    gaps = list(remarks(reading.capture, verbose=False))
    if not reading.exchanges_read:
        said.insert(0, nothing_found(reading.capture))
    damage = [str(each) for each in source.damage]
    filter_text = options.filter_text
    if disguise is not None:
        disguise.learn()
        names = disguise.names
        inputs = tuple(f"capture-{number}" for number, _ in enumerate(inputs, 1))
        damage = [_nameless(text) for text in damage]
        filter_text = HIDDEN if filter_text else ""
    said += damage
    causes = findings.causes(names, whole)
    found = unfolded(causes) if whole is None else whole.told(names)
    return ReportFacts(
        inputs,
        filter_text,
        findings,
        settled(findings.base.errors, found),
        rates,
        names,
        causes,
        source.packets,
        source.connections,
        source.captured_bytes,
        said,
        gaps + damage,
    )
