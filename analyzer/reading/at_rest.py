"""The schemas of keys and values in Kafka's own files: those that the user gives, and those in a
registry's topic beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from kafkascope.analyzer.exchanges.seen_schemas import SeenSchemas
from kafkascope.analyzer.filter.decoded.reading import Decoding
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.logdir.opening import AtRest, open_at_rest
from kafkascope.analyzer.logdir.records import field_of
from kafkascope.analyzer.reading.limits import LIMITS
from kafkascope.analyzer.reading.schemas import payloads_for
from kafkascope.analyzer.topics import TopicNames

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.options import ReadOptions
    from kafkascope.schemas.decoding import Payloads


def payloads_at_rest(options: ReadOptions, files: Sequence[AtRest]) -> Payloads | None:
    """Return what decodes keys and values of Kafka's own files; None when the user wants none of
    it. The inputs, and folders of partitions beside them, are searched for schemas at the first
    unknown id."""
    return payloads_for(options.schemas, lambda: seen_at_rest(files), quiet=options.quiet)


def known_at_rest(payloads: Payloads | None) -> Known:
    """Return what filters of Kafka's own files know: keys and values."""
    return Known(decoding=None if payloads is None else Decoding(lambda: payloads, TopicNames))


def seen_at_rest(files: Sequence[AtRest]) -> SeenSchemas:
    """Return the schemas in the records of registries' topics, in these files and in folders of
    partitions that lie beside theirs."""
    seen = SeenSchemas(TopicNames())
    for each in (*files, *_beside(files)):
        _look(each, seen)
    return seen


def _look(file: AtRest, seen: SeenSchemas) -> None:
    """Take the schemas of a log, or leave it when its first records are those of another topic."""
    if file.kind != "log":
        return
    try:
        for _, data in file.batches():
            if not seen.field(field_of(data, file.place)):
                return
    except OSError:
        return  # A broker deletes what it does not need any more.


def _beside(files: Iterable[AtRest]) -> Iterator[AtRest]:
    own = {_folder(each) for each in files}
    for place in dict.fromkeys(each.parent for each in own):
        try:
            folders = sorted(
                islice(
                    (each for each in place.iterdir() if each.is_dir()), LIMITS.partition_folders
                )
            )
        except OSError:
            continue
        for folder in folders:
            if folder in own:
                continue
            try:
                found = open_at_rest(folder)
            except OSError:
                continue
            if found is not None and found.topic is not None:
                yield found


def _folder(file: AtRest) -> Path:
    path = file.path.resolve()
    return path if path.is_dir() else path.parent
