"""The report: one file that answers the usual questions about a capture, for tickets and reviews.

`collect` counts with the accumulators of the commands, `sections` chooses what is told, `page` and
`markdown` write it; `charts` draws.
"""

from __future__ import annotations

from analyzer.report.collect import Facts, collect
from analyzer.report.markdown import markdown
from analyzer.report.page import page
from analyzer.report.sections import Section, Table, sections

__all__ = ["Facts", "Section", "Table", "collect", "markdown", "page", "sections"]
