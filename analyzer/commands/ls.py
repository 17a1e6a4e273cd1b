"""`kafkascope ls`: one line per exchange, in the order of numbers; live, as each is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice, starmap
from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.commands import ls_lines
from kafkascope.analyzer.commands.atrest import list_files
from kafkascope.analyzer.commands.help import command, refusing, setting
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.commands.tables import terminal_width
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.reading.log_files import kafka_files
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.listing import columns_of, sort_key
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.terminal import say

if TYPE_CHECKING:
    from kafkascope.analyzer.reading.connects import Connects, Pair

# Lines that one write joins.
LINES: Final = 16


@command()
@setting("--connects", "", "Also list connection attempts that were refused or not answered")
@input_options
def ls(options: ReadOptions, connects: bool) -> int:
    """List requests with their responses, one per line.

    INPUT is a pcap or pcapng file (also .gz, .zst, .xz, .bz2), several, a folder, or - for stdin.
    Lines are ordered by number, as the requests were sent; live input by completion. Kafka's own
    files (log segments, indexes, checkpoints, partition folders) are listed by batch or entry, with
    the part that a recovering broker would truncate.

    \b
      kafkascope ls prod.pcapng -Y 'latency > 500ms and not wait' --sort latency
      kafkascope ls prod.pcapng --json | jq -r .client_id | sort | uniq -c
      kafkascope ls prod.pcapng -T fields -e kafka.api_key -e kafka.topic_name
      tcpdump -i any -s 0 -U -w - port 9092 | kafkascope ls -
    """
    if connects and (options.begin or options.end or options.count):
        raise click.UsageError("--connects needs the whole capture: leave out --from, --to and -c")
    if files := kafka_files(options.inputs):
        return list_files(files, options)
    times = Times(options.time_format)
    with refusing(FilterError, option="--columns"):
        columns = columns_of(options.columns, times, terminal_width())
    sorting = None if options.sort is None else _sorting(options.sort, times)
    fields = (
        ls_lines.tshark_fields(options.fields, options.field_options) if options.fields else None
    )
    # Files get names that came late; csv has the columns of `export`.
    saved = options.form == "jsonl" and options.output not in (None, "-")
    whole = sorting is None and options.top is None and not connects
    if whole and not options.columns and not fields and (saved or options.form == "csv"):
        from kafkascope.analyzer.commands.export import write_all
        from kafkascope.analyzer.export import ExportOptions

        with Reading(options) as reading:
            reading.rows_suffice = True
            write_all(reading, options, options.form, ExportOptions(raw=options.raw))
            return reading.finish()
    with Reading(options) as reading, Output(options, live=reading.live) as output:
        if reading.stored is not None:
            if connects:
                raise click.UsageError(
                    "tables have no lines for --connects: use `kafkascope connections`"
                )
            _of_tables((*options.columns, *options.fields, (options.sort or "").strip("+-")))
        reading.rows_suffice = True
        if fields is not None:
            form = fields(output)
        elif options.form == "table":
            form = ls_lines.table(columns, times, output, reading, options)
        elif options.form in ("json", "jsonl") and not options.columns:
            form = ls_lines.objects(output)
        else:
            form = ls_lines.plain(columns, options.form, output)
        if whole:
            lines = reading.shaped(form.line_of, form.fields, form.batch)
        else:
            found: Iterable[Pair] = reading.rows()
            if connects:
                from kafkascope.analyzer.reading.connects import Connects

                watcher = Connects(reading.bound_filter)
                reading.capture.watch = watcher.saw
                found = watcher.merged(reading.rows())
            if sorting is not None:
                found = sorting(found)
            lines = starmap(form.line_of, islice(found, options.top))
        if not (reading.live or reading.jobs):
            single_lines = iter(lines)
            lines = iter(lambda: b"".join(islice(single_lines, LINES)), b"")
        if form.head_alone:
            output.write(form.head)
        index = -1
        for index, block in enumerate(lines):
            if not index and not form.head_alone:
                output.write(form.head)
            output.elements(block)
        output.end()
        if index >= 0 and form.tail:
            output.write(form.tail)
        if connects and index < 0:
            reading.lacks("exchanges, nor connection attempts")
        code = reading.finish()
        if connects:
            _left_out(watcher, quiet=options.quiet)
        return code


def _of_tables(names: tuple[str, ...]) -> None:
    """Refuse columns that only messages can fill."""
    from kafkascope.analyzer.filter.bind import IN_TABLES, resolve

    for name in names:
        found = resolve(name) if name else None
        if found is not None and (found[1] or found[0].name not in IN_TABLES):
            raise click.UsageError(f"tables have no {name}: name the captures instead")


def _left_out(connects: Connects, *, quiet: bool) -> None:
    from kafkascope.analyzer.filter.backends.exchange import CHOSEN_BY

    if connects.left and not quiet:
        say(f"{connects.left:,} connects left out: {CHOSEN_BY}")
    if connects.beyond:
        say(
            f"{connects.beyond:,} more connects are not listed: of those without an exchange "
            f"between them the first {connects.most:,} are; `kafkascope connections` "
            "counts all"
        )


def _sorting(text: str, times: Times) -> Callable[[Iterable[Pair]], list[Pair]]:
    down = {"-": True, "+": False}.get(text[:1])
    name = text[1:] if down is not None else text
    with refusing(FilterError, option="--sort"):
        (column,) = columns_of((name,), times)
    key = sort_key(column)

    def ordered(pairs: Iterable[Pair]) -> list[Pair]:
        found = sorted(pairs, key=key)
        if down is None or down == column.downwards:
            return found
        # Pairs without a value stay last in both directions.
        with_value = [pair for pair in found if key(pair)[0] == 0]
        return with_value[::-1] + found[len(with_value) :]

    return ordered
