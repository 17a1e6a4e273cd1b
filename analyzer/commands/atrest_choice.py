"""What -Y, --from and --to choose of Kafka's own files: batches in `ls`, records in `records`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from kafkascope.analyzer.filter.known import Known
    from kafkascope.analyzer.logdir.model import LogBatch
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.analyzer.logdir.records import Place
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.reading.options import ReadOptions
    from kafkascope.dissectors.records.records import Record

NS_PER_MS: Final = 1_000_000


class BatchChoice:
    """Batches and records that are wanted. `FilterError` for a filter that is wrong here."""

    def __init__(
        self, options: ReadOptions, files: Sequence[AtRest], payloads: Payloads | None
    ) -> None:
        """`payloads`: decodes keys and values for filters."""
        self.active = bool(options.filter_text.strip() or options.begin or options.end)
        """Whether anything is left out at all."""
        if not self.active:
            return
        for file in files:
            if not file.holds_batches:
                name = file.path.name
                raise click.UsageError(
                    f'-Y, --from and --to select batches, and "{name}" has none: leave them out'
                )
        from kafkascope.analyzer.filter.backends.logdir import compile_at_rest

        self._predicate = compile_at_rest(options.filter_text, _known(payloads))
        first, last = _span(files, whole="end" in _kinds(options))
        self._begin = None if options.begin is None else options.begin.of(first, last)
        self._end = None if options.end is None else options.end.of(first, last)

    def batch(self, batch: LogBatch, data: bytes, place: Place) -> bool:
        """Whether a batch is wanted: part of it lies in the range, and the filter holds."""
        if not self.active:
            return True
        latest = batch.max_timestamp
        earliest = batch.base_timestamp if 0 <= batch.base_timestamp <= latest else latest
        if self._begin is not None and latest * NS_PER_MS < self._begin:
            return False
        if self._end is not None and not 0 <= earliest * NS_PER_MS < self._end:
            return False
        if self._predicate is None:
            return True
        from kafkascope.analyzer.filter.backends.logdir import Unit

        return self._predicate(Unit(batch, data, place))

    def records(
        self, batch: LogBatch, data: bytes, place: Place
    ) -> Callable[[Record], bool] | None:
        """Whether a record of a batch is wanted; None when all are."""
        if not self.active:
            return None
        from kafkascope.analyzer.filter.backends.logdir import Unit

        def wanted(record: Record) -> bool:
            stamp = record.timestamp
            if self._begin is not None and (stamp is None or stamp * NS_PER_MS < self._begin):
                return False
            if self._end is not None and (stamp is None or stamp * NS_PER_MS >= self._end):
                return False
            return self._predicate is None or self._predicate(Unit(batch, data, place, record))

        return wanted


def _known(payloads: Payloads | None) -> Known:
    from kafkascope.analyzer.filter.decoded.reading import Decoding
    from kafkascope.analyzer.filter.known import Known
    from kafkascope.analyzer.topics import TopicNames

    return Known(decoding=None if payloads is None else Decoding(lambda: payloads, TopicNames))


def _kinds(options: ReadOptions) -> set[str]:
    return {mark.kind for mark in (options.begin, options.end) if mark is not None}


def _span(files: Sequence[AtRest], *, whole: bool) -> tuple[int, int]:
    """Nanoseconds of the first record, and of the last one when the whole is to be looked at."""
    first, last = None, 0
    for file in files:
        for batch, _ in file.batches():
            stamps = [s for s in (batch.base_timestamp, batch.max_timestamp) if s >= 0]
            if first is None and stamps:
                first = min(stamps)
                if not whole:
                    return first * NS_PER_MS, 0
            last = max(last, *stamps) if stamps else last
    return (first or 0) * NS_PER_MS, last * NS_PER_MS
