"""Memory of decoded bodies: the limit, and what each value counts towards it.

Knows wire kinds, not messages. The generated readers and the reference Structs keep the same count.
"""

from __future__ import annotations

from typing import Final, assert_never

from kafkascope.dissectors.errors import TooLarge
from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    NumberWire,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
)

BODY_LIMIT: Final = 128 << 20
"""Bytes of memory that one decoded body may take beside the content of its texts. An element of two
bytes on the wire is a dict of three hundred: a frame of 100 MB could take 15 GB. There is room for
a Metadata response with 150 000 partitions."""

UNKNOWN_TAG_WEIGHT: Final = 340
"""Bytes of a tagged field that the layout lacks: a dict with a number and bytes."""


def weight(wire: Wire) -> int:
    """Return the memory of a decoded value beside its content. Elements of an array come on top,
    each with its own weight."""
    match wire:
        case NumberWire():
            return 32
        case BoolWire():
            return 8
        case UuidWire():
            return 72
        case StringWire() | BytesWire() | ArrayWire():
            return 64
        case StructWire():
            slots = (*wire.slots, *wire.tags)
            return 64 + sum(32 + weight(slot.wire) for slot in slots)
        case _:
            assert_never(wire)


def memory_of(value: object) -> int:
    """Estimate the memory of a decoded value; without recursion, for bodies may be deep."""
    total = 0
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            total += 64 + 48 * len(each)
            left.extend(each.values())
        elif isinstance(each, list):
            total += 64 + 8 * len(each)
            left.extend(each)
        elif isinstance(each, str | bytes):
            total += 48 + len(each)
    return total


def too_large(at: int, path: str = "") -> TooLarge:
    """Return the error of a body beyond `BODY_LIMIT`."""
    reason = f"decoded it would take more than {BODY_LIMIT >> 20} MB of memory"
    return TooLarge(reason, offset=at, path=path)
