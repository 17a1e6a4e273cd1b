"""Print docs/findings.md from the detectors: `python docs/print_findings.py`, or `make docs`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from analyzer.findings.detectors import DETECTORS
from analyzer.findings.limits import LIMITS, Limit

TARGET = Path(__file__).with_name("findings.md")

HEAD = """\
# Findings

Printed from `analyzer/findings/` by `make docs`; do not edit.

    kafkascope check prod.pcapng
    kafkascope check ci-run.pcapng --fail-on error --ignore breaks-on-upgrade
    kafkascope check prod.pcapng --rule unanswered,late-answer -Y 'client == "orders-svc"'

Each finding is a sentence with numbers, how often and when, a [filter](filter.md) that selects its
exchanges, advice, and the word for `kafkascope errors`. The exit code is 1 when something is at
least as bad as `--fail-on` (usually `warning`; `never` for none), 0 otherwise, 4 when the input was
damaged and nothing was found. `--json` prints one object a line (`finding/1`).

| severity | means |
| --- | --- |
| error | something does not work |
| warning | it works badly, or will stop to work |
| note | worth knowing |
| chat | normal, and often taken for trouble |

A rule's severity is the usual one; a single occurrence, or one among brokers, may be a note.

With `-Y` only the exchanges that pass are judged, and connections without any are not.

"""


def lines() -> Iterator[str]:
    """The rest of the page."""
    yield "## Rules"
    yield ""
    yield "| rule | severity | tells that | what to do |"
    yield "| --- | --- | --- | --- |"
    for kind in DETECTORS:
        for rule in kind.RULES:
            cells = (f"`{rule.name}`", rule.severity, rule.title, rule.advice)
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""
    yield "## Thresholds"
    yield ""
    yield "| threshold | from | because |"
    yield "| --- | --- | --- |"
    for name, limit in LIMITS.items():
        yield f"| `{name}` | {_value(limit)} | {limit.why} |"


def _value(limit: Limit) -> str:
    if limit.unit == "ns":
        return f"{limit.value / 1e9:g} s"
    if limit.unit == "percent":
        return f"{limit.value} %"
    if limit.unit == "count":
        return f"{limit.value:,}"
    return f"{limit.value:,} {limit.unit}"


def page() -> str:
    """The whole page."""
    return HEAD + "\n".join(lines()) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page())
