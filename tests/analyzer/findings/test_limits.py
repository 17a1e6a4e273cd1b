"""Thresholds: each belongs to rules that declare it, and no module has one of its own."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kafkascope.analyzer import findings, statistics
from kafkascope.analyzer.findings import RULES
from kafkascope.analyzer.findings.detectors import DETECTORS
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.outcomes import THRESHOLDS
from kafkascope.analyzer.statistics import limits as counted
from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.dissectors.reference.zookeeper import ZOOKEEPER
from kafkascope.dissectors.registry import APIS

UNITS = frozenset({"ns", "ms", "bytes", "count", "times", "percent", "per second", "per minute"})

NO_LIMITS = {
    "findings.codecs.LAST_SHARED": "a version of Fetch that tells libraries apart",
    "findings.clocks.DAY": "a unit",
    "findings.clocks.OLDER_THAN_KAFKA": "before 2011 there was no Kafka",
    "findings.connections.SEGMENT": "the payload of a TCP segment, for a count of segments",
    "findings.idle_resets.NEAR": "decides which known timeout a text names",
    "findings.order.AT_ONCE": "tells a client that closes from one whose request timed out",
    "findings.order.IN_FLIGHT": "Kafka's default of max.in.flight.requests.per.connection",
    "findings.offers.PRODUCE_OF_4": "a version of Produce that Kafka 4 serves",
    "findings.outages.DEFAULT_IDLE": "Kafka's default; idle.default says how near to it",
    "findings.pauses.LONGEST": "bounds the search for the end of a pause",
    "findings.pauses.SLOT": "how exactly times of responses are kept",
    "findings.retries._SPREAD": "mixes bits",
    "findings.sending.LONGEST": "RFC 1122: the longest delay of an acknowledgement",
    "findings.shares.REJECT": "a type of acknowledgement (KIP-932)",
    "findings.shares.RELEASE": "as REJECT",
    "findings.slow.IN_FLIGHT": "bounds the search for a long poll",
    "findings.explanations.ALL": "printed with each explanation, and tested in test_causes",
    "findings.explanations.PATIENT": "as ALL",
    "findings.explanations.POLL": "as ALL",
    "findings.payloads.SOME_BARE": "bounds the time for records; told where it left some out",
    "findings.payloads.SOME_FRAMED": "as SOME_BARE",
    "findings.explanations.SOON": "as ALL",
    "findings.tls_causes.CERTIFICATE_REQUIRED": "an alert (RFC 8446)",
    "findings.tls_causes.FEW_SUITES": "how many a text names",
    "findings.tls_causes.HANDSHAKE_FAILURE": "an alert (RFC 8446)",
    "findings.tls_causes.RENEGOTIATION": "a cipher suite that is none (RFC 5746)",
    "findings.tls_causes.UNKNOWN_CA": "an alert (RFC 8446)",
    "findings.tls_causes.UNRECOGNIZED_NAME": "an alert (RFC 8446)",
    "findings.zookeeper.PREFIX": "bytes of the size of a frame",
    "findings.zookeeper.UNKNOWN": "the key of types that are none",
    "statistics.stored.NS_PER_MS": "nanoseconds of a millisecond",
    "statistics.zookeeper.story.CONTAINER": "what ZooKeeper writes for the owner of a container",
    "statistics.delivery.ends.FINEST": "how exactly ends of logs are kept",
    "statistics.delivery.parts.APART": "how exactly times of polls are kept; the shortest pause "
    "that is a finding is much longer",
    "statistics.delivery.pauses.LEAST_PAUSE": "of lists of pauses: consumer.silence decides",
    "statistics.delivery.parts.MAGIC": "the magic of record batches",
    "statistics.delivery.parts.MORE": "the bit of a varint that says that it goes on",
    "statistics.delivery.parts.PREFIX": "of what schema registries write",
    "statistics.groups.causes.NEARLY": "decides between two sentences about an expired member",
    "statistics.groups.causes.SHORTEST_SESSION_S": "Kafka's default session timeout",
    "statistics.feed.FEW": "accumulators for which to let exchanges wait is no gain",
    "statistics.feed.SOON": "slower exchanges are given one by one, to the same effect",
    "statistics.feed.WHOLE": "a version of Fetch (KIP-74)",
    "statistics.histogram.SUB_BITS": "how exactly values are kept",
    "statistics.latency.FELT": "of a remark of `stats latency`",
    "statistics.latency.LONG_POLL": "of a remark of `stats latency`",
    "statistics.latency.MOSTLY_WAIT": "of a remark of `stats latency`",
    "statistics.merging.events.FEW": "bounds memory",
    "statistics.merging.names.RECENT": "bounds memory",
    "statistics.merging.tables.SHARED_FROM": "bounds memory",
    "statistics.merging.tables.TABLE_EVENTS": "bounds memory",
    "statistics.merging.tables.TABLE_NAMES": "bounds memory",
    "statistics.merging.names.MANY": "bounds memory",
    "statistics.producers.producers.BATCH_BITS": "tells batches of one exchange apart",
    "statistics.producers.story.SEQUENCES": "numbers of sequences that there are",
    "statistics.groups.timeline.MIN_LANE": "columns of a terminal",
    "statistics.table.MIN_TEXT": "columns of a terminal",
    "statistics.groups.timeline.TICK": "columns of a drawing",
}
"""Constant -> why it is no threshold of a rule."""

COMPARED = {
    "batching: (median or 2) > 1",
    "retries: tries.appended + len(unsure) < 2",
    "retries: tries.appended < 2",
    "retries: each[2] in _early_places(view)",
    "retries: tries.count < 2",
    "retries: tries.count == 2",
    "security: e.code in (33, 34)",
    "batches: magic_of(carrier, version) < 2",
    "circles: restarts[who] * 2 < circle.offsets",
    "clocks: 0.9 < ratio / factor < 1.1",
    "clocks: days < 2",
    "idle_resets: seconds - timeout <= max(NEAR, timeout // 10)",
    "sending: each[2] - each[3] >= gap",
    "stuck: len(each.fetches) > 2 * often",
    "stuck: len(found) > 2 * circle.rate",
    "tls_causes: each.rpartition(' ')[2] in offered",
    "view: len(row) > 2",
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
    """The limits that a module names, other than in declarations of rules."""
    tree = tree_of(module)
    declared = {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.keyword) and node.arg == "limits"
        for each in ast.walk(node)
    }
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in LIMITS and id(node) not in declared
    }


def helpers(module: ModuleType) -> Iterator[ModuleType]:
    """The modules without rules that a detector is made of."""
    detecting = {kind.__module__ for kind in DETECTORS}
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "kafkascope.analyzer.findings"
        ):
            name = node.module or ""
            if name not in detecting and not name.endswith(".limits"):
                yield importlib.import_module(name)


def test_rules_declare_limits_that_exist() -> None:
    named = [name for rule in RULES.values() for name in rule.limits]
    assert set(named) <= LIMITS.keys()
    assert all(len(set(rule.limits)) == len(rule.limits) for rule in RULES.values())


def test_every_limit_is_of_a_rule_or_of_outcomes() -> None:
    named = {name for rule in RULES.values() for name in rule.limits}
    assert named | set(THRESHOLDS) == LIMITS.keys()


@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.__name__)
def test_rules_declare_what_their_module_reads(kind: type) -> None:
    module = importlib.import_module(kind.__module__)
    read = set(reads(module)).union(*(reads(each) for each in helpers(module)))
    declared = {name for rule in kind.RULES for name in rule.limits}  # type: ignore[attr-defined]
    assert read <= declared
    assert declared - counted.LIMITS.keys() <= read


def test_limits_of_statistics_are_read_there() -> None:
    read: set[str] = set()
    for module in modules(statistics):
        read |= set() if module is counted else reads(module)
    assert read == counted.LIMITS.keys()


def test_limits_have_a_unit_and_a_reason() -> None:
    for name, limit in LIMITS.items():
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
    for package in (findings, statistics):
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
