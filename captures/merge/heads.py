"""What makes a packet the same in several captures, whole blocks at once.

Hosts change segments: a sender's capture shows 64 KB before its network card cuts them up, a
receiver's what its card has joined. So a packet has two keys: one of where its bytes begin, which
survives that, and one of all that it is. Link headers, IP ids and checksums differ and count for
nothing. Stateless.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kafkascope.captures.formats.records import Block
from kafkascope.captures.merge import LOOKED
from kafkascope.captures.model import Packet
from kafkascope.captures.packets.columns import HeaderColumns, columns_of
from kafkascope.captures.packets.tcp import FIN, RST, SYN, Segment, segment_of

# No TCP segment: the bytes themselves are the key.
OTHER: Final = 0
# A segment without payload.
BARE: Final = 1
DATA: Final = 2

HEAD: Final = np.dtype(
    [
        ("index", "<i8"),
        ("time", "<i8"),
        ("order", "<i8"),
        ("start", "<u8"),
        ("key", "<u8"),
        ("flow", "<u8"),
        ("copy", "<u8"),
        ("seq", "<u4"),
        ("length", "<u4"),
        ("captured", "<u4"),
        ("kind", "u1"),
        ("file", "<i4"),
        ("place", "<i4"),
        ("serial", "<i8"),
        ("dropped", "?"),
    ]
)
"""A packet: its index within the file, time in ns, both keys (`start`: 0 where a capture does not
hold `LOOKED` bytes of payload), direction, `Segment.copy`, and the payload's place in the stream.
`merging` fills in the rest: file and place, the number among those of its place, a time that never
goes back there (`order`), and whether another place has more of its bytes."""

_KNOWN_FLOWS: Final = 200_000
_FLAGS: Final = SYN | FIN | RST

Heads = NDArray[Any]
Words = NDArray[np.uint64]


class Flows(dict[bytes, int]):
    """Numbers of directions that are the same wherever they are captured."""

    def __missing__(self, flow: bytes) -> int:
        if len(self) > _KNOWN_FLOWS:
            self.clear()
        number = self[flow] = _hashed(flow)
        return number


def _hashed(data: bytes) -> int:
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def heads_of(block: Block, flows: Flows) -> Heads:
    """Return the heads of all packets of a block, by index from 0 for the block's first one."""
    found = np.zeros(len(block.positions), HEAD)
    found["index"] = np.arange(len(found))
    if not len(found):
        return found
    columns = columns_of(block)
    if columns is None:
        _one_by_one(found, range(len(found)), block.packets(), flows)
        return found
    where = [number - block.number for number in columns.numbers]
    found[where] = _at_once(found[where], block, columns, flows)
    _one_by_one(found, columns.others, map(block.packet, columns.others), flows)
    block.format.last_ns = columns.last_ns
    return found


def _at_once(found: Heads, block: Block, columns: HeaderColumns, flows: Flows) -> Heads:
    """Return the heads of segments whose headers were read at once, filled in."""
    found["time"] = columns.times
    captured = np.array(columns.captured, np.int64)
    at = np.where(captured >= LOOKED, np.array(columns.starts, np.int64), 0)
    words = np.ndarray((len(block.buffer) - 7,), "<u8", block.buffer, strides=(1,))
    numbers = [flows[flow] for flow in columns.flows]
    numbered = numbers, columns.seqs, columns.acks, columns.flags
    flow, seq, ack, flags = (np.array(values, np.uint64) for values in numbered)
    length, copy = np.array(columns.lengths, np.int64), np.array(columns.prints, np.uint64)
    _fill(found, words[at], words[at + 8], flow, seq, ack, flags, length, captured, copy)
    return found


_ODD: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


def _mixed(one: Words, two: Words | int = 0) -> Words:
    """Mix 64-bit words so that each bit of the result depends on all of theirs."""
    mixed = (one ^ (one >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9) + np.uint64(two)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    out: Words = mixed ^ (mixed >> np.uint64(31))
    return out


def _fill(
    found: Heads,
    first: Words,
    second: Words,
    flow: Words,
    seq: Words,
    ack: Words,
    flags: Words,
    length: Any,
    captured: Any,
    copy: Words,
) -> None:
    """Fill in the heads of segments. `first`, `second`: the words that a payload of `LOOKED` bytes
    begins with."""
    start = _mixed(_mixed(flow ^ seq * _ODD) ^ first, second)
    found["start"] = start = np.where(captured >= LOOKED, start, np.uint64(0))
    bare = np.where(length == 0, ack, np.uint64(0)) << np.uint64(32)
    kind = (flags & np.uint64(_FLAGS)) << np.uint64(32) | length.astype(np.uint64)
    found["key"] = _mixed(_mixed(flow ^ seq * _ODD, kind) ^ bare, start)
    found["flow"], found["seq"], found["copy"] = flow, seq, copy
    found["length"], found["captured"] = length, captured
    found["kind"] = np.where(length > 0, DATA, BARE)


def _one_by_one(
    found: Heads, where: Iterable[int], packets: Iterable[Packet], flows: Flows
) -> None:
    """Fill in the heads of other packets."""
    for at, packet in zip(where, packets, strict=True):
        head = found[at]
        head["time"] = packet.time_ns
        segment = segment_of(packet)
        if isinstance(segment, Segment):
            captured = min(len(segment.payload), segment.length)
            values = flows[segment.flow], segment.seq, segment.ack, segment.flags, segment.length
            columns = np.array((*values, captured, segment.copy), np.uint64)[:, None]
            begin = bytes(segment.payload[:LOOKED]).ljust(LOOKED, b"\0")
            _fill(found[at : at + 1], *np.frombuffer(begin, "<u8")[:, None], *columns)
            continue
        head["kind"], head["start"], head["flow"] = OTHER, 0, 0
        head["length"] = head["captured"] = 0
        head["key"] = head["copy"] = _hashed(bytes(packet.data))
