"""How records are encoded, as far as headers and first bytes tell: codecs of batches, and the
schema id that serializers of schema registries write before a value, behind a zero byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.batches import CODEC_MASK, Batch
from kafkascope.dissectors.records.compression import name_of
from kafkascope.dissectors.values import read_uvarint

HEADER: Final = 61
"""Bytes of a batch before its records."""
PREFIX: Final = 5
MAX_ID: Final = 10_000_000
"""Registries count from 1; larger numbers are another format that begins with a zero."""


def encoding(blob: bytes, batches: Sequence[Batch]) -> dict[str, Any]:
    """Return `codecs` and `schema`, where there are any."""
    found: dict[str, Any] = {}
    codecs = {batch.attributes & CODEC_MASK for batch in batches} - {0}
    if codecs:
        found["codecs"] = sorted(map(name_of, codecs))
    schema = schema_id(blob, batches[0])
    if schema is not None:
        found["schema"] = schema
    return found


def schema_id(blob: bytes, batch: Batch) -> int | None:
    """Return the schema id of the first record; None where it has none, or is compressed or of an
    older format."""
    if batch.magic < 2 or batch.codec:
        return None
    try:
        _, at = read_uvarint(blob, batch.at + HEADER)  # the size of the record
        _, at = read_uvarint(blob, at + 1)  # behind its attributes: the timestamp
        _, at = read_uvarint(blob, at)
        key, at = read_uvarint(blob, at)
        size, at = read_uvarint(blob, at + _signed(key))
    except (DissectError, IndexError):
        return None
    value = blob[at : at + PREFIX]
    if _signed(size) <= PREFIX or len(value) < PREFIX or value[0]:
        return None
    found = int.from_bytes(value[1:])
    return found if 0 < found < MAX_ID else None


def _signed(value: int) -> int:
    """Return the length that a zigzag varint stands for; none for null."""
    return max(0, (value >> 1) ^ -(value & 1))
