"""Findings: what is worth knowing about some traffic, in sentences with numbers, evidence and
advice.

    found = Findings()                       # or Findings(only={"unanswered"})
    found.add(batch)                         # an ExchangeBatch; in any order
    found.saw(event)                         # each Opened and Closed, where there are any
    found.merge(other)                       # another part; commutes
    found.reported(names) -> list[Finding]       # causes, each before what followed
    found.causes(names) -> list[Cause]       # the same, folded
    found.rows(names) -> list[Line]          # the same as lines of a table (Findings.COLUMNS)
    found.dump(), Findings().load(state)     # as all statistics

    accumulators()                           # all statistics, and findings that read the same ones

    evidence.Evidence(found).of(row, exchange)   # those whose evidence holds an exchange
    RULES                                    # name -> Rule: all that there is to be found

`Findings` has the shape of `analyzer.statistics.model.Statistic`. A detector lives in a module of
its own and is listed in `detectors`; what a statistic already counts is read from it
(`DetectorInput.base`), not counted again. The texts of rules, thresholds with their reasons, and
what explains what are data: `rules.json`.
"""

from kafkascope.analyzer.findings.causes import Cause
from kafkascope.analyzer.findings.findings import Findings, accumulators
from kafkascope.analyzer.findings.model import RANK, Finding, Rule
from kafkascope.analyzer.findings.rules import RULES

__all__ = [
    "RANK",
    "RULES",
    "Cause",
    "Finding",
    "Findings",
    "Rule",
    "accumulators",
]
