"""Finds the records of a pcap file, while their headers are ordinary. Compiled by mypyc; the same
source runs without."""

from __future__ import annotations

from librt.strings import read_i32_be, read_i32_le
from mypy_extensions import i64

from kafkascope.kernel.path import MASK


def walk(
    data: bytes,
    begin_: int,
    at_: int,
    big_: bool,
    skip_: int,
    most_: int,
    wire_: int,
    fractions_: int,
    low_: int,
    high_: int,
    positions: list[int],
) -> int:
    """Add the positions of whole records from `at_` on, where `data` begins, if that is at `begin_`
    of a buffer; return where the first one begins that is not whole, or not ordinary: larger than
    `most_` bytes, longer on the wire than `wire_`, with a fraction of `fractions_` or more, or with
    seconds outside `low_` and `high_`."""
    begin: i64 = begin_
    at: i64 = at_ - begin
    end: i64 = len(data)
    skip: i64 = skip_
    most: i64 = most_
    longest: i64 = wire_
    fractions: i64 = fractions_
    low: i64 = low_
    high: i64 = high_
    seconds: i64
    fraction: i64
    size: i64
    wire: i64
    while at + skip <= end:
        if big_:
            seconds = i64(read_i32_be(data, at)) & MASK
            fraction = i64(read_i32_be(data, at + 4)) & MASK
            size = i64(read_i32_be(data, at + 8)) & MASK
            wire = i64(read_i32_be(data, at + 12)) & MASK
        else:
            seconds = i64(read_i32_le(data, at)) & MASK
            fraction = i64(read_i32_le(data, at + 4)) & MASK
            size = i64(read_i32_le(data, at + 8)) & MASK
            wire = i64(read_i32_le(data, at + 12)) & MASK
        if size == 0 or size > wire or wire > longest or size > most:
            break
        if fraction >= fractions or seconds < low or seconds > high:
            break
        following = at + skip + size
        if following > end:
            break
        positions.append(begin + at)
        at = following
    return begin + at
