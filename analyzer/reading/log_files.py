"""Kafka's own files as inputs: which they are, what -Y, --from and --to choose of them, their
records, and the verdict on each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import safe
from kafkascope.captures.inputs.opening import is_capture
from kafkascope.dissectors.records.records import Record
from kafkascope.errors import PARTIAL
from kafkascope.times import MS

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.model import LogBatch, RecoveryVerdict
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.analyzer.logdir.records import Place
    from kafkascope.schemas.decoding import Payloads

SHOWN_PROBLEMS: Final = 20


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
        from kafkascope.analyzer.reading.at_rest import known_at_rest

        self._predicate = compile_at_rest(options.filter_text, known_at_rest(payloads))
        marks = (options.begin, options.end)
        ends = any(mark is not None and mark.kind == "end" for mark in marks)
        first, last = _span(files, whole=ends)
        self._begin = None if options.begin is None else options.begin.of(first, last)
        self._end = None if options.end is None else options.end.of(first, last)

    def batch(self, batch: LogBatch, data: bytes, place: Place) -> bool:
        """Whether a batch is wanted: part of it lies in the range, and the filter holds."""
        if not self.active:
            return True
        latest = batch.max_timestamp
        earliest = batch.base_timestamp if 0 <= batch.base_timestamp <= latest else latest
        if self._begin is not None and latest * MS < self._begin:
            return False
        if self._end is not None and not 0 <= earliest * MS < self._end:
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

        def matches(record: Record) -> bool:
            stamp = record.timestamp
            if self._begin is not None and (stamp is None or stamp * MS < self._begin):
                return False
            if self._end is not None and (stamp is None or stamp * MS >= self._end):
                return False
            return self._predicate is None or self._predicate(Unit(batch, data, place, record))

        return matches


def _span(files: Sequence[AtRest], *, whole: bool) -> tuple[int, int]:
    """Nanoseconds of the first record, and of the last one when the whole is to be looked at."""
    first, last = None, 0
    for file in files:
        for batch, _ in file.batches():
            stamps = [s for s in (batch.base_timestamp, batch.max_timestamp) if s >= 0]
            if first is None and stamps:
                first = min(stamps)
                if not whole:
                    return first * MS, 0
            last = max(last, *stamps) if stamps else last
    return (first or 0) * MS, last * MS


def kafka_files(inputs: Sequence[str], *, whole: bool = False) -> list[AtRest]:
    """The inputs when they are files of Kafka's; empty when the first one is none of them. `whole`:
    expand a broker's log directory to all its partitions; all are to hold records."""
    if inputs and _is_capture(inputs[0]):
        return []
    from kafkascope.analyzer.logdir.opening import open_all_at_rest, open_at_rest

    found: list[AtRest] = []
    for name in inputs:
        if name == "-":
            return _none_of(found, name)
        try:
            one = open_at_rest(Path(name))
            some = [one] if one is not None else open_all_at_rest(Path(name)) if whole else []
        except (OSError, ValueError):
            # Opening it as a capture gives the best error for a path.
            some = []
        if not some:
            if not whole:
                _refuse_log_directory(name)
            return _none_of(found, name)
        for file in some if whole else ():
            if not file.holds_batches:
                raise click.UsageError(
                    f'"{file.path}" holds no records; list it with `kafkascope ls`'
                )
        found += some
    return found


def _is_capture(name: str) -> bool:
    """Whether name and first bytes agree on a capture: most inputs are one, and what Kafka's own
    files need takes its time to load."""
    if not name.endswith((".pcap", ".pcapng", ".cap")):
        return False

    try:
        with Path(name).open("rb") as file:
            return is_capture(file.read(4))
    except (OSError, ValueError):
        return False  # opening it as a capture gives the best error


def _refuse_log_directory(name: str) -> None:
    """Suggest a partition where all partitions of a broker are too many. A folder of captures may
    have others in it."""
    from kafkascope.analyzer.logdir.opening import open_all_at_rest

    try:
        if any(each.is_file() for each in Path(name).glob("*cap*")):
            return
        partitions = open_all_at_rest(Path(name))
    except (OSError, ValueError):
        return
    if partitions:
        raise click.UsageError(
            f'"{name}" is a broker\'s log directory: give one of its folders '
            f"({partitions[0].path.name}); records, export, stats topics and spark take all of it"
        )


def _none_of(found: list[AtRest], name: str) -> list[AtRest]:
    if found:
        raise click.UsageError(f'"{name}" is none of Kafka\'s own files, "{found[0].path}" is one')
    return []


def say_verdict(verdict: RecoveryVerdict, options: ReadOptions, folder: str = "") -> int:
    """Print a verdict, and return its exit code; `folder`: prefix of the file's name."""
    if not options.quiet or not verdict.sound:
        first, *more = verdict.lines()
        for line in (folder + first, *more):
            say(safe(line))
    return 0 if verdict.sound else PARTIAL


class RecordsAtRest:
    """The records of Kafka's own files that options choose, as lines of record/1."""

    def __init__(self, options: ReadOptions, files: Iterable[AtRest]) -> None:
        from kafkascope.analyzer.reading.at_rest import payloads_at_rest

        self._files = list(files)
        self._options = options
        self.payloads = payloads_at_rest(options, self._files)
        self._choice = BatchChoice(options, self._files, self.payloads)
        self._problems: list[str] = []
        self._count = 0
        self._verdicts: list[tuple[AtRest, RecoveryVerdict]] = []

    def walk(self) -> Iterator[tuple[AtRest, LogBatch, bytes]]:
        from kafkascope.analyzer.logdir.model import RecoveryVerdict

        for file in self._files:
            for each in file.walk():
                if isinstance(each, RecoveryVerdict):
                    self._verdicts.append((file, each))
                else:
                    yield file, *each

    def batches(self) -> Iterator[tuple[AtRest, LogBatch, bytes]]:
        for file, batch, data in self.walk():
            if self._choice.batch(batch, data, file.place):
                yield file, batch, data

    def lines(self) -> Iterator[bytes]:
        for file, batch, data in self.walk():
            yield from self.of_batch(file, batch, data)

    def of_batch(self, file: AtRest, batch: LogBatch, data: bytes) -> Iterator[bytes]:
        from kafkascope.analyzer.logdir.records import lines_of

        found: list[str] = []
        wanted = self._choice.records(batch, data, file.place)
        yield from lines_of(batch, data, file.place, found, wanted, self.payloads)
        self._count += len(found)
        left = SHOWN_PROBLEMS - len(self._problems)
        self._problems += [f"{self._folder(file)}{each}" for each in found[:left]]

    def _folder(self, file: AtRest) -> str:
        """Return the folder of a file's partition, where there are several files."""
        if len(self._files) < 2:
            return ""
        path = file.path if file.path.is_dir() else file.path.parent
        return f"{path.name}/"

    def finish(self) -> int:
        """Print damages; return the exit code."""
        for problem in self._problems:
            say(safe(problem))
        if self._count > SHOWN_PROBLEMS:
            say(f"{self._count} such problems in all")
        codes = [
            say_verdict(verdict, self._options, self._folder(file))
            for file, verdict in self._verdicts
        ]
        return max([*codes, PARTIAL if self._count else 0])
