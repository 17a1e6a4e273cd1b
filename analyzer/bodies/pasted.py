"""Bytes as people paste them: what languages, debuggers and dump tools print.

`FORMS` is tried in its order; the first form that recognizes the text reads it, and an error in
it is final. A text that no form recognizes is an error that shows where reading stopped.
Every reader is linear in the length of the text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from kafkascope.analyzer.bodies.limits import LIMITS

_CONTROL: Final = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
"""No text that is pasted has them, and every message of Kafka does."""


class PasteError(ValueError):
    """Text that is in no form, or breaks its own form at an offset."""

    def __init__(self, reason: str, text: str, offset: int) -> None:
        line = text.count("\n", 0, offset) + 1
        column = offset - text.rfind("\n", 0, offset)
        rest = text[offset : offset + 20].partition("\n")[0]
        super().__init__(
            f"{reason} at line {line}, column {column}: "
            + (f'"{rest}"' if rest else "the text ends there")
        )


class Form(NamedTuple):
    """One form of pasted bytes."""

    name: str
    """As `decode --help` and docs/commands.md list it."""
    example: str
    recognizes: re.Pattern[str]
    """Matches at the start of a text in this form."""
    read: Callable[[str, int], bytes | None]
    """Called with the text and the end of the match; None where it is another form after all,
    `PasteError` where it breaks its own."""


def pasted(data: bytes) -> bytes:
    """Return the bytes that a pasted text encodes; data that is no text is returned as it is.
    `PasteError` for other text."""
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError:
        return data
    if _CONTROL.search(text):
        return data
    return _read(text, FORMS) if text else b""


def _read(text: str, forms: Sequence[Form]) -> bytes:
    for form in forms:
        match = form.recognizes.match(text)
        if match is not None and (found := form.read(text, match.end())) is not None:
            return found
    ends = [match.end() for run in (_HEX_RUN, _BASE64_RUN) if (match := run.match(text))]
    raise PasteError("in none of the forms; reading stopped", text, max(ends))


# --- lists of numbers

_NUMBER: Final = re.compile(
    r"[\s,;]*(?:\(byte\)\s*)?(?:(0x[0-9a-f]{1,2})|(-?\d{1,3}))(?:u8|u|L)?(?![\w.])", re.IGNORECASE
)
_LIST_END: Final = re.compile(r"[\s,;]*(?:[\]})]|>>)[\s)};,]*\Z")
_NODE_BYTE: Final = re.compile(r"\s*([0-9a-f]{2})(?=[\s>])", re.IGNORECASE)
_NODE_END: Final = re.compile(r"\s*>\Z")
_NODE_CUT: Final = re.compile(r"\s*\.\.\. \d+ more bytes?>")


def _numbers(text: str, at: int) -> bytes:
    found = bytearray()
    while match := _NUMBER.match(text, at):
        number = int(match[1], 16) if match[1] else int(match[2])
        if not -128 <= number <= 255:
            raise PasteError("a byte is -128 to 255; reading stopped", text, match.start(2))
        found.append(number & 0xFF)
        at = match.end()
    if _LIST_END.match(text, at) is None:
        at += len(text[at : at + 99]) - len(text[at : at + 99].lstrip(" \t\r\n,;"))
        raise PasteError("a list of bytes ends with a bracket; reading stopped", text, at)
    return bytes(found)


def _node_buffer(text: str, at: int) -> bytes:
    found = bytearray()
    while match := _NODE_BYTE.match(text, at):
        found.append(int(match[1], 16))
        at = match.end()
    if _NODE_CUT.match(text, at):
        raise PasteError("Node cut the buffer: print buffer.toString('hex'); it stops", text, at)
    if _NODE_END.match(text, at) is None:
        raise PasteError("a Buffer is pairs of hexadecimal digits; reading stopped", text, at)
    return bytes(found)


# --- strings with escapes

_ESCAPE: Final = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3]?[0-7]{1,2})|(.))", re.DOTALL
)
_CONTROLS: Final = {
    **dict(zip("abfnrtv", b"\a\b\f\n\r\t\v", strict=True)),
    **{char: ord(char) for char in "\\'\"?/`"},
}
_OPEN_QUOTE: Final = re.compile(r"[\s(+]*(?:[bB]?[rR]?)(?=['\"`])")
_STRING_END: Final = re.compile(r"[\s)};,]*\Z")


def _unescaped(text: str, at: int, stop: str) -> tuple[bytes, int]:
    r"""Return the bytes up to the quote `stop`, or the end, and the offset of that.

    `\u00e9` is the byte e9, as JSON and Java print a byte in a string; in a text with `\x` escapes
    it is a character in UTF-8, as Go's %q prints it, which has `\x` for bytes.
    """
    runes = "\\x" in text
    plain = re.compile(rf"[^\\{stop}]+" if stop else r"[^\\]+")
    found = bytearray()
    while at < len(text) and (not stop or text[at] != stop):
        if match := plain.match(text, at):
            found += match[0].encode("utf-8")
        elif match := _ESCAPE.match(text, at):
            octet, short, long, octal, control = match.groups()
            if octet or octal:
                found.append(int(octet, 16) if octet else int(octal, 8))
            elif short or long:
                found += _rune(int(short or long, 16), runes, text, at)
            elif control in _CONTROLS:
                found.append(_CONTROLS[control])
            else:
                raise PasteError("no such escape; reading stopped", text, at)
        else:
            raise PasteError("the escape is not complete; reading stopped", text, at)
        at = match.end()
    return bytes(found), at


def _rune(number: int, runes: bool, text: str, at: int) -> bytes:
    if number < 0x100 and not runes:
        return bytes([number])
    try:
        return chr(number).encode("utf-8")
    except (ValueError, UnicodeEncodeError):
        raise PasteError("no such character; reading stopped", text, at) from None


def _strings(text: str, at: int) -> bytes:
    """Read one quoted string, or several in a row."""
    if text[0] in "'\"`" and text[0] == text[-1] and "\\" not in text:
        return _read(text[1:-1], FORMS[-2:])  # digits that a log or JSON has in quotes
    found = bytearray()
    while match := _OPEN_QUOTE.match(text, at):
        at = match.end()
        taken, end = _unescaped(text, at + 1, text[at])
        if end >= len(text):
            raise PasteError("the closing quote is missing; reading stopped", text, end)
        found += taken
        at = end + 1
    if _STRING_END.match(text, at) is None:
        raise PasteError("text after the closing quote; reading stopped", text, at)
    return bytes(found)


def _escapes(text: str, _: int) -> bytes:
    return _unescaped(text, 0, "")[0]


# --- dumps with offsets

_OFFSET: Final = re.compile(r"[ \t]*(?:0x)?([0-9a-f]{4,8})(:?)(?=\s|\Z)([ \t]*)", re.IGNORECASE)
_OCTETS: Final = re.compile(r"(?:[0-9a-f]{2})+", re.IGNORECASE)
_WORD: Final = re.compile(r"\S+")
_NETTY_ROW: Final = re.compile(r"[ \t]*\|([0-9a-f]{8})\|([^|]*)", re.IGNORECASE)
_HOST_ORDER: Final = re.compile(r"0{7} [0-9a-f]{4}(\s|\Z)", re.IGNORECASE)
_BASES: Final = (16, 8, 10)
"""Bases of offsets, in the order in which they are tried: `od` prints octal ones by default."""


class _Row(NamedTuple):
    offset: str
    colon: bool
    text: str
    """The bytes, and what stands after them."""
    gap: int
    """Spaces before the bytes."""
    at: int
    """Where the row starts."""


class _Misfit(Exception):
    """A row whose bytes do not reach to the next offset; its place in the text."""


def _dump(text: str, _: int) -> bytes | None:
    """Read a dump of xxd, hexdump -C, od -t x1, tcpdump -X or Wireshark; None where the first word
    is no offset but the first of the bytes."""
    if _HOST_ORDER.match(text):
        raise PasteError("words in the machine's byte order, use hexdump -C or od -t x1:", text, 0)
    rows: list[_Row | None] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if found := _OFFSET.match(line):
            rest = line[found.end() :].rstrip()
            rows.append(_Row(found[1], bool(found[2]), rest, len(found[3]), at))
        elif line.strip() == "*":
            rows.append(None)
        elif line.strip():
            _refuse(rows, text, at)
            return None
        at += len(line)
    first = rows[0]
    assert first is not None
    word = _WORD.match(first.text)
    if (len(rows) == 1 and not first.colon and first.gap < 2) and (
        word is None or len(first.offset) in (4, 8)
    ):
        return None  # groups of digits, the first of which are zeros
    places = []
    for base in _BASES:
        try:
            return _rows(rows, base)
        except _Misfit as misfit:
            places.append(misfit.args[0])
    _refuse(rows, text, max(places))
    return None


def _refuse(rows: list[_Row | None], text: str, at: int) -> None:
    """Raise the error of a dump, unless its rows may be mere groups of digits."""
    first = rows[0] if rows else None
    if first is None or not (first.colon or first.gap > 1):
        return
    raise PasteError("offsets of the dump do not match its bytes; reading stopped", text, at)


def _rows(rows: list[_Row | None], base: int) -> bytes:
    out = bytearray()
    last = b""
    width = None
    repeated = False
    for index, row in enumerate(rows):
        if row is None:
            repeated = True
            continue
        try:
            offset = int(row.offset, base)
        except ValueError:
            raise _Misfit(row.at) from None
        if repeated and last and len(out) < offset <= LIMITS.dump_bytes:
            out += last * ((offset - len(out)) // len(last))
        if offset != len(out):
            raise _Misfit(row.at)
        repeated = False
        following = rows[index + 1] if index + 1 < len(rows) else None
        wanted = None
        if following is not None:
            try:
                wanted = int(following.offset, base) - offset
            except ValueError:
                raise _Misfit(following.at) from None
        last, end = _row(row, wanted, width)
        width = width or end  # the text stands after the bytes of the longest row, the first one
        if wanted is not None and len(last) != wanted:
            raise _Misfit(row.at)
        out += last
    return bytes(out)


def _row(row: _Row, wanted: int | None, width: int | None) -> tuple[bytes, int]:
    """Return the bytes of a row, and the column after them. `width`: that of the first row."""
    taken, end = bytearray(), 0
    for word in _WORD.finditer(row.text):
        if not _OCTETS.fullmatch(word[0]):
            break
        if wanted is not None and len(taken) >= wanted:
            if word.start() - end == 1:
                raise _Misfit(row.at)  # more bytes; text stands after a wider gap
            break
        if wanted is None:
            if width is not None and word.start() >= width:
                break
            # A wide gap is the start of the text, but for the one in the middle of 16 bytes.
            wide = width is None and taken and word.start() - end > 1
            if wide and (row.colon or len(taken) != 8):
                break
        taken += bytes.fromhex(word[0])
        end = word.end()
    return bytes(taken), end


def _netty(text: str, _: int) -> bytes:
    out = bytearray()
    at = 0
    for line in text.splitlines(keepends=True):
        if row := _NETTY_ROW.match(line):
            if int(row[1], 16) != len(out):
                raise PasteError(
                    "the offset does not match the bytes before it; reading stopped", text, at
                )
            try:
                out += bytes.fromhex(row[2])
            except ValueError:
                raise PasteError("no bytes in this row; reading stopped", text, at) from None
        elif line.strip(" \t\r\n+-|0123456789abcdef"):
            raise PasteError("no row of Netty's dump; reading stopped", text, at)
        at += len(line)
    return bytes(out)


# --- digits

# One class of characters, repeated: a group takes memory for each time that it matches.
_HEX_RUN: Final = re.compile(r"[0-9a-fx\s:,;-]*", re.IGNORECASE)
_NIBBLE: Final = re.compile(r"0x([0-9a-f])(?![0-9a-f])")
_SEPARATORS: Final = dict.fromkeys(map(ord, " \t\r\n\v\f:,;-"))
_BASE64_RUN: Final = re.compile(r"[A-Za-z0-9+/_\r\n-]*={0,2}")
_INNER_SPACE: Final = re.compile(r"\S[ \t]+\S")


def _hexadecimal(text: str, _: int) -> bytes | None:
    digits = text.lower()
    if "0x" in digits:
        digits = _NIBBLE.sub(r"0\1", digits).replace("0x", "")
    digits = digits.translate(_SEPARATORS)
    if "x" in digits:
        return None
    if len(digits) % 2:
        raise PasteError("an odd number of hexadecimal digits, the last one", text, len(text) - 1)
    return bytes.fromhex(digits)


def _base64(text: str, _: int) -> bytes | None:
    if _INNER_SPACE.search(text):
        return None  # base64 is wrapped at ends of lines only
    plain = "".join(text.split()).rstrip("=").replace("-", "+").replace("_", "/")
    if len(plain) % 4 == 1:
        raise PasteError("base64 that is cut short, the last character", text, len(text) - 1)
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _form(name: str, example: str, pattern: str, read: Callable[[str, int], bytes | None]) -> Form:
    return Form(name, example, re.compile(pattern, re.IGNORECASE), read)


FORMS: Final = (
    _form("Node Buffer", "<Buffer 00 12>", r"<(?:Slow)?Buffer\b", _node_buffer),
    _form(
        "JSON Buffer",
        '{"type":"Buffer","data":[0,18]}',
        r"""\{\s*["']?type["']?\s*:\s*["']Buffer["']\s*,\s*["']?data["']?\s*:\s*\[""",
        _numbers,
    ),
    _form(
        "Python bytes, Go %q",
        r"b'\x00\x12'",
        r"""(?:bytearray|bytes|\[\]byte|[\s(]){0,9}b?r?(?=['"`])""",
        _strings,
    ),
    _form(
        "list of bytes",
        "[]byte{0x00, 18} or [0 18] or <<0,18>>",
        r"(?:[a-z_.][a-z0-9_.]*(?:\(\d*\))?|\[\d*\](?:byte|uint8)|new\s+byte\[\d*\]|vec!)?[\s(]*(?:<<|[\[{])",
        _numbers,
    ),
    _form("Netty dump", "|00000000| 00 12", r"\+?-*\+?-*\+?-*\+?\s*\|", _netty),
    _form(
        "dump of xxd, hexdump -C, od -t x1, tcpdump -X, Wireshark",
        "00000000: 0012",
        r"(?:0x)?0{4,8}:?(?=\s|\Z)",
        _dump,
    ),
    _form("string with escapes", r"\x00\x12 or \u0000\u0012", r"[^\\]*\\[xu0-7abfnrtv]", _escapes),
    _form("hexadecimal", "00 12 or 0x0012 or 00:12", r"[0-9a-fx\s:,;-]+\Z", _hexadecimal),
    _form("base64 or base64url", "ABI=", r"[\sA-Za-z0-9+/_-]+={0,2}\s*\Z", _base64),
)


def accepted() -> Iterator[str]:
    """Yield a line for each form: its name and an example."""
    width = max(len(form.name) for form in FORMS)
    return (f"{form.name:<{width}}  {form.example}" for form in FORMS)
