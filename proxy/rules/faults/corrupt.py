"""Record batches with a wrong checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.bodies.facts import attributes
from kafkascope.dissectors.layout import ArrayWire, BytesWire, StructWire, Wire
from kafkascope.dissectors.registry import APIS, layout_of, write_layout
from kafkascope.proxy.rules.actions import BROKER, CLIENT
from kafkascope.proxy.rules.faults.fault import Action
from kafkascope.proxy.rules.verdicts import Replace, Verdict

if TYPE_CHECKING:
    from kafkascope.proxy.rules.intercepted import InterceptedFrame

MAGIC_AT: Final = 16
CRC_AT: Final = {0: 12, 1: 12, 2: 17}
"""Where the checksum stands, by magic."""


class CorruptAction(Action):
    """Flip bits in the checksum of the first batch of each partition."""

    word = "corrupt-crc"
    usage = "corrupt-crc"
    doc = (
        "the checksum of the first batch of each partition is wrong (Fetch; `on request`: Produce)"
    )
    sides = (BROKER, CLIENT)
    picky = True
    whole = True

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """What has batches."""
        kind = "Request" if side == CLIENT else "Response"
        return "blobs" in attributes(layout_of(f"{APIS[key].name}{kind}", version))

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Corrupt."""
        decoded = frame.decoded
        if decoded is None or frame.payload is None:
            return None
        if not _corrupt(decoded.layout.body, decoded.body):
            return None
        body = write_layout(decoded.layout, decoded.body)
        return Replace(frame.payload[: decoded.body_at] + body + frame.payload[decoded.end :])


def _corrupt(wire: Wire, value: Any) -> int:
    """Corrupt all records fields below; how many."""
    if value is None:
        return 0
    if isinstance(wire, ArrayWire):
        return sum(_corrupt(wire.element, each) for each in value)
    if not isinstance(wire, StructWire):
        return 0
    count = 0
    for slot in (*wire.slots, *wire.tags):
        inner = slot.wire
        if isinstance(inner, BytesWire) and inner.records:
            data = value[slot.name]
            if data and len(data) > 21:
                at = CRC_AT.get(data[MAGIC_AT])
                if at is not None:
                    changed = bytearray(data)
                    changed[at] ^= 0xFF
                    value[slot.name] = bytes(changed)
                    count += 1
        else:
            count += _corrupt(inner, value[slot.name])
    return count
