"""`kafkascope ls`: one line per exchange, as each is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from kafkascope.analyzer.commands.atrest import kafka_files, list_files
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.listing import (
    ListColumn,
    columns_of,
    fitted,
    json_value,
    line,
    raw_cell,
    sort_key,
)
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.terminal import say
from kafkascope.analyzer.text import between_tabs

if TYPE_CHECKING:
    from kafkascope.analyzer.commands.tshark_fields import FieldsPrinter
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.reading.connects import Connects, Pair


@click.command()
@click.option(
    "--connects",
    is_flag=True,
    help="Also connects that were refused or not answered: lines without a number.",
)
@input_options
def ls(options: ReadOptions, connects: bool) -> int:
    """List the exchanges of captures: a request with its response, or why there is none.

    INPUT is a pcap or pcapng file (also .gz, .zst, .xz, .bz2), several, a folder, or - for stdin.
    Of Kafka's own files (log segments, indexes, checkpoints, the folder of a partition) it lists
    batches or entries, and says what a recovering broker would cut. Lines come in the order in
    which exchanges are complete; --sort number orders them.

    \b
      kafkascope ls prod.pcapng -Y 'latency > 500ms and not wait' --sort latency -n 20
      kafkascope ls prod.pcapng --json | jq -r .client_id | sort | uniq -c
      kafkascope ls prod.pcapng -T fields -e kafka.api_key -e kafka.topic_name
      tcpdump -i any -s 0 -U -w - port 9092 | kafkascope ls -
    """
    if connects and (options.begin or options.end or options.count):
        raise click.UsageError("--connects lists those of a whole capture: no --from, --to, -c")
    if files := kafka_files(options.inputs):
        return list_files(files, options)
    times = Times(options.time_format)
    columns = _columns("--columns", options.columns, times)
    sorting = None if options.sort is None else _sorting(options.sort, times)
    fields = _fields(options)
    # Files get names that came late; csv has the columns of `export`.
    saved = options.form == "jsonl" and options.output not in (None, "-")
    plain = not options.columns and not fields and sorting is None and options.top is None
    if plain and not connects and (saved or options.form == "csv"):
        from kafkascope.analyzer.commands.export import write_all
        from kafkascope.analyzer.export import ExportOptions

        with Reading(options) as reading:
            reading.rows_suffice = True
            write_all(reading, options, options.form, ExportOptions(raw=options.raw))
            return reading.finish()
    with Reading(options) as reading, Output(options, live=reading.live) as output:
        if reading.stored is not None:
            if connects:
                raise click.UsageError("tables list connects by `kafkascope stats connections`")
            _of_tables((*options.columns, *options.fields, (options.sort or "").strip("+-")))
        reading.rows_suffice = True
        found: Iterable[Pair] = reading.rows()
        if connects:
            from kafkascope.analyzer.reading.connects import Connects

            watcher = Connects(reading.wanted)
            reading.capture.watch = watcher.saw
            found = watcher.merged(reading.rows())
        pairs = _ordered(found, sorting, options)
        if fields is not None:
            fields.print(pairs, output)
        elif options.form in ("json", "jsonl") and not options.columns:
            from kafkascope.analyzer.exchanges.row_json import json_of_row

            if plain and not connects:
                for lines in reading.shaped(lambda row: output.element_of(json_of_row(row))):
                    output.elements(lines)
            else:
                for row, _ in pairs:
                    output.element(json_of_row(row) if row.number else _connect(row))
            output.end()
        elif options.form == "table":
            _print_table(pairs, columns, times, output, reading)
        else:
            _print_plain(pairs, columns, options.form, output)
        code = reading.finish()
        if connects:
            _left_out(watcher, quiet=options.quiet)
        return code


def _of_tables(names: tuple[str, ...]) -> None:
    """Refuse columns that only messages can fill."""
    from kafkascope.analyzer.filter.bind import resolve
    from kafkascope.analyzer.filter.places import IN_TABLES

    for name in names:
        found = resolve(name) if name else None
        if found is not None and (found[1] or found[0].name not in IN_TABLES):
            raise click.UsageError(f"{name} is not in tables: name the captures")


def _left_out(connects: Connects, *, quiet: bool) -> None:
    """Say how many connects are not listed, and why."""
    from kafkascope.analyzer.filter.backends.connections import CHOSEN_BY
    from kafkascope.analyzer.reading.connects import MOST_WAITING

    if connects.left and not quiet:
        say(f"{connects.left:,} connects left out: {CHOSEN_BY}")
    if connects.beyond:
        say(
            f"{connects.beyond:,} more connects are not listed: of those without an exchange "
            f"between them the first {MOST_WAITING:,} are; `kafkascope stats connections` "
            "counts all"
        )


def _fields(options: ReadOptions) -> FieldsPrinter | None:
    """What `-T fields` prints."""
    if not options.fields:
        return None
    from kafkascope.analyzer.commands.tshark_fields import FieldsPrinter

    return FieldsPrinter(options.fields, options.field_options)


def _columns(option: str, names: tuple[str, ...], times: Times) -> list[ListColumn]:
    try:
        return columns_of(names, times)
    except FilterError as error:
        raise click.BadParameter(error.sentence, param_hint=option) from None


def _sorting(text: str, times: Times) -> Callable[[Iterable[Pair]], list[Pair]]:
    down = {"-": True, "+": False}.get(text[:1])
    name = text[1:] if down is not None else text
    (column,) = _columns("--sort", (name,), times)
    key = sort_key(column)

    def ordered(pairs: Iterable[Pair]) -> list[Pair]:
        found = sorted(pairs, key=key)
        if down is None or down == column.downwards:
            return found
        # Turned round, those without a value stay last.
        having = [pair for pair in found if key(pair)[0] == 0]
        return having[::-1] + found[len(having) :]

    return ordered


def _ordered(
    pairs: Iterable[Pair],
    sorting: Callable[[Iterable[Pair]], list[Pair]] | None,
    options: ReadOptions,
) -> Iterator[Pair]:
    source: Iterable[Pair] = pairs if sorting is None else sorting(pairs)
    if options.top is None:
        yield from source
        return
    for index, pair in enumerate(source):
        if options.top is not None and index >= options.top:
            return
        yield pair


def _connect(row: Row) -> dict[str, Any]:
    """Return the object of a connect without a connection."""
    from kafkascope.analyzer.reading.connects import to_json

    return to_json(row)


def _print_table(
    pairs: Iterator[Pair], columns: list[ListColumn], times: Times, output: Output, reading: Reading
) -> None:
    width = output.width
    if width is not None:
        columns = fitted(columns, width)
    titles = [column.title for column in columns]
    makers = [column.cell for column in columns]
    started = False
    for row, exchange in pairs:
        if not started:
            started = True
            times.saw(reading.first_ns)
            output.line(line(columns, titles, width) if width else "\t".join(titles), "header")
        cells = [cell(row, exchange) for cell in makers]
        text = line(columns, cells, width) if width else between_tabs(cells)
        output.line(text, _style(row.state, bool(row.errors)))


def _style(state: str, failed: bool) -> str:
    if failed:
        return "!"
    return {"answered": "", "no-reply": "", "opaque": "~"}.get(state, "?")


def _print_plain(
    pairs: Iterator[Pair], columns: list[ListColumn], form: str, output: Output
) -> None:
    """tsv, csv, and JSON of chosen columns: values without units."""
    names = [column.name for column in columns]
    if form in ("csv", "tsv"):
        output.cells(names)
        for row, exchange in pairs:
            output.cells([raw_cell(column, row, exchange) for column in columns])
        return
    for row, exchange in pairs:
        shown = [json_value(column, row, exchange) for column in columns]
        output.element(dict(zip(names, shown, strict=True)))
    output.end()
