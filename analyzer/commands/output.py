"""Writes the lines of a command to stdout or a file, flushed at once when the input is live. The
output file must not be an input: opening it to write empties it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

import click

from kafkascope.analyzer.commands.tables import terminal_width
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.cells import csv_line
from kafkascope.analyzer.render.layout import hidden_line
from kafkascope.analyzer.terminal import is_job_log, stdout_blocks, stdout_bytes
from kafkascope.analyzer.text import ascii_only, between_tabs, inert, inert_json, json_safe, tabbed
from kafkascope.private import PrivateFile

if TYPE_CHECKING:
    from kafkascope.analyzer.render.listing import FixedColumn


_EXCHANGE_SUFFIX: Final = re.compile(r"#\d{1,12}\Z")
"""As `diff` writes an exchange: FILE#NUMBER."""


def target_of(output: str | None, hint: str) -> Path:
    """Return the file that -o names; a usage error with what to write where it names none."""
    if output in (None, "-"):
        raise click.UsageError(f"-o is missing: write {hint}")
    assert output is not None
    return Path(output)


def refuse_inputs(output: str, inputs: Iterable[str]) -> None:
    """Raise a usage error if the file `output` is an input, or lies in an input folder."""
    path = Path(output)
    if not path.is_file() or not path.stat().st_size:
        return
    if any(_is_input(path, name) for name in inputs if name != "-"):
        raise click.UsageError(f"{output} is an input: it would be overwritten; choose another -o")


def _is_input(path: Path, name: str) -> bool:
    source = Path(name)
    if not source.exists():
        source = Path(_EXCHANGE_SUFFIX.sub("", name))
    if source.is_dir():
        # An earlier output in the folder may be overwritten, unless it is a capture itself.
        return source.samefile(path.parent) and _would_be_read(path)
    return source.exists() and source.samefile(path)


def _would_be_read(path: Path) -> bool:
    # Imported here, because few outputs lie in an input folder.
    from kafkascope.analyzer.logdir.opening import kind_of
    from kafkascope.captures.errors import CaptureError
    from kafkascope.captures.inputs.opening import is_capture, open_stream

    if kind_of(path) is not None:
        return True
    try:
        stream, head, _ = open_stream(str(path))
    except CaptureError:
        return True  # damaged, most likely
    stream.close()
    return is_capture(head)


RESET: Final = "\x1b[0m"
STYLES: Final = {"!": "\x1b[31m", "?": "\x1b[33m", "~": "\x1b[2m", "header": "\x1b[1m"}
"""Colour of a line by the first letter of its result, which says the same without colour."""


class Output:
    """The output of one command, as a context manager. `width`: columns of the terminal; None
    otherwise. Methods named `*_bytes` return what the method without the suffix writes, so that
    worker processes can format lines."""

    def __init__(self, options: ReadOptions, *, live: bool = False, log: bool = False) -> None:
        """`log`: the output, even a file, usually ends in the log of a CI job, whose runner obeys
        workflow commands."""
        self.options = options
        self._begun = False
        """Whether an element was written."""
        self._file: PrivateFile | None = None
        if options.output not in (None, "-"):
            assert options.output is not None
            refuse_inputs(options.output, options.inputs)
            self._file = PrivateFile(options.output)
            if live:
                self._file.publish()  # a live capture is to be read while it grows
        self._inert = log or (self._file is None and is_job_log())
        self.width = None if self._file else terminal_width()
        self._ascii = options.plain or (self._file is None and not _is_utf8(sys.stdout))
        self._color = self._file is None and _colors(options)
        stdout = stdout_bytes if live else stdout_blocks
        self._binary = self._file.file if self._file else stdout()
        self.write: Callable[[bytes], object] = self._flushed if live else self._binary.write
        """Writes bytes as the other methods make them."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._file is not None:
            self._file.__exit__(*error)
        elif error[0] is None:
            self._binary.flush()

    def line(self, text: str, style: str = "") -> None:
        """Write a line; `style` is a key of `STYLES`. Its tabs separate cells."""
        self.write(self.line_bytes(text, style))

    def command(self, text: str) -> None:
        """Write a workflow command for the runner of a CI job."""
        self.write(inert(tabbed(text), begun=True).encode() + b"\n")

    def line_bytes(self, text: str, style: str = "", *, safe: bool = False) -> bytes:
        """`safe`: the text has printable characters only."""
        if not safe:
            text = tabbed(text)
        if self._inert:
            text = inert(text)
        if self._ascii:
            text = ascii_only(text)
        if self._color and style in STYLES:
            text = f"{STYLES[style]}{text}{RESET}"
        return text.encode() + b"\n"

    def json_lines(self, lines: bytes) -> None:
        """Write lines of JSON, line feeds included."""
        self.write(self._json(lines))

    def json_line(self, value: Any) -> None:
        """Write a value, or bytes of JSON, as a line of JSON."""
        self.write(self._json_line(value))

    def element(self, value: Any) -> None:
        """Write a value as a line of JSON; `--format json` makes all values one array, which `end`
        closes."""
        self.elements(self.element_bytes(value))

    def element_bytes(self, value: Any) -> bytes:
        line = self._json_line(value)
        return b"," + line if self.options.form == "json" else line

    def _json_line(self, value: Any) -> bytes:
        if not isinstance(value, bytes):
            from kafkascope.dissectors.codec.jsonform import dumps

            value = dumps(value)
        return self._json(value) + b"\n"

    def elements_bytes(self, lines: bytes) -> bytes:
        """`lines`: of JSON."""
        lines = self._json(lines)
        if self.options.form == "json":
            return b"," + lines[:-1].replace(b"\n", b"\n,") + b"\n"
        return lines

    def elements(self, data: bytes) -> None:
        """Write elements in the form of `elements_bytes`."""
        if self.options.form == "json" and not self._begun:
            data = b"[" + data[1:]
        self._begun = True
        self.write(data)

    def end(self) -> None:
        """Close the array of `--format json`."""
        if self.options.form == "json":
            self.json_line(b"]" if self._begun else b"[]")

    def cells(self, cells: Sequence[str], style: str = "") -> None:
        """Write a line of csv, or cells separated by tabs."""
        self.write(self.cell_bytes(cells, style))

    def cell_bytes(self, cells: Sequence[str], style: str = "") -> bytes:
        if self.options.form == "csv":
            return self.line_bytes(csv_line(cells, raw=self.options.raw)[:-1])
        return self.line_bytes(between_tabs(cells), style)

    def _json(self, data: bytes) -> bytes:
        data = json_safe(data)
        return inert_json(data) if self._inert else data

    def _flushed(self, data: bytes) -> None:
        self._binary.write(data)
        self._binary.flush()


class LineLimit:
    """Passes on the first `most` lines; None: all."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.passed = 0

    def of(self, lines: bytes) -> bytes:
        """Return the lines that are still wanted."""
        if self._most is not None:
            wanted = lines.splitlines(keepends=True)[: self._most - self.passed]
            lines = b"".join(wanted)
        self.passed += lines.count(b"\n")
        return lines

    @property
    def full(self) -> bool:
        return self.passed == self._most


class FixedTable:
    """Rows of columns with fixed widths: aligned on a terminal, where some may be hidden; separated
    by tabs in a pipe; or csv and tsv. Headings come with the first row, and are the names of the
    columns in csv and tsv; `end` lists the hidden ones."""

    def __init__(
        self,
        columns: Sequence[FixedColumn],
        priority: Sequence[str],
        output: Output,
        options: ReadOptions,
    ) -> None:
        self._output = output
        self._columns = columns
        self._shown = list(columns)
        self._plain = options.form != "table"
        self._width = None if options.wide or self._plain else output.width
        # Imported here, because it loads the filter fields: 6 ms that `schemas` does without.
        from kafkascope.analyzer.render.listing import fitted, line

        self._line = line
        if self._width is not None:
            self._shown = fitted(columns, self._width, priority)
        indexes = [index for index, column in enumerate(columns) if column in self._shown]
        self._indexes = indexes[: len(self._shown)]
        self._begun = False

    def row(self, cells: Sequence[str], style: str = "") -> None:
        if not self._begun:
            self._begun = True
            if self._plain:
                self._output.cells([column.name for column in self._columns])
            else:
                self.row([column.title for column in self._columns], "header")
        if self._plain or self._output.width is None:
            self._output.cells(cells, style)
            return
        shown = [cells[index] for index in self._indexes]
        self._output.line(self._line(self._shown, shown, self._width), style)

    def end(self) -> None:
        """List the hidden columns, if rows were written."""
        hidden = [column.title for column in self._columns if column not in self._shown]
        if hidden and self._begun and self._width is not None:
            self._output.line(hidden_line(hidden, self._width), "~")


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def _colors(options: ReadOptions) -> bool:
    if options.color != "auto":
        return options.color == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()
