"""`kafkascope show`: single exchanges, decoded to the last byte."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.commands.atrest import list_files, refuse_capture_options
from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.commands.limits import LIMITS
from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.exchanges.full import full_pieces
from kafkascope.analyzer.exchanges.records import shareable
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.reading.log_files import kafka_files
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading
from kafkascope.analyzer.render.exchange import exchange_lines
from kafkascope.analyzer.render.records import lines_inside
from kafkascope.analyzer.render.tree import dump_lines
from kafkascope.analyzer.terminal import say
from kafkascope.captures.describe import describe
from kafkascope.captures.inputs.spool import PacketPlaces
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.dissectors.codec.tree import Node

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.model import LogBatch
    from kafkascope.analyzer.logdir.opening import AtRest
    from kafkascope.schemas.decoding import Payloads

_NUMBERS: Final = re.compile(r"\d{1,12}(-\d{1,12})?(,\d{1,12}(-\d{1,12})?)*,?\Z")


@command(also="[NUMBER]...")
@reading_options(
    "output", "form", "as_json", helps={"form": "Output format: json, jsonl (default: text)"}
)
@setting("--hex show_hex", "", "Print the tree with the bytes of each field")
@setting("--tree", "", "Print the tree alone (default)")
@setting("--all whole", "", "Expand fields normally summarized on one line")
@setting("--packets", "", "Also print the packets, dissected down to TCP")
def show(options: ReadOptions, show_hex: bool, tree: bool, whole: bool, packets: bool) -> int:
    """Decode requests and responses field by field.

    Name exchanges after INPUT by number (N, N,M, N-M; see `kafkascope ls`), or select them with -Y.

    \b
      kafkascope show capture.pcapng 1206
      kafkascope show capture.pcapng 12,15-17 --hex
      kafkascope show capture.pcapng -Y 'error == NOT_COORDINATOR' --json
    """
    inputs, numbers = _split(options.inputs)
    if files := kafka_files(inputs):
        return _show_files(files, numbers, options, show_hex)
    for word in inputs[1:]:
        if word != "-" and not Path(word).exists():
            raise click.UsageError(
                f'"{word}" is no file and no exchange number: write 12, 15-17, or 12,20'
            )
    if not numbers and not options.filter_text:
        raise click.UsageError(
            "no exchange is selected: add a number (see kafkascope ls), or -Y FILTER"
        )
    if options.form in ("tsv", "csv"):
        raise click.UsageError("show prints a tree or JSON: leave out --format, or use --json")
    missing = set(numbers)
    # Only compressed files and pipes are spooled, and only when their packets are wanted again.
    with (
        Reading(replace(options, inputs=inputs), spool=packets) as reading,
        Output(options) as output,
    ):
        if packets:
            reading.capture.source.places = PacketPlaces()
        first = True
        payloads = reading.payloads
        context = reading.capture.context
        for row, exchange in reading.rows():
            if numbers and row.number not in missing:
                continue
            missing.discard(row.number)
            if options.form in ("json", "jsonl"):
                for piece in full_pieces(row, exchange, context.names, [], payloads):
                    output.json_lines(piece)
            else:
                if not first:
                    output.line("")
                how = {"show_hex": show_hex, "ranges": not whole}
                shown = exchange_lines(
                    row, exchange, context.names, context.nodes, **how, payloads=payloads
                )
                for line in shown:
                    output.line(line)
                if packets:
                    output.line("")
                    _print_packets(exchange, reading, output)
            first = False
            if numbers and not missing:
                break
        if missing and (first or not options.quiet):
            say(reading.no_exchange(_some(missing)))
        return reading.finish(tls=False) or (2 if missing and first else 0)


def _split(inputs: tuple[str, ...]) -> tuple[tuple[str, ...], set[int]]:
    """Return the files, and the exchange numbers that follow them; `UsageError`."""
    end = len(inputs)
    while end > 1 and _NUMBERS.match(inputs[end - 1]) and not Path(inputs[end - 1]).exists():
        end -= 1
    numbers: set[int] = set()
    for text in inputs[end:]:
        for part in filter(None, text.split(",")):
            low, _, high = part.partition("-")
            first, last = int(low), int(high or low)
            if not 0 < first <= last or last - first >= LIMITS.numbers:
                raise click.UsageError(
                    f'"{part}" is no exchange number or range: write 12 or 15-17'
                )
            numbers.update(range(first, last + 1))
    return inputs[:end], numbers


def _some(missing: set[int]) -> str:
    return ", ".join(map(str, sorted(missing)[:5])) + (", ..." if len(missing) > 5 else "")


def _print_packets(exchange: Exchange, reading: Reading, output: Output) -> None:
    sides = (side for side in (exchange.request, exchange.response) if side is not None)
    numbers = {part.packet for side in sides for part in side.frame.parts}
    for packet in reading.capture.source.find(numbers):
        for line in describe(packet).split("\n"):
            output.line(line)


def _show_files(
    files: Sequence[AtRest], numbers: set[int], options: ReadOptions, show_hex: bool
) -> int:
    """Print batches of Kafka's own files by their number in `ls`."""
    from kafkascope.analyzer.reading.at_rest import payloads_at_rest

    refuse_capture_options(options)
    if not files[0].holds_batches:
        return list_files(files, options)
    if not numbers:
        raise click.UsageError("no batch is selected: add a number (see kafkascope ls)")
    missing = set(numbers)
    payloads = payloads_at_rest(options, files)
    with Output(options) as output:
        for file in files:
            for batch, data in file.batches():
                if batch.number not in missing:
                    continue
                missing.discard(batch.number)
                for line in _batch_lines(file, batch, data, options, payloads, show_hex):
                    output.json_line(line) if isinstance(line, bytes) else output.line(line)
                if not missing:
                    return 0
    say(f"there is no batch {_some(missing)}")
    return 2 if missing == numbers else 0


def _batch_lines(
    file: AtRest,
    batch: LogBatch,
    data: bytes,
    options: ReadOptions,
    payloads: Payloads | None,
    show_hex: bool,
) -> Iterator[str | bytes]:
    from kafkascope.analyzer.logdir.records import records_of

    records = list(records_of(batch, data, file.place, payloads))
    if options.form in ("json", "jsonl"):
        yield dumps(batch.to_json() | {"content": records})
        return
    from kafkascope.analyzer.logdir.records import field_of

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
        yield from (line[2:] for line in dump_lines(clean, batch.position))
    elif show_hex:
        yield "  (the bytes hold secrets and are not shown)"
