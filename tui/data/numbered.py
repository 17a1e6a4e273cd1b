"""Rows of a session in the order of their numbers. They come in the order in which exchanges end: a
long poll has a small number and comes late."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.session.session import Session

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


FEW: Final = 256
"""Rows that are inserted one by one; for more, the end is sorted again."""
MANY: Final = 50_000
"""Rows from which sorting with numpy saves more time than loading it takes."""


class Numbered:
    """Keeps indexes of rows in the order of numbers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._rows = array("I")
        self.moved = False
        """Whether rows were inserted before others; whoever reads it resets it."""

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> int:
        return self._rows[place]

    def indexes(self) -> NDArray[np.int64]:
        """Return a copy of all indexes."""
        import numpy as np

        return np.array(self._rows, dtype=np.int64)

    def place_of(self, index: int) -> int:
        """Return the place of a row, or of the first one behind it."""
        numbers = self._session.columns["number"]
        if index >= len(numbers):
            return len(self._rows)
        return bisect_left(self._rows, numbers[index], key=numbers.__getitem__)

    def extend(self, indexes: Sequence[int]) -> None:
        """Take in rows."""
        if not len(indexes):
            return
        new, rows, number = self._sorted(indexes), self._rows, self._session.columns["number"]
        last = number[rows[-1]] if rows else -1
        late = bisect_left(new, last, key=number.__getitem__)
        if late:
            self.moved = True
            self._insert(new[:late])
        rows.extend(new[late:])

    def _insert(self, late: array[int]) -> None:
        rows, numbers = self._rows, self._session.columns["number"]
        at = bisect_left(rows, numbers[late[0]], key=numbers.__getitem__)
        if len(late) > FEW or len(rows) - at < FEW:
            rows[at:] = self._sorted(rows[at:] + late)
            return
        for index in late:
            rows.insert(bisect_left(rows, numbers[index], at, key=numbers.__getitem__), index)

    def _sorted(self, indexes: Sequence[int]) -> array[int]:
        numbers = self._session.columns["number"]
        if len(indexes) < MANY:
            return array("I", sorted(indexes, key=numbers.__getitem__))
        import numpy as np

        found = np.array(indexes, dtype=np.uint32)
        order = np.argsort(np.array(numbers)[found], kind="stable")
        return array("I", found[order].tobytes())

    def remove(self, index: int) -> None:
        """Remove a row, if it is there."""
        at = self.place_of(index)
        if self._rows[at : at + 1] == array("I", [index]):
            del self._rows[at]

    def drop(self, count: int) -> None:
        """Follow a session that has dropped its oldest rows: the others have smaller indexes."""
        import numpy as np

        rows = np.array(self._rows, dtype=np.uint32)
        self._rows = array("I", (rows[rows >= count] - np.uint32(count)).tobytes())
