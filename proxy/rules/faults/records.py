"""The action that changes records on their way: lost, twice, in another order, other contents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from kafkascope.analyzer.exchanges.records import fields_of
from kafkascope.analyzer.filter.values import duration
from kafkascope.dissectors.codec.jsonform import loads
from kafkascope.dissectors.codec.places import spelled, value_of
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import BytesWire, Slot
from kafkascope.dissectors.records.records import Batch, Partial, Record, batches, open_batch
from kafkascope.dissectors.records.writer import encode_like
from kafkascope.dissectors.registry import Decoded
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.rules.faults.fault import Action, FaultError, reason_of
from kafkascope.proxy.rules.faults.plain import CorruptAction
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT
from kafkascope.schemas.model import PayloadError, Schema, Selector
from kafkascope.times import MS

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame
    from kafkascope.schemas.decoding import Payloads
    from kafkascope.schemas.framing import Side

# Bytes of Confluent's framing.
PREFIX: Final = 5


class GivenValue:
    """What the key or value of each record becomes: by the schema of the old one where that is
    known, else text."""

    def __init__(self, side: Side, text: str | None) -> None:
        """`text`: JSON of the value, or the value itself; None: null."""
        self.side: Final = side
        self.text: Final = text
        self._plain = None if text is None else text.encode()
        self._value = _value(text)
        self._made: dict[tuple[str | None, bytes], bytes] = {}
        self._changes = -1

    def put(self, record: Record, topic: str | None, payloads: Payloads | None) -> Record:
        """Return the record with the new key or value; `PayloadError` where it does not fit the old
        one's schema, or that schema is unknown. Without schemas, and where they say nothing, it is
        text."""
        new = self._bytes(record, topic, payloads)
        return record._replace(key=new) if self.side == "key" else record._replace(value=new)

    def _bytes(self, record: Record, topic: str | None, payloads: Payloads | None) -> bytes | None:
        if payloads is None or self._plain is None:
            return self._plain
        data = (record.key if self.side == "key" else record.value) or b""
        if self._changes != payloads.known.changes:
            self._changes = payloads.known.changes
            self._made.clear()
        short = None if record.headers else (topic, data[:PREFIX])
        if short is not None and (made := self._made.get(short)) is not None:
            return made
        decoded = payloads.decode(topic, self.side, data, record.headers)
        if decoded is None:
            return self._plain
        found = decoded.found
        if found is None:
            assert decoded.error is not None
            raise decoded.error
        if data[found.at :] != found.data:
            raise PayloadError("does-not-fit", "it lies elsewhere than in its bytes, or compressed")
        new = data[: found.at] + found.codec.encode(self._value)
        usual = found.key is None or found.at == PREFIX
        # Of Protobuf an index follows, which may be another one.
        if short is not None and usual and found.schema.format != "protobuf":
            if len(self._made) >= LIMITS.encoded_values:
                self._made.clear()
            self._made[short] = new
        return new

    def refusal(self, topic: str, payloads: Payloads) -> str | None:
        """Return why it fits no schema that is known for a topic; None where one may fit."""
        if self._plain is None:
            return None
        reasons = []
        for schema, selector in _of_topic(topic, self.side, payloads):
            try:
                payloads.known.compiled(schema).codec(selector).encode(self._value)
            except PayloadError as error:
                reasons.append(reason_of(error))
            else:
                return None
        return reasons[0] if reasons else None


def _value(text: str | None) -> Any:
    try:
        return None if text is None else loads(text.encode())
    except (ValueError, DissectError):
        return text


def _of_topic(topic: str, side: Side, payloads: Payloads) -> Iterator[tuple[Schema, Selector]]:
    """Yield the schemas that the user gave for a topic, or that have its usual subject."""
    assigned = payloads.known.assigned.get((topic, side))
    if assigned is not None:
        yield assigned.schema, assigned.selector
    for schema in payloads.known:
        # Which message of a Protobuf file is meant, only payloads say.
        if schema.format != "protobuf" and any(
            name == f"{topic}-{side}" for name, _ in schema.subjects
        ):
            yield schema, None


# A bit of each byte: text stays text, and is another one.
FLIPPED: Final = 0x20
Records = list[Record]
# Returns the records that a batch has then. `produced`: of a request, where offsets are places.
Change = Callable[[Records, bool], Records]


class RecordsAction(Action):
    """Changes the records of each partition."""

    word = "records"
    usage = (
        "records lose N | duplicate | reorder | corrupt crc | corrupt value"
        " | set value|key TEXT | set timestamp -1d | set header NAME=TEXT"
    )
    doc = (
        "drop, duplicate, reorder, or change records of each partition; sizes and checksums are"
        " updated"
    )
    sides = (CLIENT, BROKER)
    whole = True

    def __init__(self, text: str, change: Change, given: GivenValue | None = None) -> None:
        """`given`: what keys or values become, in place of `change`."""
        self.text = text
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
                return cls(text, _duplicated)
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
                return cls(text, lambda records, _: [_shifted(each, shift) for each in records])
            case ["set", "header", _, *_]:
                name, equals, content = " ".join(words[2:]).partition("=")
                if name and equals:
                    header = name, _content(content)
                    return cls(text, lambda records, _: [_with_header(r, header) for r in records])
        raise cls.misused(words)

    @classmethod
    def _setting(cls, side: Side, text: str) -> Self:
        content = _content(text)
        shown = None if content is None else content.decode()
        effect = f"set {side} {'null' if shown is None else spelled(shown)}"
        return cls(effect, lambda records, _: records, GivenValue(side, shown))

    def can_harm(self, key: int, version: int, side: int) -> bool:
        return CorruptAction().can_harm(key, version, side)

    def misfit(self, topics: Iterable[str], payloads: Payloads) -> str | None:
        if self._given is None:
            return None
        reasons = {topic: self._given.refusal(topic, payloads) for topic in topics}
        if None in reasons.values():
            return None
        return next((f"no schema of {topic}: {why}" for topic, why in reasons.items()), None)

    def changed(self, frame: InterceptedFrame, decoded: Decoded) -> Body | None:
        if self.text == "corrupt crc":
            return CorruptAction().changed(frame, decoded)
        reasons: set[str] = set()
        change_of = self._changes(frame)

        def change(slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
            if not (isinstance(slot.wire, BytesWire) and slot.wire.records and value):
                return value
            return rewritten(value, change_of(value), reasons, produced=frame.side == CLIENT)

        body = changed(decoded.layout, decoded.body, change)
        for reason in sorted(reasons):
            self.report_misfit(frame, reason)
        return None if body == decoded.body else body

    def _changes(self, frame: InterceptedFrame) -> Callable[[bytes], Change]:
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
    # Consumers go on after the batch, as after one that was compacted.
    last = None if produced else batch.last_offset
    return encode_like(batch, records, codec=batch.codec, last_offset=last)


def _duplicated(records: Records, produced: bool) -> Records:
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


def _shifted(record: Record, shift_ms: int) -> Record:
    if record.timestamp is None:
        return record
    return record._replace(timestamp=max(record.timestamp + shift_ms, 0))


def _with_header(record: Record, header: tuple[str, bytes | None]) -> Record:
    others = (each for each in record.headers if each[0] != header[0])
    return record._replace(headers=(*others, header))


def _content(text: str) -> bytes | None:
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
