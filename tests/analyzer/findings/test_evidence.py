"""Exchanges know the findings that they are evidence of: in filters of commands, and in columns."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.filter.backends import exchange as exchange_backend
from kafkascope.analyzer.filter.bind import Test as BoundTest
from kafkascope.analyzer.filter.fields import field_of
from kafkascope.analyzer.filter.language import Known, compile_filter, compile_query
from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.analyzer.findings import Finding, Findings
from kafkascope.analyzer.findings.evidence import PART, Evidence, _choices, note, overflowing_rules
from kafkascope.analyzer.findings.filters import among
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.model import Exchange, Severity
from kafkascope.analyzer.session.session import Session
from kafkascope.captures.inputs.spool import Spool
from tests.explosion.turns import exchange as turns_of
from tests.explosion.turns import write_capture
from tests.kit.captures import session_of
from tests.kit.counting import counted
from tests.kit.run import run
from tests.kit.samples import SAMPLES, capture_of

NAMES = ("too-large", "fenced-producer", "odd-commits", "lost-answers", "security")


@contextmanager
def opened(path: Path) -> Iterator[tuple[Session, list[tuple[Row, Exchange]], Findings]]:
    """A session, its exchanges with their rows, and the findings that counted all of it."""
    findings = Findings()
    with open_capture([path], spool=Spool()) as capture:
        capture.watch = findings.saw
        session = session_of(capture)
        exchanges = [session.exchange(index) for index in range(len(session))]
        pairs = [(row_of(exchange, capture.context.names), exchange) for exchange in exchanges]
        yield session, pairs, counted(findings, pairs)


def selected(findings: Iterable[Finding], pair: tuple[Row, Exchange]) -> tuple[Finding, ...]:
    """The findings whose filter selects an exchange, each asked by itself."""
    return tuple(each for each in findings if compile_filter(each.filter)(*pair))


@pytest.mark.parametrize("name", NAMES)
def test_columns_and_single_exchanges_agree(name: str) -> None:
    known, single = Known(), Known()
    with opened(capture_of(name)) as (session, pairs, findings):
        evidence = Evidence(findings.reported(session.context.names))
        for index, found in evidence.among(session).items():
            note(known, session.columns["number"][index], found)
        for row, exchange in pairs:
            evidence.note(single, row, exchange)
        assert known.findings == single.findings
        assert known.severities == single.severities
        assert known.findings
        for finding in evidence.findings:
            text = f"finding == {finding.name} and finding.severity == {finding.severity}"
            mask = compile_query(text, known).mask(session)
            wanted = compile_filter(text, known)
            assert mask.tolist() == [wanted(row, exchange) for row, exchange in pairs]
            assert mask.any()


@pytest.mark.parametrize("name", NAMES)
def test_commands_select_the_evidence(name: str) -> None:
    path = capture_of(name)
    for line in run("check", path, "--json").stdout.splitlines():
        found = json.loads(line)
        of_rule = run("ls", path, "--json", "-Y", f"finding == {found['name']}").stdout
        by_filter = run("ls", path, "--json", "-Y", found["filter"]).stdout
        assert set(by_filter.splitlines()) <= set(of_rule.splitlines())
        assert by_filter


def test_nothing_is_found_in_healthy_traffic() -> None:
    serious = "finding.severity in {error, warning}"
    assert not run("ls", capture_of("healthy"), "--json", "-Y", serious).stdout


def test_a_pipe_cannot_be_read_twice() -> None:
    done = run("ls", "-", "-Y", "finding == late-answer")
    assert done.exit_code == 2
    assert "save it to a file first" in done.stderr


def test_an_unknown_severity_or_rule_selects_nothing() -> None:
    assert not run("ls", capture_of("too-large"), "--json", "-Y", "finding == nothing").stdout


@pytest.mark.parametrize(
    "name",
    [
        *(*NAMES, "consumer-protocol", "healthy"),
        # One of several things (or), ranges of connections.
        *("falling-behind", "midstream", "snaplen200", "stopped-broker"),
    ],
)
def test_who_is_asked_for_less_misses_nothing(name: str) -> None:
    with opened(capture_of(name)) as (session, pairs, findings):
        evidence = Evidence(findings.reported(session.context.names))
        for pair in pairs:
            assert evidence.of(*pair) == selected(evidence.findings, pair)
        whole = evidence.among(session)
        for size in (1, 7, 100):
            pieces: dict[int, tuple[Finding, ...]] = {}
            for begin in range(0, len(session), size):
                pieces |= evidence.among(session, begin, begin + size)
            assert pieces == whole


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("conn in {3..5, 9}", [("conn", value) for value in (3, 4, 5, 9)]),
        ("conn in {0..5000}", [("", None)]),
        ('group == "g" or (api == Fetch and topic == "t")', [("group", "g"), ("topic", "t")]),
        ('group == "g" or error == 3', [("", None)]),
        ('(client == "a" or client == "b") and error == 3', [("client", "a"), ("client", "b")]),
        ('topic != "t"', [("", None)]),
        ('path contains "/consumers/g/"', [(PART, "consumers")]),
        ('path contains "rs/g"', [("", None)]),
    ],
)
def test_what_a_finding_is_looked_up_by(text: str, keys: list[tuple[str, Any]]) -> None:
    (found, *_) = _choices(compile_filter(text).bound)
    assert found == keys


def test_a_finding_is_looked_up_where_its_client_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each finding was held against all clients: 3,000 took the UI a minute, 6,000 five.
    path = tmp_path / "clients.pcapng"
    count = 60
    turns = turns_of("Metadata", 1, {"topics": None}, {})
    write_capture(path, iter([turns] * count))
    judged = 0
    with opened(path) as (session, _, found):
        evidence = Evidence(found.reported(session.context.names))
        assert len(evidence.findings) >= count
        check_of = exchange_backend.check_of

        def counted(test: BoundTest) -> Callable[[Any], bool]:
            check = check_of(test)

            def checked(value: Any) -> bool:
                nonlocal judged
                judged += 1
                return check(value)

            return checked

        monkeypatch.setattr(exchange_backend, "check_of", counted)
        assert len(evidence.among(session)) == count
    assert judged < 6 * len(evidence.findings)


@pytest.mark.parametrize(
    ("sample", "field"),
    [
        ("cluster.pcap.gz", "broker"),
        ("transactions.pcap", "txn"),
        ("transactions.pcap", "producer.id"),
        ("librdkafka.pcap", "partition"),
        ("zookeeper.pcap", "path"),
        ("zookeeper.pcap", PART),
        ("zookeeper.pcap", "zk.session"),
    ],
)
def test_findings_of_one_client_are_told_apart_by_what_else_they_name(
    sample: str, field: str
) -> None:
    """Thousands about one client and as many brokers were held against each of its exchanges."""
    named = "path" if field == PART else field
    get = field_of(named).get
    assert get is not None
    with opened(SAMPLES / sample) as (session, pairs, _):
        values = dict.fromkeys(value for row, _ in pairs for value in get(row))
        if field == PART:
            values = dict.fromkeys(f"/{part}/" for each in values for part in each.split("/")[1:-1])
        assert len(values) > 1
        how = "contains" if field == PART else "=="
        about = [f"number > 0 and {named} {how} {quoted(str(value))}" for value in values]
        found = [
            Finding(f"rule-{number}", "error", "", 1, None, None, text, "")
            for number, text in enumerate(about)
        ]
        evidence = Evidence(found)
        assert evidence._wanted.keys() == {field}
        whole = evidence.among(session)
        for index, pair in enumerate(pairs):
            assert evidence.of(*pair) == selected(found, pair) == whole.get(index, ())


def finding(rule: str, where: str, severity: Severity = "warning") -> Finding:
    return Finding(rule, severity, f"{rule} {where}", 1, None, None, where, "")


def test_an_exchange_is_told_some_of_each_rule_and_severity() -> None:
    """Thousands of ids of one client were held against each of its exchanges, and all given."""
    with opened(capture_of("healthy")) as (session, pairs, _):
        some = [finding("crowd", "number > 0") for _ in range(LIMITS.findings_of_rule + 5)]
        some += [finding("crowd", f"number >= {number}") for number in range(1, 60)]
        some += [finding("crowd", f"number >= {number}", "note") for number in range(3, 60)]
        some.append(finding("alone", "number > 0"))
        evidence = Evidence(some)
        whole = evidence.among(session)
        for index, (row, exchange) in enumerate(pairs):
            found = evidence.of(row, exchange)
            assert found == whole[index]
            kinds = Counter((each.name, each.severity) for each in found)
            after = min(LIMITS.findings_of_rule, max(0, row.number - 2))
            assert kinds[("crowd", "warning")] == LIMITS.findings_of_rule
            assert kinds[("crowd", "note")] == after
            assert kinds[("alone", "warning")] == 1
            assert selected(found, (row, exchange)) == found
            assert overflowing_rules(found) == ["crowd"]
        assert not overflowing_rules(some[-1:])


def test_findings_that_select_the_same_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = 0
    call = exchange_backend.Filter.__call__

    def counted(self: exchange_backend.Filter, *args: Any) -> bool:
        nonlocal judged
        judged += 1
        return call(self, *args)

    with opened(capture_of("healthy")) as (_, pairs, _):
        same = [finding(f"rule-{number % 7}", "number > 0 and not lost") for number in range(2_000)]
        many = [finding("many", f"number > 0 or latency > {number}ms") for number in range(2_000)]
        evidence = Evidence([*same, *many])
        monkeypatch.setattr(exchange_backend.Filter, "__call__", counted)
        assert len(evidence.of(*pairs[0])) == 8 * LIMITS.findings_of_rule
    assert judged == 1 + LIMITS.findings_of_rule


def test_numbers_in_a_row_are_a_range() -> None:
    assert among("conn", []) == ""
    assert among("conn", [7]) == "conn in {7}"
    assert among("conn", [3, 1, 2, 2, 9, 10]) == "conn in {1..3, 9, 10}"
    assert parse(among("conn", range(200))) == parse("conn in {0..199}")
