"""Reads captures once: filter, time range, count, progress, and the exit code.

A command takes exchanges in one of three ways; the options and the input decide which:

    rows                 one process: exchange by exchange, after filter, range and count
    batches              one process, if all exchanges are selected (`takes_all`): in batches as
                         read, without an object for each pair of the kernel
    divided, then rest   several processes, each with some of the connections

If the processes need each other's connections, `rest` reads again from the start in one process,
and skips the exchanges that were already yielded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from itertools import chain, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, cast

import click

from kafkascope.analyzer.exchanges import rows
from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.exchanges.pairs import Item, Rows, exchange_of
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.heap import large_apart
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.pool.captured_sides import CapturedSides
from kafkascope.analyzer.reading.filters import filter_of, in_parts, in_tasks
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.progress import Progress
from kafkascope.analyzer.reading.remarks import (
    cut_packets,
    note_damage,
    nothing_found,
    one_way,
    remarks,
)
from kafkascope.analyzer.render.times import Mark, Times
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import plural, safe
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.opening import is_live, is_once
from kafkascope.captures.inputs.spool import Spool
from kafkascope.errors import INTERRUPTED, PARTIAL
from kafkascope.extras import require

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.records import Chosen, Problem
    from kafkascope.analyzer.filter.language import Bound
    from kafkascope.analyzer.findings.evidence import Evidence, ExpectedErrors
    from kafkascope.analyzer.findings.model import Finding
    from kafkascope.analyzer.pipeline.stored import Stored
    from kafkascope.analyzer.pool.messages import Shape, ShapedBlock, Work
    from kafkascope.analyzer.pool.processes import Pool
    from kafkascope.schemas.decoding import Payloads

RowAndExchange: TypeAlias = tuple[Row, Exchange]

SHOWN_PROBLEMS: Final = 5
UNLOGGED: Final = {
    "records": "contents of records",
    "records of this choice": "contents of records",
    "record schemas": "contents of records",
    "messages": "sizes of messages",
}
"""Contents that request logs never have, by the noun of an empty table."""
# From this size on inputs may have frames so large that they should not be allocated on the heap: a
# freed copy of 17 MB left a hole that nothing else filled, 20 MB of 295. Smaller inputs save the
# import of ctypes, 4 ms.
LARGE_INPUT_BYTES: Final = 8 << 20


class Reading:
    """One pass over the inputs, as a context manager. `code`: the exit code of the command."""

    def __init__(
        self,
        options: ReadOptions,
        *,
        spool: bool = False,
        known: Known | None = None,
        records: bool = False,
        once: bool = False,
    ) -> None:
        """`spool`: copy inputs that cannot be read again, for bodies. `known`: the user's marks and
        comments. `records`: the filter selects records, see `chosen`. `once`: leave out exchanges
        that a proxy or another broker forwarded; implied by `records`."""
        self.options = options
        # The filter is compiled first, so that an invalid one is reported before files are opened.
        self._known = known or Known()
        if options.filter_text.strip() and not options.schemas.off:
            from kafkascope.analyzer.filter.decoded.reading import Decoding

            # Lambdas, so that schemas are read only if the filter needs them.
            self._known.decoding = Decoding(
                lambda: self.payloads, lambda: self.capture.context.names
            )
        names = (lambda: self.capture.context.names) if records else None
        self.filter, uses = filter_of(options.filter_text, self._known, names)
        self._filter_uses = uses
        field = min(uses.notes, default="")
        if known is None and field:
            raise click.UsageError(
                f"{field} is available in the terminal UI only (kafkascope open)"
            )
        self.stored = _stored(options)
        """The input, if it is tables (see `counting.count`); None for captures."""
        self.rows_suffice = False
        """Set by callers that need no messages, only rows, which tables also have."""
        self.on_exchange: Callable[[Row, Exchange], None] | None = None
        """Called with each exchange, matching or not."""
        self._evidence: Evidence | None = None
        self._expected: ExpectedErrors | None = None
        """Finds expected errors in an extra pass, for filters with the field `expected`."""
        reads_again = self.stored is None and not any(map(is_once, options.inputs))
        if uses.findings or ("expected" in uses.fields and reads_again):
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
                self.capture = _open(options, copy)
            except BaseException:
                if copy is not None:
                    copy.close()
                raise
            if self.capture.source.size >= LARGE_INPUT_BYTES:
                large_apart()
        self.live = any(map(is_live, options.inputs))
        """Whether packets still arrive: then lines are flushed at once."""
        if uses.decoded:
            _ = self.payloads  # reports errors in schemas before the first exchange
        self.code = 0
        self._shown = 0
        """Number of matching exchanges."""
        self.exchanges_read = 0
        """Number of all exchanges so far."""
        self.first_ns = 0 if self.stored is None else self.stored.first_ns
        self._last_ns = 0
        """Time of the last exchange; known only for a range relative to it."""
        self._sides = CapturedSides()
        self.pooled: Pool | None = None
        """The processes that have read the whole input; None if one process reads."""
        self._empty: list[str] = []
        """Nouns of the rows of empty tables."""
        self._records = records
        self._once = once or records
        self._done: tuple[int, set[int]] = (1, set())
        """(number, exceptions): `divided` has yielded the exchanges below this number, without the
        exceptions."""
        self._progress = Progress(options, self.capture.source)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._progress.clear()
        self.capture.close()

    def demand_packets(self, command: str) -> None:
        """Raise a usage error for request logs, which lack the bytes of messages."""
        source = self.capture.source
        for index in source.text_inputs():
            raise click.UsageError(
                f"{source.names[index]} is a request log: {command} needs a capture, because the "
                "log lacks bytes and records of messages (see docs/requestlog.md)"
            )

    def rows(self) -> Iterator[RowAndExchange]:
        """Yield the matching exchanges; of files in the order of their numbers. After ctrl+c yield
        the requests in flight, and end."""
        pairs: Iterable[RowAndExchange] = self._all()
        begin, end = self.options.begin, self.options.end
        absolute = [None if mark is None or mark.kind == "end" else mark for mark in (begin, end)]
        if any(absolute):
            pairs = self._between(pairs, *absolute)
        if self._needs_end():
            # The range is relative to the end: all exchanges have to be kept until then.
            everything = list(pairs)
            self._last_ns = max((row.time_ns for row, _ in everything), default=0)
            pairs = self._between(everything, begin, end)
        if self.filter is not None:
            matches = self.filter
            pairs = (pair for pair in pairs if matches(*pair))
        count = self.options.count
        try:
            if not self.options.selects:
                yield from pairs  # without counting them
            for row, exchange in pairs:
                self._shown += 1
                yield row, exchange
                if self._shown == count:
                    return
        except KeyboardInterrupt:
            # The usual end of a live capture.
            self.code = INTERRUPTED
            names = self.capture.context.names
            for exchange in self.capture.in_flight():
                row = rows.row_of(exchange, names)
                if self.on_exchange is not None:
                    self.on_exchange(row, exchange)
                if self.filter is None or self.filter(row, exchange):
                    yield row, exchange

    def shaped(
        self,
        shape: Callable[[Row, Exchange | None], bytes],
        fields: Iterable[str] | None = (),
        batch: Callable[[Rows, list[Item]], bytes] | None = None,
    ) -> Iterator[bytes]:
        """Yield the matching exchanges as bytes of `shape`, one or many at a time. `fields`: fields
        that `shape` prints besides the default columns; None: one process has to print. `batch`:
        shapes exchanges in batches as read, without an `Exchange` for each."""
        if batch is not None and self.takes_all:
            # One process that prints batches takes a quarter of the time of a worker that makes
            # objects, and a parent would have to copy the output of its workers.
            yield from starmap(batch, self.batches())
            return
        if fields is not None and self.jobs and in_parts(fields):
            blocks = self.divided(lambda row, exchange, *_: shape(row, exchange))
            yield from (block.data for block in blocks)
        yield from starmap(shape, self.rest())

    def divided(self, shape: Shape) -> Iterator[ShapedBlock]:
        """Yield the matching exchanges as blocks of `shape` (see `Work`), made by several
        processes. If one process has to read, some or all are missing: `rest` yields these."""
        if not (jobs := self.jobs):
            return
        from kafkascope.analyzer.pool.messages import Work
        from kafkascope.captures.streams.shares import NeedsSingleProcess

        work = Work(self.filter, shape)
        with suppress(NeedsSingleProcess):
            for block in self.together(jobs, work):
                if block.exchanges:
                    yield block

    def rest(self) -> Iterator[RowAndExchange]:
        """Yield the matching exchanges that `divided` has not yielded."""
        if self.pooled is None:
            begin, skipped = self._done
            for row, exchange in self.rows():
                if row.number >= begin or row.number in skipped:
                    yield row, exchange

    def together(self, jobs: int, work: Work) -> Iterator[ShapedBlock]:
        """Yield the blocks that several processes make of the exchanges, then set `pooled`. Raises
        `NeedsSingleProcess` if one process has to read again from the start."""
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
                    self._progress.tick(self.exchanges_read)

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
        """The number of processes that can read the input together; 0: one process has to."""
        options, source = self.options, self.capture.source
        if (
            options.jobs == 1
            or self.stored is not None
            or self.live
            or self._expected is not None
            or any(source.texts.values())
            or (options.count or options.begin or options.end)
            or options.schemas.registry  # each process would request the same schemas
            or not in_tasks(self._filter_uses)
        ):
            return 0
        from kafkascope.analyzer.pool.jobs import jobs_for

        return jobs_for(source, options.jobs)

    def _opened(self) -> OpenInput:
        """Open the input again, without examining it again."""
        first = self.capture.source
        source = Source(first.names, order=first.order)
        source.size = first.size
        source.secrets += first.secrets
        source.texts |= first.texts
        log, legs = self.capture.context.keys.log, self.capture.legs
        zone = self.options.zone
        opened = OpenInput(source, decode_as=self.options.ports, legs=legs, log=log, zone=zone)
        # A worker has copies of this reading's filter and schemas, which use these names.
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
        evidence, expected, every = self._evidence, self._expected, self.on_exchange
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
        """Yield all exchanges in batches of those that a few packets complete, and count them."""
        sides = self._sides
        for batch in self.capture.batches():
            if not self.exchanges_read:
                exchange = exchange_of(batch[0])
                self.first_ns = min(exchange.time_ns, exchange.connection.first_ns)
            self.exchanges_read += len(batch)
            sides.note_all(batch)
            self._progress.tick(self.exchanges_read)
            yield batch

    def batches(self) -> Iterator[tuple[Rows, list[Item]]]:
        """Yield all exchanges in batches as read, with the maker of their rows; only if
        `takes_all`. After ctrl+c yield the requests in flight, and end."""
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
        """Whether all exchanges are selected, and nothing else needs rows."""
        options = self.options
        needs_rows = (
            self.filter or self._evidence or self._expected or self.on_exchange or self.stored
        )
        ranged = options.begin is not None or options.end is not None or self._needs_end()
        return not (needs_rows or ranged or options.selects)

    def _is_cut(self) -> bool:
        """Return whether a snaplen or a mirror port cut off bytes of Kafka."""
        lost = not self.exchanges_read or self._sides.holes or self.capture.context.skipped_bytes
        return bool(self.capture.source.statistics.cut_packets and lost)

    @cached_property
    def payloads(self) -> Payloads | None:
        """The decoder of keys and values by schema; None without schemas. Get it before exchanges
        are read, so that it learns the schemas that they carry."""
        from kafkascope.analyzer.reading.schemas import payloads_of

        return payloads_of(self.options, self.capture)

    @property
    def chosen(self) -> Chosen | None:
        """The matching records of the exchange that `rows` yielded last; None: all of them."""
        return getattr(self.filter, "chosen", None)

    @property
    def is_piece(self) -> bool:
        """Whether the options, or the filter of stored tables, select some of the exchanges."""
        return self.options.selects if self.stored is None else bool(self.stored.filter)

    @property
    def bound_filter(self) -> Bound | None:
        """The bound expression of the filter; None without one."""
        return None if self.filter is None else self.filter.bound

    def times(self) -> Times:
        """Return the format of times. Times may be relative to the first exchange: call it
        later."""
        times = Times(self.options.time_format)
        times.saw(self.first_ns)
        return times

    def span(self) -> tuple[int | None, int | None]:
        """Return the time range of --from and --to in ns since 1970."""
        begin, end = self.options.begin, self.options.end
        if not self.exchanges_read:
            return None, None  # there is no time that a relative range could refer to
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

    @property
    def is_counted(self) -> bool:
        """Whether -c ended the reading, perhaps amid connections."""
        return self._shown == self.options.count

    def lacks(self, things: str) -> None:
        """Make `finish` report a table without rows. `things`: the noun of its rows."""
        if things not in self._empty:
            self._empty.append(things)

    def _nothing_shown(self) -> Iterator[str]:
        selects, total = self.options.selects, self.exchanges_read
        if selects and not self._shown:
            what = "have records that match" if self._records else "match"
            yield f"0 of {plural(total, 'exchange')} {what}"
            yield from self._absent_names()
            yield from self._capture_times()
            return
        where = "this capture" if not selects else f"the {plural(self._shown, 'matching exchange')}"
        only_logs = self.capture.logs is not None and not self.capture.source.statistics.packets
        for things in self._empty:
            if only_logs and things in UNLOGGED:
                yield f"request logs do not show {UNLOGGED[things]} (docs/requestlog.md)"
            else:
                yield f"no {things} in {where}"

    def _capture_times(self) -> Iterator[str]:
        """Yield the time span of the capture if a time range selects nothing: --from and --to are
        local time, but a time copied from a log often is not."""
        statistics = self.capture.source.statistics
        first, last = statistics.first_ns, statistics.last_ns
        if (self.options.begin or self.options.end) and first is not None and last is not None:
            local = Times("ad")
            yield f"the capture lasts from {local.text(first)} to {local.text(last)}, local time"

    def _absent_names(self) -> Iterator[str]:
        """Yield the names in the filter that the input lacks, from a second pass."""
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
        """Return the sentence that exchanges do not exist; all must have been read."""
        total = self.exchanges_read
        among = " among the matching ones" if self.options.selects else ""
        range_ = f"; {where} has 1 to {total}" if total else ""
        return f"there is no exchange {numbers}{among}{range_}"

    def finish(self, *, tls: bool = True) -> int:
        """Write remarks about the capture to stderr, and return the exit code. `tls`: also about
        connections that could not be decrypted, because their exchanges are missing."""
        self._progress.clear()
        damage = self.capture.source.statistics.damage
        if self.capture.damage is not None and self.capture.damage not in damage:
            damage = [*damage, self.capture.damage]
        for place in damage:
            say(str(place))
        cut = self._is_cut()
        if (damage or cut) and not self.code:
            self.code = PARTIAL
        if self.options.quiet and cut:
            say(cut_packets(self.capture))
        if not self.options.quiet:
            for error in self.capture.key_log_errors() if self.stored is None else ():
                say(str(error))
            if not self.exchanges_read and self.code != INTERRUPTED:
                say(nothing_found(self.capture, piped=self.live))
            elif self.code != INTERRUPTED:
                for line in self._nothing_shown():
                    say(line)
            if self.is_one_way and self.options.count is None:
                say(one_way(*self._sides.sides))
            tls = tls and not (self._shown and (self.options.filter_text or self.options.count))
            for line in remarks(self.capture, verbose=self.options.verbose, tls=tls):
                say(line)
        return self.code


def _open(options: ReadOptions, spool: Spool | None = None) -> OpenInput:
    return open_capture(
        options.inputs,
        decode_as=options.ports,
        legs="both" if options.both_legs else "client",
        spool=spool,
        keylog=options.keylog,
        zone=options.zone,
    )


def _stored(options: ReadOptions) -> Stored | None:
    """Return the input if it is tables of `kafkascope spark`; None for captures."""
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
    """Read the inputs in an extra pass, because findings are known at the end; return them."""
    from kafkascope.analyzer.findings import Findings
    from kafkascope.analyzer.statistics.feed import Feed

    if any(map(is_once, options.inputs)):
        text = "the filter field finding needs seekable input: save it to a file first"
        raise click.UsageError(text)
    from kafkascope.analyzer.reading.schemas import payloads_of

    findings = Findings(payloads=payloads_of(options))
    feed = Feed((findings,))
    with _open(options) as capture:
        capture.watch = findings.saw
        capture.named = findings.named
        names = capture.context.names
        for exchange in capture.exchanges():
            feed.add(rows.row_of(exchange, names), exchange)
        feed.settle()
        note_damage(findings, capture)
        return findings.reported(names)


def report_problems(problems: list[Problem], options: ReadOptions) -> None:
    """Print the first few records that are damaged or could not be read, and their number."""
    if options.quiet:
        return
    for problem in problems[:SHOWN_PROBLEMS]:
        say(safe(str(problem)))
    if len(problems) > SHOWN_PROBLEMS:
        say(f"{len(problems)} such problems in all")
