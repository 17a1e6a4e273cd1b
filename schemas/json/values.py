"""Reads and writes JSON text so that no digit is lost, and says where its parts are.

orjson reads most texts. One with a number that 64 bits or a double cannot hold is read by Python's
own parser: such a number becomes `Exact` text.
"""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import orjson

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import UNFIT, Exact, PayloadError, Piece, Value, misfit, nested

_LONG_NUMBER: Final = re.compile(rb"[0-9.]{16}|[eE][+-]?[0-9]{3}")
"""A double holds any number of 15 digits and of two digits in its exponent."""

NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE: Final = re.compile(rb"[ \t\n\r]*")
_STRING: Final = re.compile(rb'"(?:[^"\\\x00-\x1f]|\\.)*"', re.DOTALL)
_PLAIN: Final = re.compile(rb"-?[0-9][0-9.eE+-]*|true|false|null")
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string"}


def parse(data: bytes) -> tuple[Value, Value]:
    """Return the value with its numbers as numbers, and the one to show: the same object where all
    of them are exact. `PayloadError` for what is no JSON."""
    if _LONG_NUMBER.search(data) is None:
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError:
            pass
        else:
            _check_depth(data, value)
            return value, value
    numbers = _Numbers(exact=False)
    value = _parse_exactly(data, numbers)
    _check_depth(data, value)
    if not numbers.lossy:
        return value, value
    return value, _parse_exactly(data, _Numbers(exact=True))


def dump(value: Value) -> bytes:
    """Return the text of a value of `parse`; `Exact` text becomes a number again."""
    try:
        # orjson writes null for NaN.
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
        try:
            return orjson.dumps(value, default=_fragment, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
        except TypeError:
            # Halves of surrogate pairs are escaped, which orjson does not do.
            exact = any(isinstance(each, Exact) for each in nested(value))
            if exact or _SURROGATE.search(text) is None:
                raise
            return text.encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise misfit(f"not a JSON value: {error!s:.100}") from None


def explain(data: bytes) -> Piece:
    """Return the parts of a text with their bytes: a member begins with its name.

    Of a text that ends too early or is none, the last piece has the rest.
    """
    scan = _Scan(data)
    try:
        piece = scan.value("", scan.space(0), 0)
        end = scan.space(piece.end)
        if end < len(data):
            raise _Stop("surplus bytes", end, (piece,))
    except _Stop as stop:
        rest = data[stop.at :].decode("utf-8", "replace")
        parts = (*stop.parts, Piece("", f"{UNFIT}: {stop}", rest, stop.at, len(data)))
        return Piece("", "", None, 0, len(data), parts)
    return piece._replace(begin=0, end=len(data))


def place(data: bytes, path: list[Any]) -> int:
    """Return where in a text the value of a path begins; 0 if that is not found."""
    piece = explain(data)
    for part in path:
        name = f"[{part}]" if isinstance(part, int) else part
        # Of members with one name the last one counts.
        found = next((each for each in reversed(piece.pieces) if each.name == name), None)
        if found is None:
            return 0
        piece = found
    return piece.begin


def _fragment(value: Any) -> Any:
    if isinstance(value, Exact):
        if len(value) > LIMITS.decimal_digits or not NUMBER.fullmatch(value):
            raise TypeError("no number")
        return orjson.Fragment(value.encode("ascii"))
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


class _Numbers:
    """Makes numbers of their texts, and remembers whether one lost digits."""

    def __init__(self, exact: bool) -> None:
        """`exact`: of those that would lose digits, the text as it is."""
        self._exact = exact
        self.lossy = False

    def number(self, text: str) -> Any:
        if len(text) > LIMITS.decimal_digits:
            raise misfit(f"a number of {len(text)} characters")
        number = int(text) if text.lstrip("-").isdigit() else float(text)
        whole = isinstance(number, int)
        fits = -(1 << 63) <= number < 1 << 64 if whole else is_exact(text, number)
        self.lossy = self.lossy or not fits
        return number if fits or not self._exact else Exact(text)


def is_exact(text: str, number: float) -> bool:
    """Return whether a double keeps all digits of a text."""
    try:
        return math.isfinite(number) and Decimal(text) == Decimal(repr(number))
    except InvalidOperation:
        return False


def _parse_exactly(data: bytes, numbers: _Numbers) -> Value:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise misfit("text that is not UTF-8", error.start) from None
    decoder = json.JSONDecoder(
        parse_int=numbers.number, parse_float=numbers.number, parse_constant=_constant
    )
    begin = len(text) - len(text.lstrip(" \t\n\r"))
    try:
        value, end = decoder.raw_decode(text, begin)
    except json.JSONDecodeError as error:
        at = len(text[: error.pos].encode("utf-8", "surrogatepass"))
        said = "the end of the text" if at >= len(data) else error.msg
        raise misfit(f"not JSON: {said}", at) from None
    except RecursionError:
        raise _too_deep() from None
    rest = text[end:].lstrip(" \t\n\r")
    if rest:
        at = len(data) - len(rest.encode("utf-8", "surrogatepass"))
        raise PayloadError("surplus", f"{len(data) - at} bytes after the value", offset=at)
    return value


def _constant(text: str) -> Any:
    raise misfit(f"not JSON: {text}")


def _too_deep() -> PayloadError:
    return misfit(f"nested deeper than {LIMITS.json_nesting}")


def _check_depth(data: bytes, value: Value) -> None:
    # Few brackets cannot nest deep: counting them is fast, and most often enough.
    if data.count(b"[") + data.count(b"{") <= LIMITS.json_nesting:
        return
    level = [value]
    for _ in range(LIMITS.json_nesting):
        level = [
            each
            for one in level
            if isinstance(one, dict | list)
            for each in (one.values() if isinstance(one, dict) else one)
            if isinstance(each, dict | list)
        ]
        if not level:
            return
    raise _too_deep()


class _Stop(Exception):
    def __init__(self, text: str, at: int, parts: tuple[Piece, ...] = ()) -> None:
        super().__init__(text)
        self.at, self.parts = at, parts


class _Scan:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def space(self, at: int) -> int:
        found = _SPACE.match(self._data, at)
        return found.end() if found else at

    def value(self, name: str, at: int, depth: int, begin: int | None = None) -> Piece:
        """Return the piece of the value that begins here; `begin` is that of its name."""
        start = at if begin is None else begin
        sign = self._data[at : at + 1]
        if sign in (b"{", b"["):
            if depth >= LIMITS.json_nesting:
                raise _Stop(f"nested deeper than {LIMITS.json_nesting}", start)
            return self._container(name, start, at, depth, sign == b"{")
        found = (_STRING if sign == b'"' else _PLAIN).match(self._data, at)
        if found is None:
            raise _Stop("no JSON" if at < len(self._data) else "the end of the text", start)
        try:
            _, shown = parse(found.group())
        except PayloadError as error:
            raise _Stop(error.text, start) from None
        kind = "number" if isinstance(shown, Exact) else _TYPES.get(type(shown), "null")
        return Piece(name, kind, shown, start, found.end())

    def _container(self, name: str, start: int, at: int, depth: int, is_object: bool) -> Piece:
        data, close = self._data, b"}" if is_object else b"]"
        kind = "object" if is_object else "array"
        parts: list[Piece] = []
        at = self.space(at + 1)
        try:
            while data[at : at + 1] != close:
                if parts:
                    if data[at : at + 1] != b",":
                        what = "expected a comma" if at < len(data) else "the end of the text"
                        raise _Stop(what, at)
                    at = self.space(at + 1)
                begin, member = at, f"[{len(parts)}]"
                if is_object:
                    member, at = self._name(at)
                part = self.value(member, at, depth + 1, begin)
                parts.append(part)
                at = self.space(part.end)
        except _Stop as stop:
            inner = (*parts, *stop.parts)
            end = inner[-1].end if inner else start
            piece = Piece(name, kind, None, start, end, inner)
            raise _Stop(str(stop), stop.at, (piece,) if inner else ()) from None
        if not parts:
            return Piece(name, kind, {} if is_object else [], start, at + 1)
        return Piece(name, kind, None, start, at + 1, tuple(parts))

    def _name(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self._data, at)
        if found is None:
            raise _Stop("expected a name" if at < len(self._data) else "the end of the text", at)
        try:
            name = json.loads(found.group())
        except ValueError:
            raise _Stop("a name that is not text", at) from None
        end = self.space(found.end())
        if self._data[end : end + 1] != b":":
            raise _Stop("expected a colon", end)
        return name, self.space(end + 1)
