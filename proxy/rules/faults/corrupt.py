"""The fault that breaks the checksums of record batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.bodies.facts import attributes
from kafkascope.dissectors.codec.walk import changed
from kafkascope.dissectors.layout import BytesWire, Slot
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
    """Flips bits in the checksum of the first batch of each partition."""

    word = "corrupt-crc"
    usage = "corrupt-crc"
    doc = "break the checksum of each partition's first batch (Fetch; on request: Produce)"
    sides = (BROKER, CLIENT)
    picky = True
    whole = True

    def can_harm(self, key: int, version: int, side: int) -> bool:
        """Whether there are batches in such frames."""
        kind = "Request" if side == CLIENT else "Response"
        return "blobs" in attributes(layout_of(f"{APIS[key].name}{kind}", version))

    def act(self, frame: InterceptedFrame) -> Verdict | None:
        """Replace the frame by a corrupted one."""
        decoded = frame.decoded
        if decoded is None or frame.payload is None:
            return None
        broken = changed(decoded.layout, decoded.body, _corrupt)
        if broken == decoded.body:
            return None
        body = write_layout(decoded.layout, broken)
        return Replace(frame.payload[: decoded.body_at] + body + frame.payload[decoded.end :])


def _corrupt(slot: Slot, value: Any, around: Mapping[str, Any]) -> Any:
    """Records with a wrong checksum; any other value as it is."""
    if not (isinstance(slot.wire, BytesWire) and slot.wire.records and len(value) > 21):
        return value
    at = CRC_AT.get(value[MAGIC_AT])
    return value if at is None else value[:at] + bytes((value[at] ^ 0xFF,)) + value[at + 1 :]
