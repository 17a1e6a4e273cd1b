"""Redacts records. Offsets, times, producers and codecs stay. Checksums are set right, but for
those that were wrong: that a batch is damaged is no secret. What cannot be read becomes asterisks.

Two changes are here. `redacted_records`: keys, values and headers become asterisks of the same
length; control records stay, as far as they are what Kafka writes: transaction markers, leaders,
voters. `masked_records`: only the secrets in Kafka's own records do, such as SCRAM credentials and
passwords of configs in the metadata log, which brokers fetch from controllers.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from io import BytesIO
from typing import Any, Final, NamedTuple, TypeAlias

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.embedded.internal import (
    CLUSTER_METADATA_ID,
    decode,
    decode_control,
    is_metadata_log,
    without_secrets,
)
from kafkascope.dissectors.embedded.masking import asterisks, masked
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records.batches import (
    CODEC_MASK,
    CONTROL,
    HEADER_SIZE,
    Batch,
    Partial,
    aligned,
    batches,
    crc_ok,
)
from kafkascope.dissectors.records.compression import compress, decompress
from kafkascope.dissectors.records.large import BUDGET, read_body
from kafkascope.dissectors.records.message_sets import read_sized
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_record, sized, with_right_crc
from kafkascope.dissectors.registry import write_layout

Change: TypeAlias = Callable[[Layout, Body], Body]
"""Replaces a message inside a record."""

STAR: Final = b"*"
# Bytes of a control record's key: version and type.
CONTROL_KEY: Final = 4
# Offset, size, checksum or leader epoch, and the magic, in all formats.
_MAGIC_END: Final = 17
# Offset of the checksum in batches.
_CRC_AT: Final = 17
_METADATA_LOG: Final = {
    "FetchResponse": ("responses", "records"),
    "FetchSnapshotResponse": ("topics", "unaligned_records"),
}
"""Message that may contain the metadata log -> array of topics, records field of partitions."""


class _Changes(NamedTuple):
    record: Callable[[Record], Record]
    control: Callable[[Record], Record] | None
    """Redaction of control records. None: these stay, and batches in which no record differs keep
    their bytes."""
    seals: bool = True
    """Whether checksums are set right."""


def redacted_records(data: bytes, *, keys: bool = False, names: Change | None = None) -> bytes:
    """Return a records field without values; with `keys` also without keys; with `names` also
    without names of headers, and with its replacements of messages in control records.

    A batch that cannot be opened becomes asterisks after its header, so that nothing stays.
    """
    hidden = partial(_hidden, keys=keys, names=names is not None)
    return _field(data, _Changes(hidden, partial(_control, names=names)), 0)


def masked_records(
    data: bytes,
    topic: str | None,
    topic_id: bytes | None = None,
    *,
    seals: bool = True,
    unaligned: bool = False,
) -> bytes:
    """Return a records field of one of Kafka's internal topics without secrets. `seals`: with right
    checksums; `unaligned`: it may begin inside a batch. Only what was compressed may get another
    size."""
    masked_record = partial(_masked_record, topic=topic, topic_id=topic_id)
    return _field(data, _Changes(masked_record, None, seals), 0, unaligned)


def masked_body(layout: Layout, body: Body) -> Body:
    """Return the body of a message without its secrets, and those in the metadata log; the very
    same body when it has none."""
    safe = masked(layout, body)
    topics, field = _METADATA_LOG.get(layout.message.name, ("", ""))
    if not any(map(_is_metadata, safe.get(topics, ()))):
        return safe

    def masked_topic(topic: Body) -> Body:
        partitions = [
            part | {field: part[field] and masked_records(part[field], None, CLUSTER_METADATA_ID)}
            for part in topic["partitions"]
        ]
        return topic | {"partitions": partitions}

    return safe | {
        topics: [masked_topic(each) if _is_metadata(each) else each for each in safe[topics]]
    }


def _is_metadata(topic: Mapping[str, Any]) -> bool:
    return is_metadata_log(topic.get("topic", topic.get("name")), topic.get("topic_id"))


def _field(data: bytes, changes: _Changes, depth: int, unaligned: bool = False) -> bytes:
    """Return a records field with other records; asterisks where it cannot be read."""
    out, end = [], 0
    try:
        for batch in aligned(data) if unaligned else batches(data):
            end = batch.at + batch.size
            if isinstance(batch, Partial):
                is_cut = end == len(data) and not (unaligned and batch.at == 0)
                out.append(_partial(data[batch.at : end], is_cut))
            elif batch.magic == 2:
                out.append(_batch(data, batch, changes))
            else:
                out.append(_entry(data, batch, changes, depth))
    except DissectError:
        pass
    out.append(STAR * (len(data) - end))
    return b"".join(out)


def _partial(data: bytes, is_cut: bool) -> bytes:
    """Redact the cut last batch of a Fetch, of which clients read no more than the magic, or the
    end of a batch at the beginning of a field."""
    kept = _MAGIC_END if is_cut and len(data) >= _MAGIC_END and data[_MAGIC_END - 1] <= 2 else 0
    return data[:kept] + STAR * (len(data) - kept)


def _batch(data: bytes, batch: Batch, changes: _Changes) -> bytes:
    """Redact a batch; what is after its header, where its records cannot be read."""
    whole = data[batch.at : batch.at + batch.size]
    change = changes.control if batch.attributes & CONTROL else changes.record
    if change is None:
        return whole
    count = batch.record_count or 0
    try:
        expand = partial(decompress, batch.codec, whole[HEADER_SIZE:])
        BUDGET.make_room()
        opened = read_body(expand, count, batch.base_offset, batch.base_timestamp, None)
        if opened.error is not None and (changes.seals or batch.codec):
            raise opened.error
    except DissectError:
        packed = STAR * (batch.size - HEADER_SIZE)
    else:
        is_whole = opened.error is None
        if is_whole and changes.control is None and all(change(r) is r for r in opened.records):
            return whole
        hidden = BytesIO()
        # Not a loop: it would hold a record of megabytes while others are made of it.
        first, start = batch.base_offset, batch.base_timestamp
        encoded = partial(encode_record, base_offset=first, base_timestamp=start)
        hidden.writelines(map(encoded, map(change, opened.records)))
        del opened
        packed = compress(batch.codec, hidden.getvalue())
        if not is_whole:
            packed = packed.ljust(batch.size - HEADER_SIZE, STAR)
    length = HEADER_SIZE - 12 + len(packed)
    written = whole[:8] + struct.pack(">i", length) + whole[12:HEADER_SIZE] + packed
    if not changes.seals:
        return written
    sealed = with_right_crc(written, batch._replace(at=0, size=len(written)))
    if not crc_ok(data, batch):
        sealed = sealed[:_CRC_AT] + bytes([sealed[_CRC_AT] ^ 1]) + sealed[_CRC_AT + 1 :]
    return sealed


def _entry(data: bytes, batch: Batch, changes: _Changes, depth: int) -> bytes:
    """Redact one entry of a message set; a compressed one holds another set."""
    whole = data[batch.at : batch.at + batch.size]
    at = 18 + 8 * batch.magic
    try:
        key, at_value = read_sized(whole, at, len(whole), "key")
        value, _ = read_sized(whole, at_value, len(whole), "value")
        inner = None
        if value is not None and batch.attributes & CODEC_MASK:
            if depth >= LIMITS.message_set_depth:
                raise DissectError("too deep")
            inner, value = decompress(batch.codec, value, LIMITS.batch_bytes), None
        old = Record(batch.base_offset, None, key, value, ())
        record = changes.record(old)
        value = record.value
        new = None if inner is None else _field(inner, changes, depth + 1)
        if changes.control is None and record is old and new == inner:
            return whole
        if new is not None:
            value = compress(batch.codec, new)
    except DissectError:
        return whole[:at] + STAR * (len(whole) - at)
    body = whole[16:at] + sized(record.key) + sized(value)
    size = len(body) + 4
    crc = zlib.crc32(body) ^ (not crc_ok(data, batch))
    return whole[:8] + struct.pack(">iI", size, crc) + body


def _masked_record(record: Record, topic: str | None, topic_id: bytes | None) -> Record:
    found = decode(topic, record.key, record.value, topic_id=topic_id)
    value = record.value if found is None else without_secrets(found, record.value)
    return record if value == record.value else record._replace(value=value)


def _hidden(record: Record, keys: bool, names: bool) -> Record:
    return record._replace(
        key=stars(record.key) if keys else record.key,
        value=stars(record.value),
        headers=tuple(
            (str(asterisks(name)) if names else name, stars(value))
            for name, value in record.headers
        ),
    )


def _control(record: Record, names: Change | None) -> Record:
    """Redact a control record. Who sets the bit of control batches need not be Kafka, so only what
    reads as one of its messages is left."""
    hidden = _hidden(record, True, names is not None)
    key = record.key or b""
    if len(key) != CONTROL_KEY:
        return hidden
    found = decode_control(key, record.value).value
    if found is None or found.layout is None or found.surplus:
        return hidden._replace(key=key)
    value = record.value or b""
    body = found.body if names is None else names(found.layout, found.body)
    if body != found.body:
        start = len(value) - len(write_layout(found.layout, found.body))
        value = value[:start] + write_layout(found.layout, body)
    return hidden._replace(key=key, value=value)


def stars(value: bytes | None) -> bytes | None:
    """Return asterisks of the same length; null stays null, for that is a tombstone."""
    return None if value is None else STAR * len(value)
