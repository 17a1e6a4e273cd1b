"""Print docs/findings.md from the detectors: `python docs/print_findings.py`, or `make docs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kafkascope.analyzer.findings.detectors import DETECTORS
from kafkascope.analyzer.findings.explanations import ALL, EXPLANATIONS
from kafkascope.analyzer.findings.limits import LIMITS, Limit
from kafkascope.analyzer.findings.outcomes import THRESHOLDS

TARGET = Path(__file__).with_name("findings.md")

HEAD = """\
# Findings

Printed from `analyzer/findings/` by `make docs`; do not edit.

    kafkascope check prod.pcapng
    kafkascope check ci-run.pcapng --fail-on error --ignore redelivered
    kafkascope check prod.pcapng --for 4.1
    kafkascope check prod.pcapng --rule unanswered,late-answer -Y 'client == "orders-svc"'

Each finding is a sentence with numbers, how often and when, a [filter](filter.md) that selects its
exchanges, advice, and the word for `kafkascope error`. Causes come first, the worst and earliest
before the others; what followed from one is a line below it (`therefore: 33 lookups, 4 requests
without response`), and chats are one line at the end. `--all` prints every finding in full. The
exit code is 1 when something is at least as bad as `--fail-on` (usually `warning`; `never` for
none), 0 otherwise, 4 when the input was damaged and nothing was found. A cause counts with the
worst of what followed from it.

`--json` prints one object a line (`finding/1`), consequences behind their cause. `id` is equal for
equal input; `key` has no times, ports and counts, so that the same trouble tomorrow has the same
key; `because` lists the ids of the findings that explain this one, and is empty for a cause. A
consequence whose cause is left out (`--ignore`, `--rule`, `-Y`) stands alone. `--format junit`,
`sarif` and `github`, and what `--baseline` makes of keys: [ci.md](ci.md).

What the rules of our own proxy did (`proxy --fault`, `--hold`) is no broker's fault. Its recordings
say at the packets what was done; exchanges carry it as a note, and a finding whose evidence was
touched names the rule: it is a note then, without advice for the broker, when all of it was.

| severity | means |
| --- | --- |
| error | something does not work |
| warning | it works badly, or will stop to work |
| note | worth knowing |
| chat | normal, and often taken for trouble |

A rule's severity is the usual one; a single occurrence, or one among brokers, may be a note.
What a rule is shown by is a capture of real traffic in `tests/analyzer/captures` or
`captures/samples`. Its limits are the thresholds that decide whether a rule is told, how severe it
is, or what it says; tests hold each one from both sides.

With `-Y`, `--from`, `--to` and `-c` only the exchanges that pass are judged, and with `-Y` no
connections without any. Nothing is told that the whole capture does not tell, too: where answers,
commits and connections are left out, much seems to be missing.

"""


def lines() -> Iterator[str]:
    """The rest of the page."""
    yield "## Rules"
    yield ""
    heads = ("rule", "severity", "tells that", "what to do", "shown by", "explains")
    yield f"| {' | '.join((*heads, 'explained by', 'limits'))} |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for kind in DETECTORS:
        for rule in kind.RULES:
            cells = (
                f"`{rule.name}`",
                rule.severity,
                rule.title,
                rule.advice,
                _proof(rule.name),
                _rules(_effects(rule.name)),
                _rules(_causes(rule.name)),
                _limits(rule.limits),
            )
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""
    yield "## What explains what"
    yield ""
    yield (
        "A finding is explained by another one when a line names their rules, both name alike what "
        "the line demands, and it begins while the other lasts or soon after. A finding can be "
        "explained through others."
    )
    yield ""
    yield "| rule | explains | of the same | until | because |"
    yield "| --- | --- | --- | --- | --- |"
    for line in EXPLANATIONS:
        cells = (
            _rules(line.causes),
            _rules(line.effects),
            " and ".join(line.same),
            "the end" if line.after_ns == ALL else f"{line.after_ns / 1e9:g} s later",
            line.why,
        )
        yield "| " + " | ".join(cells) + " |"
    yield ""
    yield "## Limits of outcomes"
    yield ""
    yield "`kafkascope clients` says what became of each client, from the findings and these:"
    yield ""
    yield f"{_limits(THRESHOLDS)}."


def _proof(rule: str) -> str:
    """The capture that shows it, of those that tests hold us to."""
    from tests.analyzer.findings.sides_schemas import OF_SCHEMAS
    from tests.analyzer.findings.test_captures import TROUBLE
    from tests.analyzer.findings.test_rules import SAMPLED

    shown = [capture for capture, rules in TROUBLE.items() if rule in rules]
    shown += [SAMPLED[rule]] if rule in SAMPLED else []
    shown += [OF_SCHEMAS[rule]] if OF_SCHEMAS.get(rule) else []
    return f"`{shown[0]}`" if shown else "made by hand"


def _effects(rule: str) -> list[str]:
    """The rules that it explains, each once."""
    lines = [line for line in EXPLANATIONS if rule in line.causes]
    return sorted({effect for line in lines for effect in line.effects})


def _causes(rule: str) -> list[str]:
    """The rules that explain it, each once."""
    lines = [line for line in EXPLANATIONS if rule in line.effects]
    return sorted({cause for line in lines for cause in line.causes})


def _limits(names: Iterable[str]) -> str:
    """Names, values and reasons."""
    return "; ".join(f"`{name}` {_value(LIMITS[name])} ({LIMITS[name].why})" for name in names)


def _rules(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _value(limit: Limit) -> str:
    if limit.unit == "ns":
        return f"{limit.value / 1e9:g} s"
    if limit.unit == "percent":
        return f"{limit.value} %"
    if limit.unit == "count":
        return f"{limit.value:,}"
    if limit.unit == "ms" and limit.value >= 1_000:
        return f"{limit.value / 1_000:g} s"
    return f"{limit.value:,} {limit.unit}"


def page() -> str:
    """The whole page."""
    return HEAD + "\n".join(lines()) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page())
