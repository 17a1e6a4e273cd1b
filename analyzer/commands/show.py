"""`kafkascope show`: single exchanges, decoded to the last byte."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafkascope.analyzer.commands.atrest import kafka_files, show_files
from kafkascope.analyzer.commands.help import command, option
from kafkascope.analyzer.commands.options import reading_options
from kafkascope.analyzer.commands.output import Output
from kafkascope.analyzer.commands.unknown import no_exchange
from kafkascope.analyzer.exchanges.full import full_pieces
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.reading.reading import Reading, RowAndExchange
from kafkascope.analyzer.render.exchange import exchange_lines
from kafkascope.analyzer.terminal import say
from kafkascope.captures.describe import describe

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads

_NUMBERS: Final = re.compile(r"\d{1,12}(-\d{1,12})?(,\d{1,12}(-\d{1,12})?)*,?\Z")
MAX_NUMBERS: Final = 1_000_000


@command(also="[NUMBER]...")
@reading_options(
    "output", "form", "as_json", helps={"form": "Output format: json, jsonl (default: text)"}
)
@option("--hex", "show_hex", is_flag=True, help="Print the tree with the bytes of each field")
@option("--tree", is_flag=True, help="Print the tree alone (default)")
@option("--all", "whole", is_flag=True, help="Expand fields normally summarized on one line")
@option("--packets", is_flag=True, help="Also print the packets, dissected down to TCP")
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
        return show_files(files, numbers, options, show_hex)
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
            from kafkascope.captures.inputs.places import PacketPlaces

            reading.capture.source.places = PacketPlaces()
        first = True
        payloads = reading.payloads
        for pair in reading.rows():
            number = pair[0].number
            if numbers and number not in missing:
                continue
            missing.discard(number)
            if options.form in ("json", "jsonl"):
                _print_json(pair, reading, output, payloads)
            else:
                if not first:
                    output.line("")
                _print_text(pair, reading, output, payloads, show_hex, whole)
                if packets:
                    output.line("")
                    _print_packets(pair, reading, output)
            first = False
            if numbers and not missing:
                break
        if missing and (first or not options.quiet):
            some = ", ".join(map(str, sorted(missing)[:5])) + (", ..." if len(missing) > 5 else "")
            say(no_exchange(some, reading))
        return reading.finish(tls=False) or (2 if missing and first else 0)


def _split(inputs: tuple[str, ...]) -> tuple[tuple[str, ...], set[int]]:
    """Numbers stand behind the files."""
    end = len(inputs)
    while end > 1 and _NUMBERS.match(inputs[end - 1]) and not Path(inputs[end - 1]).exists():
        end -= 1
    numbers: set[int] = set()
    for text in inputs[end:]:
        for part in filter(None, text.split(",")):
            low, _, high = part.partition("-")
            first, last = int(low), int(high or low)
            if not 0 < first <= last or last - first >= MAX_NUMBERS:
                raise click.UsageError(
                    f'"{part}" is no exchange number or range: write 12 or 15-17'
                )
            numbers.update(range(first, last + 1))
    return inputs[:end], numbers


def _print_json(
    pair: RowAndExchange, reading: Reading, output: Output, payloads: Payloads | None
) -> None:
    row, exchange = pair
    for piece in full_pieces(row, exchange, reading.capture.context.names, [], payloads):
        output.json_lines(piece)


def _print_text(
    pair: RowAndExchange,
    reading: Reading,
    output: Output,
    payloads: Payloads | None,
    show_hex: bool,
    whole: bool,
) -> None:
    row, exchange = pair
    context = reading.capture.context
    names, nodes = context.names, context.nodes
    lines = exchange_lines(
        row,
        exchange,
        names,
        nodes,
        show_hex=show_hex,
        ranges=not whole,
        payloads=payloads,
    )
    for line in lines:
        output.line(line)


def _print_packets(pair: RowAndExchange, reading: Reading, output: Output) -> None:
    exchange = pair[1]
    sides = (side for side in (exchange.request, exchange.response) if side is not None)
    numbers = {part.packet for side in sides for part in side.frame.parts}
    for packet in reading.capture.source.find(numbers):
        output.line(describe(packet))
