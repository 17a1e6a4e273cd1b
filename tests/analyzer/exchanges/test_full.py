"""Lines of `export --full`: JSON whatever the bodies hold, the same in a straight line."""

from __future__ import annotations

import json
import math
from itertools import chain
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges import full
from kafkascope.analyzer.exchanges.batch_json import RecordTexts
from kafkascope.analyzer.exchanges.full import full_bodies, full_line, line_of
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
from tests.kit.samples import ALL_CAPTURES, SAMPLES
from tests.kit.wire import Wire, request, response, told
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
    monkeypatch.setattr(Assembly, "_in_bulk", lambda self, block: True)


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


@settings(deadline=None)
@given(st.data(), st.sampled_from([0, 1, 59, 78, *sorted(APIS)]))
def test_of_every_message(data: st.DataObject, key: int) -> None:
    api = APIS[key]
    version = data.draw(st.integers(api.versions.low, api.versions.high))
    asked = data.draw(bodies(layout_of(f"{api.name}Request", version)))
    answer = data.draw(bodies(layout_of(f"{api.name}Response", version)))
    wire = Wire().client(request(api.name, version, 1, **asked))
    context = Context()
    for exchange in told(wire.broker(response(api.name, version, 1, **answer)).events, context):
        assert_same(exchange, context.names, None)


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


TOLD = {"base_offset": 100, "log_append_time_ms": -1, "log_start_offset": 0}
GIVEN = {"error_code": 0, "high_watermark": 9, "last_stable_offset": 9, "log_start_offset": 0}
GIVEN |= {"aborted_transactions": None}


@settings(deadline=None)
@given(st.data(), st.sampled_from([0, 1]), st.lists(FIELDS | st.sampled_from([b"", None])))
def test_of_records(data: st.DataObject, key: int, fields: list[bytes | None]) -> None:
    """Of any number of partitions, with batches that are damaged and topics that are Kafka's."""
    context = Context()
    name = data.draw(st.sampled_from(["orders", "__consumer_offsets", "%d\0%", "o" * 300]))
    fields = [
        each[:-1] + b"\7" if each and data.draw(st.integers(0, 9)) == 0 else each for each in fields
    ]
    wire = Wire()
    if key == 0:
        parts = [{"index": n, "records": each} for n, each in enumerate(fields)]
        told_ = [TOLD | {"index": n, "error_code": n % 2} for n in range(2)]
        wire.client(request("Produce", 7, 1, topic_data=[{"name": name, "partition_data": parts}]))
        answer = [{"name": name, "partition_responses": told_}]
        wire.broker(response("Produce", 7, 1, responses=answer))
    else:
        given_ = [GIVEN | {"partition_index": n, "records": each} for n, each in enumerate(fields)]
        wire.client(request("Fetch", 10, 1))
        wire.broker(response("Fetch", 10, 1, responses=[{"topic": name, "partitions": given_}]))
    for exchange in told(wire.events, context):
        assert_same(exchange, context.names, None)
