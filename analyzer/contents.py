"""What the headers of record batches say: counts, codecs, producers, damage. Expands nothing, save
compressed message sets, whose headers do not tell how many messages they hold."""

from __future__ import annotations

from typing import Final, NamedTuple

from analyzer.model import Note
from dissectors.errors import DissectError
from dissectors.records import Batch, Partial, batches, crc_ok, open_batch

COUNTING_LIMIT: Final = 16 * 1024 * 1024
"""What a compressed message set may expand to only to be counted."""


class Contents(NamedTuple):
    """Of all records fields of an exchange."""

    records: int | None = None
    """None when the exchange has no such field."""
    batches: int | None = None
    codecs: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    producer_epochs: tuple[int, ...] = ()
    notes: tuple[Note, ...] = ()


NOTHING: Final = Contents()
EMPTY: Final = Contents(0, 0)


def contents_of(blobs: list[bytes] | None) -> Contents:
    """The sum over these records fields."""
    if not blobs:
        return NOTHING if blobs is None else EMPTY
    records = count = damaged = 0
    codecs: dict[str, None] = {}
    producers: dict[int, None] = {}
    epochs: dict[int, None] = {}
    notes: list[Note] = []
    for blob in blobs:
        try:
            for batch in batches(blob):
                if isinstance(batch, Partial):
                    continue
                count += 1
                records += records_in(blob, batch)
                codecs[batch.codec_name] = None
                if batch.producer_id >= 0:
                    producers[batch.producer_id] = None
                    epochs[batch.producer_epoch] = None
                damaged += not crc_ok(blob, batch)
        except DissectError as error:
            notes.append(Note("error", f"records: {error.reason} at byte {error.offset}"))
    if damaged:
        noun = "a record batch has" if damaged == 1 else f"{damaged} record batches have"
        notes.append(Note("error", f"{noun} a wrong checksum"))
    return Contents(records, count, tuple(codecs), tuple(producers), tuple(epochs), tuple(notes))


def records_in(blob: bytes, batch: Batch) -> int:
    """How many records a batch holds; compressed message sets are opened to be counted."""
    if batch.record_count is not None:
        return max(0, batch.record_count)
    return len(open_batch(blob, batch, COUNTING_LIMIT).records)
