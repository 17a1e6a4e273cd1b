"""Writes numbers, times and bytes as JSON. Numbers go three digits at a time, without an object of
Python for each. Compiled by mypyc; the same source runs without."""

from __future__ import annotations

from binascii import b2a_base64
from json.encoder import encode_basestring
from typing import Any, Final

from librt.strings import BytesWriter
from mypy_extensions import i64

SMALL: Final = [b"%d" % number for number in range(1000)]
PADDED: Final = [b"%03d" % number for number in range(1000)]
STRIPPED: Final = [digits.rstrip(b"0") or b"0" for digits in PADDED]
"""Digits that end a fraction: no zeros at its end, but one in place of none."""
MINUS: Final = 45
LEAST: Final[i64] = -(1 << 63)
# Below it, floats of as many nanoseconds in milliseconds have all digits.
PLAIN: Final[i64] = 1_000_000_000_000_000


def write_number(out: BytesWriter, value: i64) -> None:
    if value < 0:
        if value == LEAST:
            out.write(b"-9223372036854775808")
            return
        out.append(MINUS)
        value = -value
    if value < 1000:
        out.write(SMALL[value])
    else:
        write_number(out, value // 1000)
        out.write(PADDED[value % 1000])


def write_member(out: BytesWriter, before: bytes, value: i64) -> None:
    """Write a number, and what stands before it: its name, or members that are known already."""
    out.write(before)
    write_number(out, value)


def write_millis(out: BytesWriter, value: i64, short: bool) -> None:
    """Write nanoseconds in milliseconds: a float, or an integer where `short` and there is no
    fraction."""
    rest: i64 = value % 1_000_000
    if short and rest == 0:
        write_number(out, value // 1_000_000)
    elif value == 0 or 1000 <= value < PLAIN:
        write_number(out, value // 1_000_000)
        out.write(b".")
        micros: i64 = rest // 1000
        nanos: i64 = rest % 1000
        if nanos == 0:
            out.write(STRIPPED[micros])
        else:
            out.write(PADDED[micros])
            out.write(STRIPPED[nanos])
    else:
        out.write(exact_millis(value))


def exact_millis(value: i64) -> bytes:
    """Return the same of a number that has an exponent, or not all of its digits."""
    import orjson

    # Compiled, a division of integers rounds each of them to 53 bits first; Python's does not.
    exact: Any = value
    text: bytes = orjson.dumps(exact / 1_000_000)
    return text


def base64_of(raw: bytes) -> bytes:
    """Return bytes as JSON: a string of base64."""
    return b'"' + b2a_base64(raw, newline=False) + b'"'


def uuid_of(raw: bytes) -> bytes:
    """Return an id as JSON: as Kafka prints it, in 22 characters of URL-safe base64."""
    text = b2a_base64(raw, newline=False)[:22]
    return b'"' + text.replace(b"+", b"-").replace(b"/", b"_") + b'"'


def octets_of(raw: bytes) -> bytes:
    """Return a key or value as JSON: text when it is UTF-8, else base64."""
    try:
        return text_of(raw.decode())
    except UnicodeDecodeError:
        return b'{"base64":' + base64_of(raw) + b"}"


def text_of(text: str) -> bytes:
    """Return a text as JSON."""
    quoted: str = encode_basestring(text)
    return quoted.encode()
