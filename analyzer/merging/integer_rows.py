"""Rows of integers in columns: the latest ones, where there are too many for events."""

from __future__ import annotations

import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Final, Self, TypeAlias

from kafkascope.analyzer.merging.limits import LIMITS

Row: TypeAlias = tuple[int, ...]

INT64: Final = 1 << 64
"""Numbers beyond the signed half of this wrap around: only hostile ones are so large."""


class IntegerRows:
    """Rows of so many integers, the first of each a time; of more than `limit` the latest.

    A row of eight columns takes 64 bytes, an `Event` some 400: batches of records come by the
    million.
    """

    __slots__ = ("_columns", "_dropped", "_limit", "_width")

    def __init__(self, width: int, limit: int = LIMITS.rows) -> None:
        self._width, self._limit = width, limit
        self._columns = [array("q") for _ in range(width)]
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """Rows that were evicted."""
        return self._dropped + max(0, len(self) - self._limit)

    def add_all(self, *columns: Sequence[int]) -> None:
        """Add rows, given as columns of equal length."""
        before = len(self)
        for mine, its in zip(self._columns, columns, strict=True):
            try:
                mine.extend(its)
            except OverflowError:
                del mine[before:]
                mine.extend(map(_wrapped, its))
        self._settle()

    def add(self, *row: int) -> None:
        self.add_all(*((value,) for value in row))

    def _settle(self) -> None:
        if len(self) > self._limit + self._limit // 4 + 1:
            self._drop()

    def _drop(self) -> None:
        surplus = len(self) - self._limit
        if surplus > 0:
            rows = sorted(self.rows())[surplus:]
            self._fill(rows)
            self._dropped += surplus

    def _fill(self, rows: Sequence[Row]) -> None:
        columns = zip(*rows, strict=True) if rows else ((),) * self._width
        self._columns = [array("q", column) for column in columns]

    def shorten(self, limit: int) -> None:
        """Keep at most so many from now on, if that is fewer than before."""
        if limit < self._limit:
            self._limit = limit
            self._settle()

    def merge(self, other: Self) -> None:
        self.add_all(*other._columns)
        self._dropped += other._dropped

    def rows(self) -> list[Row]:
        """Return the rows, in no order."""
        return list(zip(*self._columns, strict=True))

    def ordered(self) -> list[Row]:
        """Return the latest rows in their order."""
        self._drop()
        return sorted(self.rows())

    def __len__(self) -> int:
        return len(self._columns[0])

    def dump(self) -> list[Any]:
        """Return the state as JSON: bytes as a text, a third of the numbers written out."""
        self._fill(self.ordered())
        data = b"".join(column.tobytes() for column in self._columns)
        return [self._dropped, len(self), b64encode(zlib.compress(data, 1)).decode()]

    def load(self, state: list[Any]) -> Self:
        self._dropped, count, text = state
        data = zlib.decompress(b64decode(text))
        size = count * 8
        for number, column in enumerate(self._columns):
            column.frombytes(data[number * size : (number + 1) * size])
        return self


def _wrapped(value: int) -> int:
    return (value + INT64 // 2) % INT64 - INT64 // 2
