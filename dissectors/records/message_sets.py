"""Reads an entry of a message set (magic 0 and 1): one message, or a compressed set of them.

entry    offset 8 | length 4 | crc 4 | magic 1 | attributes 1 | timestamp 8 (magic 1) |
         key length 4, key | value length 4, value: with a codec a compressed message set
"""

from __future__ import annotations

import struct
from typing import Final

from kafkascope.dissectors.errors import DissectError, Malformed, TooLarge, Truncated
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records.batches import Batch, Partial, batches
from kafkascope.dissectors.records.compression import decompress
from kafkascope.dissectors.records.reader import Opened, Record

_INT: Final = struct.Struct(">i")


# Bytes of memory that a message takes in addition to its size in the set.
MESSAGE_OVERHEAD: Final = 200


class _Budget:
    """Memory that one entry may take: at most `limit` decompressed bytes, and twice as much with
    the messages made of them. One budget serves all levels of nested sets, because limits of each
    level would multiply."""

    def __init__(self, limit: int) -> None:
        self._memory = 2 * limit
        self._output = limit

    def decompress(self, codec: int, data: bytes) -> bytes:
        output = decompress(codec, data, min(self._output, self._memory))
        self._output -= len(output)
        self._memory -= len(output)
        return output

    def charge(self, size: int, at: int) -> None:
        """Count a message of a decompressed set."""
        self._memory -= size + MESSAGE_OVERHEAD
        if self._memory < 0:
            raise TooLarge("the messages of a compressed one take too much memory", offset=at)


def open_entry(data: bytes, entry: Batch, limit: int) -> Opened:
    """Return the messages of an entry, with absolute offsets; `limit`: of decompressed bytes."""
    records: list[Record] = []
    error: DissectError | None = None
    try:
        _read(data, entry, _Budget(limit), 0, records)
    except DissectError as found:
        error = found.without_frames()
    return Opened(records, error)


def _read(data: bytes, entry: Batch, budget: _Budget, depth: int, records: list[Record]) -> None:
    """Append the entry's messages to `records`, also those before an error."""
    # Offset, size, checksum, magic, attributes; with magic 1 a timestamp (KIP-32).
    at = entry.at + (26 if entry.magic else 18)
    end = entry.at + entry.size
    key, at = read_sized(data, at, end, "key")
    value, at = read_sized(data, at, end, "value")
    if at != end:
        raise Malformed(f"{end - at} bytes follow the value", offset=at)
    if entry.codec == 0:
        if len(records) >= LIMITS.records:
            raise TooLarge(f"more than {LIMITS.records} messages in one", offset=entry.at)
        if depth:
            budget.charge(entry.size, entry.at)
        time = entry.base_timestamp if entry.magic else None
        records.append(Record(entry.base_offset, time, key, value, ()))
        return
    if value is None:
        raise Malformed("a compressed message has no value", offset=at)
    if depth >= LIMITS.message_set_depth:
        reason = f"message sets nested more than {LIMITS.message_set_depth} deep"
        raise TooLarge(reason, offset=entry.at)
    first = len(records)
    last_offset, error = _read_set(budget.decompress(entry.codec, value), budget, depth, records)
    if entry.magic and last_offset is not None:
        _make_absolute(records, first, entry, last_offset)
    if error is not None:
        raise error


def _read_set(
    inner: bytes, budget: _Budget, depth: int, records: list[Record]
) -> tuple[int | None, DissectError | None]:
    """Append the messages of a decompressed set; return the offset of its last entry, and the first
    error.

    The walk continues after an entry that cannot be read, because offsets inside the set count
    back from the last entry.
    """
    last_offset: int | None = None
    error: DissectError | None = None
    try:
        for entry in batches(inner):
            if isinstance(entry, Partial):
                raise Truncated("the message set ends inside a message", offset=entry.at)
            if entry.magic == 2:
                raise Malformed("a record batch inside a message set", offset=entry.at)
            last_offset = entry.base_offset
            if error is None:
                try:
                    _read(inner, entry, budget, depth + 1, records)
                except DissectError as found:
                    error = found
    except DissectError as found:
        error = error or found
    return last_offset, error


def _make_absolute(records: list[Record], first: int, wrapper: Batch, last_offset: int) -> None:
    """Make the offsets of `records[first:]` absolute, and apply the wrapper's log append time."""
    # KIP-31: with magic 1 offsets inside are relative, and the wrapper has the absolute one of the
    # last message, so that brokers assign offsets without compressing the set again.
    base = wrapper.base_offset - last_offset
    time = wrapper.base_timestamp if wrapper.log_append_time else None
    records[first:] = [
        Record(r.offset + base, r.timestamp if time is None else time, r.key, r.value, ())
        for r in records[first:]
    ]


def read_sized(data: bytes, at: int, end: int, name: str) -> tuple[bytes | None, int]:
    """Return a key or value with an int32 length before it, and the offset after it."""
    if at + 4 > end:
        raise Truncated(f"the {name} is missing", offset=at, path=name)
    (length,) = _INT.unpack_from(data, at)
    at += 4
    if length == -1:
        return None, at
    if length < 0 or at + length > end:
        reason = f"a {name} of {length} bytes, {end - at} are left"
        raise Malformed(reason, offset=at - 4, path=name)
    return data[at : at + length], at + length
