"""Files that are written must not be those that are read: opening one to write empties it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

_EXCHANGE_OF: Final = re.compile(r"#\d{1,12}\Z")
"""As `diff` writes an exchange: FILE#NUMBER."""

__all__ = ["refuse_inputs"]


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
