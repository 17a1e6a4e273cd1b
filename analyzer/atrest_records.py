"""Records of a batch in a segment as `record/1`, those of internal topics decoded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from analyzer.atrest_model import LogBatch
from analyzer.records import Field, batch_objects
from dissectors.errors import DissectError
from dissectors.internal import Content, decode, is_internal
from dissectors.jsonform import dumps, loads
from dissectors.layout import Layout
from dissectors.masking import has_secrets, masked
from dissectors.messages import DATA
from dissectors.records import Partial, Record, batches, open_batch
from dissectors.registry import layout_of, variants_of
from dissectors.values import Uuid

NO_PARTITION: Final = -1
"""Stands in `record/1` for the partition of a file that does not lie in its folder."""


class Place:
    """Where a segment belongs: what its folder says of topic and partition."""

    def __init__(self, topic: str | None, topic_id: str | None, partition: int | None) -> None:
        self.topic = topic
        self.topic_id = None
        self.partition = NO_PARTITION if partition is None else partition
        try:
            self.topic_id = None if topic_id is None else Uuid.parse(topic_id)
        except ValueError:
            pass


def lines_of(batch: LogBatch, data: bytes, place: Place, problems: list[str]) -> bytes:
    """The records of one batch as JSON lines; what cannot be read is added to `problems`."""
    where = f"{batch.file}: batch at position {batch.position}"
    if batch.problem:
        problems.append(f"{where}: {batch.problem}")
    found = next(batches(data))
    assert not isinstance(found, Partial)
    opened = open_batch(data, found)
    if opened.error is not None:
        problems.append(f"{where}: {_reason(opened.error)}")
    field = Field("log", place.topic, place.topic_id, place.partition, data, None)
    lines = batch_objects(None, field, found, opened.records, None, b"\n")
    if not batch.control and not is_internal(place.topic):
        return lines
    pairs = zip(lines.splitlines(), opened.records, strict=True)
    return b"".join(
        dumps(_decoded(loads(line), record, place.topic, batch.control)) + b"\n"
        for line, record in pairs
    )


def records_of(batch: LogBatch, data: bytes, place: Place) -> Iterator[dict[str, Any]]:
    """The same as objects."""
    for line in lines_of(batch, data, place, []).splitlines():
        yield loads(line)


def _reason(error: DissectError) -> str:
    return f"{error.path}: {error.reason}" if error.path else error.reason


def _decoded(
    out: dict[str, Any], record: Record, topic: str | None, control: bool
) -> dict[str, Any]:
    """Add what the key and value of Kafka's own records say, without their secrets."""
    found = decode(topic, record.key, record.value, control=control)
    if found is None:
        return out
    out["decoded"] = {"key": _content(found.key), "value": _content(found.value)}
    for side in ("key", "value"):
        content = getattr(found, side)
        if content is not None and _is_secret(content):
            # SCRAM credentials and delegation tokens of the metadata log.
            out[side] = {"masked": len(getattr(record, side))}
    if found.error is not None:
        out["decoded"]["error"] = str(found.error)
    return out


def _content(content: Content | None) -> dict[str, Any] | None:
    if content is None:
        return None
    body = masked(_layout(content), content.body) if _is_secret(content) else content.body
    out: dict[str, Any] = {"message": content.message, "version": content.version, "body": body}
    if content.note:
        out["note"] = content.note
    if content.surplus:
        out["surplus"] = content.surplus
    return out


def _is_secret(content: Content) -> bool:
    # The key of a control record is two numbers, no message.
    return content.message in DATA and has_secrets(_layout(content))


def _layout(content: Content) -> Layout:
    """The layout that the content was read with: the main one, or the variant that its note
    names."""
    others = variants_of(content.message, content.version)
    named = (each for each in others if each.message.releases in content.note)
    main = layout_of(content.message, content.version)
    return next(named, main) if content.note else main
