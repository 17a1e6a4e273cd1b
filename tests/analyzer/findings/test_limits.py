"""Rules name their detectors; each threshold belongs to rules that declare it, and no module has
one of its own."""

import ast
import importlib
import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest

from kafkascope.analyzer import findings, merging, statistics
from kafkascope.analyzer.findings import RULES, Rule, outcomes
from kafkascope.analyzer.findings.detectors import DETECTORS, Detector
from kafkascope.analyzer.findings.rules import THRESHOLDS
from kafkascope.analyzer.findings.view import Counts
from kafkascope.analyzer.statistics import thresholds as counted
from kafkascope.analyzer.statistics.exchange_batch import FETCH, PRODUCE
from kafkascope.captures.model import TlsError
from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.dissectors.reference.zookeeper import ZOOKEEPER
from kafkascope.dissectors.registry import APIS
from tests.analyzer.findings.judging import Side

UNITS = frozenset({"ns", "ms", "bytes", "count", "times", "percent", "per second", "per minute"})

COUNTING = findings, merging, statistics

COMPARED = {
    "security: e.code in (33, 34)",
    "batches: 0.9 < ratio / factor < 1.1",
    "forgotten: seconds - timeout <= max(NEAR, timeout // 10)",
    "skew: part * partitions >= min(limit('skew.times'), partitions - 0.5)",
    "unanswered: age >= SECOND // 10",
}
"""Comparisons with a number that are no thresholds: codes, tenths. One with 2 is about
copies or halves."""


def modules(package: ModuleType) -> Iterator[ModuleType]:
    folder = Path(package.__file__ or "").parent
    for path in sorted(folder.rglob("*.py")):
        inside = ".".join(path.relative_to(folder).with_suffix("").parts)
        yield importlib.import_module(f"{package.__name__}.{inside}")


def tree_of(module: ModuleType) -> ast.Module:
    return ast.parse(Path(module.__file__ or "").read_text())


def reads(module: ModuleType) -> set[str]:
    """The limits that a module names."""
    return {
        node.value
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Constant) and node.value in THRESHOLDS
    }


def helpers(module: ModuleType) -> Iterator[ModuleType]:
    """The modules without rules that a detector is made of."""
    detecting = {each.module.__name__ for each in DETECTORS}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "kafkascope.analyzer.findings"
        ):
            name = node.module or ""
            if name not in detecting and not name.endswith(".rules"):
                yield importlib.import_module(name)


CASES = {
    "capture-gaps": {"mirror", "damage"},
    "denied": {each for each in (error.name for error in ERRORS.values()) if "_AUTH" in each},
    "tls-opaque": set(get_args(TlsError)),
}
"""Rule -> cases whose names are facts of the capture, and stand in no detector."""


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.advices], ids=itemgetter(0)
)
def test_detectors_know_the_cases_that_other_fixes_are_for(rule: Rule) -> None:
    words: set[Any] = set(CASES.get(rule.name, ()))
    for module in modules(findings):
        tree = ast.walk(tree_of(module))
        words |= {node.value for node in tree if isinstance(node, ast.Constant)}
    assert rule.advices.keys() <= words


def test_detectors_are_those_that_rules_name() -> None:
    named = list(dict.fromkeys(rule.detector for rule in RULES.values()))
    assert [each.name for each in DETECTORS] == [*named, "tampered"]


def test_detectors_of_most_exchanges_take_many_at_once() -> None:
    """One by one, rows and objects of all of them are made: `check` takes half as long again."""
    many = {PRODUCE, FETCH}
    for detector in DETECTORS:
        if detector.counts and (detector.keys is None or detector.keys & many):
            kind = getattr(detector.module, detector.counts)
            assert kind.add is not Counts.add, detector.name


@pytest.mark.parametrize("detector", DETECTORS, ids=itemgetter(0))
def test_a_detector_counts_or_has_a_function(detector: Detector) -> None:
    if detector.counts:
        assert issubclass(getattr(detector.module, detector.counts), Counts)
        assert not hasattr(detector.module, "findings")
    else:
        assert callable(detector.module.findings)
        assert detector.needs is not None
        assert not any((detector.keys, detector.odd, detector.odd_keys))


def test_rules_declare_limits_that_exist() -> None:
    named = [name for rule in RULES.values() for name in rule.limits]
    assert set(named) <= THRESHOLDS.keys()
    assert all(len(set(rule.limits)) == len(rule.limits) for rule in RULES.values())


def test_every_limit_is_of_a_rule_or_of_outcomes() -> None:
    named = {name for rule in RULES.values() for name in rule.limits}
    assert named | set(outcomes.THRESHOLDS) == THRESHOLDS.keys()


@pytest.mark.parametrize("detector", DETECTORS, ids=itemgetter(0))
def test_rules_declare_what_their_module_reads(detector: Detector) -> None:
    module = detector.module
    read = set(reads(module)).union(*(reads(each) for each in helpers(module)))
    here = {each.name for each in DETECTORS if each.module is module}
    rules = [rule for rule in RULES.values() if rule.detector in here]
    declared = {name for rule in rules for name in rule.limits}
    assert read <= declared
    assert declared - counted.THRESHOLDS.keys() <= read


def test_limits_of_statistics_are_read_there() -> None:
    read: set[str] = set()
    for module in modules(statistics):
        read |= set() if module is counted else reads(module)
    assert read == counted.THRESHOLDS.keys()


def test_limits_have_a_unit_and_a_reason() -> None:
    for name, limit in THRESHOLDS.items():
        assert limit.unit in UNITS, name
        assert limit.value > 0
        assert limit.why
        assert not limit.why.endswith(".")


def _of_the_protocol(name: str, value: int) -> bool:
    """Whether a constant has the key of an API or the code of an error with a word of its name."""
    apis = {api.name for api in APIS.values() if api.key == value}
    codes = {error.name for code, error in ERRORS.items() if code == value}
    words = {word.upper() for each in apis for word in re.findall("[A-Z][a-z]*", each)}
    words |= {word for each in codes for word in each.split("_")}
    zookeeper = {
        word.upper()
        for kind in ("ZooKeeperType", "ZooKeeperError")
        for number, word in ZOOKEEPER[kind].items()
        if number == value
    }
    return bool(words & set(name.split("_"))) or name.replace("_", "") in zookeeper


def test_numbers_of_modules_are_no_limits() -> None:
    """A constant that is no threshold says what it is, or the lines around it do."""
    bare = set()
    for module in (each for package in COUNTING for each in modules(package)):
        if module.__name__.endswith((".limits", ".thresholds")):
            continue
        for block in Path(module.__file__ or "").read_text().split("\n\n"):
            explained = re.search(r'^(#|""")', block, re.MULTILINE)
            for name in re.findall(r"^([A-Z_]+): ", block, re.MULTILINE):
                value = getattr(module, name)
                usual = name.startswith(("MAX_", "MOST_")) or name in ("MS", "SECOND", "MINUTE")
                number = isinstance(value, int) and value not in (-2, -1, 0, 1)
                if number and not (explained or usual or _of_the_protocol(name, value)):
                    bare.add(f"{module.__name__}.{name}")
    assert not bare


def test_comparisons_are_with_limits() -> None:
    found = {
        f"{module.__name__.rpartition('.')[2]}: {ast.unparse(node)}"
        for module in modules(findings)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(each, ast.Constant)
            and isinstance(each.value, int | float)
            and each.value not in (-1, 0, 1, 2, 100)
            for each in ast.walk(node)
        )
    }
    assert found == COMPARED


SIDES: dict[str, Side] = {}
for _path in sorted(Path(__file__).parent.glob("sides_*.py")):
    SIDES |= importlib.import_module(f"tests.analyzer.findings.{_path.stem}").SIDES
"""Rule and limit -> what decides there; with more words where a rule reads it once more."""


def test_every_limit_of_every_rule_has_both_sides() -> None:
    pairs = {(rule.name, name) for rule in RULES.values() for name in rule.limits}
    pairs |= {("outcomes", name) for name in outcomes.THRESHOLDS}
    assert pairs == {tuple(key.split()[:2]) for key in SIDES}


@pytest.mark.parametrize("key", SIDES)
def test_a_limit_decides(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other value of it would: it is raised and lowered by one."""
    side, name = SIDES[key], key.split()[1]
    assert not side.make(side.calm)
    assert side.make(side.told)
    limit = THRESHOLDS[name]
    for value in (limit.value - 1, limit.value + 1):
        for table in (THRESHOLDS, counted.THRESHOLDS):
            if name in table:
                monkeypatch.setitem(table, name, limit._replace(value=value))
        assert side.make(side.calm) or not side.make(side.told), f"{name} may be {value}"
