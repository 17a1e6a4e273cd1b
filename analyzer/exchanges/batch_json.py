"""JSON of record batches: what their headers say, what the kernel asks for to write small ones
(`kernel/json_records.py`), and the records of exchanges that it has read."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.pairs import api_key_of
from kafkascope.analyzer.exchanges.records import CARRIERS, frame_of, record_lines, schema_members
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.compression import decompress, name_of
from kafkascope.dissectors.records.records import CODEC_MASK, CONTROL, Batch
from kafkascope.kernel.full_lines import lines_of_records
from kafkascope.kernel.json_records import BatchForm, JsonRecords
from kafkascope.kernel.walker import Refused
from kafkascope.times import clock_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafkascope.analyzer.exchanges.pairs import Item, Rows
    from kafkascope.analyzer.exchanges.records import Problem
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.dissectors.records.records import Header
    from kafkascope.schemas.decoding import Payloads

BATCH: Final = b"""{"at":%d,"size":%d,"magic":%d,"codec":"%b","base_offset":%d,
"last_offset":%d,"leader_epoch":%d,"crc":%d,"crc_ok":%b,"attributes":%d,"base_timestamp":%d,
"max_timestamp":%d,"producer_id":%d,"producer_epoch":%d,"base_sequence":%d,"record_count":%b,
"records":[""".replace(b"\n", b"")
"""A batch, up to its records."""


def header_values(batch: Batch, right: bool) -> tuple[Any, ...]:
    """Return the values for `BATCH`. `right`: whether its checksum is."""
    codec = name_of(batch.attributes & CODEC_MASK).encode()
    sure = b"true" if right else b"false"
    count = b"null" if batch.record_count is None else b"%d" % batch.record_count
    return (*batch[:3], codec, *batch[3:7], sure, *batch[7:13], count)


@lru_cache(256)
def batch_form(
    source: str,
    topic: str,
    topic_id: bytes | None,
    partition: int,
    leader_epoch: int,
    attributes: int,
    producer_id: int,
    producer_epoch: int,
) -> BatchForm | None:
    """Return how the kernel writes such batches; None where records mean something, as Kafka's own
    do."""
    if attributes & CONTROL or is_internal(topic, topic_id):
        return None
    head, tail, last, _ = frame_of(
        *(source, topic, topic_id, partition, 2, attributes, producer_id, producer_epoch, b"")
    )
    codec = name_of(attributes & CODEC_MASK).encode()
    before, place = (head % b"\0").split(b"\0")
    return BatchForm(
        topic,
        (
            b',"magic":2,"codec":"%b","base_offset":' % codec,
            b',"leader_epoch":%d,"crc":' % leader_epoch,
            b',"crc_ok":true,"attributes":%d,"base_timestamp":' % attributes,
            b',"producer_id":%d,"producer_epoch":%d,"base_sequence":'
            % (producer_id, producer_epoch),
        ),
        (before, place),
        (tail, last[:-1]),
    )


class RecordTexts:
    """What the kernel asks for to write records."""

    def __init__(self, payloads: Payloads | None) -> None:
        self._payloads = payloads
        self.decodes = payloads is not None and bool(payloads.known.assigned)
        """Whether any key and value may have a schema, whatever it begins with."""

    form = staticmethod(batch_form)
    second = staticmethod(clock_of)

    @staticmethod
    def expand(codec: int, data: bytes, limit: int) -> bytes:
        """Expand the records of a batch to at most so many bytes; raises `Refused`."""
        try:
            return decompress(codec, data, limit)
        except DissectError:
            raise Refused from None

    def meaning(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[Header]
    ) -> bytes:
        """Return the members of a record that its schemas give."""
        return schema_members(topic, key, value, headers, self._payloads)


class RecordLines:
    """Writes the records of exchanges as they were read, as `record_lines` does those of objects of
    exchanges."""

    def __init__(self, names: TopicNames, payloads: Payloads | None) -> None:
        self._names, self._payloads = names, payloads
        self._records = JsonRecords(RecordTexts(payloads), alone=True)

    def of(self, rows: Rows, item: Item, problems: list[Problem]) -> Iterator[bytes]:
        text = self.text(item)
        if text is None:
            row, exchange = rows.both(item)
            if not row.forwarded:
                yield from record_lines(exchange, self._names, problems, self._payloads)
        elif text:
            yield text

    def text(self, item: Item) -> bytes | None:
        """Return the same, empty without records; None where it takes an object of the exchange."""
        if api_key_of(item) not in CARRIERS:
            return b""
        return lines_of_records(item, self._records, self)

    def name_of(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)
