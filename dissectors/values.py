"""Values for which Python has no type, and the variable-length integers that carry lengths."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Final

from kafkascope.dissectors.errors import Malformed, Truncated

# The end of an open range: api versions are int16.
OPEN_END: Final = 32767


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions; empty when `low > high`."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """Read "3+", "0-5", "4" or "none"; `ValueError` for anything else."""
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), OPEN_END)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __str__(self) -> str:
        if self.low > self.high:
            return "none"
        if self.high == OPEN_END:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


NO_VERSIONS: Final = Versions(0, -1)


class Uuid(bytes):
    """16 bytes, most significant first; `str()` gives Kafka's 22 characters of URL-safe base64."""

    __slots__ = ()

    def __str__(self) -> str:
        return base64.urlsafe_b64encode(self)[:22].decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"

    @classmethod
    def parse(cls, text: str) -> Uuid:
        """Read the 22 characters; `ValueError` when they are not 16 bytes."""
        raw = base64.b64decode(text.encode("ascii") + b"==", altchars=b"-_", validate=True)
        if len(raw) != 16:
            raise ValueError(f"a uuid has 16 bytes, not {len(raw)}")
        return cls(raw)


class NonFinite(float):
    """A NaN or an infinity: JSON has no number for it, so it is written as text."""

    def __str__(self) -> str:
        return "NaN" if math.isnan(self) else "Infinity" if self > 0 else "-Infinity"


def finite(value: float) -> float:
    """Return the value, as a `NonFinite` when JSON has no number for it."""
    return value if math.isfinite(value) else NonFinite(value)


def read_uvarint(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 5 bytes and 32 bits; return it and the offset after
    it."""
    value = 0
    for shift in (0, 7, 14, 21, 28):
        if at >= len(data):
            raise Truncated("the bytes end inside a varint", offset=at)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, at
    raise Malformed("a varint of more than 32 bits", offset=at)


def write_uvarint(value: int) -> bytes:
    """Return the shortest unsigned varint of a value below 2**32."""
    if not 0 <= value <= 0xFFFFFFFF:
        raise Malformed(f"{value} does not fit an unsigned varint")
    return varint_of(value)


def varint_of(value: int) -> bytes:
    """Return the shortest unsigned varint of a value that is not negative."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
