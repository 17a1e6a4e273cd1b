"""The action that changes records on their way: lost, twice, in another order, other contents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from kafkascope.analyzer.exchanges.records import fields_of
from kafkascope.analyzer.filter.values import duration
from kafkascope.analyzer.payloads.model import PayloadError
from kafkascope.dissectors.codec.places import spelled, value_of
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import BytesWire, Slot
from kafkascope.dissectors.records.records import Batch, Partial, Record, batches, open_batch
from kafkascope.dissectors.records.writer import encode_like
from kafkascope.dissectors.registry import write_layout
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.by_schema import GivenValue, told
from kafkascope.proxy.rules.faults.corrupt import CorruptAction
from kafkascope.proxy.rules.faults.fault import Action, FaultError
from kafkascope.proxy.rules.faults.fields import tell_once
from kafkascope.proxy.rules.verdicts import Replace, Verdict

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.payloads.framing import Side
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

MS: Final = 1_000_000
FLIPPED: Final = 0x20
"""A bit of each byte: text stays text, and is another one."""
USAGE: Final = (
    "records lose N | duplicate | reorder | corrupt crc | corrupt value"
    " | set value|key TEXT | set timestamp -1d | set header NAME=TEXT"
)
Records = list[Record]
Change = Callable[[Records, bool], Records]
"""Returns the records that a batch has then. `produced`: of a request, where offsets are places."""


class RecordsAction(Action):
    """Changes the records of each partition."""

    word = "records"
    usage = USAGE
    doc = (
        "drop, duplicate, reorder, or change records of each partition; sizes and checksums are"
        " updated"
    )
    sides = (CLIENT, BROKER)
    picky = True
    whole = True

    def __init__(self, text: str, change: Change, given: GivenValue | None = None) -> None:
        """`given`: what keys or values become, in place of `change`."""
        self._text = text
        self._change = change
        self._given = given

    @classmethod
    def parse(cls, words: list[str]) -> Self:
        """`lose 1`, `duplicate`, `set value '{"a":1}'`."""
        text = " ".join(words)
        match words:
            case ["lose", count] if count.isdecimal() and int(count) > 0:
                number = int(count)
                return cls(text, lambda records, _: records[number:])
            case ["duplicate"]:
                return cls(text, _twice)
            case ["reorder"]:
                return cls(text, _reversed)
            case ["corrupt", "crc"]:
                return cls(text, lambda records, _: records)
            case ["corrupt", "value"]:
                return cls(text, lambda records, _: list(map(_garbled, records)))
            case ["set", "value" | "key" as side, _, *_]:
                return cls._setting("key" if side == "key" else "value", " ".join(words[2:]))
            case ["set", "timestamp", span]:
                shift = _milliseconds(span)
                return cls(text, lambda records, _: [_moved(each, shift) for each in records])
            case ["set", "header", _, *_]:
                name, equals, content = " ".join(words[2:]).partition("=")
                if name and equals:
                    return cls(text, _with_header(name, _content(content)))
        raise FaultError(f"{USAGE}, not {text!r}")

    @classmethod
    def _setting(cls, side: Side, text: str) -> Self:
        content = _content(text)
        shown = None if content is None else content.decode()
        told = f"set {side} {'null' if shown is None else spelled(shown)}"
        return cls(told, lambda records, _: records, GivenValue(side, shown))

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Whether such frames have records."""
        return CorruptAction().can_harm(key, version, side)

    def misfit(self, topics: Iterable[str], payloads: Payloads) -> str | None:
        """See `Action`."""
        if self._given is None:
            return None
        reasons = {topic: self._given.refusal(topic, payloads) for topic in topics}
        if None in reasons.values():
            return None
        return next((f"no schema of {topic}: {why}" for topic, why in reasons.items()), None)

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Replace the frame by one with other records."""
        if self._text == "corrupt crc":
            return CorruptAction().act(frame)
        decoded = frame.decoded
        if decoded is None or frame.payload is None:
            return None
        produced = frame.side == CLIENT
        reasons: set[str] = set()
        change_of = self._changes(frame)

        def change(slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
            if not (isinstance(slot.wire, BytesWire) and slot.wire.records and value):
                return value
            return rewritten(value, change_of(value), reasons, produced=produced)

        try:
            body = changed(decoded.layout, decoded.body, change)
            for reason in sorted(reasons):
                tell_once(frame, self, reason)
            if body == decoded.body:
                return None
            written = write_layout(decoded.layout, body)
        except (DissectError, PayloadError) as error:
            tell_once(frame, self, error.reason if isinstance(error, DissectError) else told(error))
            return None
        return Replace(frame.payload[: decoded.body_at] + written + frame.payload[decoded.end :])

    def _changes(self, frame: InterceptedFrame) -> Callable[[bytes], Change]:
        """Return what gives the change of a records field of a frame."""
        given = self._given
        if given is None:
            return lambda data: self._change
        hub = frame.context.hub
        payloads = hub.payloads()
        topics: dict[int, str | None] = {}
        if payloads is not None:
            topics = {id(each.data): each.topic for each in fields_of(frame.exchange, hub.names)}

        def change_of(data: bytes) -> Change:
            topic = topics.get(id(data))
            return lambda records, _: [given.put(each, topic, payloads) for each in records]

        return change_of

    def __str__(self) -> str:
        return f"{self.word} {self._text}"


def rewritten(data: bytes, change: Change, reasons: set[str], *, produced: bool) -> bytes:
    """Return a records field with each batch changed that can be; `reasons`: why others cannot."""
    parts, at = [], 0
    try:
        for batch in batches(data):
            if isinstance(batch, Partial):
                break
            end = batch.at + batch.size
            parts.append(_batch(data, batch, change, reasons, produced=produced))
            at = end
    except DissectError as error:
        reasons.add(f"its records cannot be read: {error.reason}")
    return b"".join((*parts, data[at:]))


def _batch(
    data: bytes, batch: Batch, change: Change, reasons: set[str], *, produced: bool
) -> bytes:
    same = data[batch.at : batch.at + batch.size]
    if batch.control:
        return same
    if batch.magic != 2:
        reasons.add(f"records of format {batch.magic} are unchanged")
        return same
    opened = open_batch(data, batch)
    if opened.error is not None:
        reasons.add(f"its records cannot be read: {opened.error.reason}")
        return same
    records = change(list(opened.records), produced)
    if records == opened.records:
        return same
    if produced:
        if not records:
            reasons.add("brokers reject an empty batch: its records are unchanged")
            return same
        first = batch.base_offset
        records = [each._replace(offset=first + place) for place, each in enumerate(records)]
    # Consumers go on behind the batch, as behind one that was compacted.
    last = None if produced else batch.last_offset
    return encode_like(batch, records, codec=batch.codec, last_offset=last)


def _twice(records: Records, produced: bool) -> Records:
    return [each for one in records for each in (one, one)]


def _reversed(records: Records, produced: bool) -> Records:
    if produced:
        return records[::-1]
    # The log has them in this order: contents move, offsets stay.
    offsets = [each.offset for each in records]
    return [each._replace(offset=at) for at, each in zip(offsets, records[::-1], strict=True)]


def _garbled(record: Record) -> Record:
    if not record.value:
        return record
    return record._replace(value=bytes(byte ^ FLIPPED for byte in record.value))


def _moved(record: Record, shift_ms: int) -> Record:
    if record.timestamp is None:
        return record
    return record._replace(timestamp=max(record.timestamp + shift_ms, 0))


def _with_header(name: str, content: bytes | None) -> Change:
    def change(records: Records, produced: bool) -> Records:
        return [
            each._replace(
                headers=(*(one for one in each.headers if one[0] != name), (name, content))
            )
            for each in records
        ]

    return change


def _content(text: str) -> bytes | None:
    """Return what text stands for: null, quoted text, or itself."""
    if text == "null":
        return None
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return str(value_of(text) if quoted else text).encode()


def _milliseconds(text: str) -> int:
    found = re.fullmatch(r"([+-])(.+)", text)
    if found is None:
        raise FaultError(f"timestamps are shifted by a duration such as -1d or +10s, not {text!r}")
    span = found[2]
    try:
        days = re.fullmatch(r"(\d+)d", span)
        length = int(days[1]) * 86_400_000 if days else duration(span) // MS
    except ValueError as error:
        raise FaultError(str(error)) from None
    return -length if found[1] == "-" else length
