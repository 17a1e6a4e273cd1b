"""Finds the tagged section at the end of a response without keeping the response.

Produce and Fetch put node endpoints last, after the record data. A walk over sizes and counts,
made from the declaration's layout, gets there in constant memory. It decodes nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache
from typing import Final, TypeAlias

from kafkascope.dissectors.layout import (
    ArrayWire,
    BoolWire,
    BytesWire,
    Layout,
    NumberWire,
    StringWire,
    StructWire,
    UuidWire,
    Wire,
)
from kafkascope.dissectors.registry import layout_of

FIXED: Final = 0
SIZED: Final = 1
ARRAY: Final = 2
TAGS: Final = 3

Step: TypeAlias = tuple[int, "int | tuple[Step, ...]"]
Program: TypeAlias = tuple[Step, ...]


class Unwalkable(Exception):
    """The layout has something before the end that this walk does not know, or the bytes are
    hostile."""


@cache
def program(name: str, version: int, header_bytes: int, until: str) -> Program:
    """The steps from the start of a response's payload to its field `until`, or to its last tagged
    section when that is a tagged field."""
    steps = _struct(layout_of(name, version), header_bytes, until)
    return tuple(_joined(steps))


def _struct(layout: Layout, header_bytes: int, until: str) -> list[Step]:
    # Correlation id and the header's own (empty or not) tagged section come first.
    steps: list[Step] = [(FIXED, 4)]
    if header_bytes:
        steps.append((TAGS, 0))
    for slot in layout.body.slots:
        if slot.name == until:
            break
        steps += _steps(slot.wire)
    return steps


def _steps(wire: Wire) -> list[Step]:
    match wire:
        case NumberWire():
            return [(FIXED, wire.size)]
        case BoolWire():
            return [(FIXED, 1)]
        case UuidWire():
            return [(FIXED, 16)]
        case StringWire() | BytesWire():
            if not wire.compact:
                raise Unwalkable(repr(wire))
            return [(SIZED, 0)]
        case ArrayWire():
            if not wire.compact:
                raise Unwalkable(repr(wire))
            return [(ARRAY, tuple(_joined(_steps(wire.element))))]
        case StructWire():
            steps = [each for slot in wire.slots for each in _steps(slot.wire)]
            return [*steps, (TAGS, 0)] if wire.flexible else steps
        case _:
            raise Unwalkable(repr(wire))


def _joined(steps: list[Step]) -> Iterator[Step]:
    run = 0
    for kind, what in steps:
        if kind == FIXED:
            assert isinstance(what, int)
            run += what
            continue
        if run:
            yield FIXED, run
            run = 0
        yield kind, what
    if run:
        yield FIXED, run


def tail_of(steps: Program, payload: memoryview | bytes, at: int = 0) -> int:
    """Walk over a whole payload: where its last tagged section is. As `Walk`, in a third of the
    time.

    `IndexError` when it ends before that, `Unwalkable` when the bytes make no sense.
    """
    for kind, what in steps:
        if kind == FIXED:
            at += what  # type: ignore[operator]
            continue
        # Sizes and counts of compact fields are one more than they say; 0 is null (KIP-482). Most
        # take one byte.
        value = payload[at]
        at += 1
        if value >= 0x80:
            value, at = _more(payload, at, value & 0x7F)
        if kind == SIZED:
            if value:
                at += value - 1
        elif kind == ARRAY:
            assert isinstance(what, tuple)
            if len(what) == 1 and what[0][0] == FIXED:
                at += max(value - 1, 0) * what[0][1]
            else:
                for _ in range(value - 1):
                    at = tail_of(what, payload, at)
        else:
            for _ in range(value):
                _, at = _more(payload, at, 0, 0)
                size, at = _more(payload, at, 0, 0)
                at += size
    return at


def _more(payload: memoryview | bytes, at: int, value: int, shift: int = 7) -> tuple[int, int]:
    """Read the rest of a varint. Returns it and what is after it."""
    while True:
        if shift > 28:
            raise Unwalkable("a varint of more than five bytes")
        byte = payload[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


class Walk:
    """A walk over one response's payload, in whatever pieces it comes."""

    __slots__ = ("_at", "_end", "_steps", "_view")

    def __init__(self, steps: Program) -> None:
        self._view: memoryview | bytes = b""
        self._at = 0
        self._end = 0
        self._steps = self._run(steps)

    def skip(self, size: int) -> bool:
        """Pass over a piece of `size` bytes if it lies in what the walk jumps over."""
        left = self._at - self._end
        if left < size:
            return False
        self._at, self._end = left, size
        return True

    def feed(self, view: memoryview | bytes) -> int | None:
        """Continue the walk. Returns the offset in `view` of the last tagged section, None while it
        is not reached.

        `Unwalkable` when the bytes make no sense.
        """
        self._at -= self._end
        self._view, self._end = view, len(view)
        try:
            next(self._steps)
        except StopIteration:
            return self._at
        finally:
            self._view = b""
        return None

    def _run(self, steps: Program) -> Iterator[None]:
        for kind, what in steps:
            if kind == FIXED:
                self._at += what  # type: ignore[operator]
            elif kind == SIZED:
                length = yield from self._uvarint()
                if length:
                    self._at += length - 1
            elif kind == ARRAY:
                count = yield from self._uvarint()
                assert isinstance(what, tuple)
                if len(what) == 1 and what[0][0] == FIXED:
                    self._at += max(count - 1, 0) * what[0][1]
                else:
                    for _ in range(count - 1):
                        yield from self._run(what)
            else:
                count = yield from self._uvarint()
                for _ in range(count):
                    yield from self._uvarint()
                    size = yield from self._uvarint()
                    self._at += size
            while self._at > self._end:
                yield
        return

    def _uvarint(self) -> Generator[None, None, int]:
        value = shift = 0
        while True:
            while self._at >= self._end:
                yield
            byte = self._view[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise Unwalkable("a varint of more than five bytes")
