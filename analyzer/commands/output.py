"""Where a command's lines go: stdout or a file, flushed at once when the input is live. A file that
is written must be none that is read: opening one to write empties it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
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


_EXCHANGE_OF: Final = re.compile(r"#\d{1,12}\Z")
"""As `diff` writes an exchange: FILE#NUMBER."""


def target_of(output: str | None, hint: str) -> Path:
    """Return the file that -o names; a usage error with what to write where it names none."""
    if output in (None, "-"):
        raise click.UsageError(f"-o is missing: write {hint}")
    assert output is not None
    return Path(output)


def refuse_inputs(output: str, inputs: Iterable[str]) -> None:
    """A usage error when the file `output` is one of the inputs, or read with a folder of them."""
    path = Path(output)
    if not path.is_file() or not path.stat().st_size:
        return
    if any(_is_of(path, name) for name in inputs if name != "-"):
        raise click.UsageError(f"{output} is an input: it would be overwritten; choose another -o")


def _is_of(path: Path, name: str) -> bool:
    read = Path(name)
    if not read.exists():
        read = Path(_EXCHANGE_OF.sub("", name))
    if not read.exists():
        return False
    if read.is_dir():
        # What an earlier run wrote into the folder may be written once more.
        return read.samefile(path.parent) and _would_be_read(path)
    return read.samefile(path)


def _would_be_read(path: Path) -> bool:
    # Few outputs lie in a folder of inputs: these alone pay for loading it.
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
"""First letter of a result -> colour of its line; the letter says the same without colour."""


class Output:
    """A context manager; `line` and `octets` write, `width` is the terminal's or None."""

    def __init__(self, options: ReadOptions, *, live: bool = False, log: bool = False) -> None:
        """`log`: what is written, into a file as well, usually ends in the log of a CI job."""
        self.options = options
        self._begun = False
        """Whether there was an element."""
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
        told = stdout_bytes if live else stdout_blocks
        out = self._file.file if self._file else told()
        self._binary = out
        self._write: Callable[[bytes], object] = self._write_through if live else out.write

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.__exit__(kind, error, trace)
        elif error is None:
            self._binary.flush()

    def octets(self, data: bytes) -> None:
        """Write bytes, as one of the others made them."""
        self._write(data)

    def line(self, text: str, style: str = "") -> None:
        """Write a line; `style` is a key of `STYLES`. Tabs in it are ours."""
        self._write(self.lined(text, style))

    def command(self, text: str) -> None:
        """Write a command for the runner of a CI job."""
        self._write(inert(tabbed(text), begun=True).encode() + b"\n")

    def lined(self, text: str, style: str = "", *, safe: bool = False) -> bytes:
        """Return what `line` writes; `safe`: of characters that print."""
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
        self._write(self._json(lines))

    def json_line(self, value: Any) -> None:
        """Write a value, or the JSON of one, as a line of JSON."""
        self._write(self._line_of(value))

    def element(self, value: Any) -> None:
        """The same; in the format `json` all values are one array, which `end` closes."""
        self.elements(self.element_of(value))

    def element_of(self, value: Any) -> bytes:
        """Return what `elements` writes for a value, or the JSON of one."""
        line = self._line_of(value)
        return b"," + line if self.options.form == "json" else line

    def _line_of(self, value: Any) -> bytes:
        if not isinstance(value, bytes):
            from kafkascope.dissectors.codec.jsonform import dumps

            value = dumps(value)
        return self._json(value) + b"\n"

    def elements_of(self, lines: bytes) -> bytes:
        """Return what `elements` writes for lines of JSON."""
        lines = self._json(lines)
        return (
            b"," + lines[:-1].replace(b"\n", b"\n,") + b"\n"
            if self.options.form == "json"
            else lines
        )

    def elements(self, data: bytes) -> None:
        if self.options.form == "json" and not self._begun:
            data = b"[" + data[1:]
        self._begun = True
        self._write(data)

    def end(self) -> None:
        """No more elements follow."""
        if self.options.form == "json":
            self.json_line(b"]" if self._begun else b"[]")

    def cells(self, cells: Sequence[str], style: str = "") -> None:
        """Write a line of csv, or cells between tabs."""
        self._write(self.celled(cells, style))

    def celled(self, cells: Sequence[str], style: str = "") -> bytes:
        """Return what `cells` writes."""
        if self.options.form == "csv":
            return self.lined(csv_line(cells, raw=self.options.raw)[:-1])
        return self.lined(between_tabs(cells), style)

    def _json(self, data: bytes) -> bytes:
        data = json_safe(data)
        return inert_json(data) if self._inert else data

    def _write_through(self, data: bytes) -> None:
        self._binary.write(data)
        self._binary.flush()


class LineLimit:
    """Passes lines on up to a number of them, all without one."""

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
    """Rows of columns whose widths are known before: aligned on a terminal, which may hide some,
    between tabs in a pipe, or csv and tsv. The first row brings the titles, which are names for
    programs; `end` names what is hidden."""

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
        # Not at the top: it loads the fields of filters, 6 ms that `schemas` does without.
        from kafkascope.analyzer.render.listing import fitted, line

        self._line = line
        if self._width is not None:
            self._shown = fitted(columns, self._width, priority)
        places = [at for at, column in enumerate(columns) if column in self._shown]
        self._places = places[: len(self._shown)]
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
        shown = [cells[at] for at in self._places]
        self._output.line(self._line(self._shown, shown, self._width), style)

    def end(self) -> None:
        """Write which columns are hidden, where there were rows."""
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
