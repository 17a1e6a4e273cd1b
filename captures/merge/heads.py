"""What makes a packet the same in several captures, whole blocks at once.

Hosts change segments: a sender's capture shows 64 KB before its network card cuts them up, a
receiver's what its card has joined. So a packet has two keys: one of where its bytes begin, which
survives that, and one of all that it is. Link headers, IP ids and checksums differ and count for
nothing. Stateless.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import compress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kafkascope.captures.inputs.block import Block
from kafkascope.captures.merge import LOOKED
from kafkascope.captures.model import Packet
from kafkascope.captures.packets.columns import Columns, Words, columns_of
from kafkascope.captures.packets.tcp import FIN, RST, SYN, Segment, segment_of

OTHER: Final = 0
"""No TCP segment: the bytes themselves are the key."""
BARE: Final = 1
"""A segment without payload."""
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
    found["time"] = columns.time_ns
    _at_once(found, block, columns, flows)
    block.format.last_ns = int(columns.time_ns[-1])
    if not columns.tcp.all():
        odd = (~columns.tcp).tolist()
        where = (~columns.tcp).nonzero()[0].tolist()
        _one_by_one(found, where, compress(block.packets(), odd), flows)
    return found


def _at_once(found: Heads, block: Block, columns: Columns, flows: Flows) -> None:
    """Fill in the heads of segments whose headers numpy has read."""
    tcp = columns.tcp
    room = columns.start + columns.captured - columns.payload
    captured = np.clip(np.minimum(room, columns.length), 0, None)
    numbers = np.array([flows[flow] for flow in columns.flows], np.uint64)
    enough = tcp & (captured >= LOOKED)
    at = np.where(enough, columns.payload, 0)
    words = np.ndarray((max(len(block.buffer) - 7, 1),), "<u8", block.buffer, strides=(1,))
    first, second = words[at], words[np.where(enough, at + 8, 0)]
    start = _mixed(_mixed(numbers ^ columns.seq * _ODD) ^ first, second)
    start = np.where(enough, start, np.uint64(0))
    key = _keys(numbers, columns.seq, columns.ack, columns.flags, columns.length, start)
    found["start"], found["key"], found["flow"] = start, key, numbers
    found["seq"], found["copy"] = columns.seq, columns.copy
    found["length"] = np.clip(columns.length, 0, None)
    found["captured"] = captured
    found["kind"] = np.where(columns.length > 0, DATA, BARE)


_ODD: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


def _mixed(one: Words, two: Words | int = 0) -> Words:
    """Mix 64-bit words so that each bit of the result depends on all of theirs."""
    mixed = (one ^ (one >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9) + np.uint64(two)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    out: Words = mixed ^ (mixed >> np.uint64(31))
    return out


def _keys(
    flows: Words, seqs: Words, acks: Words, flags: Words, lengths: Any, starts: Words
) -> Words:
    lengths = lengths.astype(np.uint64)
    bare = np.where(lengths == 0, acks, np.uint64(0)) << np.uint64(32)
    kind = (flags & np.uint64(_FLAGS)) << np.uint64(32) | lengths
    return _mixed(_mixed(flows ^ seqs * _ODD, kind) ^ bare, starts)


def _one_by_one(
    found: Heads, where: Iterable[int], packets: Iterable[Packet], flows: Flows
) -> None:
    """Fill in the heads of other packets."""
    for at, packet in zip(where, packets, strict=True):
        head = found[at]
        head["time"] = packet.time_ns
        segment = segment_of(packet)
        if isinstance(segment, Segment):
            _of_segment(head, segment, flows)
            continue
        head["kind"], head["start"], head["flow"] = OTHER, 0, 0
        head["length"] = head["captured"] = 0
        head["key"] = head["copy"] = _hashed(bytes(packet.data))


def _of_segment(head: Any, segment: Segment, flows: Flows) -> None:
    captured = min(len(segment.payload), segment.length)
    one = {
        name: np.array([value], np.uint64)
        for name, value in (
            ("flow", flows[segment.flow]),
            ("seq", segment.seq),
            ("ack", segment.ack),
            ("flags", segment.flags),
            ("length", segment.length),
        )
    }
    start = np.zeros(1, np.uint64)
    if captured >= LOOKED:
        first, second = np.frombuffer(bytes(segment.payload[:LOOKED]), "<u8")[:, None]
        start = _mixed(_mixed(one["flow"] ^ one["seq"] * _ODD) ^ first, second)
    key = _keys(one["flow"], one["seq"], one["ack"], one["flags"], one["length"], start)
    head["start"], head["key"], head["flow"] = start[0], key[0], one["flow"][0]
    head["seq"], head["length"], head["captured"] = segment.seq, segment.length, captured
    head["kind"], head["copy"] = DATA if segment.length else BARE, segment.copy
