"""Where a command's lines go: stdout or a file, flushed at once when the input is live."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TextIO

from kafkascope.analyzer.commands.tables import terminal_width
from kafkascope.analyzer.commands.targets import refuse_inputs
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.spreadsheet import csv_line
from kafkascope.analyzer.terminal import is_job_log, stdout_blocks, stdout_bytes
from kafkascope.analyzer.text import ascii_only, between_tabs, inert, inert_json, json_safe, tabbed
from kafkascope.captures.inputs.private import PrivateFile

RESET: Final = "\x1b[0m"
STYLES: Final = {"!": "\x1b[31m", "?": "\x1b[33m", "~": "\x1b[2m", "header": "\x1b[1m"}
"""First letter of a result -> colour of its line; the letter says the same without colour."""


class Output:
    """A context manager; `line` and `octets` write, `width` is the terminal's or None."""

    def __init__(self, options: ReadOptions, *, live: bool = False, log: bool = False) -> None:
        """`log`: what is written, into a file as well, usually ends in the log of a CI job."""
        self._options = options
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

    def lined(self, text: str, style: str = "") -> bytes:
        """Return what `line` writes."""
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
        if not isinstance(value, bytes):
            from kafkascope.dissectors.codec.jsonform import dumps

            value = dumps(value)
        self._write(self._json(value) + b"\n")

    def element(self, value: Any) -> None:
        """The same; in the format `json` all values are one array, which `end` closes."""
        self.elements(self.element_of(value))

    def element_of(self, value: Any) -> bytes:
        """Return what `elements` writes for a value, or the JSON of one."""
        if not isinstance(value, bytes):
            from kafkascope.dissectors.codec.jsonform import dumps

            value = dumps(value)
        line = self._json(value) + b"\n"
        return b"," + line if self._options.form == "json" else line

    def elements(self, data: bytes) -> None:
        """Write elements."""
        if self._options.form == "json" and not self._begun:
            data = b"[" + data[1:]
        self._begun = True
        self._write(data)

    def end(self) -> None:
        """No more elements follow."""
        if self._options.form == "json":
            self.json_line(b"]" if self._begun else b"[]")

    def cells(self, cells: Sequence[str], style: str = "") -> None:
        """Write a line of csv, or cells between tabs."""
        self._write(self.celled(cells, style))

    def celled(self, cells: Sequence[str], style: str = "") -> bytes:
        """Return what `cells` writes."""
        if self._options.form == "csv":
            return self.lined(csv_line(cells, raw=self._options.raw)[:-1])
        return self.lined(between_tabs(cells), style)

    def _json(self, data: bytes) -> bytes:
        data = json_safe(data)
        return inert_json(data) if self._inert else data

    def _write_through(self, data: bytes) -> None:
        self._binary.write(data)
        self._binary.flush()


def _is_utf8(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def _colors(options: ReadOptions) -> bool:
    if options.color != "auto":
        return options.color == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()
