"""The report: one file that answers the usual questions about a capture, for tickets and reviews.

`collect` counts with the accumulators of the commands, `sections` selects the contents, `page` and
`markdown` write them; `charts` draws.
"""

from __future__ import annotations

from kafkascope.analyzer.report.collect import ReportFacts, collect
from kafkascope.analyzer.report.markdown import markdown, ticket
from kafkascope.analyzer.report.page import page
from kafkascope.analyzer.report.sections import ReportTable, Section, sections

__all__ = [
    "ReportFacts",
    "ReportTable",
    "Section",
    "collect",
    "markdown",
    "page",
    "sections",
    "ticket",
]
