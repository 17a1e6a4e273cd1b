"""Writes records as JSON, from the bytes of a records field: its batches and their records
(record/1, docs/json.md).

It takes intact batches of magic 2, as far as they are small. Whatever else is `Refused`, and the
general way (`analyzer/exchanges/full.py`) writes the field. Compiled by mypyc; the same source runs
without.
"""

from __future__ import annotations

from typing import Any, Final, final

from librt.strings import BytesWriter, read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from kafkascope.kernel.json_values import (
    PADDED,
    base64_of,
    octets_of,
    text_of,
    write_member,
    write_number,
)
from kafkascope.kernel.lines import MOST_KNOWN
from kafkascope.kernel.pairs import HEADER, MAX_OFFSET, crc32c
from kafkascope.kernel.walker import Refused

# Bytes of a message, and of what its compressed batches expand to; and its records. Larger ones are
# written piece by piece, in bounded memory: JSON has some hundred bytes for each record, and up to
# six for each byte.
MAX_BYTES: Final[i64] = 1 << 20
MAX_RECORDS: Final[i64] = 4096
CODEC: Final[i64] = 7
LOG_APPEND_TIME: Final[i64] = 8
# The last millisecond of the year 9999: ISO-8601 has four digits for a year.
LAST_TIME: Final[i64] = 253402300799999
# Offsets of records are 32 bits from that of their batch.
INT32: Final[i64] = 1 << 31
# Of one record; those with more are the general way's.
MAX_HEADERS: Final[i64] = 1000
# Characters of a topic's name: as `topic_chars` of `ExchangeLimits`. Forms are kept by topic.
MAX_TOPIC: Final[i64] = 249
# Bits in front of the last byte that a varint and a varlong may have.
VARINT: Final[i64] = 28
VARLONG: Final[i64] = 56
# In place of the time of all records: each has its own.
OWN_TIME: Final[i64] = -2


@final
class BatchForm:
    """What batches have in common that differ in counters and contents alone."""

    def __init__(
        self,
        topic: str,
        batch: tuple[bytes, bytes, bytes, bytes],
        record: tuple[bytes, bytes],
        ending: tuple[bytes, bytes],
    ) -> None:
        """`batch`: what stands before base offset, checksum, base timestamp, and base sequence.
        `record`: before the number of the exchange, and between it and the offset. `ending`: before
        the sequence of a record, and after it, without the brace."""
        self.topic = topic
        self.before_base, self.before_crc, self.before_time, self.before_sequence = batch
        self.head, self.place = record
        self.tail, self.last = ending


@final
class JsonRecords:
    """Writes one records field after the other."""

    def __init__(self, host: Any, alone: bool = False) -> None:
        """`host` has the forms of batches, expands bytes, decodes keys and values by schema, and
        has seconds as text. `alone`: each record is a line, without its batch."""
        self.host = host
        self.alone = alone
        self.forms: dict[Any, BatchForm | None] = {}
        """None of batches whose records mean something, as Kafka's own do."""
        self.bytes_left: i64 = 0
        self.records_left: i64 = 0
        """What batches of the message may still expand to, and hold."""
        self.second: i64 = -1
        self.clock = b""
        """The text of this second, up to the point before its fractions."""
        self.out = BytesWriter()
        self.begin()

    def begin(self) -> None:
        """Begin with the next message."""
        self.bytes_left = MAX_BYTES
        self.records_left = MAX_RECORDS

    def of(
        self,
        exchange: bytes,
        source: str,
        topic: str | None,
        topic_id: bytes | None,
        partition: i64,
        data: bytes,
        base_offset: int | None,
        checked: bool,
    ) -> bytes:
        """Return a records field as JSON. `exchange`: its number. `base_offset`: that the broker
        gave to the first record of a Produce. `checked`: the checksums were found right."""
        if len(data) > MAX_BYTES or topic is None or len(topic) > MAX_TOPIC:
            raise Refused
        if base_offset is not None and base_offset > MAX_OFFSET:
            raise Refused
        self.out = out = BytesWriter()
        if not self.alone:
            out.write(b'{"base64":')
            out.write(base64_of(data))
            out.write(b',"batches":[')
        at: i64 = 0
        end: i64 = len(data)
        assigned: i64 = -1 if base_offset is None else base_offset
        count: i64 = 0
        # A batch that is cut off is no error: see `Reader.count`.
        while end - at >= 17:
            length: i64 = i64(read_i32_be(data, at + 8)) + 12
            if data[at + 16] != 2 or length < HEADER:
                raise Refused
            if length > end - at:
                break
            if not checked:
                stated: i64 = i64(read_i32_be(data, at + 17)) & 0xFFFFFFFF
                if stated != i64(crc32c()(data[at + 21 : at + length])):
                    raise Refused
            if at > 0 and not self.alone:
                out.write(b",")
            form = self.form(source, topic, topic_id, partition, data, at)
            count += self.batch(
                form,
                exchange,
                data,
                at,
                length,
                source == "produce",
                assigned + count if assigned >= 0 else -1,
            )
            at += length
        if at == 0:
            # No form says that the topic is none of Kafka's own, whose secrets are masked.
            raise Refused
        if not self.alone:
            out.write(b"]}")
        return out.getvalue()

    def form(
        self,
        source: str,
        topic: str,
        topic_id: bytes | None,
        partition: i64,
        data: bytes,
        at: i64,
    ) -> BatchForm:
        # The leader's epoch, the attributes, and the producer with its epoch.
        key = (topic, topic_id, partition, source)
        known = key, data[at + 12 : at + 16], data[at + 21 : at + 23], data[at + 43 : at + 53]
        form = self.forms.get(known)
        if form is None:
            if known in self.forms:
                raise Refused
            if len(self.forms) >= MOST_KNOWN:
                self.forms.clear()
            epoch: i64 = i64(read_i32_be(data, at + 12))
            bits: i64 = i64(read_i16_be(data, at + 21))
            producer: i64 = read_i64_be(data, at + 43)
            its_epoch: i64 = i64(read_i16_be(data, at + 51))
            form = self.host.form(
                source, topic, topic_id, partition, epoch, bits, producer, its_epoch
            )
            self.forms[known] = form
            if form is None:
                raise Refused
        return form

    def batch(
        self,
        form: BatchForm,
        exchange: bytes,
        data: bytes,
        at: i64,
        length: i64,
        produced: bool,
        assigned: i64,
    ) -> i64:
        """Write a batch; return how many records it has. `assigned`: the offset that the broker
        gave to the first one; negative where that is not known."""
        out = self.out
        base = read_i64_be(data, at)
        bits: i64 = i64(read_i16_be(data, at + 21))
        first_ms = read_i64_be(data, at + 27)
        last_ms = read_i64_be(data, at + 35)
        sequence: i64 = i64(read_i32_be(data, at + 53))
        count: i64 = i64(read_i32_be(data, at + 57))
        self.records_left -= count
        if base < -MAX_OFFSET or base > MAX_OFFSET or count < 0 or self.records_left < 0:
            raise Refused
        if not self.alone:
            last = base + i64(read_i32_be(data, at + 23))
            stated: i64 = i64(read_i32_be(data, at + 17)) & 0xFFFFFFFF
            write_member(out, b'{"at":', at)
            write_member(out, b',"size":', length)
            write_member(out, form.before_base, base)
            write_member(out, b',"last_offset":', last)
            write_member(out, form.before_crc, stated)
            write_member(out, form.before_time, first_ms)
            write_member(out, b',"max_timestamp":', last_ms)
            write_member(out, form.before_sequence, sequence)
            write_member(out, b',"record_count":', count)
            out.write(b',"records":[')
        if read_i64_be(data, at + 43) < 0:
            sequence = -1
        body = data
        end = at + length
        at += HEADER
        if bits & CODEC != 0:
            body = self.host.expand(bits & CODEC, data[at:end], self.bytes_left)
            at = 0
            end = len(body)
            self.bytes_left -= end
        stamp: i64 = OWN_TIME
        if bits & LOG_APPEND_TIME != 0:
            if last_ms < -1:
                raise Refused
            stamp = last_ms
        elif first_ms < -1 or first_ms > LAST_TIME:
            raise Refused
        for index in range(count):
            if index > 0 and not self.alone:
                out.write(b",")
            out.write(form.head)
            out.write(exchange)
            out.write(form.place)
            given: i64 = -1
            if assigned >= 0:
                given = assigned + index
            at = self.record(form, body, at, end, base, first_ms, stamp, sequence, produced, given)
            if self.alone:
                out.write(b"\n")
        if at != end:
            raise Refused
        if not self.alone:
            out.write(b"]}")
        return count

    def record(
        self,
        form: BatchForm,
        data: bytes,
        at: i64,
        limit: i64,
        base: i64,
        first_ms: i64,
        stamp: i64,
        sequence: i64,
        produced: bool,
        given: i64,
    ) -> i64:
        """Write a record from its offset on; return the offset after its bytes. `stamp`: the time
        of all records, or `OWN_TIME`."""
        out = self.out
        size, at = signed(data, at, limit, VARINT)
        end = at + size
        if size < 6 or end > limit:
            raise Refused
        # No release uses the attributes.
        delta, at = signed(data, at + 1, end, VARLONG)
        own, at = signed(data, at, end, VARINT)
        if own < -INT32 or own >= INT32:
            raise Refused
        own += base
        if stamp == OWN_TIME:
            if delta < -LAST_TIME or delta > LAST_TIME:
                raise Refused
            stamp = first_ms + delta
        if not produced:
            write_number(out, own)
        elif given >= 0:
            write_number(out, given)
        else:
            out.write(b"null")
        out.write(b',"time":')
        self.write_time(stamp)
        key, at = part(data, at, end)
        out.write(b',"key":')
        out.write(b"null" if key is None else octets_of(key))
        value, at = part(data, at, end)
        out.write(b',"value":')
        out.write(b"null" if value is None else octets_of(value))
        headers: list[tuple[str, bytes | None]] | None = None
        if at >= end:
            raise Refused
        if data[at] == 0:
            at += 1
            out.write(b',"headers":[]')
        else:
            headers, at = read_headers(data, at, end)
            out.write(b',"headers":')
            out.write(json_headers(headers))
        if at != end:
            raise Refused
        out.write(form.tail)
        # Kafka counts sequence numbers by offset: compaction leaves gaps in both.
        if sequence < 0:
            out.write(b"null")
        else:
            write_number(out, (sequence + own - base) & 0x7FFFFFFF)
        out.write(form.last)
        if self.host.decodes or headers is not None or begins(key) or begins(value):
            meaning: bytes = self.host.meaning(form.topic, key, value, headers or ())
            if meaning:
                out.write(b",")
                out.write(meaning)
        out.write(b"}")
        return at

    def write_time(self, stamp: i64) -> None:
        """Write milliseconds as a time: null for none (-1)."""
        out = self.out
        if stamp == -1:
            out.write(b"null")
            return
        if stamp < 0 or stamp > LAST_TIME:
            raise Refused
        second: i64 = stamp // 1000
        if second != self.second:
            self.clock = self.host.second(second)
            self.second = second
        out.write(b'"')
        out.write(self.clock)
        out.write(PADDED[stamp % 1000])
        out.write(b'Z"')


def begins(data: bytes | None) -> bool:
    """Return whether a key or value begins as one with a schema may: see `framing.worth`."""
    if data is None or len(data) == 0:
        return False
    first: i64 = data[0]
    return first == 0 or first == 3 or first == 0xC3


def signed(data: bytes, at: i64, end: i64, last: i64) -> tuple[i64, i64]:
    """Return a zigzag number and the offset after it. `last`: `VARINT` or `VARLONG`; varlongs of
    ten bytes are refused."""
    value: i64 = 0
    shift: i64 = 0
    while shift <= last:
        if at >= end:
            raise Refused
        byte: i64 = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise Refused


def part(data: bytes, at: i64, end: i64) -> tuple[bytes | None, i64]:
    """Return a key or value and the offset after it."""
    size, at = signed(data, at, end, VARINT)
    if size < 0:
        if size != -1:
            raise Refused
        return None, at
    if size > end - at:
        raise Refused
    return data[at : at + size], at + size


def read_headers(data: bytes, at: i64, end: i64) -> tuple[list[tuple[str, bytes | None]], i64]:
    count, at = signed(data, at, end, VARINT)
    if count < 0 or count > MAX_HEADERS:
        raise Refused
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = part(data, at, end)
        value, at = part(data, at, end)
        if name is None:
            raise Refused
        try:
            headers.append((name.decode(), value))
        except UnicodeDecodeError:
            raise Refused from None
    return headers, at


def json_headers(headers: list[tuple[str, bytes | None]]) -> bytes:
    pairs: list[bytes] = []
    for name, value in headers:
        shown = b"null" if value is None else octets_of(value)
        pairs.append(b"[" + text_of(name) + b"," + shown + b"]")
    return b"[" + b",".join(pairs) + b"]"
