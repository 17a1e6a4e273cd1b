"""Which exchanges are shown: all, or those that a filter wants, found in slices so that the
keyboard never waits."""

from __future__ import annotations

import time
from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING, cast

from analyzer.filter import Filter, bind
from analyzer.session_rows import ColumnRow, in_columns

if TYPE_CHECKING:
    from analyzer.rows import Row
    from tui.store import Store


class View:
    """Indexes of the store's rows, in their order."""

    def __init__(self, store: Store, text: str = "") -> None:
        """`FilterError` when the text is no filter."""
        self.store = store
        self.text = text.strip()
        bound = bind(text)
        self.fast = in_columns(bound)
        """Whether no message has to be read for it."""
        self.filter = None if bound is None else Filter(bound)
        self._shown = array("Q")
        self._seen = 0

    def __len__(self) -> int:
        return len(self.store) if self.filter is None else len(self._shown)

    def __getitem__(self, place: int) -> int:
        return place if self.filter is None else self._shown[place]

    @property
    def scanned(self) -> float:
        """The share of the rows that the filter has seen."""
        return 1.0 if self.filter is None else self._seen / max(1, len(self.store))

    @property
    def behind(self) -> bool:
        """Whether rows are left for `advance`."""
        return self.filter is not None and self._seen < len(self.store)

    def place_of(self, index: int) -> int:
        """The place of a row, or of the first one behind it."""
        return index if self.filter is None else bisect_left(self._shown, index)

    def advance(self, seconds: float) -> bool:
        """Filter more rows, for so long at most; whether there were any."""
        if self.filter is None or not self.behind:
            return False
        from captures.errors import CaptureError

        session, wanted = self.store.session, self.filter
        until = time.monotonic() + seconds
        size = len(self.store)
        while self._seen < size:
            index = self._seen
            self._seen += 1
            row = cast("Row", ColumnRow(session, index))
            try:
                if wanted(row, None if self.fast else session.exchange(index)):
                    self._shown.append(index)
            except CaptureError:
                pass  # its bytes are gone: nothing can be said about it
            if time.monotonic() > until:
                break
        return True
