"""Rows of integers in columns: the latest ones, where there are too many for events."""

from __future__ import annotations

import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from kafkascope.analyzer.merging.limits import LIMITS

# Numbers beyond the signed half of this wrap around: only hostile ones are so large.
INT64: Final = 1 << 64
# So many are sorted sooner than numpy is imported, which takes 60 ms of a `check` of 0.3 s.
FEW: Final = 4096

R = TypeVar("R", bound=NamedTuple)


class IntegerRows(Generic[R]):
    """Rows of a named tuple of integers, the first of which is a time; of more than `limit` the
    latest.

    A row of ten columns takes 80 bytes, an `Event` some 400: batches of records come by the
    million.
    """

    __slots__ = ("_columns", "_dropped", "_kind", "_limit")

    def __init__(self, kind: type[R], limit: int = LIMITS.rows) -> None:
        self._kind, self._limit = kind, limit
        self._columns = [array("q") for _ in kind._fields]
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
                mine.extend((value + INT64 // 2) % INT64 - INT64 // 2 for value in its)
        if len(self) > self._limit + self._limit // 4 + 1:
            self._sort()

    def add_rows(self, rows: Iterable[tuple[int, ...]]) -> None:
        if columns := list(zip(*rows, strict=True)):
            self.add_all(*columns)

    def add(self, *row: int) -> None:
        self.add_rows([row])

    def merge(self, other: Self) -> None:
        self.add_all(*other._columns)
        self._dropped += other._dropped

    def rows(self) -> Iterator[R]:
        """Return the latest rows in their order, each made when it is due."""
        self._sort()
        # Without a Python frame for each row, as `_make` has one.
        make: Any = partial(tuple.__new__, self._kind)
        return map(make, zip(*self._columns, strict=True))

    def columns(self) -> Any:
        """Return the latest rows in their order, as one row of columns of numpy."""
        import numpy as np

        self._sort()
        kind: Any = self._kind
        return kind(*map(np.asarray, self._columns))

    def column(self, name: str) -> Sequence[int]:
        return self._columns[self._kind._fields.index(name)]

    def _sort(self) -> None:
        """Put the rows into their order, and drop those that are too many."""
        before = len(self)
        if before <= FEW:
            rows = sorted(zip(*self._columns, strict=True))[-self._limit :]
            if rows:
                self._columns = [array("q", column) for column in zip(*rows, strict=True)]
        else:
            import numpy as np

            # By columns: as tuples of numbers, a million rows would take half a gigabyte.
            found = [np.asarray(column) for column in self._columns]
            latest = np.lexsort(found[::-1])[-self._limit :]
            self._columns = [array("q", column[latest].tobytes()) for column in found]
        self._dropped += before - len(self)

    def __len__(self) -> int:
        return len(self._columns[0])

    def dump(self) -> list[Any]:
        """Return the state as JSON: bytes as a text, a third of the numbers written out."""
        self._sort()
        data = b"".join(column.tobytes() for column in self._columns)
        return [self._dropped, len(self), b64encode(zlib.compress(data, 1)).decode()]

    def load(self, state: list[Any]) -> Self:
        self._dropped, count, text = state
        data = zlib.decompress(b64decode(text))
        size = count * 8
        for number, column in enumerate(self._columns):
            column.frombytes(data[number * size : (number + 1) * size])
        return self
