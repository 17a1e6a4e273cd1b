"""Filters over one exchange: what fields mean, what is refused, the laws of evaluation."""

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.rows import Row, RowError
from kafkascope.analyzer.filter import values as filter_values
from kafkascope.analyzer.filter.bind import bind, cost, resolve
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.fields import DECODED, FIELDS, NOTED
from kafkascope.analyzer.filter.language import FilterError, Known, compile_filter
from kafkascope.analyzer.filter.syntax import parse
from kafkascope.analyzer.model import Undecoded
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.model import TlsSummary
from kafkascope.dissectors.values import Uuid
from tests.kit.samples import DOCS, phrases, row_with
from tests.kit.wire import MS, Wire, request, told

NOON = 1_795_176_187_114_000_000
"""2026-11-20T12:03:07.114 UTC."""

PLAIN = row_with(
    number=1206,
    id="abc",
    time_ns=NOON,
    connection=17,
    client_address="10.0.0.4:51422",
    broker_address="[fd00::2]:9092",
    client_id="orders-svc",
    software="librdkafka 2.6.1",
    api_key=0,
    api="Produce",
    api_version=9,
    flexible=True,
    correlation_id=4711,
    request_bytes=18204,
    response_bytes=104,
    latency_ns=700 * MS,
    server_ns=600 * MS,
    request_transfer_ns=60 * MS,
    serving_ns=520 * MS,
    response_transfer_ns=40 * MS,
    rtt_ns=80 * MS,
    retransmissions=2,
    stalled_by="network",
    capture_point="client",
    state="answered",
    errors=(RowError(6, "NOT_LEADER_OR_FOLLOWER", topic="orders", partition=3),),
    topics=("orders", "orders.dlq"),
    topic_ids=(Uuid(range(16)),),
    partitions=(3, 4),
    producer_ids=(1042,),
    producer_epochs=(0,),
    acks=-1,
    codecs=("zstd",),
    records=12,
    batches=1,
    source="packets",
    frames=(88120, 88123),
)
FINE = replace(PLAIN, errors=(), topics=(), partitions=(), latency_ns=3 * MS)
OPEN = replace(FINE, state="open", latency_ns=None, response_bytes=None)


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    filter_values.local_offset.cache_clear()
    yield
    monkeypatch.undo()
    time.tzset()


def wanted(text: str, row: Row = PLAIN) -> bool:
    return compile_filter(text)(row)


HOLDS = """
    api == Produce   api == produce   api == 0   api in {Produce, Fetch}   api matches ^prod
    kafka.api_key == 0   kafka   version < 10 and flexible   client == "orders-svc"
    client contains ders   not client contains DERS   client ~ ^ORDERS
    client.ip == 10.0.0.0/24   client.ip == 10.0.0.4   client.ip > 10.0.0.3
    client.ip in {10.0.0.1..10.0.0.9}   client.ip != 10.0.1.0/24   ip.addr == fd00::/16
    broker == [fd00::2]:9092   broker.port == 9092   tcp.port == 51422   tcp.stream == 17
    frame.number == 88123   number == 0x4b6   correlation_id == 4711   request.bytes > 18KB
    request.bytes > 17KiB   bytes == 18308   latency > 500ms   latency > 500   latency == 0.7s
    latency > 600000us   latency > 500ms and not wait   excess >= 700ms   state == answered
    answered   not lost   open == false   error   error != 0   error == NOT_LEADER_OR_FOLLOWER
    error == not_leader_for_partition   error == 6   error > 5   error contains LEADER
    not error.top   error.top == NONE   failed and retriable   topic == orders
    topic == orders.dlq   topic contains ".dlq"   all topic contains orders
    any topic != orders   topic !== orders   not topic === orders   topic != payments
    not topic != orders   topic == orders and partition in {0, 3..5}
    partition in {1, 2, 3, 9, 10}   kafka.partition_id == 4   topic.id == AAECAwQFBgcICQoLDA0ODw
    topic.id == 00010203-0405-0607-0809-0a0b0c0d0e0f   producer.id == 1042
    kafka.required_acks == -1   not throttle   throttle == 0   records > 10   codec == zstd
    software ~ librdkafka and software.version < 2.10   software.version == 2.6.1.0
    software.version >= 2.6   not user   not group   time >= 12:03:00 and time < 12:03:10
    time == 12:03   time == 12:03:07   time == 12:03:07.114   time == 12:03:07.11
    not time == 12:03:07.12   time == 2026-11-20   time == 2026-11-20T12:03:07Z
    time == 2026-11-20T13:03:07.114+01:00   time in {12:00..12:03}
    time > "2026-11-20 12:03:00"   "not_leader"   "produce v9"
"""


@pytest.mark.parametrize("text", phrases(HOLDS))
def test_it_is_found(text: str) -> None:
    assert wanted(text)


# Of what is absent no comparison holds, as in Wireshark.
ABSENT = """
    topic == orders   topic != orders   topic   all topic contains orders   error   error != 0
    failed   retriable   latency > 500ms   wait   undecoded
"""


@pytest.mark.parametrize("text", phrases(ABSENT))
def test_what_is_absent_or_nothing_is_not_found(text: str) -> None:
    assert not wanted(text, FINE)


@pytest.mark.parametrize("text", ["error == NONE", "error.top == 0", "latency < 4ms"])
def test_no_error_is_the_value_none(text: str) -> None:
    assert wanted(text, FINE)


@pytest.mark.parametrize("text", ["latency", "error == NONE", "answered", "response.bytes", "wait"])
def test_an_open_exchange_has_no_answer(text: str) -> None:
    assert not wanted(text, OPEN)
    assert wanted("open and state in {open, lost}", OPEN)


SEALED = replace(
    FINE,
    tls=TlsSummary("TLS 1.2", "TLS_RSA_WITH_AES_128_CBC_SHA", True, "one.example", "", "CN=a,O=b"),
)


ENCRYPTED = """
    tls   tls contains CBC   tls.version == 1.2   tls.version == "TLS 1.2"
    tls.cipher == TLS_RSA_WITH_AES_128_CBC_SHA   tls.resumed   tls.sni == one.example
    not tls.alpn   tls.client contains "CN=a"
"""


@pytest.mark.parametrize("text", phrases(ENCRYPTED))
def test_what_was_encrypted_is_found_by_its_tls(text: str) -> None:
    assert wanted(text, SEALED)
    assert wanted(text, FINE) == (text == "not tls.alpn")


def test_undecoded_bytes_are_found_by_their_reason() -> None:
    row = replace(FINE, undecoded=(Undecoded("request", "surplus", 10, 2),))
    assert wanted("undecoded == surplus", row)
    assert not wanted("undecoded == truncated", row)


def test_clocks_are_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    filter_values.local_offset.cache_clear()
    assert wanted("time == 17:33:07")
    assert wanted("time == 2026-11-20T17:33")
    assert wanted("time == 2026-11-20T12:03Z")


def test_the_time_since_the_exchange_before_needs_one() -> None:
    slow = compile_filter("time.delta > 1s")
    assert not slow(PLAIN)
    assert slow(replace(PLAIN, time_ns=NOON + 1100 * MS))
    assert not slow(replace(PLAIN, time_ns=NOON + 1200 * MS))


PARTITIONS = [{"partition": 3, "fetch_offset": 88}], [{"partition": 0, "fetch_offset": 5}]
TOPICS = [{"topic": t, "partitions": p} for t, p in zip(("orders", "dlq"), PARTITIONS, strict=True)]
ASKED = request("Fetch", 12, 1, max_wait_ms=500, rack_id="eu-1", topics=TOPICS)
(FETCH,) = told(Wire().client(ASKED).events)


OF_A_BODY = """
    request.max_wait_ms == 500   request.max_wait_ms == 0.5s
    kafka.request.max_wait_ms in {1..500}   request.topics.topic == dlq
    request.topics[1].topic == dlq   not request.topics[0].topic == dlq
    not request.topics[7].topic   request.topics.partitions.fetch_offset > 80
    any request.topics.partitions.fetch_offset < 80
    not all request.topics.partitions.fetch_offset < 80   request.rack_id ~ ^EU
    request.rack_id contains u-1   not response.error_code   request.session_id == 0
"""


@pytest.mark.parametrize("text", phrases(OF_A_BODY))
def test_any_field_of_a_body(text: str) -> None:
    assert compile_filter(text)(PLAIN, FETCH)


def test_a_body_that_is_not_there_satisfies_nothing() -> None:
    assert not compile_filter("request.max_wait_ms != 3")(PLAIN, None)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            'topik == "orders"',
            [
                'filter: unknown field "topik" at column 1',
                '  topik == "orders"',
                "  ^^^^^  did you mean topic?   (list: kafkascope fields topic)",
            ],
        ),
        (
            "open and api == Fetsh",
            [
                'filter: unknown API "Fetsh" at column 17',
                "  open and api == Fetsh",
                "                  ^^^^^  did you mean Fetch?   (list: kafkascope grammar)",
            ],
        ),
        (
            "any kafka.topik == x",
            [
                'filter: unknown field "kafka.topik" at column 5',
                "  any kafka.topik == x",
                "      ^^^^^^^^^^^  did you mean topic?   (list: kafkascope fields topic)",
            ],
        ),
    ],
)
def test_errors_show_place_and_nearest_name(text: str, lines: list[str]) -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter(text)
    assert str(caught.value).splitlines() == lines


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("error == NOT_LEADER_OR", "did you mean"),
        ("state == los", "lost"),
        ("latency > 5x", "unknown unit"),
        ("latency > fast", "duration"),
        ("request.bytes > big", "size"),
        ("number == x", "number"),
        ("number == " + "9" * 5000, "number"),
        ("client.ip == 10.0.0", "address"),
        ("time > 25:00", "no such time"),
        ("time > 2026-02-30", "no such time"),
        ("time > soon", "time such as"),
        ("software.version < new", "version such as"),
        ("topic.id == x", "22 characters"),
        ("flexible == maybe", "true or false"),
        ('topic ~ "(a"', "missing"),
        ("partition contains 3", "works on text"),
        ("state > open", "no order"),
        ("state in {open..lost}", "no order"),
        ("time in {12:00..2026-11-20}", "same type"),
        ("request.fetch_offset == 3", "request.topics.partitions.fetch_offset"),
        ("request.max_wait_ms == soon", "expected a number"),
        ("request.topics == 3", "group of fields"),
        ("request.allow_auto_topic_creation == 7", "true or false"),
    ],
)
def test_wrong_values_are_refused_before_any_exchange(text: str, word: str) -> None:
    with pytest.raises(FilterError, match=word):
        compile_filter(text)


DECODING = Known(decoding=Decoding(lambda: None, lambda: TopicNames()))


def test_every_field_has_a_getter_and_an_example_that_compiles() -> None:
    for field in FIELDS:
        elsewhere = field.name in {*NOTED, *DECODED, "time.delta"}
        assert [field.get is not None, field.read is not None, elsewhere].count(True) == 1
        assert resolve(field.name) == (field, ())
        compile_filter(field.example, DECODING)(PLAIN)
        for alias in field.aliases:
            assert resolve(alias) == (field, ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [("number > 3", "i"), ("number or topic", "s"), ("number and not request.max_bytes > 3", "b")],
)
def test_the_cost_is_that_of_the_most_expensive_field(text: str, expected: str) -> None:
    assert cost(bind(text)) == expected


# --- laws ---------------------------------------------------------------------------------------

rows = st.builds(
    replace,
    st.just(PLAIN),
    number=st.integers(1, 5),
    topics=st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True).map(tuple),
    partitions=st.lists(st.integers(0, 3), max_size=2).map(tuple),
    latency_ns=st.none() | st.integers(0, 3 * MS),
    state=st.sampled_from(["answered", "open", "lost"]),
)
tests = st.sampled_from(
    phrases("""
    topic == a   topic != a   any topic != a   all topic == b   topic in {a, c}   topic
    partition > 1   partition in {0..1}   number >= 3   latency < 2ms   open   answered
    """)
)


@given(tests, tests, rows)
def test_and_or_not_are_those_of_logic(a: str, b: str, row: Row) -> None:
    left, right = wanted(a, row), wanted(b, row)
    assert wanted(f"{a} and {b}", row) == (left and right)
    assert wanted(f"{a} or {b}", row) == (left or right)
    assert wanted(f"not {a}", row) == (not left)
    assert wanted(f"not ({a} and {b})", row) == wanted(f"not {a} or not {b}", row)


@given(st.sampled_from(["a", "b", "z"]), rows)
def test_unequal_means_there_and_none_equal(topic: str, row: Row) -> None:
    there = wanted("topic", row)
    assert wanted(f"topic != {topic}", row) == (there and not wanted(f"topic == {topic}", row))
    assert wanted(f"topic !== {topic}", row) == (there and not wanted(f"topic === {topic}", row))
    assert wanted(f"topic in {{{topic}}}", row) == wanted(f"topic == {topic}", row)


@given(st.integers(0, 6), rows)
def test_orders_exclude_one_another(number: int, row: Row) -> None:
    holds = [wanted(f"number {operator} {number}", row) for operator in ("<", "==", ">")]
    assert holds.count(True) == 1
    assert wanted(f"number <= {number}", row) == (holds[0] or holds[1])


@given(
    st.sampled_from([field.name for field in FIELDS]),
    st.sampled_from(["==", "!=", "<", "contains", "~"]),
    st.text(max_size=8) | st.sampled_from(["1", "10.0.0.1", "12:00", "1s", "Fetch", "open"]),
)
def test_any_value_gives_a_filter_or_a_filter_error(name: str, operator: str, value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    text = f'{name} {operator} "{quoted}"'
    try:
        filtered = compile_filter(text)
    except FilterError:
        return
    assert filtered(PLAIN) in (True, False)
    assert filtered(OPEN) in (True, False)
    assert parse(text) is not None


EXAMPLES = """
    api == Fetch   api in {Produce, Fetch} and client == "orders-svc"   error != 0
    error == NOT_LEADER_OR_FOLLOWER   excess > 250ms   latency > 1s and not wait
    topic == orders and partition in {0, 3..5}   topic contains ".dlq"   request.bytes > 1MiB
    throttle > 0   group == orders-app and api in {JoinGroup, SyncGroup, LeaveGroup}
    error in {UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS}
    api == Produce and acks == 0   removed_in <= 4.0.0
    software ~ "librdkafka" and software.version < 2.3
    client.ip == 10.0.0.0/24 and not answered   time >= 12:03:00 and time < 12:03:10
    codec == zstd and api == Fetch and version < 10   producer.id == 1042 and partition == 12
    record.value contains "customer-4711"
"""


def documented() -> list[str]:
    """The filters of the first block of docs/filter.md, two a line."""
    return phrases((DOCS / "filter.md").read_text().split("```")[1])


@pytest.mark.parametrize("text", [*phrases(EXAMPLES), *documented()])
def test_examples_are_filters(text: str) -> None:
    assert compile_filter(text, DECODING)(PLAIN) in (True, False)


def test_versions_that_a_release_dropped() -> None:
    old = replace(PLAIN, api_version=2)
    assert wanted("removed_in == 4.0.0 and deprecated", old)
    assert not wanted("removed_in", PLAIN)
    assert not wanted("deprecated", PLAIN)
    # 4.0.0 alone lacked JoinGroup 0.
    join = replace(PLAIN, api_key=11, api="JoinGroup", api_version=0)
    assert wanted("removed_in == 4.0.0", join)


def test_marks_comments_and_findings_come_from_outside() -> None:
    known = Known({1206}, {1206: "slow one"}, {1206: ("rebalance", "storm")})
    for text in ("marked", "comment contains slow", "finding == storm", "finding != timeout"):
        assert compile_filter(text, known)(PLAIN)
        assert not compile_filter(text)(PLAIN)
    known.marked = set()
    assert not compile_filter("marked", known)(PLAIN)
