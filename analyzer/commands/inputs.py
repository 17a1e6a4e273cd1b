"""Bytes that people have at hand: hexadecimal text, dumps with offsets, base64, lists of numbers,
files, stdin."""

from __future__ import annotations

import base64
import binascii
import re
import sys
from pathlib import Path
from typing import Final

import click

MOST_BYTES: Final = 150_000_000
"""Of input: hexadecimal text of a message as large as Kafka's are by default, several times."""
MOST_JSON: Final = 32_000_000
MOST_VALUES: Final = 1_000_000
"""Of JSON, counted by what is before them: one takes up to 300 bytes of memory, its text two."""

_HEX_NOISE: Final = re.compile(r"0x|\\x|[\s:,]", re.IGNORECASE)
_NUMBERS: Final = re.compile(r"(<<|\[|\{)[\d,\s-]+(>>|\]|\})")
_DUMP_START: Final = re.compile(r"\s*(0x)?0000[0-9a-f]{0,4}:?(\s|$)", re.IGNORECASE)
_OFFSET: Final = re.compile(r"\s*(?:0x)?([0-9a-f]{4,8}):?(?=\s|$)", re.IGNORECASE)
_OCTETS: Final = re.compile(r"(?:[0-9a-f]{2})+", re.IGNORECASE)


def read_input(text: str | None, wanted: str, most: int = MOST_BYTES) -> bytes:
    """The argument itself, the content of the file that it names, or stdin (`-`, or nothing)."""
    data = _read(text, wanted, most + 1)
    if len(data) > most:
        raise click.UsageError(f"{wanted} has more than {most:,} bytes, which is too much")
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
            raise click.UsageError(f"{wanted} is missing: as an argument, a file, or on stdin")
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


def octets(data: bytes) -> bytes:
    """The bytes that the input stands for: itself, when it is no text of any known form."""
    try:
        text = data.decode("ascii").strip()
    except UnicodeDecodeError:
        return data
    if _DUMP_START.match(text):
        found = dump(text)
        if found:
            return found
    try:
        return bytes.fromhex(_HEX_NOISE.sub("", text))
    except ValueError:
        pass
    if _NUMBERS.fullmatch(text):
        # As Erlang, Java and C print bytes.
        numbers = [int(number) for number in re.findall(r"-?\d+", text)]
        if all(-128 <= number <= 255 for number in numbers):
            return bytes(number & 0xFF for number in numbers)
    try:
        plain = "".join(text.split()).replace("-", "+").replace("_", "/")
        return base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError):
        pass
    if all(char.isprintable() or char.isspace() for char in text):
        raise click.UsageError(
            "the input is neither hexadecimal nor base64, nor a file that is there"
        )
    return data


def dump(text: str) -> bytes | None:
    """The bytes of a dump with offsets at the left and text at the right (xxd, hexdump, Wireshark).

    None when the offsets do not fit the bytes.
    """
    rows: list[tuple[int, str, int]] = []
    for line in text.splitlines():
        found = _OFFSET.match(line)
        if found is None:
            if line.strip() in ("", "*"):
                continue
            return None
        rows.append((int(found[1], 16), line, found.end()))
    out = bytearray()
    text_column = None
    for index, (offset, line, start) in enumerate(rows):
        if offset != len(out):
            return None
        wanted = rows[index + 1][0] - offset if index + 1 < len(rows) else None
        taken, end = _row(line, start, wanted, text_column)
        # The text stands behind the bytes of the longest row, which is the first one.
        text_column = text_column or end
        out += taken
    return bytes(out)


def _row(line: str, start: int, wanted: int | None, text_column: int | None) -> tuple[bytes, int]:
    """The bytes of a row, and the column behind them."""
    taken, end = b"", start
    for word in re.finditer(r"\S+", line[start:]):
        at = start + word.start()
        if not _OCTETS.fullmatch(word[0]) or (wanted is not None and len(taken) >= wanted):
            break
        if wanted is None:
            if text_column is not None and at >= text_column:
                break
            # In the only row a wide gap is the start of the text, save the one in the middle.
            if text_column is None and taken and at - end > 1 and len(taken) != 8:
                break
        taken += bytes.fromhex(word[0])
        end = start + word.end()
    return taken, end
