"""Faults: their grammar, and what each does to frames."""

import struct
from typing import Any

import pytest

from kafkascope.dissectors import registry
from kafkascope.dissectors.layout import ArrayWire, StructWire, Wire, implied_default
from kafkascope.dissectors.reference.codes import ERRORS
from kafkascope.proxy.rules.faults import FAULTS, Fault, FaultError, load_rules, parse_fault
from kafkascope.proxy.rules.faults.error_code import error_response
from kafkascope.proxy.rules.faults.fault import Trigger
from kafkascope.proxy.rules.matching import HEAD_FIELDS, RESPONSE_FIELDS
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, End, Read, WakeUp
from tests.interop.changes import CASES, table
from tests.kit import proxy as kit
from tests.kit.samples import ROOT
from tests.kit.wire import framed


def bench_with(*rules: str) -> tuple[kit.Bench, list[Fault]]:
    bench = kit.Bench(*rules)
    return bench, bench.rules


@pytest.mark.parametrize(
    "text",
    [
        "api == Produce and topic == orders -> error NOT_LEADER_OR_FOLLOWER first 3",
        "api == Fetch -> delay 200ms",
        "api == Fetch -> delay 50ms..200ms on response p=0.1 seed=7",
        "client == x -> delay normal 100ms 20ms every 2",
        "api == Fetch -> throttle 100KB/s on response",
        "-> drop nth 3",
        "api == Metadata -> stamp LEADER_NOT_AVAILABLE at topic once",
        "api == Fetch -> corrupt-crc",
        "api == Fetch -> truncate 100",
        "api == Metadata -> stale-metadata",
        'client ~ "^bill" -> black-hole',
        "error == 6 -> reset on response",
        "latency > 1s -> half-close",
    ],
)
def test_a_rule_reads_itself_again(text: str) -> None:
    once = parse_fault(text)
    assert str(parse_fault(str(once))) == str(once)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("api == Produce", "no ->"),
        ("api == Produce ->", "no action after ->"),
        ("api == Produce -> dealy 5ms", "did you mean 'delay'"),
        ("api == Produce -> delay", "delay TIME"),
        ("api == Produce -> delay 5 parsecs", "delay TIME"),
        ("api == Produce -> error NOT_LEADER_OR_FOLOWER", "did you mean NOT_LEADER_OR_FOLLOWER"),
        ("api == Produce -> error 6 at nowhere", "not at 'nowhere'"),
        ("api = = Produce -> drop", "the filter"),
        ("error == 6 -> error 7", "only the response contains error"),
        (
            "response.throttle_time_ms > 5 -> black-hole on request",
            "only the response contains response.",
        ),
        ("api == Fetch -> stamp 6 on request", "cannot act on requests"),
        ("api == Fetch -> drop first 0", "a number of at least 1"),
        ("api == Fetch -> drop p=2", "a probability"),
        ("api == Fetch -> drop p=0", "p=0 never fires"),
        ("api == Fetch -> drop p=-0.0 seed=7", "p=-0.0 never fires"),
        ("api == Fetch -> drop p=1e-999", "never fires"),
        ("api == Fetch -> drop p=-0.1", "a probability"),
        ("api == Fetch -> drop p=nan", "a probability"),
        ("api == Fetch -> drop p=inf", "a probability"),
        ("api == Fetch -> drop p=1.0001", "a probability"),
        ("api == Fetch -> drop p=", "a probability"),
        ("api == Fetch -> drop seed=2", "needs p="),
        ("api == Fetch -> drop it", "takes no arguments"),
        ("api == Fetch -> throttle fast", "throttle SIZE/s"),
    ],
)
def test_a_wrong_rule_is_refused_with_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(FaultError) as refused:
        parse_fault(text)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value).split("\n")[0]


def test_no_field_is_known_from_the_head_and_only_from_the_response() -> None:
    assert not HEAD_FIELDS & RESPONSE_FIELDS


@pytest.mark.parametrize(
    ("trigger", "fires"),
    [
        (Trigger(), [1, 1, 1, 1, 1, 1]),
        (Trigger("once"), [1, 0, 0, 0, 0, 0]),
        (Trigger("nth", 3), [0, 0, 1, 0, 0, 0]),
        (Trigger("first", 2), [1, 1, 0, 0, 0, 0]),
        (Trigger("every", 2), [0, 1, 0, 1, 0, 1]),
        (Trigger("chance", probability=1.0), [1, 1, 1, 1, 1, 1]),
    ],
)
def test_triggers(trigger: Trigger, fires: list[int]) -> None:
    assert [int(trigger.fire()) for _ in fires] == fires


def test_chance_with_a_seed_repeats_itself() -> None:
    runs = [[Trigger("chance", probability=0.3, seed=7).fire() for _ in range(1)] for _ in range(2)]
    one, two = (Trigger("chance", probability=0.3, seed=7) for _ in range(2))
    first, second = [one.fire() for _ in range(200)], [two.fire() for _ in range(200)]
    assert runs[0] == runs[1]
    assert first == second
    assert 30 < sum(first) < 90


def test_an_error_answers_in_the_brokers_place() -> None:
    bench, (fault,) = bench_with(
        "api == Produce and topic == orders -> error NOT_LEADER_OR_FOLLOWER"
    )
    bench.feed(CLIENT, kit.produce(correlation_id=9))
    assert bench.sent(BROKER) == b""
    told = registry.decode_response(bench.sent(CLIENT)[4:], kit.PRODUCE, 9)
    assert told.header["correlation_id"] == 9
    (topic,) = told.body["responses"]
    assert topic["name"] == "orders"
    assert topic["partition_responses"][0]["error_code"] == 6
    assert fault.trigger.fired == 1
    other = kit.produce(topic="others", correlation_id=10)
    bench.feed(CLIENT, other)
    assert bench.sent(BROKER) == other


def test_a_filter_on_the_answer_sees_the_question_too() -> None:
    bench, (fault,) = bench_with("topic == orders and error == NONE -> stamp 6")
    part = {"index": 0, "base_offset": 5, "error_code": 0, "log_append_time_ms": -1}
    part |= {"log_start_offset": 0, "record_errors": [], "error_message": None}
    topics = [{"name": "orders", "partition_responses": [part]}]
    bench.exchange(kit.produce(), kit.response(kit.PRODUCE, 9, {"responses": topics}))
    assert fault.trigger.fired == 1
    assert bench.answer(kit.PRODUCE, 9)["responses"][0]["partition_responses"][0]["error_code"] == 6


def test_an_incremental_fetch_is_made_a_full_one_first() -> None:
    bench, _ = bench_with("api == Fetch -> error NOT_LEADER_OR_FOLLOWER")
    bench.feed(CLIENT, kit.request(kit.FETCH, 12, {"session_id": 5, "session_epoch": 3}))
    assert bench.answer(kit.FETCH, 12)["error_code"] == 70
    assert not bench.sent(BROKER)


WITH_A_BATCH = kit.fetched(12, records=bytes(16) + b"\2" + bytes(53))


def test_a_corrupt_batch_keeps_everything_but_its_checksum() -> None:
    bench, _ = bench_with("api == Fetch -> corrupt-crc")
    sent = bench.exchange(kit.request(kit.FETCH, 12), WITH_A_BATCH)
    assert len(sent) == len(WITH_A_BATCH)
    assert sum(a != b for a, b in zip(sent, WITH_A_BATCH, strict=True)) == 1


def test_stale_metadata_repeats_the_first_answer() -> None:
    bench, _ = bench_with("api == Metadata -> stale-metadata")
    answers = []
    for number, node_id in ((1, 2), (2, 3), (3, 4)):
        body = {"brokers": [kit.endpoint(node_id)], "controller_id": node_id}
        answer = kit.response(kit.METADATA, 12, body, correlation_id=number)
        sent = bench.exchange(kit.request(kit.METADATA, 12, correlation_id=number), answer)
        answers.append(registry.decode_response(sent[4:], kit.METADATA, 12))
    controllers = [each.body["controller_id"] for each in answers]
    ids = [each.header["correlation_id"] for each in answers]
    assert (controllers, ids) == ([2, 2, 2], [1, 2, 3])


@pytest.mark.parametrize("word", sorted(FAULTS))
def test_every_fault_does_something_and_counts_it(word: str) -> None:
    if word in ("records", "versions"):
        pytest.skip("see test_changes")
    key = (
        kit.FETCH
        if word == "corrupt-crc"
        else kit.METADATA
        if word == "stale-metadata"
        else kit.HEARTBEAT
    )
    bench, (fault,) = bench_with(f"-> {word} {kit.ARGUMENTS.get(word, '')}")
    version = 4 if key == kit.HEARTBEAT else 12
    asked, said = kit.request(key, version), b""
    for controller in (0, 5):
        body = {"controller_id": controller} if key == kit.METADATA else None
        answer = WITH_A_BATCH if key == kit.FETCH else kit.response(key, version, body)
        bench.feed(CLIENT, asked)
        if bench.sent(BROKER) and not bench.context.over:
            said += answer
            bench.feed(BROKER, answer)
    assert fault.trigger.fired >= 1
    assert bench.hub.metrics.get("faults_total", fault.name) == fault.trigger.fired
    changed = bench.sent(CLIENT) != said or bench.sent(BROKER) != asked * 2
    assert changed or any(isinstance(a, Read | WakeUp | End) for a in bench.others())


# --- answers for any API and version


def _entities(wire: Wire, value: Any) -> Any:
    """A request with one of everything: topics, partitions, groups."""
    if isinstance(wire, ArrayWire):
        return [_entities(wire.element, None)]
    if isinstance(wire, StructWire):
        body: dict[str, Any] = {}
        for slot in wire.slots:
            if isinstance(slot.wire, ArrayWire | StructWire):
                body[slot.name] = _entities(slot.wire, None)
        return implied_default(wire) | body
    return implied_default(wire)


PAIRS = [
    (key, version)
    for key, api in registry.APIS.items()
    for version in range(api.versions.low, api.versions.high + 1)
]


def _full_request(key: int, version: int) -> bytes:
    name = f"{registry.APIS[key].name}Request"
    head = struct.pack(">hhi", key, version, 5)
    kind = registry.request_header_version(key, version)
    head += struct.pack(">h", -1) if kind else b""
    head += b"\0" if kind == 2 else b""
    body = _entities(registry.layout_of(name, version).body, None)
    return framed(head + registry.encode_body(name, version, body))


def _codes(value: Any) -> list[int]:
    if isinstance(value, list):
        return [code for each in value for code in _codes(each)]
    if isinstance(value, dict):
        own = [value["error_code"]] if "error_code" in value else []
        return own + [code for each in value.values() for code in _codes(each)]
    return []


def _can_fail(key: int, version: int) -> bool:
    def has(wire: Wire) -> bool:
        if isinstance(wire, ArrayWire):
            return has(wire.element)
        if isinstance(wire, StructWire):
            slots = (*wire.slots, *wire.tags)
            return any(s.name == "error_code" or has(s.wire) for s in slots)
        return False

    return has(registry.layout_of(f"{registry.APIS[key].name}Response", version).body)


@pytest.mark.parametrize(("key", "version"), PAIRS)
def test_any_api_and_version_can_be_answered_with_an_error(key: int, version: int) -> None:
    if not _can_fail(key, version):
        pytest.skip("this response has no error code")
    asked = registry.decode_request(_full_request(key, version)[4:])
    payload = error_response(asked, 41)
    if payload is None:
        payload = error_response(asked, 6)
    assert payload is not None, "no place was found"
    told = registry.decode_response(payload, key, version)
    assert told.end == len(payload)
    assert told.header["correlation_id"] == 5
    assert {code for code in _codes(told.body) if code} <= {41, 6}
    assert any(_codes(told.body))


def test_a_group_error_of_offsets_is_at_the_group() -> None:
    asked = registry.decode_request(_full_request(9, 8)[4:])
    payload = error_response(asked, 16)
    (group,) = registry.decode_response(payload, 9, 8).body["groups"]
    assert group["error_code"] == 16


def test_every_known_error_can_be_named() -> None:
    for code, error in ERRORS.items():
        if code:
            assert f" {error.name}" in str(parse_fault(f"api == Heartbeat -> error {code}"))


def test_rules_come_from_a_file(tmp_path: Any) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(
        '[[fault]]\nname = "slow"\nwhen = "api == Fetch"\ndo = "delay 5ms"\ntrigger = "first 2"\n'
        '[[fault]]\ndo = "drop"\n'
    )
    one, two = load_rules(path)
    assert (one.name, str(one)) == ("slow", "api == Fetch -> delay 5ms first 2")
    assert two.side == BROKER


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fault = 5", "[[fault]] tables"),
        ("[[fault]]\nwhen='api == Fetch'", "`do` is missing"),
        ("[[fault]]\ndo='dorp'", "did you mean 'drop'"),
        ("[[fault]]\ndo='drop'\nhow='x'", "there is no how"),
        ("[[fault", "rules.toml"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Any, text: str, sentence: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(FaultError) as refused:
        load_rules(path)
    assert sentence in str(refused.value)


# --- docs/faults.md shows what is held to real clients --------------------------------------------


DOCS = (ROOT / "docs" / "faults.md").read_text()


def test_the_table_is_that_of_the_tests() -> None:
    assert table() in DOCS


def test_each_action_that_reaches_into_messages_is_in_it() -> None:
    said = [str(parse_fault(case.rule).action) for case in CASES]
    for word in ("set request", "set response", "versions", "member expire"):
        assert any(each.startswith(word) for each in said)
    changes = ("lose", "duplicate", "reorder", "corrupt crc", "corrupt value")
    changes += ("set value", "set key", "set timestamp", "set header")
    for change in changes:
        assert any(each.startswith(f"records {change}") for each in said), change


def test_each_action_is_told() -> None:
    for word in FAULTS:
        assert f"`{word}" in DOCS
