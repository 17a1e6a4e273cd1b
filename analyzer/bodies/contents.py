"""Contents of records fields from the headers of record batches: counts, codecs, producers, damage.
Expands nothing except compressed message sets, whose headers lack the number of messages."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.bodies.dissection import PRODUCE
from kafkascope.analyzer.bodies.facts import BodyFacts
from kafkascope.analyzer.bodies.fetch_sessions import FETCH
from kafkascope.analyzer.model import Note, Side
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.layout import magic_of
from kafkascope.dissectors.records.batches import CODEC_MASK, only_batch
from kafkascope.dissectors.records.compression import name_of
from kafkascope.dissectors.records.records import Batch, batches, crc_ok, open_batch

CARRIERS: Final[dict[int, tuple[str, Side]]] = {
    PRODUCE: ("ProduceRequest", "request"),
    FETCH: ("FetchResponse", "response"),
}
"""API key -> its message with records of several formats."""
# The magic of record batches; message sets have 0 or 1.
RECORD_BATCH: Final = 2
# From this version on both APIs carry record batches.
NEWER: Final = 4
MISPLACED: Final = "a format that this version does not carry: magic "
OLDER: Final = "messages from before Kafka 0.11: magic "
NULLS: Final = "null in place of records: "
"""How notes about formats begin, and the one about partitions without even empty records."""

# Limit of the expanded size of a compressed message set that is only counted.
COUNTING_LIMIT: Final = 16 * 1024 * 1024


class Contents(NamedTuple):
    """Totals over all records fields of an exchange."""

    records: int | None = None
    """None when the exchange has no such field."""
    batches: int | None = None
    codecs: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    producer_epochs: tuple[int, ...] = ()
    notes: tuple[Note, ...] = ()
    magics: tuple[int, ...] = ()
    """Formats of the batches; empty where all are of magic 2, as almost all are."""


NOTHING: Final = Contents()
EMPTY: Final = Contents(0, 0)

# Limit of records fields whose batches are cached.
WALKED: Final = 1000
# Limit of their bytes, which stay in memory as long.
WALKED_BYTES: Final = 1024 * 1024


class Walk(NamedTuple):
    """The batches of a records field, as far as they can be read."""

    blob: bytes
    batches: list[Batch]
    counts: list[int]
    """Number of records in each batch."""
    error: DissectError | None
    """Why there are no more batches."""


# Makes a `Contents` from a tuple without a Python frame; `_walk` does the same for `Walk`.
_contents = partial(tuple.__new__, Contents)
_walk = partial(tuple.__new__, Walk)


class Walks(dict[int, Walk]):
    """Cache of the last walks, by the identity of their bytes: the conversation, the row and many
    statistics read those of the same exchange."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = 0

    def keep(self, walk: Walk) -> None:
        """Keep a walk until the limits are reached."""
        self._bytes += len(walk.blob)
        if len(self) >= WALKED or self._bytes > WALKED_BYTES:
            self.clear()
            self._bytes = len(walk.blob)
        self[id(walk.blob)] = walk


_walks: Final = Walks()


def walk_of(blob: bytes) -> Walk:
    """Return the batches of a records field; cached for the last ones."""
    known = _walks.get(id(blob))
    if known is not None and known.blob is blob:
        return known
    only = only_batch(blob)
    if only is not None:
        walk = _walk((blob, [only], [max(0, only.record_count or 0)], None))
        _walks.keep(walk)
        return walk
    found: list[Batch] = []
    error: DissectError | None = None
    try:
        for batch in batches(blob):
            if type(batch) is Batch:
                found.append(batch)
    except DissectError as reason:
        error = reason.without_frames()
    walk = _walk((blob, found, [records_in(blob, batch) for batch in found], error))
    _walks.keep(walk)
    return walk


@cache
def _codecs(codec: int) -> tuple[str, ...]:
    return (name_of(codec),)


def contents_of(blobs: list[bytes] | tuple[Any, ...] | None) -> Contents:
    """Return the totals over these records fields, where the kernel has not counted them."""
    if isinstance(blobs, tuple):
        return Contents(*blobs)
    if not blobs:
        return NOTHING if blobs is None else EMPTY
    if len(blobs) == 1:
        blob = blobs[0]
        batch = only_batch(blob)
        if batch is not None and crc_ok(blob, batch):
            # The usual case: a single intact batch.
            count = max(0, batch.record_count or 0)
            codecs = _codecs(batch.attributes & CODEC_MASK)
            if batch.producer_id < 0:
                return _contents((count, 1, codecs, (), (), (), ()))
            its_id, its_epoch = (batch.producer_id,), (batch.producer_epoch,)
            return _contents((count, 1, codecs, its_id, its_epoch, (), ()))
    records = count = damaged = nulls = 0
    names: dict[str, None] = {}
    producers: dict[int, None] = {}
    epochs: dict[int, None] = {}
    notes: list[Note] = []
    magics: set[int] = set()
    for blob in blobs:
        if not blob:
            nulls += 1
            continue
        walk = walk_of(blob)
        count += len(walk.batches)
        records += sum(walk.counts)
        for batch in walk.batches:
            names[batch.codec_name] = None
            if batch.producer_id >= 0:
                producers[batch.producer_id] = None
                epochs[batch.producer_epoch] = None
            damaged += not crc_ok(blob, batch)
            magics.add(batch.magic)
        error = walk.error
        if error is not None:
            notes.append(Note("error", f"records: {error.reason} at byte {error.offset}"))
    if damaged:
        noun = "a record batch has" if damaged == 1 else f"{damaged} record batches have"
        notes.append(Note("error", f"{noun} a checksum mismatch"))
    if nulls:
        notes.append(Note("note", f"{NULLS}{nulls}", "response"))
    columns = tuple(names), tuple(producers), tuple(epochs), tuple(notes)
    formats = tuple(sorted(magics)) if magics - {RECORD_BATCH} else ()
    return _contents((records, count, *columns, formats))


def counted(facts: BodyFacts) -> BodyFacts:
    """Return facts with totals in place of large records fields: an exchange keeps its facts, and
    has the bytes in its frame."""
    blobs = facts.blobs
    if not isinstance(blobs, list) or sum(map(len, blobs)) <= WALKED_BYTES:
        return facts
    return facts._replace(blobs=tuple(contents_of(blobs)))


def format_notes(key: int | None, version: int | None, magics: tuple[int, ...]) -> tuple[Note, ...]:
    """Return a note where batches have a format that the version does not carry, or an older one.
    `magics`: of `Contents`."""
    carrier = None if key is None else CARRIERS.get(key)
    if carrier is None or version is None:
        return ()
    name, side = carrier
    wrong = misplaced(name, version, magics or (RECORD_BATCH,))
    if wrong:
        listed = " and ".join(map(str, wrong))
        return (Note("error", f"{MISPLACED}{listed}", side),)
    if magic_of(name, version) == RECORD_BATCH and magics:
        return (Note("chat", f"{OLDER}{' and '.join(map(str, magics))}", side),)
    return ()


def misplaced(name: str, version: int, magics: Iterable[int]) -> list[int]:
    """Return the formats that a message of a version may not carry: Produce from version 3 on takes
    nothing but record batches (KIP-98), a Fetch nothing newer than its version knows, as brokers
    convert for it. Brokers take messages of magic 1 in Produce 0 and 1, too."""
    highest = magic_of(name, version)
    if name == CARRIERS[PRODUCE][0]:
        newest = max(highest, 1)
        return [magic for magic in magics if magic > newest or (highest == 2 and magic < 2)]
    return [magic for magic in magics if magic > highest]


def records_in(blob: bytes, batch: Batch) -> int:
    """Return the number of records in a batch; compressed message sets are expanded to count
    them."""
    if batch.record_count is not None:
        return max(0, batch.record_count)
    return len(open_batch(blob, batch, COUNTING_LIMIT).records)
