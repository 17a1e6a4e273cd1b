"""Findings as SARIF 2.1.0, which GitHub's code scanning and other viewers show as alerts.

An alert is a cause, as bad as the worst that followed from it. Alerts of two runs are the same when
their fingerprints are: these are made of the key of the cause.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from kafkascope.analyzer.checks.judging import Checked
from kafkascope.analyzer.findings.model import Finding, Rule
from kafkascope.analyzer.findings.rules import RULES
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.text import safe
from kafkascope.release import release

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
HOME: Final = "https://github.com/kafkascope/kafkascope"
FINDINGS: Final = f"{HOME}/blob/main/docs/findings.md"
LEVELS: Final[dict[Severity, str]] = {
    "error": "error",
    "warning": "warning",
    "note": "note",
    "chat": "none",
}
# Files that are named as the place of a finding: viewers show the first.
MOST_INPUTS: Final = 20
_MARKED: Final = str.maketrans({"{": "{{", "}": "}}", "[": r"\[", "]": r"\]", "\\": r"\\"})
"""Signs that make placeholders and links of a message (SARIF 3.11.5 and 3.11.6)."""


def sarif(
    found: Sequence[Checked], rules: Iterable[str], inputs: Sequence[str], compared: bool
) -> dict[str, Any]:
    """Return the log. `rules`: those that were run; `compared`: whether there was a baseline."""
    selected = [RULES[name] for name in rules]
    places = {rule.name: place for place, rule in enumerate(selected)}
    where = [_location(each) for each in inputs[:MOST_INPUTS]]
    driver = {
        "name": "kafkascope",
        "version": release(),
        "informationUri": HOME,
        "rules": [_rule(rule) for rule in selected],
    }
    results = []
    for each in found:
        result = _result(each, where) | {"ruleIndex": places[each.cause.finding.name]}
        if compared:
            result["baselineState"] = "unchanged" if each.known else "new"
        results.append(result)
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
        ],
    }


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.title},
        "help": {"text": rule.advice},
        "helpUri": f"{FINDINGS}#{rule.name}",
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(each: Checked, where: list[dict[str, Any]]) -> dict[str, Any]:
    cause, finding = each.cause, each.cause.finding
    parts = [finding.text, *([f"Therefore: {cause.therefore()}"] if cause.consequences else [])]
    text = ". ".join((*parts, finding.advice))
    name = _fingerprint(finding)
    return {
        "ruleId": finding.name,
        # Of all kinds only `fail` has a level.
        "kind": "informational" if cause.severity == "chat" else "fail",
        "level": LEVELS[cause.severity],
        "message": {"text": safe(text).translate(_MARKED)},
        "locations": where,
        # GitHub distinguishes alerts by the second one.
        "partialFingerprints": {"findingKey/v1": name, "primaryLocationLineHash": f"{name}:1"},
        "occurrenceCount": max(finding.count, 1),
        "properties": {
            key: value
            for key, value in finding.line().items()
            if key in ("filter", "connects", "link", "entities", "id", "key", "because")
            and value not in ("", [], None)
        }
        | ({"consequences": [one.key for one in cause.consequences]} if cause.consequences else {}),
    }


def _fingerprint(finding: Finding) -> str:
    return blake2b(finding.key.encode(errors="surrogatepass"), digest_size=8).hexdigest()


def _location(path: str) -> dict[str, Any]:
    # Captures have no lines; GitHub refuses results without one.
    place = Path(path)
    uri = place.as_uri() if place.is_absolute() else quote(os.fsencode(path))
    return {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}}
