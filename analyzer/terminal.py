"""Lines for people on stdout and stderr: the one place that writes text to a terminal.

Names of topics, clients, hosts and files may hold what a terminal obeys, and line feeds that would
forge lines of ours. No module writes to a stream by itself (`tests/test_terminal.py`); files and
pipes of programs get bytes through `Output`, or through `stdout_bytes`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable
from typing import Any, BinaryIO, Final, cast

import click

from kafkascope.analyzer.text import between_tabs, inert, inert_json, json_safe, safe, tabbed

PROGRAM: Final = "kafkascope: "
CLEAR: Final = "\r\x1b[K"
"""Back to the start of the line, and nothing after it."""
RUNNERS: Final = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
"""Variables of CI systems that obey commands in what a job prints."""


def is_job_log() -> bool:
    """Whether what is printed may be read by the runner of a CI job."""
    return any(map(os.environ.get, RUNNERS))


def for_log(text: str) -> str:
    """Lines without what the runner of a CI job obeys, where one may read them."""
    return inert(text) if is_job_log() else text


def json_for_log(data: bytes) -> bytes:
    """JSON of the same value for a terminal, or for the log of a CI job."""
    data = json_safe(data)
    return inert_json(data) if is_job_log() else data


def _echo(text: str, *, err: bool = False) -> None:
    click.echo(for_log(text), err=err)


def say(text: str, *, bare: bool = False) -> None:
    """A remark on stderr, after the program's name unless it is `bare`. It may quote the capture,
    and `check` is made for CI jobs: no remark is a command for their runners."""
    click.echo(inert(indented(text if bare else PROGRAM + text)), err=True)


def indented(text: str) -> str:
    """The lines of a text for a terminal. All but the first begin with blanks, so that a line feed
    in a name makes no line that looks like one of ours."""
    first, *rest = text.split("\n")
    lines = [line if line.startswith("  ") else f"  {line}" if line else "" for line in rest]
    return "\n".join(map(safe, (first, *lines)))


def out(line: str = "") -> None:
    """A line on stdout."""
    _echo(safe(line))


def document(text: str) -> None:
    """Lines of our own on stdout."""
    _echo(_document(text))


def _document(text: str) -> str:
    return "\n".join(map(tabbed, text.split("\n")))


def row(cells: Iterable[str]) -> None:
    """Cells on stdout, between tabs."""
    _echo(between_tabs(tuple(cells)))


def json_out(data: bytes) -> None:
    click.echo(json_for_log(data))


def status(text: str = "") -> None:
    """One line on stderr in the place of the one before; empty takes it away."""
    click.echo(CLEAR + for_log(safe(text)), err=True, nl=False)


class _Stream:
    """A binary stream whose `write` does more."""

    def __init__(self, out: Any) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        raise NotImplementedError

    def writelines(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)


class _Whole(_Stream):
    """An unbuffered stream (`python -u`) whose `write` writes all: a signal, or a pipe that is
    full, ends it early otherwise."""

    def write(self, data: bytes) -> int:
        left = memoryview(data)
        while left:
            left = left[self._out.write(left) or 0 :]
        return len(data)


def stdout_bytes() -> BinaryIO:
    """Stdout for bytes that are no text for people: captures, messages, exports."""
    out: Any = sys.stdout.buffer
    return cast(BinaryIO, _Whole(out) if isinstance(out, io.RawIOBase) else out)


def stdout_blocks() -> BinaryIO:
    """Stdout for bulk lines: they are written in blocks, also by an unbuffered Python,
    as containers often have it. To be flushed at the end."""
    out: Any = sys.stdout.buffer
    return open(out.fileno(), "wb", closefd=False) if isinstance(out, io.RawIOBase) else out


class _Inert(_Stream):
    """A stream of text whose lines are no commands for the runner of a CI job."""

    def __init__(self, out: BinaryIO, as_json: bool) -> None:
        super().__init__(out)
        self._as_json = as_json

    def write(self, data: bytes) -> int:
        text = bytes(data)
        if self._as_json:
            self._out.write(inert_json(text))
        else:
            self._out.write(inert(text.decode("utf-8", "replace")).encode())
        return len(data)


def stdout_lines(out: BinaryIO, form: str) -> BinaryIO:
    """Stdout for lines of an export. `form`: its format; what is no text stays as it is."""
    if form not in ("csv", "jsonl") or not is_job_log():
        return out
    return cast(BinaryIO, _Inert(out, form == "jsonl"))


def open_standard_streams() -> None:
    """Open those of stdin, stdout and stderr that were closed when the process began: else the next
    files take their numbers, and what is printed would be written into them.

    As GNU's `stdopen` does, stdin is opened for writing only: reading it stays an error."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        null = os.open(os.devnull, os.O_WRONLY)
        if null != number:
            os.dup2(null, number)
            os.close(null)
        os.set_inheritable(number, True)  # tasks are other processes
        raw = io.FileIO(number, "w" if number else "r", closefd=False)
        buffer = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
        opened = io.TextIOWrapper(buffer, encoding="utf-8")
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)


def usage(error: click.ClickException) -> None:
    """Click's message on a wrong command line: the usage, and the error."""
    shown = io.StringIO()
    error.show(file=shown)
    head, mark, message = shown.getvalue().rstrip("\n").partition("Error: ")
    if not head:  # not about the command line: as all other messages begin
        mark = "kafkascope: "
    _echo(_document(head) + indented(mark + message), err=True)
