"""JSON of record batches: what their headers say; and whole records fields of one batch with one
record, as most are, written by one format."""

from __future__ import annotations

from binascii import b2a_base64
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from kafkascope.analyzer.exchanges.limits import LIMITS
from kafkascope.analyzer.exchanges.records import frame_of
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.records.compression import name_of
from kafkascope.dissectors.records.records import CODEC_MASK, CONTROL, Batch, open_batch
from kafkascope.times import clock_of

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import RecordField
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


class _Forms(NamedTuple):
    """What fields have in common that differ only in their record and in counters."""

    field: bytes
    """With places for base64, size, base and last offset, crc, times, sequence, record."""
    record: bytes
    """With places for exchange, offset, time, key, value, sequence."""


@lru_cache(256)
def _forms(
    source: str,
    topic: str,
    topic_id: bytes | None,
    partition: int,
    leader_epoch: int,
    attributes: int,
    producer_id: int,
    producer_epoch: int,
) -> _Forms | None:
    """Return the forms; None where records mean something, as Kafka's own do."""
    if attributes & CONTROL or is_internal(topic, topic_id):
        return None
    head, tail, last, _ = frame_of(
        *(source, topic, topic_id, partition, 2, attributes, producer_id, producer_epoch, b"")
    )
    known = (leader_epoch, attributes, producer_id, producer_epoch)
    epoch, bits, its_id, its_epoch = (b"%d" % each for each in known)
    codec = name_of(attributes & CODEC_MASK).encode()
    batch = BATCH.replace(b"%d", b"%b") % (
        *(b"0", b"%d", b"2", codec, b"%d", b"%d", epoch, b"%d", b"true", bits),
        *(b"%d", b"%d", its_id, its_epoch, b"%d", b"1"),
    )
    start = (head % b"\0").replace(b"%", b"%%").replace(b"\0", b"%d")
    return _Forms(
        b'{"base64":"%b","batches":[' + batch + b"%b]}]}",
        start + b'%b,"time":"%b%03dZ","key":%b,"value":%b,"headers":[]' + tail + b"%b" + last,
    )


def single_record(
    number: int, field: RecordField, batch: Batch, payloads: Payloads | None = None
) -> tuple[bytes, int] | None:
    """Return the JSON form of a records field that is this batch, intact and with one record, and
    the bytes that the record takes of it. None where anything is odd about it."""
    _, size, _, base, end, epoch, crc, bits, first_ms, last_ms, its_id, its_epoch, number_of, _ = (
        batch
    )
    data, topic = field.data, field.topic
    if batch.record_count != 1 or topic is None or len(topic) > LIMITS.topic_chars:
        return None
    forms = _forms(
        *(field.source, topic, field.topic_id, field.partition), *(epoch, bits, its_id, its_epoch)
    )
    if forms is None:
        return None
    records, error = open_batch(data, batch)
    if error is not None:
        return None
    own, stamp, key, value, headers = records[0]
    if (
        headers
        or key is None
        or value is None
        or len(key) > LIMITS.long_record_part_bytes
        or len(value) > LIMITS.long_record_part_bytes
        or key[:1] == b"\0"
        or value[:1] == b"\0"
        or stamp is None
        or (payloads is not None and payloads.members(topic, key, value, headers))
    ):
        return None
    clock = clock_of(stamp // 1000)
    if stamp == -1 or not clock:
        return None
    try:
        shown_key, shown = key.decode(), value.decode()
    except UnicodeDecodeError:
        return None
    offset: int | None = own if field.source != "produce" else field.base_offset
    # Kafka counts sequence numbers by offset: compaction leaves gaps in both.
    numbered = its_id >= 0 and number_of >= 0
    record = forms.record % (
        number,
        b"null" if offset is None else b"%d" % offset,
        clock,
        stamp % 1000,
        orjson.dumps(shown_key),
        orjson.dumps(shown),
        b"%d" % ((number_of + own - base) & 0x7FFFFFFF) if numbered else b"null",
    )
    octets = b2a_base64(data, newline=False)
    told = octets, size, base, end, crc, first_ms, last_ms, number_of, record
    return forms.field % told, len(record)
