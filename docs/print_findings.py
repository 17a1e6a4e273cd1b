"""Print docs/findings.md from the rules: `python docs/print_findings.py`, or `make docs`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from kafkascope.analyzer.findings import outcomes
from kafkascope.analyzer.findings.causes import ALWAYS, EXPLANATIONS
from kafkascope.analyzer.findings.model import Rule
from kafkascope.analyzer.findings.rules import RULES, THEMES, THRESHOLDS, Threshold

TARGET = Path(__file__).with_name("findings.md")

HEAD = """\
# Findings

Printed from `analyzer/findings/rules.json` by `make docs`; do not edit.

    kafkascope check prod.pcapng
    kafkascope check ci-run.pcapng --fail-on error --ignore redelivered
    kafkascope check prod.pcapng --for 4.1
    kafkascope check prod.pcapng --rule unanswered,late-answer -Y 'client == "orders-svc"'

A finding states a symptom with numbers, the time range, a [filter](filter.md) that selects its
exchanges, and advice. Causes come first, the most severe and earliest at the top. Consequences of
a cause are one line below it (`consequences: 33 lookups, 4 requests without response`); `--all`
prints every finding in full. The exit code is 1 if a finding has at least the severity of
`--fail-on` (default: `warning`; `never` for none), 4 if the input was damaged and nothing was
found, and 0 otherwise. A cause counts with the most severe of its consequences.

| severity | meaning |
| --- | --- |
| error | something does not work |
| warning | degraded, or about to fail |
| note | worth knowing |
| chat | normal, and often mistaken for a problem |

The severity of a rule is the usual one. A single occurrence, or one between brokers, may be a note.

`--json` prints one object per line (`finding/1`), consequences after their cause. `id` is equal for
equal input. `key` omits times, ports and counts, so that it stays the same from run to run.
`because` lists the ids of the findings that explain this one; it is empty for a cause. A
consequence whose cause is excluded (`--ignore`, `--rule`, `-Y`) is listed on its own. For
`--format junit`, `sarif` and `github`, and for `--baseline`, see [ci.md](ci.md).

With `-Y`, `--from`, `--to` and `-c`, only the selected exchanges are judged; with `-Y`, connections
without exchanges are not. A filter never creates findings that the full capture does not have.

Faults of kafkascope's own proxy (`proxy --fault`, `--hold`) are marked in its recordings. A finding
whose evidence they touched names the proxy rule. It is a note, without advice for the broker, if
all of its evidence was touched.

The capture named at a rule is real traffic that shows it (`tests/analyzer/captures` or
`captures/samples`). Limits are the thresholds of a rule; tests check each from both sides.

"""


def lines() -> Iterator[str]:
    """Yield the sections: rules by theme, then explanations, then outcomes of clients."""
    for theme, detectors in THEMES.items():
        yield f"## {theme}"
        yield ""
        for rules in detectors.values():
            for name in rules:
                yield from _section(RULES[name])
    yield "## What explains what"
    yield ""
    yield (
        "A finding explains another one if a line below names both rules, if both findings share "
        "the listed entities, and if the other one begins while it lasts or within the time given. "
        "A finding can also be explained through others."
    )
    yield ""
    for line in EXPLANATIONS:
        until = "" if line.after_ns == ALWAYS else f" within {line.after_ns / 1e9:g} s"
        yield (
            f"- {_rules(line.causes)} → {_rules(line.effects)} (same {' and '.join(line.same)}"
            f"{until}): {line.why}"
        )
    yield ""
    yield "## Outcomes of clients"
    yield ""
    yield "`kafkascope clients` derives the outcome of a client from the findings and these limits:"
    yield ""
    yield from _limits(outcomes.THRESHOLDS)


def _section(rule: Rule) -> Iterator[str]:
    """Yield a rule: what it means, what to do, what shows and explains it."""
    yield f"### {rule.name}"
    yield ""
    yield f"**{rule.severity}**: {rule.title}"
    yield ""
    yield rule.advice
    yield ""
    yield f"- capture: {_proof(rule.name)}"
    if causes := _causes(rule.name):
        yield f"- explained by: {_rules(causes)}"
    if effects := _effects(rule.name):
        yield f"- explains: {_rules(effects)}"
    yield from _limits(rule.limits)
    yield ""


def _proof(rule: str) -> str:
    """Return the capture that shows a rule, of those that tests check."""
    from tests.analyzer.findings.sides_schemas import OF_SCHEMAS
    from tests.analyzer.findings.test_captures import SAMPLED, TROUBLE

    shown = [capture for capture, rules in TROUBLE.items() if rule in rules]
    shown += [SAMPLED[rule]] if rule in SAMPLED else []
    shown += [OF_SCHEMAS[rule]] if OF_SCHEMAS.get(rule) else []
    return f"`{shown[0]}`" if shown else "hand-made (tests)"


def _effects(rule: str) -> list[str]:
    """Return the rules that a rule explains, each once."""
    lines = [line for line in EXPLANATIONS if rule in line.causes]
    return sorted({effect for line in lines for effect in line.effects})


def _causes(rule: str) -> list[str]:
    """Return the rules that explain a rule, each once."""
    lines = [line for line in EXPLANATIONS if rule in line.effects]
    return sorted({cause for line in lines for cause in line.causes})


def _limits(names: Iterable[str]) -> Iterator[str]:
    """Yield names, values and reasons of thresholds."""
    for name in names:
        yield f"- limit `{name}`: {_value(THRESHOLDS[name])} ({THRESHOLDS[name].why})"


def _rules(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _value(limit: Threshold) -> str:
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
    """Return the page."""
    return HEAD + "\n".join(lines()) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page())
