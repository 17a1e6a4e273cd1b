"""Thresholds: each belongs to rules that declare it, and no module has one of its own."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from types import ModuleType

import pytest

from kafkascope.analyzer import findings, merging, statistics
from kafkascope.analyzer.findings import RULES, outcomes
from kafkascope.analyzer.findings.detectors import DETECTORS, Detector
from kafkascope.analyzer.findings.rules import THRESHOLDS
from kafkascope.analyzer.statistics import thresholds as counted
from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.dissectors.reference.zookeeper import ZOOKEEPER
from kafkascope.dissectors.registry import APIS
from tests.analyzer.findings import (
    sides_applications,
    sides_connections,
    sides_data,
    sides_delays,
    sides_ends,
    sides_groups,
    sides_logs,
    sides_requests,
    sides_schemas,
    sides_zookeeper,
)
from tests.analyzer.findings.sides import Side

UNITS = frozenset({"ns", "ms", "bytes", "count", "times", "percent", "per second", "per minute"})

NO_LIMITS = {
    "findings.codecs.LAST_SHARED": "a version of Fetch that tells libraries apart",
    "findings.batches.DAY": "a unit",
    "findings.batches.OLDER_THAN_KAFKA": "before 2011 there was no Kafka",
    "findings.connections.SEGMENT": "the payload of a TCP segment, for a count of segments",
    "findings.delays.LARGE": "RFC 6928: what TCP sends before the first acknowledgement",
    "findings.detectors.UNKNOWN_ZOOKEEPER": "the key of types that are none",
    "findings.forgotten.NEAR": "decides which known timeout a text names",
    "findings.unanswered.AT_ONCE": "tells a client that closes from one whose request timed out",
    "findings.unanswered.IN_FLIGHT": "Kafka's default of max.in.flight.requests.per.connection",
    "findings.versions.PRODUCE_OF_4": "a version of Produce that Kafka 4 serves",
    "findings.forgotten.DEFAULT_IDLE": "Kafka's default; idle.default says how near to it",
    "findings.followers.IN_A_MINUTE": "a unit",
    "findings.followers.IN_A_SECOND": "a unit",
    "findings.followers.SLOT": "how exactly times of responses and of polls are kept",
    "findings.sending.LEAST_SEGMENT": "RFC 9293: the smallest default of a full segment",
    "findings.sending.LONGEST": "RFC 1122: the longest delay of an acknowledgement",
    "findings.shares.REJECT": "a type of acknowledgement (KIP-932)",
    "findings.shares.RELEASE": "as REJECT",
    "findings.slow.IN_FLIGHT": "bounds the search for a long poll",
    "findings.causes.ALWAYS": "printed with each explanation, and tested in test_causes",
    "findings.payloads.SOME_BARE": "bounds the time for records; told where it left some out",
    "findings.payloads.SOME_FRAMED": "as SOME_BARE",
    "findings.tls_causes.CERTIFICATE_REQUIRED": "an alert (RFC 8446)",
    "findings.tls_causes.FEW_SUITES": "how many a text names",
    "findings.tls_causes.HANDSHAKE_FAILURE": "an alert (RFC 8446)",
    "findings.tls_causes.RENEGOTIATION": "a cipher suite that is none (RFC 5746)",
    "findings.tls_causes.UNKNOWN_CA": "an alert (RFC 8446)",
    "findings.tls_causes.UNRECOGNIZED_NAME": "an alert (RFC 8446)",
    "findings.zookeeper.PREFIX": "bytes of the size of a frame",
    "statistics.topics.NS_PER_MS": "nanoseconds of a millisecond",
    "statistics.zookeeper.story.CONTAINER": "what ZooKeeper writes for the owner of a container",
    "statistics.delivery.ends.FINEST": "how exactly ends of logs are kept",
    "statistics.delivery.ends.APART": "how exactly times of polls are kept; the shortest pause "
    "that is a finding is much longer",
    "statistics.delivery.parts.LEAST_PAUSE": "of lists of pauses: consumer.silence decides",
    "statistics.delivery.parts.MAGIC": "the magic of record batches",
    "statistics.groups.causes.NEARLY": "decides between two sentences about an expired member",
    "statistics.groups.causes.SHORTEST_SESSION_S": "Kafka's default session timeout",
    "merging.histogram.SUB_BITS": "how exactly values are kept",
    "statistics.traffic.NOTICEABLE_EXCESS_NS": "of a remark of `stats latency`",
    "statistics.traffic.SLOW_NS": "of a remark of `stats latency`",
    "statistics.traffic.MOSTLY_WAIT_PERCENT": "of a remark of `stats latency`",
    "statistics.journeys.facts.MEMBER": "a bit",
    "statistics.journeys.applications.OFFSETS_IN_TRANSACTION": "the key of TxnOffsetCommit",
    "statistics.journeys.facts.SENDS_OFFSETS": "a bit",
    "statistics.journeys.carried.MARKER_KEY": "bytes of the key of a control record",
    "statistics.journeys.carried.RECORD_BATCH": "the magic of record batches",
    "statistics.journeys.carried.SPECIAL": "bits of the attributes of a batch",
    "merging.integer_rows.FEW": "where sorting by numpy begins to pay",
    "merging.integer_rows.INT64": "bytes of a number",
    "merging.bounded.RECENT": "bounds memory",
    "statistics.producers.producers.BATCH_BITS": "tells batches of one exchange apart",
    "statistics.producers.story.SEQUENCES": "numbers of sequences that there are",
    "statistics.groups.timeline.LANE_WIDTH": "columns of a pipe",
    "statistics.groups.timeline.MIN_LANE": "columns of a terminal",
    "statistics.groups.timeline.SHORT_NS": "below it times are written with milliseconds",
    "statistics.table.MIN_TEXT": "columns of a terminal",
    "statistics.journeys.names.POD": "letters that Kubernetes appends to the name of a pod",
    "statistics.groups.timeline.TICK": "columns of a drawing",
}
"""Constant -> why it is no threshold of a rule."""

COMPARED = {
    "applications: a[2:] == b[2:]",
    "applications: a[:2] == b[1::-1]",
    "applications: len(names) < 2",
    "sending: (median or 2) > 1",
    "retries: tries.appended + len(unsure) < 2",
    "retries: tries.appended < 2",
    "retries: each[2] in _early_places(view)",
    "retries: tries.count < 2",
    "retries: tries.count == 2",
    "security: e.code in (33, 34)",
    "stuck: restarts[who] * 2 < circle.offsets",
    "batches: 0.9 < ratio / factor < 1.1",
    "batches: days < 2",
    "forgotten: seconds - timeout <= max(NEAR, timeout // 10)",
    "stuck: len(each.fetches) > 2 * often",
    "stuck: len(fetches) > 2 * circle.rate",
    "tls_causes: each.rpartition(' ')[2] in offered",
    "filters: len(row) > 2",
    "delays: 2 * delay.asking < delay.count",
    "delays: 2 * path >= excess",
    "slow: 2 * served < excess",
    "slow: 2 * (min(end, pause.end_ns) - max(event.time_ns, pause.begin_ns)) > excess",
    "followers: 2 * count >= last - first",
    "sizes: latency * 2 < wait_ms * MS",
    "sizes: early.count * 2 > traffic.count",
    "skew: part * partitions >= min(limit('skew.times'), partitions - 0.5)",
    "unanswered: age >= SECOND // 10",
}
"""Comparisons with a number that are no thresholds: single records, copies (two of them), codes,
halves, words of a sentence."""


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
    found = set()
    for package in (findings, merging, statistics):
        for module in modules(package):
            if module.__name__.endswith(".limits"):
                continue
            own = {
                node.target.id
                for node in tree_of(module).body
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            }
            for name in sorted(own):
                value = getattr(module, name, None)
                if not isinstance(value, int) or value in (-2, -1, 0, 1):
                    continue
                if name.startswith(("MAX_", "MOST_")) or name in ("MS", "SECOND", "MINUTE"):
                    continue
                if _of_the_protocol(name, value):
                    continue
                found.add(f"{module.__name__.removeprefix('kafkascope.analyzer.')}.{name}")
    assert found == NO_LIMITS.keys()


def test_comparisons_are_with_limits() -> None:
    found = {
        f"{module.__name__.rpartition('.')[2]}: {ast.unparse(node)}"
        for module in modules(findings)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Compare)
        and any(
            isinstance(each, ast.Constant)
            and isinstance(each.value, int | float)
            and each.value not in (-1, 0, 1, 100)
            for each in ast.walk(node)
        )
    }
    assert found == COMPARED


# --- each limit from both sides: just below it nothing is told (or less), just above  -------------


SIDES: dict[tuple[str, ...], Side] = {
    **sides_applications.SIDES,
    **sides_requests.SIDES,
    **sides_delays.SIDES,
    **sides_data.SIDES,
    **sides_groups.SIDES,
    **sides_ends.SIDES,
    **sides_connections.SIDES,
    **sides_schemas.SIDES,
    **sides_zookeeper.SIDES,
    **sides_logs.SIDES,
}
"""(rule, limit) -> what decides there; with another word where a rule reads it once more."""


def test_every_limit_of_every_rule_has_both_sides() -> None:
    pairs = {(rule.name, name) for rule in RULES.values() for name in rule.limits}
    pairs |= {("outcomes", name) for name in outcomes.THRESHOLDS}
    assert pairs == {key[:2] for key in SIDES}


@pytest.mark.parametrize("pair", SIDES, ids=" ".join)
def test_a_limit_decides(pair: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """And no other value of it would: it is raised and lowered by one."""
    side = SIDES[pair]
    name = pair[1]
    assert not side.make(side.calm)
    assert side.make(side.told)
    limit = THRESHOLDS[name]
    for value in (limit.value - 1, limit.value + 1):
        for table in (THRESHOLDS, counted.THRESHOLDS):
            if name in table:
                monkeypatch.setitem(table, name, limit._replace(value=value))
        assert side.make(side.calm) or not side.make(side.told), f"{name} may be {value}"
