"""Record batches as text: what stands below a records field in a tree, with the bytes that batches
take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from kafkascope.analyzer.exchanges.records import RecordField
from kafkascope.analyzer.render.values import internal_lines
from kafkascope.analyzer.text import escaped
from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.embedded.internal import decode, is_internal, without_secrets
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
from kafkascope.times import iso_ms

if TYPE_CHECKING:
    from kafkascope.analyzer.render.payloads import PayloadText
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.framing import Side

_Places: TypeAlias = "Mapping[str, int]"
"""Where the key and the value of a record begin."""

# Of a key or value: as much as brokers take in a batch by default. A line of a hundred
# megabytes is copied several times until it is printed.
BYTES_SHOWN: Final = 1 << 20
# Headers of a record that are shown, unless they take more than `BYTES_SHOWN` together.
HEADERS_SHOWN: Final = 10_000
# Bytes of Schema Registry's framing.
PREFIX: Final = 5
NOTHING: Final[Mapping[Side, PayloadText]] = MappingProxyType({})


def lines_inside(
    node: Node,
    field: RecordField | None = None,
    payloads: Payloads | None = None,
    *,
    show_bytes: bool = False,
) -> Iterator[str]:
    """One line per batch, one per record; cut or damaged ones are marked. `field`: gives the topic,
    to decode Kafka's own records. `payloads`: decodes keys and values, with the bytes of each field
    when `show_bytes`, unless the batch is compressed."""
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
            places: Iterator[_Places] = repeat({})
            if payloads is not None and show_bytes and not each.codec:
                places = chain(_places(data, each, at), places)
            for record, place_of in zip(opened.records, places, strict=False):
                yield from _record_lines(record, each, field, payloads, place_of)
                del record  # it may be large, and the next batch is opened after the last one
            if opened.error is not None:
                yield f"  ! {opened.error.reason}"
    except DissectError as error:
        yield f"! {error.reason} at byte {at + error.offset}"


def _batch(data: bytes, batch: Batch) -> str:
    words = [f"batch: magic {batch.magic}", batch.codec_name]
    if batch.magic == 2:
        words.append(f"offsets {batch.base_offset}-{batch.last_offset}")
        words += [f"{batch.record_count} records", f"leader epoch {batch.leader_epoch}"]
    else:
        words.append(f"offset {batch.last_offset}")
    if batch.producer_id >= 0:
        words.append(f"producer {batch.producer_id} epoch {batch.producer_epoch}")
        words.append(f"sequence {batch.base_sequence}")
    words += [name for name in ("transactional", "control") if getattr(batch, name)]
    words.append("log append time" if batch.log_append_time else "create time")
    words.append(f"crc 0x{batch.crc & 0xFFFFFFFF:08x} {'ok' if crc_ok(data, batch) else 'WRONG'}")
    return ", ".join(words)


def _places(data: bytes, batch: Batch, at: int) -> Iterator[_Places]:
    """Yield where key and value of each record of a batch begin. `at`: where `data` does."""
    from kafkascope.dissectors.records.tree import record_nodes

    start, end = batch.at, batch.at + batch.size
    for whole in record_nodes(data[start:end], 0, batch.size):
        body = next((each for each in whole.children if each.name == "records"), None)
        for record in [whole] if body is None else body.children:
            yield {
                child.name: at + start + child.end - len(child.value)
                for child in record.children
                if child.name in ("key", "value") and isinstance(child.value, bytes)
            }


def _record_lines(
    record: Record,
    batch: Batch,
    field: RecordField | None,
    payloads: Payloads | None,
    places: _Places,
) -> Iterator[str]:
    topic, topic_id = (None, None) if field is None else (field.topic, field.topic_id)
    found = decode(topic, record.key, record.value, topic_id=topic_id, control=batch.control)
    if found is not None:
        yield f"  {_record(record._replace(value=without_secrets(found, record.value)))}"
        for line in internal_lines(found):
            yield f"    {line}"
        return
    texts: dict[Side, PayloadText] = {}
    if payloads is not None and not batch.control and not is_internal(topic, topic_id):
        texts = _decoded(record, topic, payloads, places)
    yield f"  {_record(record, texts)}"
    for text in texts.values():
        for line in text.below:
            yield f"    {line}"


def _decoded(
    record: Record, topic: str | None, payloads: Payloads, places: _Places
) -> dict[Side, PayloadText]:
    """Return the texts of the key and the value, as far as a schema decodes them."""
    from kafkascope.analyzer.render.payloads import payload_text

    texts: dict[Side, PayloadText] = {}
    sides: tuple[tuple[Side, bytes | None], ...] = (("key", record.key), ("value", record.value))
    for side, data in sides:
        if data is None or len(data) > BYTES_SHOWN:
            continue
        decoded = payloads.decode(topic, side, data, record.headers)
        if decoded is not None:
            raw = octets(data[PREFIX:] if schema_id_of(data) is not None else data)
            texts[side] = payload_text(side, decoded, payloads, raw, data, places.get(side))
    return texts


def _record(record: Record, texts: Mapping[Side, PayloadText] = NOTHING) -> str:
    parts = [f"{record.offset}:", milliseconds(record.timestamp)]
    for side, data in (("key", record.key), ("value", record.value)):
        text = texts.get(side)  # type: ignore[call-overload]
        parts.append(f"{side} {_framed(data) if text is None else text.on_line}")
    if record.headers:
        shown: list[str] = []
        size = 0
        for name, value in record.headers[:HEADERS_SHOWN]:
            size += len(name) + len(value or b"")
            if size > BYTES_SHOWN and shown:
                break
            shown.append(f"{name!r}: {_begun(value)}")
        if len(record.headers) > len(shown):
            shown.append(f"... {len(record.headers) - len(shown):,} more")
        parts.append("headers {" + ", ".join(shown) + "}")
    return " ".join(part for part in parts if part)


def _framed(value: bytes | None) -> str:
    """A key or value; after the number of its schema where Schema Registry's framing is."""
    if value is None or (schema := schema_id_of(value)) is None:
        return _begun(value)
    return f"(schema {schema}) {_begun(value[PREFIX:])}"


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
    return f"{octets(head)}... {len(value) - len(head):,} more bytes (records --json has all)"


def milliseconds(time_ms: int | None) -> str:
    """A record's time as ISO-8601 UTC; empty when it has none."""
    if time_ms is None or time_ms == -1:
        return ""
    return iso_ms(time_ms) or f"{time_ms} ms"


def octets(value: bytes | None) -> str:
    """A key or value: quoted text when it is text, else hexadecimal."""
    if value is None:
        return "null"
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return "0x" + value.hex()
    return f'"{escaped(text)}"'
