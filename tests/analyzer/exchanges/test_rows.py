"""Exchanges as rows: what they are about, what went wrong, and the words for it."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.strings import BytesWriter

from kafkascope.analyzer.bodies.facts import facts_in
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.expected import CLASSES, CODES, class_of, is_expected
from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import (
    Row,
    RowError,
    blank,
    nameless_topics,
    renamed,
    row_of,
    to_json,
)
from kafkascope.analyzer.model import STATES, Frame, Note, Part, Undecoded
from kafkascope.captures.model import TlsSummary
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.reference.codes import ERRORS, error_name
from kafkascope.dissectors.registry import APIS, Decoded, api_named, encode_body, layout_of
from kafkascope.dissectors.values import Uuid
from kafkascope.kernel.json_values import write_millis, write_number
from tests.kit.batches import batch
from tests.kit.samples import ROOT
from tests.kit.wire import (
    MS,
    Wire,
    beat,
    heartbeat,
    partition,
    produce,
    produced,
    request,
    response,
    told,
)
from tests.strategies import bodies

ID = Uuid(range(16))


def row(wire: Wire, context: Context | None = None) -> Row:
    context = context or Context()
    (one,) = told(wire.events, context)
    return row_of(one, context.names)


def fetch(records: bytes | None, waited_ms: int = 1, error: int = 0, **asked: Any) -> Row:
    wire = Wire().client(request("Fetch", 5, 1, max_wait_ms=500, min_bytes=1, **asked))
    wire.time_ns += (waited_ms - 1) * MS
    topics = [{"topic": "t", "partitions": [partition(blob=records, error_code=error)]}]
    return row(wire.broker(response("Fetch", 5, 1, responses=topics)))


def test_a_produce_says_where_its_records_went() -> None:
    asked = produce(1, records=batch([(b"k", b"v"), (None, b"w")]))
    found = row(Wire().client(asked).broker(produced()))
    assert (found.topics, found.partitions, found.acks) == (("t",), (3,), -1)
    assert (found.records, found.batches, found.codecs) == (2, 1, ("none",))
    assert result(found) == "ok t-3 offset 88123"


def test_errors_say_what_they_are_about() -> None:
    wire = Wire().client(produce(1)).broker(produced(error_code=6, base_offset=-1))
    found = row(wire)
    error = {"code": 6, "name": "NOT_LEADER_OR_FOLLOWER", "topic": "t", "partition": 3}
    assert to_json(found)["errors"] == [error]
    assert result(found) == "! NOT_LEADER_OR_FOLLOWER t-3"


def test_an_error_that_names_no_group_is_about_the_one_that_was_asked_for() -> None:
    found = row(Wire().client(heartbeat(1)).broker(beat(1, 27)))
    assert result(found) == "! REBALANCE_IN_PROGRESS g"
    assert found.errors[0].top


def test_a_wrong_checksum_is_a_note_on_the_exchange() -> None:
    damaged = bytearray(batch([(b"k", b"value")]))
    damaged[-3] ^= 1
    found = row(Wire().client(produce(1, records=bytes(damaged))).broker(produced()))
    (note,) = found.notes
    assert (note.severity, note.text) == ("error", "a record batch has a checksum mismatch")


def test_an_empty_fetch_waited_as_long_as_it_was_told_to() -> None:
    found = fetch(None, waited_ms=503)
    assert (found.wait_ns, found.latency_beyond_wait_ns) == (500 * MS, 3 * MS)
    assert result(found) == "ok t-0 no records (waited 500 ms)"


def test_a_fetch_that_data_ended_waited_for_it() -> None:
    """As far as anybody can tell: see test_log_ends."""
    found = fetch(batch([(None, b"v")]), waited_ms=303)
    assert (found.wait_ns, found.latency_beyond_wait_ns) == (303 * MS, 0)
    assert result(found) == "ok t-0 1 record (waited 303 ms)"


def test_a_batch_that_the_end_cuts_is_not_counted() -> None:
    whole = batch([(None, b"v")])
    assert fetch(whole + whole[:30]).records == 1


def test_join_group_waits_for_the_group() -> None:
    wire = Wire().client(request("JoinGroup", 5, 1, group_id="g"))
    wire.time_ns += 3000 * MS
    found = row(wire.broker(response("JoinGroup", 5, 1, generation_id=4)))
    assert found.wait_ns == 3001 * MS
    assert (found.groups, found.generations) == (("g",), (4,))


@pytest.mark.parametrize(
    ("version", "fields"),
    [(3, {"key": "g", "key_type": 0}), (4, {"coordinator_keys": ["g"], "key_type": 0})],
)
def test_find_coordinator_is_about_a_group(version: int, fields: dict[str, Any]) -> None:
    assert row(Wire().client(request("FindCoordinator", version, 1, **fields))).groups == ("g",)


def test_a_topic_without_name_shows_its_id_until_the_name_is_known() -> None:
    topics = [{"topic_id": ID, "partitions": [{"partition_max_bytes": 1}]}]
    context = Context()
    found = row(Wire().client(request("Fetch", 13, 1, topics=topics)), context)
    assert found.topics == (f"{ID!s:.8}?",)
    assert nameless_topics(found)
    context.names.learn(ID, "orders")
    assert renamed(found, context.names).topics == ("orders",)
    assert not nameless_topics(renamed(found, context.names))


def test_the_words_for_exchanges_without_answer() -> None:
    assert result(row(Wire().client(produce(1, acks=0)))) == "acks=0 t-3 no records"
    lost = row(Wire().client(heartbeat(1)).close("broker"))
    assert result(lost) == "? no answer, closed by the broker"
    tls = row(Wire().client(b"\x16\x03\x01\x00\x05\x01" + bytes(20)).close())
    assert result(tls).startswith("~ TLS")


def test_the_json_of_a_row_has_the_names_of_the_documentation() -> None:
    value = json.loads(dumps(to_json(row(Wire().client(heartbeat(7)).broker(beat(7))))))
    expected = {
        "schema": "exchange/1",
        "number": 1,
        "time": "2023-11-14T22:13:20.001000Z",
        "connection": 0,
        "client_address": "10.0.0.4:51422",
        "broker_address": "10.0.1.2:9092",
        "client_id": "app",
        "api_key": 12,
        "api": "Heartbeat",
        "api_version": 3,
        "correlation_id": 7,
        "latency_ms": 1.0,
        "latency_ns": MS,
        "wait_ms": 0,
        "throttle_ms": 0,
        "state": "answered",
        "frames": [1, 2],
    } | {key: [] for key in ("errors", "topics", "undecoded")}
    assert value.items() >= expected.items()


def test_a_client_id_that_is_no_text_is_still_written() -> None:
    wire = Wire().client(heartbeat(1).replace(b"app", b"a\xffp"), heartbeat(2))
    (first, _) = told(wire.events)
    assert b"\\udcff" in dumps(to_json(row_of(first, Context().names)))


@given(st.data())
def test_the_facts_of_an_exchange_are_those_of_its_bodies(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(sorted(APIS.values())))
    version = data.draw(st.integers(api.versions.low, api.versions.high))
    names = [f"{api.name}{kind}" for kind in ("Request", "Response")]
    asked, answer = (layout_of(name, version) for name in names)
    one, other = data.draw(bodies(asked)), data.draw(bodies(answer))
    payloads = [
        encode_body(name, version, body) for name, body in zip(names, (one, other), strict=True)
    ]
    frames = [Frame(each, 0, len(each), 0, 0, (Part(-1, 0, 0, 0),)) for each in payloads]
    sent, answered = (
        Decoded(layout.message.name, version, {}, body, 0, len(frame.payload), "", layout, layout)
        for layout, body, frame in ((asked, one, frames[0]), (answer, other, frames[1]))
    )
    both_payloads = payloads[0], payloads[1]
    facts = facts_in(sent, answered, both_payloads)
    # Of both as of each: those of the request first.
    parts = facts_in(sent, None, both_payloads), facts_in(None, answered, both_payloads)
    for name in ("topics", "partitions", "groups", "errors"):
        both = (*getattr(parts[0], name), *getattr(parts[1], name))
        assert getattr(facts, name) == (both if name == "errors" else tuple(dict.fromkeys(both)))
    assert all(isinstance(each, str) for each in facts.topics)
    assert all(isinstance(each, int) for each in facts.partitions)


# --- rows written from their columns are the bytes of their objects -------------------------------


# Also lone surrogates, C1 controls, quotes and backslashes.
ODD = ["", 'a"b\\c', "\x00\x1f\x7f\x80\x9f", "a\udcffb", "é\u2028\u202e", "💥"]
TEXT = st.text(max_size=6) | st.sampled_from([*ODD, "x" * LIMITS.cached_text_chars])
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 100, 999, 10**6, 10**15])
TIME = st.integers(-(2**62), 2**62)
WAIT = st.integers(0, 2**62) | st.sampled_from([0, 1, 999_999, 1_000_000])


def several(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


ABOUT = maybe(TEXT), st.none(), maybe(NUMBER), maybe(TEXT), maybe(TEXT)
ERROR = st.builds(RowError, NUMBER, TEXT, st.booleans(), *ABOUT)
ROWS = st.builds(
    blank,
    number=NUMBER,
    id=TEXT,
    time_ns=TIME,
    connection=NUMBER,
    client_address=TEXT,
    broker_address=TEXT,
    client_id=maybe(TEXT),
    api=TEXT,
    correlation_id=maybe(NUMBER),
    latency_ns=maybe(NUMBER),
    server_ns=maybe(NUMBER),
    wait_ns=WAIT,
    state=st.sampled_from(STATES),
    errors=several(ERROR),
    topics=several(TEXT),
    topic_ids=several(st.binary(min_size=16, max_size=16).map(Uuid)),
    partitions=several(NUMBER),
    records=maybe(NUMBER),
    frames=several(NUMBER),
    undecoded=several(st.builds(Undecoded, st.just("request"), TEXT, NUMBER, NUMBER, TEXT, TEXT)),
    notes=several(st.builds(Note, st.just("chat"), TEXT, st.none())),
    tls=maybe(st.builds(TlsSummary, TEXT, TEXT, st.booleans(), TEXT)),
)


@given(st.lists(ROWS, max_size=4))
def test_the_bytes_are_those_of_the_object(rows: list[Row]) -> None:
    for row in (*rows, *rows):
        assert json_of_row(row) == dumps(to_json(row))


def test_what_is_kept_is_bounded_and_right_beyond() -> None:
    for number in range(2 * LIMITS.cached_texts + 1):
        row = blank(
            number=number,
            id="",
            time_ns=0,
            connection=number,
            client_address="a",
            broker_address="b",
            topics=(str(number), "x" * (number % 3) * LIMITS.cached_text_chars),
        )
        assert json_of_row(row) == dumps(to_json(row))


def written(write: Callable[..., None], *values: object) -> bytes:
    out = BytesWriter()
    write(out, *values)
    return out.getvalue()


@given(st.integers(-(1 << 62), 1 << 62) | st.integers(-(10**16), 10**16))
def test_nanoseconds_as_milliseconds(value: int) -> None:
    """Also those beyond 2^53, which are halfway between floats when they are rounded twice."""
    assert written(write_millis, value, False) == dumps(value / 1_000_000)
    shown = value // 1_000_000 if value % 1_000_000 == 0 else value / 1_000_000
    assert written(write_millis, value, True) == dumps(shown)


@given(NUMBER)
def test_numbers(value: int) -> None:
    assert written(write_number, value) == b"%d" % value


# --- errors that are expected by the exchange alone -----------------------------------------------


ALWAYS = (
    "ApiVersions 35, ConsumerGroupDescribe 69, JoinGroup 79, Heartbeat 27, SyncGroup 27,"
    " OffsetCommit 113, FindCoordinator 15, InitProducerId 14, Metadata 5, ListOffsets 78,"
    " Fetch 70, ShareFetch 122, AddPartitionsToTxn 51, PushTelemetry 117"
)
NEVER = (
    "Fetch 35, DeleteGroups 69, DescribeGroups 27, ConsumerGroupHeartbeat 113, Produce 5,"
    " Fetch 78, Metadata 3, CreateTopics 36, Heartbeat 25"
)
OPEN = "Produce 6, Fetch 74, BrokerRegistration 41"
"""Findings decide."""


@pytest.mark.parametrize(
    ("case", "alone", "with_findings"),
    [
        *((case, True, True) for case in ALWAYS.split(", ")),
        *((case, False, False) for case in NEVER.split(", ")),
        *((case, False, True) for case in OPEN.split(", ")),
    ],
)
def test_what_the_exchange_alone_decides(case: str, alone: bool, with_findings: bool) -> None:
    api, code = case.split()
    key, codes = api_named(api).key, [int(code)]
    assert is_expected(key, codes) is alone
    assert is_expected(key, codes, findings=True) is with_findings


def test_one_unexpected_error_makes_the_response_unexpected() -> None:
    assert not is_expected(8, [27, 25])


def test_each_class_has_known_errors_apis_and_a_source() -> None:
    assert len({each.name for each in CLASSES}) == len(CLASSES)
    for each in CLASSES:
        assert each.codes <= ERRORS.keys()
        assert (each.apis or frozenset()) <= APIS.keys()
        assert each.condition
        assert each.source
    assert sum(len(each.codes) for each in CLASSES) == len(CODES), "a code is in one class"
    assert class_of(18, 35) is CLASSES[0]


def test_the_document_lists_the_classes() -> None:
    text = (ROOT / "docs" / "filter.md").read_text()
    for each in CLASSES:
        codes = ", ".join(error_name(code) for code in sorted(each.codes))
        apis = ", ".join(APIS[key].name for key in sorted(each.apis)) if each.apis else "all"
        line = f"| `{each.name}` | {codes} | {apis} | {each.condition} | {each.source} |"
        assert line in text
