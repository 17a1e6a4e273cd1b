"""Record batches as text: what stands below a records field in a tree, with the bytes that batches
take."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from kafkascope.analyzer.exchanges.records import RecordField
from kafkascope.analyzer.render.values import internal_lines
from kafkascope.analyzer.text import escaped
from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.embedded.internal import decode, without_secrets
from kafkascope.dissectors.embedded.values import schema_id_of
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import (
    Batch,
    Partial,
    Record,
    batches,
    crc_ok,
    open_batch,
)

BYTES_SHOWN: Final = 1 << 20
"""Of a key or value: as much as brokers take in a batch unless told otherwise. A line of a hundred
megabytes is copied several times until it is printed."""
HEADERS_SHOWN: Final = 10_000
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def lines_inside(node: Node, field: RecordField | None = None) -> Iterator[str]:
    """One line per batch, one per record; what is cut or damaged says so. `field` tells the topic,
    so that Kafka's own records can say what they mean."""
    data = bytes(node.value)
    at = node.end - len(data)
    try:
        for each in batches(data) if field is None else field.batches():
            place = f"bytes {at + each.at}-{at + each.at + each.size - 1}"
            if isinstance(each, Partial):
                yield f"batch cut by the end of the field: {place}"
                continue
            yield f"{_batch(data, each)} ({place})"
            opened = open_batch(data, each)
            for record in opened.records:
                yield from _record_lines(record, each, field)
            if opened.error is not None:
                yield f"  ! {opened.error.reason}"
    except DissectError as error:
        yield f"! {error.reason} at byte {at + error.offset}"


def _batch(data: bytes, batch: Batch) -> str:
    words = [f"batch: magic {batch.magic}", batch.codec_name]
    if batch.magic == 2:
        words.append(f"offsets {batch.base_offset}-{batch.last_offset}")
        words.append(f"{batch.record_count} records")
        words.append(f"leader epoch {batch.leader_epoch}")
    else:
        words.append(f"offset {batch.last_offset}")
    if batch.producer_id >= 0:
        words.append(f"producer {batch.producer_id} epoch {batch.producer_epoch}")
        words.append(f"sequence {batch.base_sequence}")
    for name in ("transactional", "control"):
        if getattr(batch, name):
            words.append(name)
    words.append("log append time" if batch.log_append_time else "create time")
    words.append(f"crc 0x{batch.crc & 0xFFFFFFFF:08x} {'ok' if crc_ok(data, batch) else 'WRONG'}")
    return ", ".join(words)


def _record_lines(record: Record, batch: Batch, field: RecordField | None) -> Iterator[str]:
    topic, topic_id = (None, None) if field is None else (field.topic, field.topic_id)
    found = decode(topic, record.key, record.value, topic_id=topic_id, control=batch.control)
    if found is None:
        yield f"  {_record(record)}"
        return
    yield f"  {_record(record._replace(value=without_secrets(found, record.value)))}"
    for line in internal_lines(found):
        yield f"    {line}"


def _record(record: Record) -> str:
    parts = [f"{record.offset}:", milliseconds(record.timestamp)]
    parts.append(f"key {_framed(record.key)}")
    parts.append(f"value {_framed(record.value)}")
    if record.headers:
        some = record.headers[:HEADERS_SHOWN]
        shown = [f"{name!r}: {_begun(value)}" for name, value in some]
        if len(record.headers) > HEADERS_SHOWN:
            shown.append(f"... {len(record.headers) - HEADERS_SHOWN:,} more")
        parts.append("headers {" + ", ".join(shown) + "}")
    return " ".join(part for part in parts if part)


def _framed(value: bytes | None) -> str:
    """A key or value; behind the number of its schema where Schema Registry's framing is."""
    schema = None if value is None else schema_id_of(value)
    if value is None or schema is None:
        return _begun(value)
    return f"(schema {schema}) {_begun(value[5:])}"


def _begun(value: bytes | None) -> str:
    """A key, value or header; of a very large one its beginning."""
    if value is None or len(value) <= BYTES_SHOWN:
        return octets(value)
    head = value[:BYTES_SHOWN]
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start >= len(head) - 3:  # the cut falls into a character
            head = head[: error.start]
    return f"{octets(head)}... {len(value) - len(head):,} bytes more (records --json has all)"


def milliseconds(time_ms: int | None) -> str:
    """A record's time as ISO-8601 UTC; empty when it has none."""
    if time_ms is None or time_ms == -1:
        return ""
    try:
        when = EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def octets(value: bytes | None) -> str:
    """A key or value: quoted text when it is text, else hexadecimal."""
    if value is None:
        return "null"
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + value.hex()
    return f'"{escaped(text)}"'
