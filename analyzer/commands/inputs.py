"""What `decode` and `encode` read: an argument, a file, or stdin, up to a limit."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

MOST_BYTES: Final = 150_000_000
"""Of input: hexadecimal text of a message as large as Kafka's are by default, several times."""
MOST_JSON: Final = 32_000_000
MOST_VALUES: Final = 1_000_000
"""Of JSON, counted by what is before them: one takes up to 300 bytes of memory, its text two."""


def read_input(text: str | None, wanted: str, most: int = MOST_BYTES) -> bytes:
    """The argument itself, the content of the file that it names, or stdin (`-`, or nothing)."""
    data = _read(text, wanted, most + 1)
    if len(data) > most:
        raise click.UsageError(f"{wanted} is larger than the limit of {most:,} bytes")
    return data


def too_much(data: bytes) -> str:
    """Why JSON is too large to be read; empty where it is not."""
    if len(data) > MOST_JSON:
        return f"more than {MOST_JSON:,} bytes of JSON are too much"
    if sum(map(data.count, (b",", b"[", b"{"))) > MOST_VALUES:
        return f"JSON with more than {MOST_VALUES:,} commas and brackets is too much"
    return ""


def _read(text: str | None, wanted: str, most: int) -> bytes:
    if text is None or text == "-":
        if text is None and sys.stdin.isatty():
            raise click.UsageError(
                f"{wanted} is missing: write it, name a file, or pipe it to stdin"
            )
        return sys.stdin.buffer.read(most)
    try:
        path = Path(text)
        named = path.is_file() or path.is_dir()
    except (OSError, ValueError):
        named = False  # too long for a path: it is the content
    if named:
        with path.open("rb") as file:
            return file.read(most)
    return text.encode("utf-8", "surrogateescape")
