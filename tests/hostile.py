"""Real captures in which every text of traffic holds what a terminal or a renderer would obey."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.analyzer.transform.cut_rewrites import TOKEN
from kafkascope.captures.inputs.spool import Spool
from kafkascope.captures.model import Endpoint, Resolved
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import BytesWire, Slot
from kafkascope.dissectors.records.records import Partial, batches, open_batch
from kafkascope.dissectors.records.writer import encode_batch
from kafkascope.dissectors.registry import decode_request, decode_response, write_layout
from kafkascope.dissectors.values import Uuid

EVIL = "\x1b[31m\r\nkafkascope: forged\x9b2J\x7f\u202e\u2066\u200b\ufeff\u2028\U000e0041[red][/]"
"""A colour, a forged line, a C1 sequence, directions, zero widths, a private tag, markup."""
KEPT = frozenset({"protocol_type", "mechanism", "mechanisms", "name_of_protocol", "protocol_name"})
"""Fields that say how to read others."""


def forged(text: str) -> bool:
    """Whether a terminal that gets the text would obey any of it, or shows a line of another."""
    odd = {char for char in text if not char.isprintable()} - {"\n", "\t"}
    return bool(odd) or any(line.startswith("kafkascope: forged") for line in text.split("\n"))


class Evil:
    """See `analyzer.cut_rewrites.Rewrite`: texts get something behind and before them, keys,
    values and headers of records too."""

    def __init__(self, evil: str = EVIL, before: str = "") -> None:
        self.evil = evil
        self.before = before

    def frame(self, payload: bytes, side: int, key: int, version: int) -> bytes | None:
        if key == TOKEN or key < 0:
            return payload
        try:
            decoded = decode_response(payload, key, version) if side else decode_request(payload)
        except DissectError:
            return payload
        header = changed(decoded.header_layout, decoded.header, self._leaf)
        body = changed(decoded.layout, decoded.body, self._leaf)
        written = write_layout(decoded.header_layout, header)
        return written + write_layout(decoded.layout, body) + payload[decoded.end :]

    def other(self, head: bytes) -> bytes:
        return head

    def endpoint(self, endpoint: Endpoint) -> Endpoint:
        return endpoint

    def names(self, found: Iterable[Resolved]) -> Iterable[Resolved]:
        return [each._replace(name=self.before + each.name + self.evil) for each in found]

    def comment(self, text: str) -> str:
        return text + self.evil

    def deeds(self, text: str) -> str:
        return text + self.evil

    def _leaf(self, slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
        if isinstance(value, str) and slot.name not in KEPT and value and value[:2] != "__":
            return self.before + value + self.evil
        wire = slot.wire
        if isinstance(value, bytes) and not isinstance(value, Uuid) and isinstance(wire, BytesWire):
            return self._records(value) if wire.records else value
        return value

    def _records(self, data: bytes) -> bytes:
        front, evil, out = self.before.encode(), self.evil.encode(), []
        for each in batches(data):
            whole = data[each.at : each.at + each.size]
            if not isinstance(each, Partial) and each.magic == 2 and not each.control:
                records = [
                    record._replace(
                        key=front + (record.key or b"") + evil,
                        value=front + (record.value or b"") + evil,
                        headers=((self.before + self.evil, evil),),
                    )
                    for record in open_batch(data, each).records
                ]
                whole = encode_batch(records) if records else whole
            out.append(whole)
        return b"".join(out)


def hostile(source: Path, target: Path, evil: str = EVIL, before: str = "") -> Path:
    """The capture with `evil` behind its texts, and `before` in front of them."""
    cutting = Cutting()
    with open_capture([str(source)], spool=Spool()) as capture, target.open("wb") as file:
        capture.listener, capture.named = cutting, cutting.named
        for exchange in capture.exchanges():
            cutting.add(exchange)
        cutting.write(file, capture.source.read, rewrite=Evil(evil, before))
    return target
