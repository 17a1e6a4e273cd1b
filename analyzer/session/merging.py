"""Puts the rows of several sessions into one, in an order that somebody else knows.

Each of them holds some of an input's connections, and told by deltas what it has grown by. Columns
are put together at once: nothing is done for each row but to copy where its frames are.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kafkascope.analyzer.exchanges.columns import WIDTHS
from kafkascope.analyzer.session.packing import COLUMNS, TABLES
from kafkascope.analyzer.topics import nameless

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kafkascope.analyzer.session.deltas import Delta
    from kafkascope.analyzer.session.session import Session

    Longs = NDArray[np.int64]

NAMED: Final = frozenset({"topics", "implied_topics"})
"""Columns with names that another session may know."""
BY_ROW: Final = ("remarks_by_row", "fetch_sessions", "ended_by_row")
"""Attributes of a session by row."""
ID: Final = np.dtype("V8")


class _Part:
    """One of the sessions: what its numbers are in the whole."""

    def __init__(self) -> None:
        self.rows = 0
        """Number of rows that were taken."""
        self._numbers: dict[str, Longs] = {
            name: np.empty(0, np.int64) for name in (*TABLES, "connection")
        }
        """The numbers of its values, and of its connections, in the whole."""
        self._open: list[tuple[str, int, Any]] = []
        """Values with topics whose names are not known yet: column, number, value."""

    def learn(self, delta: Delta, whole: Session, numbered: Callable[[int], int]) -> None:
        """Take note of new values and connections."""
        names, late = whole.context.names, self._open
        self._open = []
        for name, number, value in late:
            self._name(whole, name, number, names.late_all(value))
        for name in TABLES:
            values = delta.get(f"table {name}", ())
            begin = len(self._numbers[name])
            if name in NAMED:
                self._more(name, [0] * len(values))
                for number, value in enumerate(values, begin):
                    self._name(whole, name, number, names.late_all(value))
            elif values:
                self._more(name, list(whole.tables[name].numbers(values)))
        found = [
            whole.connection_number(replace(each, number=numbered(each.number)))
            for each in delta.get("connections", ())
        ]
        self._more("connection", found)

    def _more(self, name: str, numbers: list[int]) -> None:
        self._numbers[name] = np.append(self._numbers[name], numbers).astype(np.int64)

    def _name(self, whole: Session, name: str, number: int, value: tuple[str, ...]) -> None:
        self._numbers[name][number] = whole.tables[name].number(value)
        if any(map(nameless, value)):
            self._open.append((name, number, value))

    def column(self, name: str, delta: Delta) -> Longs:
        """Return the new values of a column, as numbers in the whole."""
        found: Longs = np.array(delta.get(f"column {name}", ()), np.int64)
        return self._numbers[name][found] if name in self._numbers else found


class Merging:
    """Grows a session by what others have grown by."""

    def __init__(self, session: Session, count: int) -> None:
        self._session = session
        self._parts = [_Part() for _ in range(count)]

    def add(
        self,
        deltas: Sequence[Delta],
        order: Longs,
        numbers: Longs,
        numbered: Callable[[int], int],
    ) -> None:
        """Add new rows of all. `order`: their indexes, counted from one session to the next, in
        the order in which they are wanted; other rows are left out. `numbers`: of all exchanges,
        by index. `numbered` gives the number of a connection in place of the one that a session
        has."""
        session, parts = self._session, self._parts
        for part, delta in zip(parts, deltas, strict=True):
            part.learn(delta, session, numbered)
        both = list(zip(parts, deltas, strict=True))
        for name in COLUMNS:
            if name not in ("number", "place"):
                values = np.concatenate([part.column(name, delta) for part, delta in both])
                self._grow(name, values[order])
        self._grow("number", numbers[order])
        self._keep_frames(deltas, order)
        ids = b"".join([delta.get("id_bytes", b"") for delta in deltas])
        session.id_bytes += np.frombuffer(ids, ID)[order].tobytes()
        places = np.full(len(numbers), -1)
        places[order] = np.arange(session.rows_told, session.rows_told + len(order))
        begin = 0
        for part, delta in both:
            for name in BY_ROW:
                told = getattr(session, name)
                for row, value in delta.get(name, ()):
                    if (place := int(places[begin + row - part.rows])) >= 0:
                        told[place] = value
            size = len(delta.get("column number", ()))
            part.rows += size
            begin += size
        session.rows_told += len(order)

    def _keep_frames(self, deltas: Sequence[Delta], order: Longs) -> None:
        """Copy where the bytes of frames are."""
        found: list[bytes] = []
        for delta in deltas:
            begins, packed = delta.get("column place", ()), delta.get("stored_frames", b"")
            first = begins[0] if begins else 0
            ends = [*(at - first for at in begins), len(packed)]
            found += [packed[at:end] for at, end in pairwise(ends)]
        frames = self._session.stored_frames
        ordered = [found[index] for index in order.tolist()]
        sizes = accumulate(map(len, ordered[:-1]), initial=frames.end)
        self._grow("place", np.array(list(sizes) if ordered else [], np.int64))
        frames.append(b"".join(ordered))

    def _grow(self, name: str, values: Longs) -> None:
        columns = self._session.columns
        columns[name] = _grown(columns[name], values)


def _grown(column: array[int], values: Longs) -> array[int]:
    """Return the column with more values, a wider copy where they do not fit: `columns.grown`, for
    many at once."""
    if not len(values):
        return column
    low, high = int(values.min()), int(values.max())
    for code in WIDTHS[WIDTHS.index(column.typecode) :]:
        limits = np.iinfo(code)
        if limits.min <= low and high <= limits.max:
            if code != column.typecode:
                column = array(code, column)
            column.frombytes(values.astype(code).tobytes())
            break
    return column
