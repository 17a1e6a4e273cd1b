"""Whoever reads the records of a field reads the same ones, behind damage as well."""

from __future__ import annotations

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.records import fields_of
from kafkascope.analyzer.exchanges.seen_schemas import UsedSchemas
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.message import of_records
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.payloads.model import SchemaKey
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.analyzer.filter.decoded.orders import VALUE, avro, payloads
from tests.analyzer.wire import Wire, request, told


def batch(number: int, codec: int = 0) -> bytes:
    value = avro(VALUE | {"count": number})
    return encode_batch([Record(0, 1, b"%d" % number, value, ())], codec=codec)


def damaged() -> Exchange:
    """A batch, one whose compressed part is broken, another batch, and what is none."""
    broken = batch(2, codec=1)
    broken = broken[:61] + b"\xff" * (len(broken) - 61)
    records = batch(1) + broken + batch(3) + b"\xff" * 80
    partition = {"index": 0, "records": records}
    asked = request("Produce", 7, 1, topic_data=[{"name": "t", "partition_data": [partition]}])
    (found,) = told(Wire().client(asked).events, Context())
    return found


def test_all_read_the_records_before_and_behind_a_damaged_batch() -> None:
    exchange, names = damaged(), TopicNames()
    damage: list[DissectError] = []
    (field,) = fields_of(exchange, names)
    opened = [(len(each.records), each.error is None) for _, each in field.opened(damage=damage)]
    assert opened == [(1, True), (0, False), (1, True)]
    assert len(damage) == 1
    assert tuple(of_records("record.key")(exchange)) == (b"1", b"3")
    decoding = Decoding(payloads, lambda: names)
    assert decoding.values(exchange, "", ("record.value", "count")) == (1, 3)
    used = UsedSchemas(names, payloads())
    used.add(exchange)
    assert used.uses[SchemaKey("id", 7)].counts == {"key": 0, "value": 2}
