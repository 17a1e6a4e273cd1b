"""Rules that reach into fields and records: what arrives instead."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.records.records import Batch, Record, batches, crc_ok
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import decode_request, decode_response
from kafkascope.proxy.relay import requests, responses
from kafkascope.proxy.rules import intercepted
from kafkascope.proxy.rules.faults import Fault, FaultError, parse_fault
from kafkascope.proxy.rules.rules import Chain
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, End
from tests.kit import proxy as kit

OFFSET_FETCH = 9
RECORDS = [
    Record(number, 1_700_000_000_000 + number, b"k%d" % number, b"v%d" % number, (("h", b"x"),))
    for number in range(5, 9)
]


def bench_with(*rules: str) -> tuple[kit.Bench, list[Fault]]:
    bench = kit.Bench(*rules)
    return bench, bench.rules


def fetch_of(records: bytes, correlation_id: int = 1) -> bytes:
    return kit.fetched(12, records=records, correlation_id=correlation_id)


def fetched_records(rule: str, records: bytes) -> bytes:
    answer = kit.Bench(rule).exchange(kit.request(kit.FETCH, 12), fetch_of(records))
    return bytes(kit.fetched_partition(answer)["records"])


def produced_by(rule: str, records: bytes) -> bytes:
    bench = kit.Bench(rule)
    bench.feed(CLIENT, kit.produce(records=records))
    return kit.produced_records(bench.sent(BROKER))


# --- fields


def test_a_field_of_a_request_gets_another_value() -> None:
    bench, (fault,) = bench_with(
        "api == Fetch -> set request.max_wait_ms = 1, request.min_bytes += 5"
    )
    sent = kit.request(kit.FETCH, 12, {"max_wait_ms": 500, "min_bytes": 1}, correlation_id=77)
    bench.feed(CLIENT, sent)
    told = decode_request(bench.sent(BROKER)[4:])
    assert (told.body["max_wait_ms"], told.body["min_bytes"]) == (1, 6)
    assert (told.header["correlation_id"], told.header["client_id"]) == (77, "test")
    assert fault.trigger.fired == 1
    before = decode_request(sent[4:]).body
    assert {k: v for k, v in told.body.items() if v != before[k]}.keys() == {
        "max_wait_ms",
        "min_bytes",
    }


def test_fields_of_a_response_are_reached_through_arrays_once() -> None:
    bench, _ = bench_with(
        "api == Fetch -> set response.responses[*].partitions[*].high_watermark += 1000 once"
    )
    marks = []
    for number in (1, 2):
        asked = kit.request(kit.FETCH, 12, correlation_id=number)
        answer = bench.exchange(asked, kit.fetched(12, correlation_id=number))
        marks.append(kit.fetched_partition(answer)["high_watermark"])
    assert marks == [1005, 5]


def test_null_text_arrays_and_bytes() -> None:
    bench, _ = bench_with(
        "api == Metadata -> set response.cluster_id = null, response.brokers = []"
    )
    bench.exchange(
        kit.request(kit.METADATA, 12),
        kit.response(kit.METADATA, 12, {"cluster_id": "abc", "controller_id": 1}),
    )
    body = bench.answer(kit.METADATA, 12)
    assert (body["cluster_id"], body["brokers"], body["controller_id"]) == (None, [], 1)


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("api == Fetch -> set request.max_wayt = 1", "did you mean request.max_wait_ms"),
        ("api == Fetch -> set request.max_wait_ms = abc", "is not an integer"),
        ("api == Fetch -> set request.max_wait_ms = 9999999999", "is not an integer from -2147"),
        ("api == Fetch -> set request.max_wait_ms += x", "+= takes a number"),
        ("api == Fetch -> set request.rack_id += 1", "is for numbers"),
        ("api == Heartbeat -> set request.max_wait_ms = 1", "would never act"),
        ("api == Fetch and version == 4 -> set request.session_id = 3", "in Fetch 4: no such"),
        ("-> set response.topics[nome == x].error_code = 3", "no such field to select by"),
        ("-> set response.topics[*].partitions[partition_index == x].leader_id = 1", "select by"),
        ("api == Fetch and version < 3 -> set request.rack_id = x", "would never act"),
        ("api == Fetch -> set max_wait_ms = 1", "begins with request. or response."),
        ("api == Fetch -> set request.max_wait_ms", "set request.FIELD"),
        ("-> set request.max_wait_ms = 1, response.throttle_time_ms = 1", "write two rules"),
        ("-> set request.topics[x].name = a", "is no element"),
        ("api == Fetch -> set request.topics.topic = a", "[*]"),
        ("api == Fetch -> set response.responses[*].partitions[*].records = null", "`records`"),
        ("-> set request.max_wait_ms = 1 on response", "cannot act on responses"),
        ("-> records explode", "records lose N"),
        ("-> records lose 0", "records lose N"),
        ("-> records set timestamp tomorrow", "a duration such as"),
        ("api == Heartbeat -> records duplicate", "would never act"),
        ("-> versions Fetsch 3", "no API"),
        ("-> versions Fetch 9-3", "contains no version"),
        ("-> versions", "versions Fetch <= 11"),
        ("api == Fetch -> member expire", "would never act"),
        ("-> member leave", "member expire"),
    ],
)
def test_what_no_frame_can_have_is_refused_when_the_rule_is_given(rule: str, sentence: str) -> None:
    with pytest.raises(FaultError) as refused:
        parse_fault(rule)
    assert sentence in str(refused.value)


def test_what_does_not_fit_then_is_told_once_and_passes() -> None:
    bench, (fault,) = bench_with("api == Fetch -> set request.max_wait_ms *= 100000")
    whole = kit.request(kit.FETCH, 12, {"max_wait_ms": 500_000})
    for _ in range(3):
        bench.feed(CLIENT, whole)
    assert bench.sent(BROKER) == whole * 3
    assert fault.trigger.fired == 0
    (notice,) = bench.said()
    assert "does not apply to Fetch v12, which is forwarded unchanged" in notice


def test_versions_that_lack_the_field_pass_unchanged() -> None:
    bench, (fault,) = bench_with("api == Fetch -> set request.rack_id = here")
    old = kit.request(kit.FETCH, 4)
    bench.feed(CLIENT, old)
    assert bench.sent(BROKER) == old
    assert fault.trigger.fired == 0


# --- records


def test_lost_records_leave_a_hole_for_a_consumer() -> None:
    data = encode_batch(RECORDS, codec=1)
    batch, records = kit.opened(fetched_records("api == Fetch -> records lose 1", data))
    assert records == RECORDS[1:]
    assert (batch.base_offset, batch.last_offset, batch.codec) == (5, 8, 1)
    batch, records = kit.opened(fetched_records("api == Fetch -> records lose 9", data))
    assert (records, batch.last_offset) == ([], 8)


def test_lost_records_never_reach_a_broker() -> None:
    data = encode_batch(RECORDS)
    batch, records = kit.opened(produced_by("api == Produce -> records lose 3", data))
    assert [each.value for each in records] == [b"v8"]
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (5, 5, 1)
    assert produced_by("api == Produce -> records lose 4", data) == data


def test_records_come_twice_and_in_another_order() -> None:
    data = encode_batch(RECORDS)
    _, records = kit.opened(produced_by("-> records duplicate", data))
    assert [each.value for each in records] == [v for n in range(5, 9) for v in [b"v%d" % n] * 2]
    assert [each.offset for each in records] == list(range(5, 13))
    _, records = kit.opened(fetched_records("api == Fetch -> records duplicate", data))
    assert [each.offset for each in records] == [5, 5, 6, 6, 7, 7, 8, 8]
    for change in (produced_by, fetched_records):
        rule = "api in {Produce, Fetch} -> records reorder" + (
            " on response" if change is fetched_records else ""
        )
        _, records = kit.opened(change(rule, data))
        assert [each.value for each in records] == [b"v8", b"v7", b"v6", b"v5"]
        assert [each.offset for each in records] == [5, 6, 7, 8]


def test_contents_are_replaced() -> None:
    data = encode_batch(RECORDS, codec=4)
    _, records = kit.opened(produced_by("""-> records set value '{"a": 1}'""", data))
    assert {each.value for each in records} == {b'{"a": 1}'}
    _, records = kit.opened(produced_by("-> records set key null", data))
    assert {each.key for each in records} == {None}
    _, records = kit.opened(produced_by("-> records set header h=other", data))
    assert {each.headers for each in records} == {(("h", b"other"),)}
    _, records = kit.opened(produced_by("-> records set timestamp -1d", data))
    assert [each.timestamp for each in records] == [
        (each.timestamp or 0) - 86_400_000 for each in RECORDS
    ]
    _, records = kit.opened(produced_by("-> records corrupt value", data))
    assert [each.value for each in records] == [
        bytes(b ^ 0x20 for b in r.value or b"") for r in RECORDS
    ]
    (batch,) = batches(produced_by("-> records corrupt crc", data))
    assert isinstance(batch, Batch)
    assert not crc_ok(produced_by("-> records corrupt crc", data), batch)


def test_what_stays_of_a_batch_is_kept() -> None:
    data = encode_batch(
        RECORDS, attributes=0x10, producer_id=4, producer_epoch=2, base_sequence=9, leader_epoch=3
    )
    batch, _ = kit.opened(produced_by("-> records set key x", data))
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (4, 2, 9)
    assert (batch.leader_epoch, batch.transactional) == (3, True)


@given(
    st.binary(max_size=300), st.sampled_from(["lose 1", "duplicate", "reorder", "corrupt value"])
)
@settings(max_examples=100)
def test_garbage_in_the_place_of_records_passes(data: bytes, what: str) -> None:
    assert produced_by(f"-> records {what}", data) == data


def test_control_batches_and_old_formats_stay() -> None:
    control = encode_batch(RECORDS[:1], attributes=0x30)
    assert fetched_records("api == Fetch -> records lose 1", control) == control


# --- versions, members


def offered(bench: kit.Bench) -> dict[int, tuple[int, int]]:
    keys = [
        {"api_key": key, "min_version": low, "max_version": high}
        for key, low, high in ((0, 3, 9), (1, 4, 12), (3, 0, 9), (18, 0, 3))
    ]
    bench.exchange(
        kit.request(kit.API_VERSIONS, 3), kit.response(kit.API_VERSIONS, 3, {"api_keys": keys})
    )
    body = bench.answer(kit.API_VERSIONS, 3)
    return {
        each["api_key"]: (each["min_version"], each["max_version"]) for each in body["api_keys"]
    }


def test_fewer_versions_are_offered_and_others_refused() -> None:
    bench, (fault,) = bench_with("-> versions Fetch <= 11, Produce 3-8, Metadata 10-12")
    assert offered(bench) == {0: (3, 8), 1: (4, 11), 18: (0, 3)}
    before = bench.sent(BROKER)
    good = kit.request(kit.FETCH, 11, correlation_id=2)
    bench.feed(CLIENT, good)
    assert bench.sent(BROKER) == before + good
    bench.feed(CLIENT, kit.request(kit.FETCH, 12, correlation_id=3))
    assert bench.sent(BROKER) == before + good
    assert bench.context.over
    assert any(isinstance(each, End) for each in bench.others())
    assert fault.trigger.fired == 1


def test_a_rule_and_its_companion_go_together() -> None:
    chain = Chain([parse_fault("-> versions Fetch <= 11", "narrow")])
    assert [rule.name for rule in chain] == ["narrow", "narrow"]
    chain.remove(next(iter(chain)))
    assert len(chain) == 0
    chain.add(parse_fault("-> versions Fetch <= 11"))
    assert len(chain) == 2


def test_a_member_expires_at_its_next_heartbeat() -> None:
    bench, (fault,) = bench_with("group == billing -> member expire once")
    asked = kit.beat(group_id="billing", generation_id=3, member_id="m")
    bench.feed(CLIENT, asked)
    assert bench.sent(BROKER) == b""
    assert bench.answer(kit.HEARTBEAT, 4)["error_code"] == 25
    bench.feed(CLIENT, asked)
    assert bench.sent(BROKER) == asked
    assert fault.trigger.fired == 1


# --- several rules


def test_frames_that_an_action_finds_nothing_in_do_not_count() -> None:
    """`nth 2` is the second heartbeat, whatever else the group asked for before."""
    bench, (fault,) = bench_with("group ~ . -> member expire nth 2")
    errors = []
    for number in range(1, 4):
        for key in (OFFSET_FETCH, kit.HEARTBEAT):
            before = len(bench.sent(CLIENT))
            version = 4 if key == kit.HEARTBEAT else 5
            bench.feed(CLIENT, kit.request(key, version, {"group_id": "g"}, correlation_id=number))
            if answer := bench.sent(CLIENT)[before:]:
                errors.append((number, decode_response(answer[4:], key, version).body))
            else:
                bench.feed(BROKER, kit.response(key, version, correlation_id=number))
    assert [(number, body["error_code"]) for number, body in errors] == [(2, 25)]
    assert (fault.trigger.matched, fault.trigger.fired) == (2, 1)


def test_rules_that_change_a_frame_work_together_each_on_what_the_one_before_made() -> None:
    bench, faults = bench_with(
        "api == Fetch -> set request.max_wait_ms = 7",
        "api == Fetch and request.max_wait_ms == 500 -> set request.min_bytes = 9",
        "api == Fetch and request.max_wait_ms == 7 -> delay 10ms",
        "api == Fetch -> set request.max_wait_ms *= 2, request.max_bytes = 5",
    )
    bench.feed(CLIENT, kit.request(kit.FETCH, 12, {"max_wait_ms": 500, "min_bytes": 1}))
    assert bench.sent(BROKER) == b""
    bench.wake(10_000_000)
    body = decode_request(bench.sent(BROKER)[4:]).body
    assert (body["max_wait_ms"], body["min_bytes"], body["max_bytes"]) == (14, 1, 5)
    assert [fault.trigger.fired for fault in faults] == [1, 0, 1, 1]


def test_responses_are_changed_by_several_rules_and_then_dropped_by_one() -> None:
    bench, faults = bench_with(
        "api == Fetch -> records lose 1",
        "api == Fetch -> records set header a=b",
        "api == Fetch -> set response.throttle_time_ms = 3",
        "api == Fetch and response.throttle_time_ms == 3 -> drop nth 2",
        "api == Fetch -> records set header c=d on response",
    )
    for number in (1, 2):
        answer = fetch_of(encode_batch(RECORDS), number)
        bench.exchange(kit.request(kit.FETCH, 12, correlation_id=number), answer)
    sent = bench.sent(CLIENT)
    body = bench.answer(kit.FETCH, 12)
    _, records = kit.opened(body["responses"][0]["partitions"][0]["records"])
    assert body["throttle_time_ms"] == 3
    assert [each.headers[1:] for each in records] == [(("a", b"b"), ("c", b"d"))] * 3
    assert int.from_bytes(sent[:4], "big") + 4 == len(sent)
    assert [fault.trigger.fired for fault in faults] == [2, 2, 2, 1, 1]


# --- without rules


@pytest.mark.parametrize("rule", [None, "api == Metadata -> set response.brokers = []"])
def test_what_no_rule_wants_passes_as_it_came(
    monkeypatch: pytest.MonkeyPatch, rule: str | None
) -> None:
    """Its bytes are neither decoded nor copied; without rules nobody looks at it at all."""
    looked: list[str] = []
    for name in ("decode_request", "decode_response"):
        monkeypatch.setattr(intercepted, name, lambda *_: looked.append("a body"))
    if rule is None:
        for module in (requests, responses):
            monkeypatch.setattr(module, "InterceptedFrame", lambda *_: looked.append("a frame"))
    bench, _ = bench_with(*filter(None, [rule]))
    records = encode_batch(RECORDS)
    for asked, answer in (
        (kit.produce(records=records), kit.response(kit.PRODUCE, 9)),
        (kit.request(kit.FETCH, 12), fetch_of(records)),
        (kit.beat(), kit.pulse()),
    ):
        # None: the bytes that came go on as they are.
        assert bench.relay.feed(CLIENT, asked, 1) is None
        assert bench.relay.feed(BROKER, answer, 2) is None
    assert looked == []
