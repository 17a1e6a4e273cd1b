"""Findings about what our own proxy did say so: rules, recording, reading, findings."""

import heapq
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.conversation.tampering import anonymized, effects_of
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.findings.model import Finding
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.captures.formats import remarks
from kafkascope.captures.formats.pcapng import Pcapng
from kafkascope.captures.limits import CaptureLimits
from kafkascope.proxy.engine.held import HeldFrames
from kafkascope.proxy.recording.recorder import Recorder
from kafkascope.proxy.rules.faults import parse_fault
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Drop, End, Forward, Send, WakeUp
from tests.analyzer.pipeline.kit import Apart, made
from tests.kit.proxy import Always, Bench, Tape, beat, echo, proxied, pulse
from tests.kit.run import run
from tests.kit.wire import SECOND

EXCHANGES = 8


def recorded(path: Path, rule: str) -> None:
    """A client heartbeats each five seconds through a proxy with a rule; the broker answers within
    10 ms. What takes longer, fails or ends early is the rule's doing."""
    bench = Bench(rule)
    tape = Tape(bench)
    bench.hub.held = HeldFrames(dict)
    queue: list[tuple[int, int, Any]] = []
    order = 0

    to_broker = bytearray()
    size = len(beat(group_id="g"))  # of all

    def later(after_ns: int, what: Any) -> None:
        nonlocal order
        order += 1
        heapq.heappush(queue, (bench.now_ns + after_ns, order, what))

    def obey(actions: list[Any]) -> None:
        for action in actions:
            if isinstance(action, WakeUp):
                token = action.token
                later(action.delay_ns, lambda now, token=token: bench.relay.woken(token, now))
            elif isinstance(action, Send) and action.side == BROKER:
                to_broker.extend(action.data)
                while len(to_broker) >= size:
                    number = int.from_bytes(to_broker[8:12], "big")
                    del to_broker[:size]
                    answer = pulse(number)
                    later(SECOND // 100, lambda now, a=answer: bench.feed(BROKER, a))
            elif isinstance(action, End):
                tape.end(1 - action.side, "rst" if action.how == "reset" else "fin", bench.now_ns)

    for number in range(EXCHANGES):
        asked = beat(number, group_id="g")
        later(number * 5 * SECOND, lambda now, a=asked: bench.feed(CLIENT, a))
    later((EXCHANGES * 5 + 60) * SECOND, lambda now: [])
    while queue:
        at, _, what = heapq.heappop(queue)
        bench.now_ns = max(bench.now_ns, at)
        if bench.context.over:
            continue
        obey(list(what(bench.now_ns) or ()))
        for direction in bench.relay.directions:
            if direction.stop is not None and direction.stop.held is not None:
                held, direction.stop.held = direction.stop.held, None
                bench.hub.held.forget(held)
                stop, side = direction.stop, direction.side
                later(
                    3 * SECOND,
                    lambda now, s=stop, d=side: bench.relay.release(d, s, Forward(), now),
                )
    bench.relay.closed()
    tape.end(None, "fin", bench.now_ns)
    tape.write(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.pcapng"


def found_in(path: Path) -> tuple[list[Finding], dict[int, list[str]]]:
    """Findings, and what the proxy did, by exchange."""
    findings, deeds = Findings(), {}
    with open_capture([path]) as capture:
        capture.watch = findings.saw
        for exchange in capture.exchanges():
            row = row_of(exchange, capture.context.names)
            findings.add(ExchangeBatch.of(row, exchange))
            if effects_of(row.notes):
                deeds[row.number] = effects_of(row.notes)
    return findings.reported(), deeds


ACTIONS = [
    "-> delay 50ms..200ms",
    "-> delay normal 1s 20ms",
    "-> throttle 10kB/s",
    "-> error 3 at topic",
    "-> stamp REBALANCE_IN_PROGRESS",
    "-> truncate 12",
    "-> half-close",
    "-> black-hole",
    "-> versions Fetch <= 11, Produce 3-8, Metadata 9",
    "api == Heartbeat -> member expire",
    "api == Metadata -> stale-metadata",
    "api == Fetch -> corrupt-crc",
    "api == Fetch -> records lose 2",
    "api == Fetch -> records duplicate",
    "api == Fetch -> records reorder",
    "api == Fetch -> records corrupt crc",
    "api == Fetch -> records corrupt value",
    "api == Fetch -> records set timestamp -1d",
]
"""That have words of ours alone."""

BLAMED = {
    "-> delay 2s on request first 4": "slow-answers",
    "-> delay 2s on response first 4": "slow-answers",
    "-> hold on request first 4": "slow-answers",
    "-> hold on response first 4": "slow-answers",
    "-> throttle 10B/s on request first 4": "slow-answers",
    "-> throttle 4B/s on response first 4": "slow-answers",
    "-> drop on response first 4": None,
    "-> drop on request first 4": None,
    "-> black-hole on request": None,
    "-> black-hole on response": None,
    "-> reset on request": None,
    "-> reset on response": None,
    "-> close on response": None,
    "-> half-close on response": None,
    "-> truncate 6 on response": None,
    "-> error GROUP_AUTHORIZATION_FAILED first 4": None,
    "-> stamp GROUP_AUTHORIZATION_FAILED first 4": None,
    "-> stamp UNKNOWN_SERVER_ERROR first 4": None,
    "-> delay 200s on response": None,
}
"""Rule -> the finding that would blame the broker, where it is one in particular."""


@pytest.mark.parametrize("rule", BLAMED)
def test_findings_name_the_proxys_rule_and_not_the_broker(
    rule: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(path, rule)
    found, deeds = found_in(path)
    assert deeds
    word = rule.split()[1]
    assert all(word in deed for each in deeds.values() for deed in each), deeds
    told = {each.name: each for each in found}
    # Who does not read what the recording says blames the broker.
    monkeypatch.setattr(Pcapng, "_remark", lambda *_: None)
    blaming, nothing = found_in(path)
    assert not nothing
    blaming = [each for each in blaming if each.severity in ("error", "warning")]
    if BLAMED[rule]:
        assert BLAMED[rule] in {each.name for each in blaming}
    assert blaming
    for each in blaming:
        assert "injected by proxy rules" in told[each.name].text, each
        assert word in told[each.name].text
        assert told[each.name].severity in ("note", "chat")
        assert "No action is needed on the broker" in told[each.name].advice


def test_what_the_broker_did_itself_stays_its_own(path: Path) -> None:
    recorded(path, "-> stamp UNKNOWN_MEMBER_ID nth 900")
    found, deeds = found_in(path)
    assert not deeds
    assert not any("proxy" in each.text for each in found)


@pytest.mark.parametrize("more", [[], ["--comments"]], ids=["cut", "commented"])
async def test_through_sockets_and_the_command(path: Path, tmp_path: Path, more: list[str]) -> None:
    part = tmp_path / "part.pcapng"

    rule = "api == Heartbeat -> delay 1200ms on response first 2"
    async with proxied(echo, rule, recorder=Recorder(path)) as proxy:
        await proxy.ask(*map(beat, range(3)))
    cut = run("cut", path, *more, "-o", part)
    assert cut.exit_code == 0
    assert found_in(part)[1] == found_in(path)[1]
    for each in (path, part):
        done = run("check", each, "--rule", "slow-answers")
        assert "delay 1200ms" in done.output, done.output
        assert "the proxy that recorded" in " ".join(done.output.split())
    shown = run("ls", path, "--json")
    assert shown.output.count("the proxy that recorded this: delay 1200ms") == 2


@pytest.mark.parametrize("rule", ["-> delay 2s on response first 4", "-> drop first 4"])
def test_all_engines_and_their_tables_say_the_same(rule: str, path: Path, tmp_path: Path) -> None:
    recorded(path, rule)
    expected, _ = made([str(path)], tmp_path / "plain", records=True)
    assert "the proxy that recorded this" in str(expected["exchanges"])
    out = tmp_path / "apart"
    assert made([str(path)], out, Apart(), size=300, records=True)[0] == expected
    check = ["check", "--json", "--fail-on", "never"]
    of_capture, of_tables = (run(*check, each).stdout for each in (path, out))
    assert "injected by proxy rules" in of_capture
    assert of_tables == of_capture


def test_who_waits_behind_a_delayed_answer_is_not_slow(path: Path) -> None:
    bench = Bench("-> delay 2s on response once")
    tape = Tape(bench)
    bench.feed(CLIENT, b"".join(beat(n) for n in range(3)))
    both = b"".join(pulse(n) for n in range(3))
    bench.feed(BROKER, both)
    bench.wake(2 * SECOND)
    tape.end(None, "fin", bench.now_ns + 2 * SECOND)
    tape.write(path)
    found, deeds = found_in(path)
    assert list(deeds) == [1]
    (slow,) = [each for each in found if each.name == "slow-answers"]
    assert "1 of 3 Heartbeat requests" in slow.text
    assert "injected by proxy rules" in slow.text


def test_an_answer_that_is_held_to_the_end_is_told_of(path: Path) -> None:
    bench = Bench("-> hold on response")
    tape = Tape(bench)
    bench.hub.held = HeldFrames(dict)
    bench.exchange(beat(), pulse())
    bench.now_ns += 60 * SECOND
    bench.relay.closed()
    bench.relay.closed()
    tape.end(CLIENT, "fin", bench.now_ns)
    tape.write(path)
    assert found_in(path)[1] == {1: ["hold"]}
    assert sum(event.leg == 1 for event in tape.events) == 2


def test_rules_in_python_are_named(path: Path, tmp_path: Path) -> None:
    bench = Bench(Always(BROKER, Drop(), name="our; [rule]"))  # it says nothing of what it did
    tape = Tape(bench)
    bench.exchange(beat(), pulse())
    tape.end(None, "fin", bench.now_ns)
    tape.write(path)
    assert found_in(path)[1] == {1: ["rule: our, (rule]"]}
    part = tmp_path / "part.pcapng"
    done = run("cut", path, "--anonymize", "-o", part)
    assert done.exit_code == 0
    assert found_in(part)[1] == {1: ["rule: hidden"]}


GIVEN = {
    'set request.client_id = "UNIQUE one"': "set request.client_id = hidden",
    'set request.session_timeout_ms = 5, request.member_id = "UNIQUE; two"': (
        "set request.session_timeout_ms = hidden"
    ),
    "records set value UNIQUE": "records set value hidden",
    "records set key 4111222233334444": "records set key hidden",
    "records set header UNIQUE=UNIQUE": "records set header hidden",
    "rule: UNIQUE": "rule: hidden",
    "error UNKNOWN_TOPIC_OR_PARTITION at topic, not sent to the broker": (
        "error UNKNOWN_TOPIC_OR_PARTITION at topic, not sent to the broker"
    ),
    "delay UNIQUE words of others 2s": "delay hidden 2s",
    "edited by hand": "edited by hand",
    "addresses: node 1 UNIQUE:9092 -> UNIQUE:19093": "addresses: node 1 h:9092 -> h:19093",
}


@pytest.mark.parametrize("deed", GIVEN)
def test_what_people_wrote_into_rules_is_a_name(deed: str) -> None:
    assert anonymized(deed, lambda _: "h") == GIVEN[deed]


@pytest.mark.parametrize("rule", [*BLAMED, *ACTIONS])
def test_what_rules_do_is_none(rule: str) -> None:
    action = str(parse_fault(rule).action)
    assert anonymized(action, str) == action


def test_nobody_is_told_what_a_rule_gave(path: Path, tmp_path: Path) -> None:
    recorded(path, "-> set response.error_code = 7, response.throttle_time_ms = 4242 on response")
    assert found_in(path)[1], "deeds are recorded"
    part, page = tmp_path / "part.pcapng", tmp_path / "page.md"
    for words in (["cut", "--anonymize", "-o", part], ["report", "--redact", "all", "-o", page]):
        done = run(words[0], path, *words[1:])
        assert done.exit_code == 0, done.output
    given = {deed for deeds in found_in(part)[1].values() for deed in deeds}
    assert given == {"set response.error_code = hidden"}
    text = page.read_text().translate({ord("\\"): None, ord("`"): None})
    assert ("4242" in text, "set response.error_code = hidden" in text) == (False, True)


def test_comments_of_others_are_not_read(path: Path) -> None:
    recorded(path, "-> delay 2s on response first 4")
    theirs = path.read_bytes().replace(b"kafkascope: client leg", b"somebody's: client leg")
    path.write_bytes(theirs)
    found, deeds = found_in(path)
    assert not deeds
    (slow,) = [each for each in found if each.name == "slow-answers"]
    assert "proxy" not in slow.text


def test_remarks_are_bounded() -> None:
    kept = remarks.Remarks(limits=CaptureLimits(comments=10))
    for number in range(100):
        one = remarks.remark(0, 50, f"fault: drop [c {number}]" if number % 2 else "fault: drop")
        kept.add(0, number * 100, [one])
        kept.add(0, number * 100, [one])  # walked again
    assert len(kept.of_file(0)) <= 10
    assert kept.at(0, 9_820) == "fault: drop"
    assert kept.at(0, 9_860) == ""  # behind that packet
    assert kept.at(0, 20) == ""  # forgotten
    assert kept.about("c 99", 0, 9_000) == "fault: drop"
    assert kept.about("c 1", 0, 0) == ""
    assert kept.about("c 99", 0, 9_950) == ""  # it is about what was before it
