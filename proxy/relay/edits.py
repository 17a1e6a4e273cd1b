"""Frames as people edit them, and frames with the edited body: header kept, sizes corrected.

Record batches are objects, and get right checksums again:

    {"batches": [{"codec": "gzip", "records": [{"offset": 0, "time_ms": 1, "key": "k", "value": "v",
                  "headers": [["name", "value"]]}]}, {"base64": "..."}]}

Text stands for UTF-8, `{"base64": ...}` for other bytes, null for null. What cannot be opened (old
formats, damage, a part at the end) is base64. A key or value whose schema is known has a twin,
`key_decoded` or `value_decoded`: what is changed there is encoded again with that schema.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafkascope.dissectors.codec.jsonform import body_from_json, dumps, loads
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.errors import DissectError, Malformed
from kafkascope.dissectors.layout import ArrayWire, BytesWire, Slot, StructWire, Wire
from kafkascope.dissectors.records.compression import name_of
from kafkascope.dissectors.records.records import (
    Batch,
    Partial,
    Record,
    batches,
    crc_ok,
    open_batch,
)
from kafkascope.dissectors.records.redaction import masked_body
from kafkascope.dissectors.records.writer import encode_batch, encode_like, with_right_crc
from kafkascope.schemas.model import PayloadError

if TYPE_CHECKING:
    from kafkascope.dissectors.registry import Decoded
    from kafkascope.proxy.rules.intercepted import InterceptedFrame
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.framing import Side

SIDES: Final[tuple[Side, Side]] = ("key", "value")
CODECS: Final = {name_of(number) or "none": number for number in range(5)}
Change = Callable[[Any, "bytes | None"], Any]


@dataclass(frozen=True)
class RecordsEditor:
    """Records fields as people edit them, and the bytes of what they edited."""

    payloads: Payloads | None = None
    """Decodes and encodes keys and values."""
    topic: str = ""
    """Topic of the records, where it is a single one."""

    def spelled(self, slot: Slot, data: Any, around: Any) -> Any:
        """Return a value of a body: records fields as batches, others as they are."""
        if not (isinstance(slot.wire, BytesWire) and slot.wire.records):
            return data
        return {"batches": [edited for edited, _ in self._pieces(data)]}

    def unspelled(self, value: Any, original: bytes | None) -> Any:
        """Return the base64 of an edited records field: as `spelled` gave it, or base64 (null).
        Unchanged batches keep their bytes. `DissectError` with a reason."""
        if isinstance(value, str):
            data = base64.b64decode(value)
            return value if data == original else _text(_right(data))
        if value is None:
            return None
        if not isinstance(value, dict) or not isinstance(value.get("batches"), list):
            raise Malformed("records must be base64, or an object with batches")
        before = [] if original is None else self._pieces(original)
        parts = []
        for index, batch in enumerate(value["batches"]):
            known = before[index] if index < len(before) else ({}, b"")
            if batch == known[0]:
                parts.append(known[1])
            else:
                parts.append(_bytes(self._encoded_again(batch, known[0]), known[1]))
        return _text(b"".join(parts))

    def _encoded_again(self, batch: Any, before: dict[str, Any]) -> Any:
        """Return a batch whose keys and values are encoded by what was changed in their twins."""
        records = batch.get("records") if isinstance(batch, dict) else None
        if self.payloads is None or not isinstance(records, list):
            return batch
        old = {each["offset"]: each for each in before.get("records", ())}
        made = []
        for each in records:
            known = old.get(each.get("offset")) if isinstance(each, dict) else None
            made.append(each if known is None else self._record_again(each, known, self.payloads))
        return batch | {"records": made}

    def _record_again(
        self, record: dict[str, Any], known: dict[str, Any], payloads: Payloads
    ) -> dict[str, Any]:
        out = record
        headers = [(name, _content(content)) for name, content in known["headers"]]
        for side in SIDES:
            twin = f"{side}_decoded"
            if twin not in known or twin not in record or record[twin] == known[twin]:
                continue
            if record[side] != known[side]:
                raise Malformed(f"{side} and {twin} were both changed: change only one")
            data = _content(known[side]) or b""
            decoded = payloads.decode(self.topic, side, data, headers)
            assert decoded is not None
            assert decoded.found is not None
            try:
                new = data[: decoded.found.at] + decoded.found.codec.encode(record[twin])
            except PayloadError as error:
                place = f" at {error.path}" if error.path else ""
                raise Malformed(f"{twin} does not match its schema{place}: {error.text}") from None
            out = out | {side: _raw(new)}
        return out

    def _pieces(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """The batches as people edit them, each with its bytes; what is none comes last."""
        out, at = [], 0
        try:
            for batch in batches(data):
                if isinstance(batch, Partial):
                    break
                end = batch.at + batch.size
                out.append((self._batch(data, batch), data[batch.at : end]))
                at = end
        except DissectError:
            pass  # damage
        if at < len(data):
            out.append((_raw(data[at:]), data[at:]))
        return out

    def _batch(self, data: bytes, batch: Batch) -> dict[str, Any]:
        opened = open_batch(data, batch)
        if batch.magic != 2 or opened.error is not None:
            return _raw(data[batch.at : batch.at + batch.size])
        return {
            "codec": name_of(batch.attributes & 7) or "none",
            "records": [
                {
                    "offset": record.offset,
                    "time_ms": record.timestamp,
                    "key": _payload(record.key),
                    "value": _payload(record.value),
                    "headers": [[name, _payload(content)] for name, content in record.headers],
                    **self._twins(record),
                }
                for record in opened.records
            ],
        }

    def _twins(self, record: Record) -> dict[str, Any]:
        """The decoded key and value, where they can be encoded again."""
        out = {}
        for side, data in zip(SIDES, (record.key, record.value), strict=True):
            if self.payloads is None or data is None:
                continue
            decoded = self.payloads.decode(self.topic, side, data, record.headers)
            if decoded is None or decoded.error is not None or decoded.found is None:
                continue
            # What lies compressed or elsewhere than in the bytes is not written anew.
            if data[decoded.found.at :] == decoded.found.data:
                # As JSON: it is compared with what comes back.
                out[f"{side}_decoded"] = loads(dumps(decoded.value))
        return out


PLAIN: Final = RecordsEditor()


def _base64_of_records(wire: Wire, value: Any, decoded: Any, change: Change) -> Any:
    """The JSON value with all its records fields changed; `decoded` is what it came from."""
    if isinstance(wire, ArrayWire) and isinstance(value, list):
        items = decoded if isinstance(decoded, list | tuple) else ()
        return [
            _base64_of_records(wire.element, each, items[i] if i < len(items) else None, change)
            for i, each in enumerate(value)
        ]
    if not isinstance(wire, StructWire) or not isinstance(value, dict):
        return value
    out = dict(value)
    for slot in (*wire.slots, *wire.tags):
        if slot.name in out:
            known = decoded.get(slot.name) if isinstance(decoded, dict) else None
            if isinstance(slot.wire, BytesWire) and slot.wire.records:
                out[slot.name] = change(out[slot.name], known)
            else:
                out[slot.name] = _base64_of_records(slot.wire, out[slot.name], known, change)
    return out


def _bytes(edited: Any, original: bytes) -> bytes:
    try:
        if "base64" in edited:
            return _right(base64.b64decode(edited["base64"]))
        records = [
            Record(
                int(each["offset"]),
                int(each["time_ms"]),
                _content(each["key"]),
                _content(each["value"]),
                tuple((str(name), _content(content)) for name, content in each["headers"]),
            )
            for each in edited["records"]
        ]
        return _encoded(records, CODECS[edited["codec"]], original)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, struct.error) as error:
        raise Malformed(f"a batch is not as `show` gives it: {error}") from None


def _encoded(records: list[Record], codec: int, original: bytes) -> bytes:
    first = next(iter(batches(original)), None) if original else None
    if not isinstance(first, Batch):
        return encode_batch(records, codec=codec)
    return encode_like(first, records, codec=codec)


def _right(data: bytes) -> bytes:
    try:
        found = [batch for batch in batches(data) if isinstance(batch, Batch)]
    except DissectError:
        return data
    for batch in found:
        if not crc_ok(data, batch):
            data = with_right_crc(data, batch)
    return data


def _raw(data: bytes) -> dict[str, Any]:
    return {"base64": _text(data)}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _payload(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return _raw(data)


def _content(value: Any) -> bytes | None:
    if value is None:
        return None
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else str(value).encode()


def shown(decoded: Decoded, editor: RecordsEditor = PLAIN) -> dict[str, Any]:
    """The body as JSON, secrets hidden, records spelled out; keys and values by their schemas, as
    far as these are known."""
    hidden = masked_body(decoded.layout, decoded.body)
    body: dict[str, Any] = loads(dumps(changed(decoded.layout, hidden, editor.spelled)))
    return body


def edited(
    intercepted: InterceptedFrame, body: dict[str, Any], editor: RecordsEditor = PLAIN
) -> bytes:
    """The payload of a frame with that body (JSON as `shown` gave it); `DissectError` when it does
    not fit."""
    decoded = intercepted.decoded
    if decoded is None:
        raise DissectError("the frame cannot be decoded, so it cannot be edited")
    layout = decoded.layout
    hidden = masked_body(layout, decoded.body)

    def change(value: Any, seen: bytes | None) -> Any:
        octets = editor.unspelled(value, seen)
        if octets is not None and hidden is not decoded.body and octets != _text(seen or b""):
            raise DissectError("records of the metadata log cannot be edited: secrets are hidden")
        return octets

    plain = _base64_of_records(layout.body, body, hidden, change)
    return intercepted.with_body(_restored(body_from_json(layout, plain), hidden, decoded.body))


def _restored(new: Any, shown: Any, real: Any) -> Any:
    """Replace masked secrets that an edit left unchanged by their real values."""
    if new == shown:
        return real
    if isinstance(new, dict) and isinstance(shown, dict):
        return {
            name: _restored(value, shown[name], real[name]) if name in shown else value
            for name, value in new.items()
        }
    if isinstance(new, list) and isinstance(shown, list):
        if len(new) == len(shown):
            return [_restored(*each) for each in zip(new, shown, real, strict=True)]
        # Some were taken away or added: those that are left are known by how they look.
        known: dict[bytes, Any] = {}
        for looks, is_ in zip(shown, real, strict=True):
            known.setdefault(dumps(looks), is_)
        return [known.get(dumps(each), each) for each in new]
    return new
