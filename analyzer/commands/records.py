"""`kafkascope records`: the records that were produced and fetched, one a line."""

from __future__ import annotations

from typing import Any, Final

import click

from analyzer.commands.options import Wish, input_options
from analyzer.commands.output import Output
from analyzer.commands.tables import csv_line
from analyzer.render_list import padded, safe

COLUMNS: Final = (
    ("exchange", 8, True),
    ("source", 7, False),
    ("topic", 20, False),
    ("partition", 4, True),
    ("offset", 10, True),
    ("time", 24, False),
    ("key", 16, False),
    ("value", 0, False),
    ("headers", 24, False),
)
TITLES: Final = {"exchange": "Exchange", "partition": "Part"}
SHOWN_PROBLEMS: Final = 5
PARTS: Final = ("key", "value", "headers")


@click.command()
@input_options
@click.option("--key", "parts", flag_value="key", multiple=True, help="Show keys.")
@click.option("--value", "parts", flag_value="value", multiple=True, help="Show values.")
@click.option("--headers", "parts", flag_value="headers", multiple=True, help="Show headers.")
def records(wish: Wish, parts: tuple[str, ...]) -> int:
    """List records: of Produce requests and of Fetch responses.

    Without --key, --value, --headers: keys and values. -Y chooses exchanges; --json gives record/1
    objects with everything.

    \b
      kafkascope records capture.pcapng -Y 'topic == orders' --json
    """
    from analyzer.commands.reading import Reading
    from analyzer.records import Problem, record_lines

    problems: list[Problem] = []
    shown = 0
    with Reading(wish) as reading, Output(wish, live=reading.live) as output:
        names = reading.capture.context.names
        printer = _printer(wish, parts or ("key", "value"), output)
        try:
            for _, exchange in reading.rows():
                for piece in record_lines(exchange, names, problems):
                    if wish.top is None:
                        printer(piece)
                        continue
                    lines = piece.splitlines(keepends=True)[: wish.top - shown]
                    shown += len(lines)
                    printer(b"".join(lines))
                if wish.top is not None and shown >= wish.top:
                    break
        except KeyboardInterrupt:
            reading.code = 130
        if isinstance(printer, _Array):
            printer.end()
        if not wish.quiet:
            for problem in problems[:SHOWN_PROBLEMS]:
                click.echo(f"kafkascope: {problem}", err=True)
            if len(problems) > SHOWN_PROBLEMS:
                click.echo(f"kafkascope: {len(problems)} such problems in all", err=True)
        return reading.finish()


def _printer(wish: Wish, parts: tuple[str, ...], output: Output) -> Any:
    if wish.form == "jsonl" and not wish.columns:
        return output.lines
    if wish.form == "json" and not wish.columns:
        return _Array(output)
    known = {name for name, _, _ in COLUMNS} | {"topic_id", "codec", "magic", "producer_id"}
    known |= {"producer_epoch", "sequence", "transactional", "control"}
    wanted = wish.columns or [name for name, _, _ in COLUMNS if name not in PARTS or name in parts]
    for name in wanted:
        if name not in known:
            raise click.UsageError(f'records have no column "{name}": {", ".join(sorted(known))}')
    return _Lines(wish, list(wanted), output)


class _Array:
    def __init__(self, output: Output) -> None:
        self._output = output
        self._before = b"["

    def __call__(self, lines: bytes) -> None:
        for each in lines.splitlines():
            self._output.octets(self._before + each)
            self._before = b","

    def end(self) -> None:
        self._output.octets(b"[]" if self._before == b"[" else b"]")


class _Lines:
    """Tables, tsv and csv."""

    def __init__(self, wish: Wish, names: list[str], output: Output) -> None:
        self._names = names
        self._output = output
        self._form = wish.form
        self._started = False
        usual = {name: (width, right) for name, width, right in COLUMNS}
        self._shapes = [usual.get(name, (12, False)) for name in names]

    def __call__(self, lines: bytes) -> None:
        import orjson

        if not self._started:
            self._started = True
            self._line([TITLES.get(n, n.capitalize()) for n in self._names], header=True)
        for each in lines.splitlines():
            record = orjson.loads(each)
            self._line([_text(record.get(name)) for name in self._names])

    def _line(self, cells: list[str], *, header: bool = False) -> None:
        if self._form == "csv":
            self._output.line(csv_line(self._names if header else cells)[:-1])
        elif self._form == "tsv" or self._output.width is None:
            titles = self._names if header and self._form == "tsv" else cells
            self._output.line("\t".join(map(safe, titles)))
        else:
            self._output.line(self._fitted(cells, self._output.width), "header" if header else "")

    def _fitted(self, cells: list[str], width: int) -> str:
        taken = sum(each + 2 for each, _ in self._shapes)
        rest = max(8, width - taken)
        parts = (
            padded(safe(cell), size or rest, right=right)
            for cell, (size, right) in zip(cells, self._shapes, strict=True)
        )
        return "  ".join(parts).rstrip()[: max(width, 40)]


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"base64:{value.get('base64', '')}"
    if isinstance(value, list):
        return ", ".join(f"{name}={_text(each)}" for name, each in value)
    return str(value)
