"""Lines of `export --full`: JSON whatever the bodies hold, the same in a straight line."""

import json
import math
import struct
import tracemalloc
from collections.abc import Sequence
from functools import partialmethod
from itertools import chain
from pathlib import Path

import google_crc32c
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.exchanges import full
from kafkascope.analyzer.exchanges.batch_json import RecordTexts
from kafkascope.analyzer.exchanges.full import full_bodies, full_line, full_pieces, line_of
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.pairs import Rows
from kafkascope.analyzer.exchanges.records import Problem
from kafkascope.analyzer.exchanges.rows import Row, row_of, to_json
from kafkascope.analyzer.export.pair_lines import PairLines
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.streams.streams import Assembly
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.dissectors.values import finite
from kafkascope.kernel.pairs import Pair
from kafkascope.kernel.walker import Refused
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from tests.kit.batches import batch
from tests.kit.samples import ALL_CAPTURES, SAMPLES
from tests.kit.wire import Wire, beat, heartbeat, partition, request, response, told
from tests.matrix import each_nth
from tests.strategies import bodies


def test_a_line_is_json_with_text_that_is_not_utf_8_beside_infinities() -> None:
    value = {"key": "\udcff", "value": finite(-math.inf), "records": orjson.Fragment(b"[1]")}
    line = line_of({"request": value})
    assert json.loads(line, parse_constant=pytest.fail) == {
        "request": {"key": "\udcff", "value": "-Infinity", "records": [1]}
    }


class NoRecords:
    """In place of the kernel's writer: it takes no field."""

    def __init__(self, host: RecordTexts) -> None:
        pass

    def of(self, *_: object) -> str:
        raise Refused


def general_line(
    row: Row,
    exchange: Exchange,
    names: TopicNames,
    problems: list[Problem],
    payloads: Payloads | None,
) -> bytes:
    """Return the line without anything that the kernel writes of bodies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full, "JsonRecords", NoRecords)
        return line_of(to_json(row) | full_bodies(exchange, names, problems, payloads=payloads))


def assert_same(exchange: Exchange, names: TopicNames, payloads: Payloads | None) -> None:
    """Assert that the straight line writes what the general way does."""
    row = row_of(exchange, names)
    problems: list[Problem] = []
    line = full_line(row, exchange, names, problems, payloads)
    said: list[Problem] = []
    assert line == general_line(row, exchange, names, said, payloads)
    assert problems == said


@pytest.mark.parametrize("path", each_nth(ALL_CAPTURES, 4), ids=lambda path: path.name)
def test_of_every_sample(path: Path) -> None:
    with open_capture([path]) as capture:
        for exchange in capture.exchanges():
            assert_same(exchange, capture.context.names, Payloads(KnownSchemas()))


@pytest.fixture
def in_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small captures are read as large ones are."""
    monkeypatch.setattr(Assembly, "batches", partialmethod(Assembly.batches, bulk=True))


@pytest.mark.usefixtures("in_bulk")
@pytest.mark.parametrize("path", each_nth(ALL_CAPTURES, 4), ids=lambda path: path.name)
def test_what_the_kernel_writes_of_every_sample(path: Path) -> None:
    with open_capture([path]) as capture:
        names, payloads = capture.context.names, Payloads(KnownSchemas())
        rows = Rows(capture.context)
        lines = PairLines(rows, names, payloads)
        for item in chain.from_iterable(capture.batches()):
            line = lines.of(item)
            if line is not None:
                row, exchange = rows.both(item)
                problems: list[Problem] = []
                assert line == general_line(row, exchange, names, problems, payloads)
                assert problems == []


@pytest.mark.usefixtures("in_bulk")
def test_the_kernel_writes_most_lines() -> None:
    with open_capture([SAMPLES / "demo.pcap.zst"]) as capture:
        lines = PairLines(Rows(capture.context), capture.context.names, None)
        found = [
            lines.of(item) is not None
            for item in chain.from_iterable(capture.batches())
            if isinstance(item, Pair)
        ]
    assert sum(found) > 0.6 * len(found) > 300


def lines_of(wire: Wire, *renamed: str) -> list[bytes | None]:
    """Return what the kernel writes of the exchanges that it reads, which the first one is not;
    assert that the general way writes the same. `renamed`: names of `ID` that are learned one after
    the other, each before a line."""
    context = Context()
    conversations = Conversations(context)
    items = [item for event in wire.events for item in conversations.feed(event)]
    rows, names = Rows(context), context.names
    lines = PairLines(rows, names, Payloads(KnownSchemas()))
    out = []
    for number, item in enumerate(item for item in items if isinstance(item, Pair)):
        if renamed:
            names.learn(ID, renamed[number])
        line = lines.of(item)
        row, exchange = rows.both(item)
        said: list[Problem] = []
        general = general_line(row, exchange, names, said, Payloads(KnownSchemas()))
        assert line in (None, general)
        assert line is None or not said
        rows.json([item])
        out.append(line)
    return out


ID = b"\1" * 16


def begun() -> Wire:
    return Wire().client(heartbeat(99)).broker(beat(99))


def fetched(topic: str, *fields: bytes | None) -> Wire:
    parts = [partition(number, field) for number, field in enumerate(fields)]
    answer = response("Fetch", 10, 1, responses=[{"topic": topic, "partitions": parts}])
    return begun().client(request("Fetch", 10, 1)).broker(answer)


def produced(topic: str, fields: Sequence[bytes | None], *answers: dict[str, int]) -> Wire:
    parts = [{"index": number, "records": field} for number, field in enumerate(fields)]
    topics = [{"name": topic, "partition_data": parts}]
    wire = begun().client(request("Produce", 7, 1, acks=-1, topic_data=topics))
    done = [{"name": topic, "partition_responses": list(answers)}]
    return wire.broker(response("Produce", 7, 1, responses=done))


def with_header(field: bytes, at: int, data: bytes) -> bytes:
    """Return a batch with other bytes in its header, and the checksum of it."""
    changed = field[:at] + data + field[at + len(data) :]
    return changed[:17] + struct.pack(">I", google_crc32c.value(changed[21:])) + changed[21:]


@pytest.mark.parametrize("time_ms", [-3, -2, -1, 0, 253402300799999, 253402300800000, 1 << 62])
def test_the_time_of_a_log(time_ms: int) -> None:
    field = with_header(batch([(b"k", b"v")], attributes=8), 35, struct.pack(">q", time_ms))
    [line] = lines_of(fetched("t", field))
    assert (line is not None) == (-1 <= time_ms <= 253402300799999)


def test_numbers_of_more_bytes_than_kafka_writes() -> None:
    body = b"\0\0\0" + b"\x80\x80\x80\x80\x80\0" + b"\2v" + b"\0"
    field = batch([(b"", b"v")])[:61] + bytes([2 * len(body)]) + body
    assert lines_of(fetched("t", with_header(field, 8, struct.pack(">i", len(field) - 12)))) == [
        None
    ]


def test_offsets_beyond_64_bits() -> None:
    answer = {"index": 0, "base_offset": (1 << 63) - 1}
    assert lines_of(produced("t", [batch([(b"k", b"v")] * 2)], answer)) == [None]


def test_secrets_in_a_batch_that_is_cut_off() -> None:
    """Nothing but the checksum of a whole batch says of which kind it is."""
    field = batch([(b"k", b"secret")])[:-1]
    wire = fetched("__cluster_metadata", field)
    assert lines_of(wire) == [None]
    for exchange in told(wire.events):
        assert_same(exchange, TopicNames(), None)


def test_text_that_is_not_utf_8() -> None:
    field = batch([(b"k", b"v")])
    assert lines_of(fetched("\udcff", field)) == [None]
    wire = begun().client(request("Heartbeat", 3, 1, "\udcff", group_id="g", member_id="m"))
    assert lines_of(wire.broker(beat(1))) == [None]


def test_topics_of_a_fetch_session_that_are_not_utf_8() -> None:
    topics = [{"topic": "\udcff", "partitions": [{"partition": 0}]}]
    wire = begun().client(request("Fetch", 11, 1, session_epoch=0, topics=topics))
    wire.broker(response("Fetch", 11, 1, session_id=7))
    wire.client(request("Fetch", 11, 2, session_id=7, session_epoch=1))
    assert lines_of(wire.broker(response("Fetch", 11, 2, session_id=7))) == [None, None]


def test_a_topic_that_gets_another_name() -> None:
    part = {"partition_index": 0, "records": batch([(b"k", b"v")])}
    wire = begun()
    for number in (1, 2):
        wire.client(request("Fetch", 13, number))
        answer = [{"topic_id": ID, "partitions": [part]}]
        wire.broker(response("Fetch", 13, number, responses=answer))
    one, two = lines_of(wire, "one", "two")
    assert b'"topics":["one"]' in (one or b"")
    assert b'"topics":["two"]' in (two or b"")


def test_rows_with_long_texts_are_not_kept() -> None:
    wire = begun()
    for number in range(20):
        wire.client(request("Heartbeat", 3, number, f"{number}" + "\1" * 30_000, group_id="g"))
        wire.broker(beat(number))
    context = Context()
    conversations = Conversations(context)
    items = [item for event in wire.events for item in conversations.feed(event)]
    rows = Rows(context)
    tracemalloc.start()
    try:
        for item in items:
            rows.json([item])
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size < 1_000_000


@pytest.mark.parametrize("codec", [0, 1])
def test_many_small_fields_have_room_and_are_spooled(codec: int) -> None:
    """Base64 takes none of the room, as of larger fields."""
    records = [Record(n, 1700000000123, None, b"x" * 1000, ()) for n in range(900)]
    field = encode_batch(records, codec=codec)
    names = TopicNames()
    [_, exchange] = told(fetched("t", *[field] * 12).events)
    problems: list[Problem] = []
    row = row_of(exchange, names)
    pieces = list(full_pieces(row, exchange, names, problems, None, 20 << 20))
    assert problems == []
    assert len(pieces) > 1
    parts = json.loads(b"".join(pieces))["response"]["responses"][0]["partitions"]
    counts = [len(each["records"]["batches"][0]["records"]) for each in parts]
    assert counts == [900] * 12


@settings(deadline=None)
@given(st.data(), st.sampled_from([0, 1, 59, 78, *sorted(APIS)]))
def test_of_every_message(data: st.DataObject, key: int) -> None:
    api = APIS[key]
    version = data.draw(st.integers(api.versions.low, api.versions.high))
    asked = data.draw(bodies(layout_of(f"{api.name}Request", version)))
    answer = data.draw(bodies(layout_of(f"{api.name}Response", version)))
    wire = begun().client(request(api.name, version, 1, **asked))
    context = Context()
    for exchange in told(wire.broker(response(api.name, version, 1, **answer)).events, context):
        assert_same(exchange, context.names, None)
    lines_of(wire)


OCTETS = (
    st.none() | st.binary(max_size=8) | st.sampled_from([b"\0\0\0\0\7x", b"{}", b"\x7f\xc2\x85"])
)
RECORDS = st.builds(
    Record,
    st.integers(0, 5),
    st.sampled_from([-1, 0, 1700000000123, -(1 << 60), 1 << 60]),
    OCTETS,
    OCTETS,
    st.lists(st.tuples(st.text(max_size=3), OCTETS), max_size=1),
)
FIELDS = st.builds(
    encode_batch,
    st.lists(RECORDS, min_size=1, max_size=2),
    codec=st.sampled_from([0, 1]),
    attributes=st.sampled_from([0, 8, 16, 32]),
    producer_id=st.sampled_from([-1, 4]),
    producer_epoch=st.sampled_from([-1, 2]),
    base_sequence=st.sampled_from([-1, 5, 0x7FFFFFFF]),
)


@settings(deadline=None)
@given(st.data(), st.sampled_from([0, 1]), st.lists(FIELDS | st.sampled_from([b"", None])))
def test_of_records(data: st.DataObject, key: int, fields: list[bytes | None]) -> None:
    """Of any number of partitions, with batches that are damaged and topics that are Kafka's."""
    name = data.draw(st.sampled_from(["orders", "__consumer_offsets", "%d\0%", "o" * 300]))
    fields = [
        each[:-1] + b"\7" if each and data.draw(st.integers(0, 9)) == 0 else each for each in fields
    ]
    answers = [{"index": n, "error_code": n, "base_offset": 100} for n in range(2)]
    wire = fetched(name, *fields) if key else produced(name, fields, *answers)
    for exchange in told(wire.events):
        assert_same(exchange, TopicNames(), None)
    lines_of(wire)
