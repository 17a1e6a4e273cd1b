"""Records of a batch in a segment as `record/1`, those of internal topics decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.exchanges.records import RecordField, batch_objects, shareable
from kafkascope.analyzer.logdir.model import LogBatch
from kafkascope.dissectors.codec.jsonform import loads
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.records.records import Batch, Partial, Record, batches, open_batch
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    from kafkascope.schemas.decoding import Payloads

# Stands in `record/1` for the partition of a file that does not lie in its folder.
NO_PARTITION: Final = -1


class Place:
    """The topic and partition of a segment, by its folder."""

    def __init__(self, topic: str | None, topic_id: str | None, partition: int | None) -> None:
        self.topic = topic
        self.topic_id = None
        self.partition = NO_PARTITION if partition is None else partition
        try:
            self.topic_id = None if topic_id is None else Uuid.parse(topic_id)
        except ValueError:
            pass


def batch_of(data: bytes) -> Batch:
    """Return the batch that these bytes are."""
    found = next(batches(data))
    assert not isinstance(found, Partial)
    return found


def field_of(data: bytes, place: Place) -> RecordField:
    """The bytes of a batch as a records field."""
    return RecordField("log", place.topic, place.topic_id, place.partition, data, None)


def opened(data: bytes, place: Place) -> Sequence[Record]:
    """The records of one batch as far as they can be read, without secrets; none where these
    cannot be taken out."""
    clean = shareable(field_of(data, place))
    if clean is None:
        return []
    try:
        found = next(batches(clean))
    except DissectError:
        return []
    return [] if isinstance(found, Partial) else open_batch(clean, found).records


def lines_of(
    batch: LogBatch,
    data: bytes,
    place: Place,
    problems: list[str],
    wanted: Callable[[Record], bool] | None = None,
    payloads: Payloads | None = None,
) -> Iterator[bytes]:
    """The records of one batch as JSON lines, some of them at a time, all or those that are wanted;
    what cannot be read is added to `problems`. `payloads`: decodes keys and values."""
    where = f"{batch.file}: batch at position {batch.position}"
    if batch.problem:
        problems.append(f"{where}: {batch.problem}")
    found = batch_of(data)
    read = open_batch(data, found)
    if read.error is not None:
        path = f"{read.error.path}: " if read.error.path else ""
        problems.append(f"{where}: {path}{read.error.reason}")
    records = read.records
    if wanted is not None:
        records = [record for record in records if wanted(record)]
    return batch_objects(None, field_of(data, place), found, records, None, b"\n", payloads)


def records_of(
    batch: LogBatch, data: bytes, place: Place, payloads: Payloads | None = None
) -> Iterator[dict[str, Any]]:
    """The same as objects."""
    for lines in lines_of(batch, data, place, [], None, payloads):
        for line in lines.splitlines():
            yield loads(line)
