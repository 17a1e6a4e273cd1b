"""One reading of captures: filter, range, count, progress, and the exit code.

A command takes exchanges in one of three ways, which the options and the input decide between:

    rows                 one process, one exchange after the other, after filter, range and count
    batches              one process, as they were read, where all are selected (`takes_all`):
                         the kernel's pairs are printed without an object for each exchange
    divided, then rest   several processes with some of the connections each

Where they turn out to need one process after all, `rest` reads from the start, and skips what was
already yielded.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain, starmap
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias, cast

import click

from kafkascope.analyzer.exchanges import rows
from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.exchanges.pairs import Item, Rows, exchange_of
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.heap import large_apart
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.pool.captured_sides import CapturedSides
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.remarks import (
    cut_packets,
    note_damage,
    nothing_found,
    one_way,
    remarks,
)
from kafkascope.analyzer.render.times import Mark, Times
from kafkascope.analyzer.terminal import say, status
from kafkascope.analyzer.text import plural, safe
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.opening import is_live, is_once
from kafkascope.captures.inputs.spool import Spool
from kafkascope.errors import INTERRUPTED, PARTIAL
from kafkascope.extras import require

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.offline import Legs
    from kafkascope.analyzer.exchanges.records import Chosen, Problem
    from kafkascope.analyzer.filter.backends.records import RecordFilter
    from kafkascope.analyzer.filter.language import Bound, Filter
    from kafkascope.analyzer.findings.evidence import Evidence, ExpectedErrors
    from kafkascope.analyzer.findings.model import Finding
    from kafkascope.analyzer.pipeline.stored import Stored
    from kafkascope.analyzer.pool.messages import Shape, ShapedBlock, Work
    from kafkascope.analyzer.pool.processes import Pool
    from kafkascope.analyzer.topics import TopicNames
    from kafkascope.schemas.decoding import Payloads

RowAndExchange: TypeAlias = tuple[Row, Exchange]

SHOWN_PROBLEMS: Final = 5
UNLOGGED: Final = {
    "records": "contents of records",
    "records of this choice": "contents of records",
    "record schemas": "contents of records",
    "messages": "sizes of messages",
}
"""What a table lacks -> what no line of a request log has."""
# Bytes of input from which on frames may be large: a copy of one of 17 MB that goes leaves a hole
# in the heap that nothing else fits in, 20 MB of 295. Smaller inputs do without, for it imports
# ctypes, 4 ms.
LARGE_INPUT: Final = 8 << 20


class Reading:
    """One pass over the inputs; a context manager. `code` is the exit code of the command."""

    def __init__(
        self,
        options: ReadOptions,
        *,
        spool: bool = False,
        known: Known | None = None,
        records: bool = False,
        once: bool = False,
    ) -> None:
        """`known`: marks and comments, if any. `records`: the filter chooses records, see
        `chosen`. `once`: exchanges that a proxy or another broker forwarded are left out, as they
        are for `records`."""
        self.options = options
        # A wrong filter is reported before anything is opened.
        self._known = known or Known()
        if options.filter_text.strip() and not options.schemas.off:
            from kafkascope.analyzer.filter.decoded.reading import Decoding

            # Schemas are read only where a filter asks for them.
            self._known.decoding = Decoding(
                lambda: self.payloads, lambda: self.capture.context.names
            )
        names = (lambda: self.capture.context.names) if records else None
        self._filter, uses = _filter_of(options.filter_text, self._known, names)
        self._filter_uses = uses
        field = min(uses.notes, default="")
        if known is None and field:
            raise click.UsageError(
                f"{field} is available in the terminal UI only (kafkascope open)"
            )
        self.stored = _stored(options)
        """Tables in place of captures: see `counting.count`; None for captures."""
        self.rows_suffice = False
        """Set by callers that need no messages: rows can then come from tables."""
        self.every: Callable[[Row, Exchange], None] | None = None
        """Called with all exchanges, whether they match or not."""
        self._evidence: Evidence | None = None
        self._expected: ExpectedErrors | None = None
        """Decides about expected errors, where the filter asks and the input can be read twice."""
        twice = self.stored is None and not any(map(is_once, options.inputs))
        if uses.findings or ("expected" in uses.fields and twice):
            from kafkascope.analyzer.findings.evidence import Evidence, ExpectedErrors

            findings = findings_of(options)
            self._expected = ExpectedErrors(findings)
            if uses.findings:
                self._evidence = Evidence(findings)
        self.capture: OpenInput
        if self.stored is not None:
            self.capture = cast("OpenInput", self.stored)
        else:
            copy = Spool() if spool else None
            try:
                self.capture = open_capture(
                    options.inputs,
                    decode_as=options.ports,
                    legs="both" if options.both_legs else "client",
                    spool=copy,
                    keylog=options.keylog,
                    zone=options.zone,
                )
            except BaseException:
                if copy is not None:
                    copy.close()
                raise
            if self.capture.source.size >= LARGE_INPUT:
                large_apart()
        self.live = any(map(is_live, options.inputs))
        """Whether packets arrive during the reading, so that lines are shown at once."""
        if uses.decoded:
            _ = self.payloads  # Errors in schemas are reported before the reading.
        self.code = 0
        self._shown = 0
        """Number of matching exchanges."""
        self.exchanges_read = 0
        """Number of exchanges, whether they match or not."""
        self.first_ns = 0 if self.stored is None else self.stored.first_ns
        self._last_ns = 0
        """Time of the last exchange, when a range is relative to it."""
        self._sides = CapturedSides()
        self.pooled: Pool | None = None
        """The processes that have read all of the input; None where one process reads."""
        self._empty: list[str] = []
        """Nouns of the tables that have no rows."""
        self._records = records
        self._once = once or records
        self._done: tuple[int, set[int]] = (1, set())
        """Numbers that several processes had yielded before one process had to read from the start:
        those below the first value, except the set."""
        self._progress = Progress(options, self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.clear()
        self.capture.close()

    def demand_packets(self, command: str) -> None:
        """Refuse request logs where bytes of messages are needed."""
        source = self.capture.source
        for index in source.text_inputs():
            raise click.UsageError(
                f"{source.names[index]} is a request log: {command} needs a capture, because the "
                "log lacks bytes and records of messages (see docs/requestlog.md)"
            )

    def rows(self) -> Iterator[RowAndExchange]:
        """Yield the matching exchanges, those of files in the order of their numbers. ctrl+c ends
        the reading, with the requests in flight."""
        pairs: Iterable[RowAndExchange] = self._all()
        begin, end = self.options.begin, self.options.end
        early = [None if mark is None or mark.kind == "end" else mark for mark in (begin, end)]
        if any(early):
            pairs = self._between(pairs, *early)
        if self._needs_end():
            # A range relative to the end is known at the end: all exchanges are in memory.
            everything = list(pairs)
            self._last_ns = max((row.time_ns for row, _ in everything), default=0)
            pairs = self._between(everything, begin, end)
        if self._filter is not None:
            matches = self._filter
            pairs = (pair for pair in pairs if matches(*pair))
        count = self.options.count
        try:
            if not self.options.selects:
                yield from pairs  # All match.
            for row, exchange in pairs:
                self._shown += 1
                yield row, exchange
                if self._shown == count:
                    return
        except KeyboardInterrupt:
            # A live capture usually ends so: requests in flight are yielded as at any end.
            self.code = INTERRUPTED
            names = self.capture.context.names
            for exchange in self.capture.in_flight():
                row = rows.row_of(exchange, names)
                if self.every is not None:
                    self.every(row, exchange)
                if self._filter is None or self._filter(row, exchange):
                    yield row, exchange

    def shaped(
        self,
        shape: Callable[[Row, Exchange | None], bytes],
        fields: Iterable[str] | None = (),
        batch: Callable[[Rows, list[Item]], bytes] | None = None,
    ) -> Iterator[bytes]:
        """Yield the results of `shape` for the matching exchanges, one or many at a time. `fields`:
        those that it prints beside ordinary columns; None: one process has to print. `batch` gives
        the same result for exchanges as they were read."""
        if batch is not None and self.takes_all:
            # Printing pairs takes one process a quarter of the time that a worker needs for
            # objects, and the output of workers has to be copied by their parent.
            yield from starmap(batch, self.batches())
            return
        if fields is not None and self.jobs and _in_parts(fields):
            blocks = self.divided(lambda row, exchange, *_: shape(row, exchange))
            yield from (block.data for block in blocks)
        yield from starmap(shape, self.rest())

    def divided(self, shape: Shape) -> Iterator[ShapedBlock]:
        """Yield the blocks that several processes make of the matching exchanges, as far as they
        can; `rest` has the other exchanges. `shape`: as that of `Work`."""
        if not (jobs := self.jobs):
            return
        from kafkascope.analyzer.pool.messages import Work
        from kafkascope.captures.streams.shares import NeedsSingleProcess

        work = Work(self._filter, shape)
        with suppress(NeedsSingleProcess):
            for block in self.together(jobs, work):
                if block.exchanges:
                    yield block

    def rest(self) -> Iterator[RowAndExchange]:
        """Yield the matching exchanges that several processes have not yielded: all, where one
        process reads."""
        if self.pooled is None:
            begin, skipped = self._done
            for row, exchange in self.rows():
                if row.number >= begin or row.number in skipped:
                    yield row, exchange

    def together(self, jobs: int, work: Work) -> Iterator[ShapedBlock]:
        """Yield the blocks that several processes make of the exchanges; then `pooled` has their
        counts. Raises `NeedsSingleProcess` when one process has to read, from the start."""
        from kafkascope.analyzer.pool.processes import Pool
        from kafkascope.captures.streams.shares import NeedsSingleProcess

        source = self.capture.source
        pool = Pool(jobs, self._opened, work)
        merge = pool.merge
        try:
            with pool:

                def tick() -> None:
                    source.statistics.captured_bytes = merge.read
                    self.exchanges_read = merge.exchanges
                    self._progress.tick()

                yield from pool.run(tick)
        except NeedsSingleProcess:
            source.statistics.captured_bytes = self.exchanges_read = 0
            self._done = merge.order.done()
            raise
        summary = pool.conclude(self.capture)
        self._sides = summary.heard
        self.exchanges_read, self.first_ns = merge.exchanges, summary.first[1]
        self._shown = merge.wanted
        self.pooled = pool
        for text in summary.messages:
            say(text, bare=True)
        if pool.interrupted:
            self.code = INTERRUPTED

    @cached_property
    def jobs(self) -> int:
        """How many processes may read the input together; 0 for one alone."""
        options, source = self.options, self.capture.source
        if options.jobs == 1 or self.stored is not None or self.live or self._expected is not None:
            return 0
        if any(source.texts.values()):
            return 0
        if options.count or options.begin or options.end:
            return 0
        if options.schemas.registry:
            return 0  # each process would look the same schemas up
        if not _in_tasks(self._filter_uses):
            return 0
        from kafkascope.analyzer.pool.jobs import jobs_for

        return jobs_for(source, options.jobs)

    def _opened(self) -> OpenInput:
        """Open the input once more, as it was opened."""
        source = self.capture.source
        again = Source(source.names, order=source.order)
        again.size = source.size
        again.secrets += source.secrets
        again.texts |= source.texts
        log, legs = self.capture.context.keys.log, self.capture.legs
        zone = self.options.zone
        opened = OpenInput(again, decode_as=self.options.ports, legs=legs, log=log, zone=zone)
        # Filters and schemas of this reading, which a worker has copies of, know topics by these.
        opened.context.names = self.capture.context.names
        return opened

    def _all(self) -> Iterator[RowAndExchange]:
        if self.stored is not None:
            if not self.rows_suffice:
                raise self.stored.no_exchanges()
            for pair in self.stored.rows():
                self.exchanges_read += 1
                yield pair
            return
        row_maker = self._rows
        evidence, expected, every = self._evidence, self._expected, self.every
        for item in chain.from_iterable(self._batches()):
            row, exchange = row_maker.both(item)
            if expected is not None and row.errors:
                row = replace(row, expected=expected(row, exchange))
            if evidence is not None:
                evidence.note(self._known, row, exchange)
            if every is not None:
                every(row, exchange)
            if not (self._once and row.forwarded):
                yield row, exchange

    def _batches(self) -> Iterator[list[Item]]:
        """Yield all exchanges, those that a few packets complete at a time."""
        sides = self._sides
        for batch in self.capture.batches():
            if not self.exchanges_read:
                exchange = exchange_of(batch[0])
                self.first_ns = min(exchange.time_ns, exchange.connection.first_ns)
            self.exchanges_read += len(batch)
            sides.note_all(batch)
            self._progress.tick()
            yield batch

    def batches(self) -> Iterator[tuple[Rows, list[Item]]]:
        """Yield all exchanges as they were read, those that a few packets complete at a time, with
        the maker of their rows. Only where `takes_all`. ctrl+c ends it, with the requests in
        flight."""
        try:
            for items in self._batches():
                self._shown += len(items)
                yield self._rows, items
        except KeyboardInterrupt:
            self.code = INTERRUPTED
            yield self._rows, [*self.capture.in_flight()]

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self.capture.context)

    @property
    def takes_all(self) -> bool:
        """Whether all exchanges are selected, and no step in between needs rows."""
        options = self.options
        needs_rows = self._filter or self._evidence or self._expected or self.every or self.stored
        ranged = options.begin is not None or options.end is not None or self._needs_end()
        return not (needs_rows or ranged or options.selects)

    def _is_cut(self) -> bool:
        """Return whether the snaplen, or a mirror port, cut off bytes of Kafka."""
        if not self.capture.source.statistics.cut_packets:
            return False
        return (
            not self.exchanges_read or self._sides.holes or self.capture.context.skipped_bytes > 0
        )

    @cached_property
    def payloads(self) -> Payloads | None:
        """The decoder of keys and values by their schemas; None without decoding. To be called
        before the exchanges are read, so that it sees the schemas in them."""
        from kafkascope.analyzer.reading.schemas import payloads_of

        return payloads_of(self.options, self.capture)

    @property
    def chosen(self) -> Chosen | None:
        """The chosen records of the exchange that `rows` yielded last, where a filter chooses
        records; None: all of them."""
        return None if self._filter is None else getattr(self._filter, "chosen", None)

    @property
    def is_piece(self) -> bool:
        """Whether only a selection of exchanges is read, by the options or in stored tables."""
        return self.options.selects if self.stored is None else bool(self.stored.filter)

    @property
    def filter(self) -> Filter | RecordFilter | None:
        """The compiled filter; None without one."""
        return self._filter

    @property
    def bound_filter(self) -> Bound | None:
        """The bound expression of the filter; None without one."""
        return None if self._filter is None else self._filter.bound

    def times(self) -> Times:
        """Return how times are written, once the first exchange is read."""
        times = Times(self.options.time_format)
        times.saw(self.first_ns)
        return times

    def span(self) -> tuple[int | None, int | None]:
        begin, end = self.options.begin, self.options.end
        if not self.exchanges_read:
            return None, None  # there are no times for a relative range
        first, last = self.first_ns, self._last_ns
        return (
            None if begin is None else begin.of(first, last),
            None if end is None else end.of(first, last),
        )

    def _needs_end(self) -> bool:
        marks = (self.options.begin, self.options.end)
        return any(mark is not None and mark.kind == "end" for mark in marks)

    def _between(
        self, pairs: Iterable[RowAndExchange], begin: Mark | None, end: Mark | None
    ) -> Iterator[RowAndExchange]:
        for row, exchange in pairs:
            first, last = self.first_ns, self._last_ns
            after = begin is None or row.time_ns >= begin.of(first, last)
            if after and (end is None or row.time_ns < end.of(first, last)):
                yield row, exchange

    def lacks(self, things: str) -> None:
        """Note that a table has no rows, so that `finish` reports it; `things`: its noun."""
        if things not in self._empty:
            self._empty.append(things)

    def _nothing_shown(self) -> Iterator[str]:
        selects, total = self.options.selects, self.exchanges_read
        if selects and not self._shown:
            what = "have records that match" if self._records else "match"
            yield f"0 of {plural(total, 'exchange')} {what}"
            yield from self._absent_names()
            yield from self._when()
            return
        where = "this capture" if not selects else f"the {plural(self._shown, 'matching exchange')}"
        only_logs = self.capture.logs is not None and not self.capture.source.statistics.packets
        for things in self._empty:
            if only_logs and things in UNLOGGED:
                yield f"request logs do not show {UNLOGGED[things]} (docs/requestlog.md)"
            else:
                yield f"no {things} in {where}"

    def _when(self) -> Iterator[str]:
        """Yield when the packets were captured, where a time range has none of them: `--from` and
        `--to` are local time, and a time copied from a log often is not."""
        statistics = self.capture.source.statistics
        first, last = statistics.first_ns, statistics.last_ns
        if (self.options.begin or self.options.end) and first is not None and last is not None:
            local = Times("ad")
            yield f"the capture lasts from {local.text(first)} to {local.text(last)}, local time"

    def _absent_names(self) -> Iterator[str]:
        """Yield the names in the filter that the input lacks, from another pass."""
        if self.stored is not None or any(map(is_once, self.options.inputs)):
            return
        from kafkascope.analyzer.reading.absent import absent, named

        if tests := named(self.bound_filter):
            with self._opened() as capture:
                names = capture.context.names
                yield from absent(tests, (rows.row_of(e, names) for e in capture.exchanges()))

    @property
    def is_one_way(self) -> bool:
        """Whether packets of only one side of the connections were captured."""
        return len(self._sides.sides) == 1

    def no_exchange(self, numbers: str, where: str = "this capture") -> str:
        """Return the sentence that there are no such exchanges; all must have been read."""
        total = self.exchanges_read
        among = " among the matching ones" if self.options.selects else ""
        range_ = f"; {where} has 1 to {total}" if total else ""
        return f"there is no exchange {numbers}{among}{range_}"

    def finish(self, *, tls: bool = True) -> int:
        """Write messages about the capture to stderr, and return the exit code. `tls`: whether
        exchanges that cannot be decrypted are missing in the output."""
        self._progress.clear()
        damage = self.capture.source.statistics.damage
        if self.capture.damage is not None and self.capture.damage not in damage:
            damage = [*damage, self.capture.damage]
        for place in damage:
            say(f"{place}")
        cut = self._is_cut()
        if (damage or cut) and not self.code:
            self.code = PARTIAL
        if self.options.quiet and cut:
            say(f"{cut_packets(self.capture)}")
        if not self.options.quiet:
            for error in self.capture.key_log_errors() if self.stored is None else ():
                say(f"{error}")
            if not self.exchanges_read and self.code != INTERRUPTED:
                say(f"{nothing_found(self.capture, piped=self.live)}")
            elif self.code != INTERRUPTED:
                for line in self._nothing_shown():
                    say(line)
            if self.is_one_way and self.options.count is None:
                say(f"{one_way(*self._sides.sides)}")
            tls &= not (self._shown and (self.options.filter_text or self.options.count))
            for line in remarks(self.capture, verbose=self.options.verbose, tls=tls):
                say(f"{line}")
        return self.code


def _in_tasks(uses: _FilterFields) -> bool:
    """Return whether a process with some of the connections can evaluate a filter."""
    if not uses.fields:
        return True
    from kafkascope.analyzer.filter.bind import IN_TASKS

    return uses.fields <= IN_TASKS


def _in_parts(names: Iterable[str]) -> bool:
    """Return whether a process with some of the connections can print fields."""
    if not names:
        return True
    from kafkascope.analyzer.filter.bind import IN_TASKS, NUMBERS, resolve

    fields = [field for name in names if (field := resolve(name)) is not None]
    return all(path or field.name in IN_TASKS | NUMBERS for field, path in fields)


class _FilterFields(NamedTuple):
    """The fields that a filter uses."""

    fields: frozenset[str] = frozenset()
    notes: frozenset[str] = frozenset()
    """Those of them that depend on the user's notes."""
    findings: frozenset[str] = frozenset()
    """Those of them that depend on findings."""
    decoded: bool = False
    """Whether keys and values decoded by schema are among them."""


def _filter_of(
    text: str, known: Known, records: Callable[[], TopicNames] | None = None
) -> tuple[Filter | RecordFilter | None, _FilterFields]:
    """Return the filter of a text, and the fields that it uses; `FilterError` when it is invalid.
    Without a filter the language is not imported, which saves a twentieth of a short run.
    `records`: names of topics, for a filter that chooses records."""
    if not text.strip():
        return None, _FilterFields()
    from kafkascope.analyzer.filter.bind import fields_of
    from kafkascope.analyzer.filter.fields import DECODED, FOUND, MARKS
    from kafkascope.analyzer.filter.language import compile_filter

    compiled: Filter | RecordFilter
    if records is None:
        compiled = compile_filter(text, known)
    else:
        from kafkascope.analyzer.filter.backends.records import compile_records

        compiled = compile_records(text, records, known)
    fields = frozenset(fields_of(compiled.bound))
    decoded = bool(fields & DECODED)
    return compiled, _FilterFields(fields, fields & MARKS, fields & FOUND, decoded)


def _stored(options: ReadOptions) -> Stored | None:
    """Return the tables of the pipeline, when they are the input."""
    if len(options.inputs) != 1 or not (Path(options.inputs[0]) / "_manifest").is_dir():
        return None
    for option, value in (("-d", options.ports), ("--keylog", options.keylog)):
        if value:
            text = f"holds tables: {option} applies only when tables are made"
            raise click.UsageError(f"{options.inputs[0]} {text}")
    require("reading tables of kafkascope spark")
    from kafkascope.analyzer.pipeline.stored import Stored

    if text := options.filter_text:
        from kafkascope.analyzer.filter.bind import IN_TABLES, demand
        from kafkascope.analyzer.filter.language import bind

        hint = "filter the captures, or make tables of a selection: kafkascope spark -Y ..."
        demand(bind(text), text, IN_TABLES, "tables have no {}", hint)
    return Stored(options.inputs[0])


def findings_of(options: ReadOptions) -> list[Finding]:
    """Return the inputs' findings, from a separate pass: they are known only at the end."""
    from kafkascope.analyzer.findings import Findings
    from kafkascope.analyzer.statistics.feed import Feed

    if any(map(is_once, options.inputs)):
        text = "the filter field finding needs seekable input: save it to a file first"
        raise click.UsageError(text)
    from kafkascope.analyzer.reading.schemas import payloads_of

    findings = Findings(payloads=payloads_of(options))
    feed = Feed((findings,))
    legs: Legs = "both" if options.both_legs else "client"
    with open_capture(
        options.inputs,
        decode_as=options.ports,
        legs=legs,
        keylog=options.keylog,
        zone=options.zone,
    ) as capture:
        capture.watch = findings.saw
        capture.named = findings.named
        names = capture.context.names
        for exchange in capture.exchanges():
            feed.add(rows.row_of(exchange, names), exchange)
        feed.settle()
        note_damage(findings, capture)
        return findings.reported(names)


def report_problems(problems: list[Problem], options: ReadOptions) -> None:
    """Report which records could not be read or are damaged: the first few, and the number of
    others."""
    if options.quiet:
        return
    for problem in problems[:SHOWN_PROBLEMS]:
        say(f"{safe(str(problem))}")
    if len(problems) > SHOWN_PROBLEMS:
        say(f"{len(problems)} such problems in all")


class Progress:
    """A progress line on a terminal's stderr, shown after the first second, at most ten times per
    second."""

    def __init__(self, options: ReadOptions, reading: Reading) -> None:
        self._reading = reading
        self._begun = time.monotonic()
        self._next = self._begun + 1.0
        self._shown = False
        # A table that scrolls on the same terminal shows progress by itself.
        self._on = options.progress and not options.quiet and sys.stderr.isatty()
        self._on = self._on and not sys.stdout.isatty()

    def tick(self) -> None:
        now = time.monotonic()
        if not self._on or now < self._next:
            return
        self._next = now + 0.1
        source = self._reading.capture.source
        read = source.statistics.captured_bytes
        text = f"{self._reading.exchanges_read:,} exchanges, {read / 1e6:,.0f} MB".replace(",", " ")
        if 0 < read < source.size:
            left = (now - self._begun) * (source.size / read - 1)
            text += f" ({100 * read // source.size} %, {left:.0f} s left)"
        status(text)
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            status()
            self._shown = False
