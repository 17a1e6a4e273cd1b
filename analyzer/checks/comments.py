"""Comments of packets: what a request's answer was, and the findings that it is evidence of.

    Produce v11 of checkout: REQUEST_TIMED_OUT, after 1.5 s; warning batch-twice: checkout ...

Wireshark shows them at the packet, also of versions that its own dissector does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.conversation.tampering import BETWEEN, escaped
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.findings.evidence import Evidence, overflowing_rules
from kafkascope.analyzer.render.cells import duration
from kafkascope.analyzer.text import cut, safe

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.findings.model import Finding
    from kafkascope.analyzer.model import Exchange

# Findings in one comment; the others are counted. An option of pcapng holds 64 kB.
MOST_FINDINGS: Final = 10
# Columns of each part.
WIDTH: Final = 600
_SIGNS: Final = ("! ", "? ", "~ ")


class Comments:
    """Comments by exchange, made as exchanges come."""

    def __init__(self, evidence: Evidence, own: Mapping[int, str]) -> None:
        """`own`: what users wrote, which stays in front."""
        self._evidence = evidence
        self._told: set[str] = set()
        """Ids of findings whose sentence was written: later exchanges have the rule's name."""
        self.texts: dict[int, str] = dict(own)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Make the comment of an exchange; connects without one have no number."""
        if not row.number:
            return
        findings = [each for each in self._evidence.of(row, exchange) if each.severity != "chat"]
        parts = [_answer(row), *map(self._sentence, findings[:MOST_FINDINGS])]
        if len(findings) > MOST_FINDINGS:
            parts.append(f"{len(findings) - MOST_FINDINGS} more")
        if more := overflowing_rules(findings):
            parts.append(f"there may be more of {', '.join(more)}")
        own = self.texts.get(row.number)
        ours = BETWEEN.join(escaped(cut(safe(part), WIDTH)) for part in parts)
        self.texts[row.number] = f"{own}{BETWEEN}{ours}" if own else ours

    def _sentence(self, finding: Finding) -> str:
        name = finding.id
        if name in self._told:
            return f"{finding.severity} {finding.name}"
        self._told.add(name)
        return f"{finding.severity} {finding.name}: {finding.text}"


def _answer(row: Row) -> str:
    """Return the API and client of a request, its result and latency."""
    api = row.api if row.api_version is None else f"{row.api} v{row.api_version}"
    text = result(row)
    for sign in _SIGNS:
        text = text.removeprefix(sign)
    after = "" if row.latency_ns is None else f", after {duration(row.latency_ns)}"
    return f"{api} of {row.client_id or row.client_address}: {text}{after}"
