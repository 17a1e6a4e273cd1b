"""The rules, as `rules.json` declares them: texts, severities, thresholds, and what explains what.

The file is the one place of all that is constant about findings. It has `rules` by theme (the
sections of docs/findings.md) and detector (a module beside this one), `limits` (value with its
unit, and the reason), the rules that are `untouchable` (by rules of our own proxy: see `tampered`)
or `standing` (see `Rule`), and `explanations` with the `times` and `sets` of rules that they name.
Sentences with numbers are the detectors'. Thresholds are chosen so that healthy traffic of healthy
clients stays silent; docs/findings.md prints them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import orjson

from kafkascope.analyzer.exchanges.expected import CODES
from kafkascope.analyzer.findings.model import Rule
from kafkascope.analyzer.statistics import thresholds as counted
from kafkascope.analyzer.statistics.thresholds import Threshold, threshold
from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.times import MS, SECOND

__all__ = ["MS", "SECOND", "THRESHOLDS", "Threshold", "limit"]


def read() -> dict[str, Any]:
    """Return the file as values; also from within a zip, as Spark's workers import it."""
    loader: Any = __spec__.loader
    data: dict[str, Any] = orjson.loads(
        loader.get_data(str(Path(__file__).with_name("rules.json")))
    )
    return data


def _rule(name: str, detector: str, declared: dict[str, Any]) -> Rule:
    fields, names = dict(declared), declared.get("errors", ())
    fields["touchable"] = name not in DATA["untouchable"]
    fields["standing"] = name in DATA["standing"]
    fields["errors"] = CODES if names == "expected" else frozenset(map(_CODE_OF.get, names))
    for each in {"subject", "limits"} & fields.keys():
        fields[each] = tuple(fields[each])
    return Rule(name, detector=detector, **fields)


_CODE_OF: Final = {error.name: code for code, error in ERRORS.items()}
DATA: Final = read()
RULES: Final[dict[str, Rule]] = {}
"""By name, in the order of docs/findings.md."""
THEMES: Final[dict[str, dict[str, list[str]]]] = {}
"""Theme -> detector -> names of its rules."""

for _theme, _detectors in DATA["rules"].items():
    THEMES[_theme] = {detector: list(rules) for detector, rules in _detectors.items()}
    for _detector, _rules in _detectors.items():
        RULES.update({name: _rule(name, _detector, each) for name, each in _rules.items()})


THRESHOLDS: Final[dict[str, Threshold]] = {
    **counted.THRESHOLDS,
    **{name: threshold(*each) for name, each in DATA["limits"].items()},
}


def limit(name: str) -> int:
    """Return the value of a threshold."""
    return THRESHOLDS[name].value
