"""Fields that only whole messages tell: records, offsets, lag, bytes."""

from typing import Any

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.filter.fields import FIELDS
from kafkascope.analyzer.filter.language import FilterError, compile_filter
from kafkascope.analyzer.filter.message import anywhere
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render.listing import raw_values
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import example
from tests.kit.samples import SAMPLES, phrases
from tests.kit.wire import Wire, partition, produce, produced, request, response, told

TIME = 1_700_000_000_000


def records(first: int = 0, **options: Any) -> bytes:
    rows = [
        Record(first + i, TIME + i, f"k{i}".encode(), b"customer-%d" % i, (("trace", b"t1"),))
        for i in range(3)
    ]
    return encode_batch(rows, **options)


def exchange_of(data: bytes) -> Exchange:
    wire = Wire().client(produce(1, records=data)).broker(produced(base_offset=500))
    (found,) = told(wire.events, Context())
    return found


def fetched(data: bytes | None, *, asked: int = 100, end: int = 1000) -> Exchange:
    topics = [{"topic": "t", "partitions": [{"partition": 3, "fetch_offset": asked}]}]
    given = partition(3, data, high_watermark=end, last_stable_offset=end)
    wire = Wire().client(request("Fetch", 11, 1, topics=topics))
    wire.broker(response("Fetch", 11, 1, responses=[{"topic": "t", "partitions": [given]}]))
    (found,) = told(wire.events, Context())
    return found


def wanted(text: str, exchange: Exchange) -> bool:
    return compile_filter(text)(row_of(exchange, Context().names), exchange)


PRODUCED = """
    record.key == k1   record.key == 6b:31   record.key in {k1, k9}
    record.value contains "customer-2"   record.value ~ ^CUSTOMER   record.value contains 63:75
    all record.value contains customer   record.header == "trace=t1"
    record.header contains "trace="   record.header.key == trace and record.header.value == t1
    record.time == 2023-11-14T22:13:20Z   record.size == 19
    record.offset in {500..502} and not record.offset == 503   offset == 500   not lag
"""


@pytest.mark.parametrize("text", phrases(PRODUCED))
def test_records_of_a_produce(text: str) -> None:
    assert wanted(text, exchange_of(records()))


FETCHED = """
    record.offset == 102   not record.offset == 103   offset == 100   high_watermark == 1000
    lag == 897   lag
"""


@pytest.mark.parametrize("text", phrases(FETCHED))
def test_records_of_a_fetch(text: str) -> None:
    assert wanted(text, fetched(records(100)))


def test_lag_without_records_goes_by_the_offset_that_was_asked() -> None:
    assert wanted("lag == 900", fetched(None))
    assert wanted("lag == 0 and not lag", fetched(None, asked=1000))


def test_sequences_are_those_of_batches_and_of_records() -> None:
    exchange = exchange_of(records(producer_id=9, producer_epoch=0, base_sequence=40))
    assert wanted("sequence == 40 and not sequence == 41", exchange)
    assert wanted("record.sequence == 42", exchange)
    assert not wanted("sequence", exchange_of(records()))


def test_raw_looks_into_compressed_batches_and_wire_does_not() -> None:
    rows = [Record(0, TIME, None, b"needle " * 20, ())]
    exchange = exchange_of(encode_batch(rows, codec=1))
    assert wanted("raw contains needle", exchange)
    assert not wanted('wire contains "needle needle"', exchange)
    assert wanted("wire contains 00:00:00 and wire contains app", exchange)


def test_damaged_records_have_the_values_before_the_damage() -> None:
    data = records()
    assert not wanted("record.key", exchange_of(data[:-30]))
    assert wanted("record.key == k1", exchange_of(data + b"\0" * 40))


def test_a_name_anywhere_is_found_on_any_level() -> None:
    assert anywhere(fetched(None), "fetch_offset") == (100,)
    assert wanted("body.fetch_offset == 100 and body.high_watermark > 5", fetched(None))
    assert wanted("kafka.min_bytes", fetched(None))


def test_secrets_are_not_found_by_their_values() -> None:
    body = example("SaslAuthenticateRequest", 2) | {"auth_bytes": b"\0alice\0secret"}
    wire = Wire().client(request("SaslAuthenticate", 2, 1, **body))
    (exchange,) = told(wire.events)
    assert anywhere(exchange, "auth_bytes") in ((b"*" * 13,), ())


@pytest.mark.parametrize("name", ["raw", "wire"])
def test_bytes_with_possible_passwords_are_not_printed(name: str) -> None:
    with pytest.raises(FilterError, match="not a column"):
        raw_values(name)


def test_no_reader_fails_on_any_sample() -> None:
    from kafkascope.analyzer.exchanges.offline import open_capture

    samples = sorted(SAMPLES.glob("*.pcap*"))
    for path in samples[:4]:
        with open_capture([path]) as capture:
            for exchange in capture.exchanges():
                for field in FIELDS:
                    if field.read is not None:
                        assert bool(field.read(exchange)) == bool(list(field.read(exchange)))
