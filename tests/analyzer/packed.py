"""What stands inside records fields, for searches that must not be fooled by codecs."""

import json
from collections.abc import Iterator
from pathlib import Path

from kafkascope.dissectors.codec.walk import leaves
from kafkascope.dissectors.layout import BytesWire
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records.batches import HEADER_SIZE, Batch, Partial, batches
from kafkascope.dissectors.records.compression import decompress
from kafkascope.dissectors.records.message_sets import open_entry
from kafkascope.dissectors.registry import Decoded
from tests.kit.samples import ROOT

TRUTH = ROOT / "tests" / "interop" / "truth"


def fields_of(decoded: Decoded) -> Iterator[tuple[bytes, Batch]]:
    """Records fields with each of their whole batches."""
    for leaf in leaves(decoded.layout, decoded.body):
        if isinstance(leaf.slot.wire, BytesWire) and leaf.slot.wire.records and leaf.value:
            field = bytes(leaf.value)
            for batch in batches(field):
                if not isinstance(batch, Partial):
                    yield field, batch


def unpacked(decoded: Decoded) -> Iterator[bytes]:
    """What is inside the batches of records fields."""
    for field, batch in fields_of(decoded):
        if batch.magic == 2:
            whole = field[batch.at : batch.at + batch.size]
            yield decompress(batch.codec, whole[HEADER_SIZE:])
        else:
            for record in open_entry(field, batch, LIMITS.batch_bytes).records:
                yield from (record.key or b"", record.value or b"")


def told_of(sample: Path, column: int) -> list[bytes]:
    """Keys (4) or values (5) that the clients of a sample wrote, from their own story."""
    path = TRUTH / f"{sample.name.partition('.pcap')[0]}.json"
    if not path.exists():
        return []
    rows = json.loads(path.read_text())["produced"]
    return sorted({str(r[column]).encode() for r in rows if len(str(r[column] or "")) > 8})
