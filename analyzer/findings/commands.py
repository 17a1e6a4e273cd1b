"""Commands that show the evidence of a finding, as they are typed in a shell."""

from __future__ import annotations

import shlex

from kafkascope.analyzer.findings.model import Finding


def exchanges_command(finding: Finding, source: str) -> str:
    """Return the command that lists its exchanges. `source`: inputs as words of a shell."""
    return f"kafkascope ls {source} -Y {shlex.quote(finding.filter)}"


def connections_command(finding: Finding, source: str) -> str:
    """Return the command that lists its connections."""
    return f"kafkascope connections {source} -Y {shlex.quote(finding.connects)}"
