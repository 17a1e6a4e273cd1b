"""Text of traffic, of files and of users as a terminal may get it, and how wide it is there.

The one home of both: what may reach a terminal, and how many of its columns that takes.
"""

from __future__ import annotations

import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Final

HIDDEN: Final = "·"
"""Stands for a character that a terminal would obey, or that nobody would see."""

SPACES: Final = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""Harmless, and a part of people's words: they are told apart only where a name is shown."""

# Characters whose spelling is kept; traffic may hold all of a million.
REMEMBERED: Final = 4096
# Bytes of JSON that are looked through at once; a record may hold a hundred million.
CHUNK: Final = 1 << 20
# Characters that are looked at for each column of a cell: signs without a width have no end.
CHARACTERS_A_COLUMN: Final = 8


class _Spelling(dict[int, str]):
    """The spelling of each character, a table for `str.translate`."""

    def __init__(self, spell: Callable[[str], str], kept: str = "") -> None:
        """`spell`: called with characters that do not print, unless they are `kept`."""
        self._spell = spell
        super().__init__({ord(char): char for char in kept})

    def __missing__(self, code: int) -> str:
        char = chr(code)
        spelling = char if char.isprintable() else self._spell(char)
        if len(self) < REMEMBERED:
            self[code] = spelling
        return spelling


def _json_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _backslashed(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_LIKE_AN_ESCAPE: Final = re.compile(r"\\(?:\\|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_HIDING: Final = _Spelling(lambda char: HIDDEN)
_ESCAPES: Final = _Spelling(lambda char: repr(char)[1:-1])
_DATA: Final = _Spelling(lambda char: repr(char)[1:-1], kept=SPACES)
_SPELLED: Final = _Spelling(_backslashed)
_JSON: Final = _Spelling(_json_escape, kept=f"\n{SPACES}")


def safe(text: str) -> str:
    """A line of text without characters that do not print: controls (C0, DEL, C1, line breaks),
    directions of writing, zero widths, lone surrogates."""
    return text if text.isprintable() else text.translate(_HIDING)


def tabbed(line: str) -> str:
    """A line whose tabs are ours."""
    # One look at all cells: nearly all lines print as they are.
    if line.replace("\t", "").isprintable():
        return line
    return "\t".join(map(safe, line.split("\t")))


def between_tabs(cells: Sequence[str]) -> str:
    """Cells as a line, with tabs between them and none inside."""
    return "\t".join(cells if "".join(cells).isprintable() else map(safe, cells))


def escaped(text: str, *, data: bool = False) -> str:
    r"""A line of text with escapes (`\x1b`, `\u202e`) for the same characters; with `data` all
    spaces stay."""
    return text if text.isprintable() else text.translate(_DATA if data else _ESCAPES)


class Spelled(str):
    """What `spelled` gave: it is not escaped again."""

    __slots__ = ()


def spelled(value: object) -> str:
    r"""A name for a sentence, without characters that do not print and unlike every other name.

    They become escapes (`\x1b`, `\u202e`); backslashes are doubled where one of them could be taken
    for the beginning of an escape.
    """
    if isinstance(value, Spelled):
        return value
    text = str(value)
    if "\\" in text and (_LIKE_AN_ESCAPE.search(text) or not text.isprintable()):
        text = text.replace("\\", r"\\")
    return Spelled(text if text.isprintable() else text.translate(_SPELLED))


_COMMAND: Final = re.compile(r"^([ \t]*)::", re.MULTILINE)
_MARK: Final = re.compile(r"##(?=\[|vso\[|teamcity\[)")
_JSON_MARK: Final = re.compile(rb"##(?=\[|vso\[|teamcity\[)")


def inert(text: str, *, begun: bool = False) -> str:
    r"""Lines that are no commands for the runner of a CI job, which reads what its steps print.

    GitHub's obeys lines that begin with `::` after blanks and, anywhere in a line, `##[`; Azure's
    `##vso[`. A backslash makes both text. `begun`: the line begins with a command of ours."""
    if "##" in text:
        text = _MARK.sub(r"#\\#", text)
    return text if begun or "::" not in text else _COMMAND.sub(r"\1\\::", text)


def inert_json(data: bytes) -> bytes:
    r"""The same for lines of JSON, of the same value: only strings contain `##[`."""
    return _JSON_MARK.sub(rb"\\u0023#", data) if b"##" in data else data


def json_safe(data: bytes) -> bytes:
    r"""JSON of the same value, with `\uXXXX` for the same characters inside its strings.

    Encoders write them as they are. Line feeds stay: inside of strings they are escaped already.
    """
    if data.isascii() and b"\x7f" not in data:
        return data
    decode = getincrementaldecoder("utf-8")().decode
    return b"".join(
        _json_safe(decode(data[at : at + CHUNK])).encode() for at in range(0, len(data), CHUNK)
    )


def _json_safe(text: str) -> str:
    return text if text.replace("\n", "").isprintable() else text.translate(_JSON)


def ascii_only(text: str) -> str:
    """For terminals and locales without Unicode."""
    if text.isascii():
        return text
    return text.replace("µ", "u").replace("…", "~").encode("ascii", "replace").decode("ascii")


# --- widths ---


@cache
def _cell_len() -> Callable[[str], int]:
    # 15 ms that most runs need not spend.
    from rich.cells import cell_len

    return cell_len


def columns_taken(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else _cell_len()(text)


def cut(text: str, width: int) -> str:
    """The text in at most so many columns, with `…` where it was longer."""
    most = CHARACTERS_A_COLUMN * max(width, 1)
    if len(text) <= most and columns_taken(text) <= width:
        return text
    if width < 1:
        return ""
    head = text[:most]
    if head.isascii():
        return head[: width - 1] + "…"
    from rich.cells import set_cell_size

    return set_cell_size(head, width - 1) + "…"


def cut_within(text: str, width: int) -> str:
    """The text in at most so many columns, with `…` in its middle where it was longer: names that
    programs make up begin alike."""
    tail = text[-(width // 2) :] if width > 1 else ""
    while columns_taken(tail) > width // 2:
        tail = tail[1:]
    if columns_taken(text) <= width or not tail:
        return cut(text, width)
    return cut(text, width - columns_taken(tail)) + tail


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text in exactly so many columns of a terminal."""
    return filled(cut(text, width), width, right=right)


def filled(text: str, width: int, *, right: bool = False) -> str:
    """The text in at least so many columns."""
    fill = " " * (width - columns_taken(text))
    return fill + text if right else text + fill


def plural(count: int, noun: str, several: str = "") -> str:
    """Return a number with its noun: `1 request`, `3 requests`."""
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def wrapped(
    text: str, width: int, *, indent: str = "", hanging: str | None = None, breaks: bool = False
) -> list[str]:
    """The text in lines of at most so many columns, broken at spaces.

    A word that is longer has a line of its own, unless it `breaks`. `indent` begins the first line,
    `hanging` the others.
    """
    return packed(text.split(), width, indent=indent, hanging=hanging, breaks=breaks)


def packed(
    words: Iterable[str],
    width: int,
    *,
    indent: str = "",
    hanging: str | None = None,
    breaks: bool = False,
) -> list[str]:
    """The same of words that may hold spaces."""
    hanging = indent if hanging is None else hanging
    if breaks:
        room = max(1, width - columns_taken(max(indent, hanging, key=columns_taken)))
        words = chain.from_iterable(_chopped(word, room) for word in words)
    out: list[str] = []
    line, begin = indent, indent
    for word in words:
        if line != begin and columns_taken(f"{line} {word}") > width:
            out.append(line)
            line = begin = hanging
        line = line + word if line == begin else f"{line} {word}"
    return [*out, line] if line != begin else out


def _chopped(word: str, width: int) -> Iterator[str]:
    at = 0
    while at < len(word):
        # As many characters as fit: one may take two columns, or none.
        size = width
        while size > 1 and columns_taken(word[at : at + size]) > width:
            size -= 1
        yield word[at : at + size]
        at += size


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return the end of a sentence about an unknown name: the nearest of some names, if any is."""
    from difflib import get_close_matches  # only mistakes need it

    near = get_close_matches(name, list(names), n=1)
    return f"; did you mean {near[0]}?" if near else ""
