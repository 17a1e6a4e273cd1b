"""Reads the records inside an expanded magic 2 batch.

record   length varint | attributes 1 | timestamp delta varlong | offset delta varint |
         key length varint, key | value length varint, value | header count varint, headers
header   key length varint, key | value length varint, value
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kafkascope.dissectors.errors import DissectError, Malformed, TooLarge, Truncated
from kafkascope.dissectors.limits import LIMITS

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """One record, with absolute offset and time."""

    offset: int
    timestamp: int | None
    """Milliseconds; None in magic 0."""
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header]


class Opened(NamedTuple):
    """The records of a batch, as far as they could be read."""

    records: Sequence[Record]
    """A list, unless they would take much memory: see `large`."""
    error: DissectError | None
    """Error that stopped reading; the records before it are there."""


def read_records(
    body: bytes,
    count: int,
    base_offset: int,
    base_timestamp: int,
    stamp: int | None = None,
    at: int = 0,
) -> Opened:
    """Read the records of an expanded magic 2 body; `stamp` is the time of all under log append
    time. `at`: where they begin.

    The stated count allocates nothing: when it is wrong, the records that are there are given. The
    one hand-written hot loop of the package: a generic reader would take three times as long.
    """
    records: list[Record] = []
    size, new = len(body), tuple.__new__
    if count < 0:
        return Opened(records, Malformed(f"{count} records are stated", offset=0, path="records"))
    try:
        for _ in range(min(count, LIMITS.records)):
            length = body[at]
            at += 1
            if length > 127:
                high = body[at]
                if high < 128:  # two bytes, the usual size: a call would cost as much as the rest
                    length = length & 0x7F | high << 7
                    at += 1
                else:
                    length, at = _varint(body, at - 1)
            length = length >> 1 ^ -(length & 1)
            end = at + length
            if length < 6 or end > size:
                raise _bad_length(length, size - at, at)
            at += 1  # attributes: no release uses them
            stamp_delta = body[at]
            at += 1
            if stamp_delta > 127:
                high = body[at]
                if high < 128:
                    stamp_delta = stamp_delta & 0x7F | high << 7
                    at += 1
                else:
                    stamp_delta, at = _varint(body, at - 1, 64)
            offset_delta = body[at]
            at += 1
            if offset_delta > 127:
                high = body[at]
                if high < 128:
                    offset_delta = offset_delta & 0x7F | high << 7
                    at += 1
                else:
                    offset_delta, at = _varint(body, at - 1)
            length = body[at]
            at += 1
            if length > 127:  # keys of 64 bytes and more are rare
                length, at = _varint(body, at - 1)
            if length & 1:
                key = None
            else:
                stop = at + (length >> 1)
                key = body[at:stop]
                at = stop
            length = body[at]
            at += 1
            if length > 127:
                high = body[at]
                if high < 128:
                    length = length & 0x7F | high << 7
                    at += 1
                else:
                    length, at = _varint(body, at - 1)
            if length & 1:
                value = None
            else:
                stop = at + (length >> 1)
                value = body[at:stop]
                at = stop
            headers: Sequence[Header] = ()
            length = body[at]
            at += 1
            if length:
                headers, at = _read_headers(body, at - 1, end)
            if at != end:
                raise Malformed(f"a record ends at byte {end}, its fields at {at}", offset=at)
            records.append(
                new(
                    Record,
                    (
                        base_offset + (offset_delta >> 1 ^ -(offset_delta & 1)),
                        base_timestamp + (stamp_delta >> 1 ^ -(stamp_delta & 1))
                        if stamp is None
                        else stamp,
                        key,
                        value,
                        headers,
                    ),
                )
            )
    except IndexError:
        error: DissectError = Truncated(end_inside(count, len(records)), offset=at)
    except DissectError as found:
        error = found.without_frames()
    else:
        if at == size and count <= LIMITS.records:
            return new(Opened, (records, None))
        error = rest(count, at, size)
    error.path = f"records[{len(records)}]"
    return Opened(records, error)


def end_inside(count: int, place: int) -> str:
    """Return the reason for bytes that end inside a record."""
    return f"{count} records are stated, the bytes end in the one at {place}"


def rest(count: int, at: int, size: int) -> DissectError:
    """Return the error of a body that has more than its records."""
    if count > LIMITS.records:
        return TooLarge(f"{count} records in a batch", offset=at)
    return Malformed(f"{count} records are stated, {size - at} bytes follow them", offset=at)


def _bad_length(length: int, left: int, at: int) -> DissectError:
    if length > left:
        return Truncated(f"a record of {length} bytes, {left} are left", offset=at)
    return Malformed(f"a record cannot be {length} bytes long", offset=at)


def _varint(data: bytes, at: int, bits: int = 32) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes, or with 64 bits a varlong of at most 10; the
    caller undoes the zigzag."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << bits) - 1, at
        shift += 7
        if shift > bits:
            what = "varint" if bits == 32 else "varlong"
            raise Malformed(f"a {what} of more than {shift // 7} bytes", offset=at)


def _read_headers(body: bytes, at: int, end: int) -> tuple[list[Header], int]:
    headers: list[Header] = []
    count, at = _varint(body, at)
    if count & 1 or count > end - at:
        # A header takes two bytes at least, and the count stands doubled.
        raise Malformed(f"{count >> 1 ^ -(count & 1)} headers are stated", offset=at)
    if count >> 1 > LIMITS.record_headers:
        raise TooLarge(f"a record has {count >> 1} headers", offset=at)
    for _ in range(count >> 1):
        length, at = _varint(body, at)
        stop = at + (length >> 1)
        if length & 1 or stop > end:
            raise Malformed("the key of a header does not fit", offset=at)
        key = body[at:stop].decode("utf-8", "surrogateescape")
        length, at = _varint(body, stop)
        if length & 1:
            headers.append((key, None))
            continue
        stop = at + (length >> 1)
        if stop > end:
            raise Malformed("the value of a header does not fit", offset=at)
        headers.append((key, body[at:stop]))
        at = stop
    return headers, at
