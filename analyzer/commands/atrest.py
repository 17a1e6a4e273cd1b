"""`ls`, `show` and `records` of Kafka's own files: what the commands do when no input is a
capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.atrest_choice import BatchChoice
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.layout import hidden_line
from kafkascope.analyzer.render.listing import FixedColumn, fitted, line
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import safe

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.model import LogBatch, RecoveryVerdict
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.analyzer.payloads.decoding import Payloads

PARTIAL: Final = 4
INTERRUPTED: Final = 130
SHOWN_PROBLEMS: Final = 20

COLUMNS: Final = (
    FixedColumn("number", 6, True),
    FixedColumn("position", 10, True),
    FixedColumn("offsets", 17, True),
    FixedColumn("records", 7, True),
    FixedColumn("size", 8, True),
    FixedColumn("magic", 5, True),
    FixedColumn("codec", 6),
    FixedColumn("time", 24),
    FixedColumn("producer", 14),
    FixedColumn("remarks", 0),
)
TITLES: Final = tuple(column.title for column in COLUMNS)
PRIORITY: Final = ("offsets", "records", "remarks", "size", "time", "codec", "producer", "position")
"""The columns of batches, the most important first."""


def kafka_files(inputs: Sequence[str], *, whole: bool = False) -> list[AtRest]:
    """The inputs when they are files of Kafka's; empty when the first one is none of them. `whole`:
    a broker's log directory stands for all its partitions."""
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
            # The capture's side tells best what is wrong with a path.
            some = []
        if not some:
            if not whole:
                _refuse_log_directory(name)
            return _none_of(found, name)
        found += some
    return found


def _is_capture(name: str) -> bool:
    """Whether name and first bytes agree on a capture: most inputs are one, and what Kafka's own
    files need takes its time to load."""
    if not name.endswith((".pcap", ".pcapng", ".cap")):
        return False
    from kafkascope.captures.inputs.opening import is_capture

    try:
        with Path(name).open("rb") as file:
            return is_capture(file.read(4))
    except (OSError, ValueError):
        return False  # the capture's side tells best what is wrong


def _refuse_log_directory(name: str) -> None:
    """Say what to give instead where all partitions of a broker are too many. A folder of captures
    may have others in it."""
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


def _refuse_capture_options(options: ReadOptions, *, choosing: bool = False) -> None:
    """`choosing`: whether -Y, --from and --to have a meaning here."""
    given = {
        "-Y": bool(options.filter_text) and not choosing,
        "--from": options.begin is not None and not choosing,
        "--to": options.end is not None and not choosing,
        "-T fields": bool(options.fields),
        "--columns": bool(options.columns),
        "--sort": options.sort is not None,
    }
    names = [name for name, there in given.items() if there]
    if names:
        raise click.UsageError(
            f"{names[0]} is for captures, not for Kafka's own files: leave it out"
        )


def _payloads(options: ReadOptions, files: Sequence[AtRest]) -> Payloads | None:
    """What decodes keys and values."""
    from kafkascope.analyzer.reading.at_rest import payloads_at_rest

    return payloads_at_rest(options, files)


class _Report:
    """What is said on stderr about files, and the exit code that follows."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.code = 0

    def verdict(self, verdict: RecoveryVerdict, folder: str = "") -> None:
        """Say a verdict; `folder` stands before the name of the file."""
        if not verdict.sound:
            self.code = PARTIAL
        if not self.options.quiet or not verdict.sound:
            first, *more = verdict.lines()
            for line in (folder + first, *more):
                say(f"{safe(line)}")


# --- ls


def list_files(files: Iterable[AtRest], options: ReadOptions) -> int:
    """Batches of logs, entries of other files; the verdict on stderr, or as an object in JSON."""
    _refuse_capture_options(options, choosing=True)
    files = list(files)
    payloads = _payloads(options, files) if options.filter_text.strip() else None
    choice = BatchChoice(options, files, payloads)
    report = _Report(options)
    with Output(options) as output:
        try:
            rows = _ListRows(output, options)
            for file in files:
                for each in _listed(file, choice):
                    rows.add(each)
                    if rows.full:
                        break
                if rows.full:
                    break
            output.end()
            rows.finish()
        except KeyboardInterrupt:
            return INTERRUPTED
        for verdict in rows.verdicts:
            report.verdict(verdict)
    return report.code


def _listed(
    file: AtRest, choice: BatchChoice
) -> Iterator[LogBatch | RecoveryVerdict | dict[str, Any]]:
    from kafkascope.analyzer.logdir.model import RecoveryVerdict

    if file.holds_batches:
        for each in file.walk():
            # A batch is a tuple too: a named one.
            if isinstance(each, RecoveryVerdict):
                yield each
            elif choice.batch(*each, file.place):
                yield each[0]
    else:
        small = file.small()
        yield from small.entries
        yield small.verdict


class _ListRows:
    """Prints what is listed in the wanted form."""

    def __init__(self, output: Output, options: ReadOptions) -> None:
        self.output = output
        self.form = options.form
        self.limit = options.top if options.top is not None else options.count
        self.shown = 0
        self.verdicts: list[RecoveryVerdict] = []
        self.header: tuple[str, ...] = ()
        self.width = None if options.wide else output.width
        self.columns = list(COLUMNS)
        if self.width is not None:
            self.columns = fitted(COLUMNS, self.width, PRIORITY)

    @property
    def full(self) -> bool:
        """As many lines as were asked for are out."""
        return self.limit is not None and self.shown >= self.limit

    def add(self, each: LogBatch | RecoveryVerdict | dict[str, Any]) -> None:
        """Print a batch or entry; keep a verdict."""
        from kafkascope.analyzer.logdir.model import LogBatch, RecoveryVerdict

        if isinstance(each, RecoveryVerdict):
            self.verdicts.append(each)
            if self.form in ("json", "jsonl"):
                self.output.element(each.to_json())
            return
        self.shown += 1
        if isinstance(each, LogBatch):
            if self.form in ("json", "jsonl"):
                self.output.element(each.to_json())
            elif self.form == "table":
                self.table(_cells(each))
            else:
                self.plain(each.to_json())
        elif self.form in ("json", "jsonl"):
            self.output.element(each)
        else:
            self.plain(each)

    def plain(self, value: dict[str, Any]) -> None:
        """Tab or comma separated, all that the object has."""
        names = tuple(name for name in value if name != "schema")
        if self.header != names:
            self.header = names
            self.output.cells(names)
        self.output.cells(["" if value[name] is None else str(value[name]) for name in names])

    def table(self, cells: Sequence[str]) -> None:
        """Print a row: aligned on a terminal, between tabs in a pipe."""
        if not self.header:
            self.header = TITLES
            self._row(TITLES, "header")
        self._row(cells, "!" if cells[-1].startswith("!") else "")

    def _row(self, cells: Sequence[str], style: str) -> None:
        if self.output.width is None:
            self.output.cells(cells, style)
            return
        shown = [
            cell for cell, column in zip(cells, COLUMNS, strict=True) if column in self.columns
        ]
        self.output.line(line(self.columns, shown, self.width), style)

    def finish(self) -> None:
        """Print which columns are hidden, where rows had columns."""
        hidden = [column.title for column in COLUMNS if column not in self.columns]
        if hidden and self.header == TITLES and self.width is not None:
            self.output.line(hidden_line(hidden, self.width), "~")


def _cells(batch: LogBatch) -> list[str]:
    from kafkascope.analyzer.times import iso_ms

    producer = ""
    if batch.producer_id >= 0:
        producer = f"{batch.producer_id}/{batch.producer_epoch}"
        if batch.base_sequence >= 0:
            producer += f" seq {batch.base_sequence}"
    words = [
        "! " if batch.problem or batch.lost else "",
        batch.problem,
        "would be cut" if batch.lost else "",
        "transactional" if batch.transactional else "",
        "control" if batch.control else "",
        "delete horizon" if batch.delete_horizon else "",
        "log append time" if batch.log_append_time else "",
        f"epoch {batch.leader_epoch}" if batch.leader_epoch > 0 else "",
    ]
    offsets = str(batch.base_offset)
    if batch.last_offset != batch.base_offset:
        offsets += f"-{batch.last_offset}"
    return [
        str(batch.number),
        str(batch.position),
        offsets,
        "?" if batch.records is None else str(batch.records),
        str(batch.size),
        str(batch.magic),
        batch.codec,
        iso_ms(batch.max_timestamp) or "-",
        producer,
        words[0] + ", ".join(word for word in words[1:] if word),
    ]


# --- records


def print_records(
    files: Iterable[AtRest], options: ReadOptions, printer: Callable[[bytes], None]
) -> int:
    """Every record of the files; what is damaged on stderr."""
    read = RecordsAtRest(options, files)
    shown = 0
    for lines in read.lines():
        if options.top is None:
            printer(lines)
            continue
        kept = lines.splitlines(keepends=True)[: options.top - shown]
        shown += len(kept)
        printer(b"".join(kept))
        if shown >= options.top:
            return 0
    return read.finish()


class RecordsAtRest:
    """The records of Kafka's own files that options choose, as lines of record/1."""

    def __init__(self, options: ReadOptions, files: Iterable[AtRest]) -> None:
        self._files = list(files)
        self._options = options
        for file in self._files:
            if not file.holds_batches:
                raise click.UsageError(
                    f'"{file.path}" holds no records; list it with `kafkascope ls`'
                )
        self.payloads = _payloads(options, self._files)
        self._choice = BatchChoice(options, self._files, self.payloads)
        self._problems: list[str] = []
        self._count = 0
        self._verdicts: list[tuple[AtRest, RecoveryVerdict]] = []

    def walk(self) -> Iterator[tuple[AtRest, LogBatch, bytes]]:
        """Yield every batch with its bytes."""
        from kafkascope.analyzer.logdir.model import RecoveryVerdict

        for file in self._files:
            for each in file.walk():
                if isinstance(each, RecoveryVerdict):
                    self._verdicts.append((file, each))
                else:
                    yield file, *each

    def batches(self) -> Iterator[tuple[AtRest, LogBatch, bytes]]:
        """Yield the batches that are chosen."""
        for file, batch, data in self.walk():
            if self._choice.batch(batch, data, file.place):
                yield file, batch, data

    def lines(self) -> Iterator[bytes]:
        """Yield the records that are chosen, some at a time."""
        for file, batch, data in self.walk():
            yield from self.of_batch(file, batch, data)

    def of_batch(self, file: AtRest, batch: LogBatch, data: bytes) -> Iterator[bytes]:
        """Yield the chosen records of a batch."""
        from kafkascope.analyzer.logdir.records import lines_of

        found: list[str] = []
        wanted = self._choice.records(batch, data, file.place)
        yield from lines_of(batch, data, file.place, found, wanted, self.payloads)
        self._count += len(found)
        left = SHOWN_PROBLEMS - len(self._problems)
        self._problems += [f"{self._folder(file)}{each}" for each in found[:left]]

    def _folder(self, file: AtRest) -> str:
        """Return what tells partitions apart, where there are several."""
        if len(self._files) < 2:
            return ""
        path = file.path if file.path.is_dir() else file.path.parent
        return f"{path.name}/"

    def finish(self) -> int:
        """Say what is damaged; return the exit code."""
        report = _Report(self._options)
        for problem in self._problems:
            say(f"{safe(problem)}")
        if self._count > SHOWN_PROBLEMS:
            say(f"{self._count} such problems in all")
        for file, verdict in self._verdicts:
            report.verdict(verdict, self._folder(file))
        return report.code or (PARTIAL if self._count else 0)


# --- show


def show_files(
    files: Sequence[AtRest], numbers: set[int], options: ReadOptions, show_hex: bool
) -> int:
    """Batches by their number in `ls`, opened."""
    _refuse_capture_options(options)
    if not files[0].holds_batches:
        return list_files(files, options)
    if not numbers:
        raise click.UsageError("no batch is selected: add a number (see kafkascope ls)")
    missing = set(numbers)
    payloads = _payloads(options, files)
    with Output(options) as output:
        for file in files:
            for batch, data in file.batches():
                if batch.number not in missing:
                    continue
                missing.discard(batch.number)
                for line in _shown(file, batch, data, options, payloads, show_hex):
                    output.json_line(line) if isinstance(line, bytes) else output.line(line)
                if not missing:
                    return 0
    some = ", ".join(map(str, sorted(missing)[:5])) + (", ..." if len(missing) > 5 else "")
    say(f"there is no batch {some}")
    return 2 if missing == numbers else 0


def _shown(
    file: AtRest,
    batch: LogBatch,
    data: bytes,
    options: ReadOptions,
    payloads: Payloads | None,
    show_hex: bool,
) -> Iterator[str | bytes]:
    from kafkascope.analyzer.logdir.records import records_of
    from kafkascope.dissectors.codec.jsonform import dumps

    records = list(records_of(batch, data, file.place, payloads))
    if options.form in ("json", "jsonl"):
        yield dumps(batch.to_json() | {"content": records})
        return
    from kafkascope.analyzer.exchanges.records import shareable
    from kafkascope.analyzer.logdir.records import field_of
    from kafkascope.analyzer.render.records import lines_inside
    from kafkascope.dissectors.codec.tree import Node

    topic = "" if file.topic is None else f" of {file.topic}-{file.partition}"
    yield f"batch {batch.number}{topic} in {batch.file}"
    if batch.problem:
        yield f"! {batch.problem}"
    if batch.lost:
        yield "! a broker that recovers this file cuts it off"
    field = field_of(data, file.place)
    end = batch.position + batch.size
    yield from lines_inside(Node("records", batch.position, end, data), field, payloads)
    clean = shareable(field)
    if show_hex and clean is not None:
        yield from _hex(clean, batch.position)
    elif show_hex:
        yield "  (the bytes hold secrets and are not shown)"


def _hex(data: bytes, start: int) -> Iterator[str]:
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{start + at:08x}  {row.hex(' '):<47}  {text}"
