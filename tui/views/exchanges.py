"""The list of exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from analyzer.render_list import Column, columns_of, fitted, padded
from analyzer.render_times import Times
from analyzer.session_rows import ColumnRow
from tui.palette import NORMAL, STYLES, Glyphs
from tui.view import View
from tui.views.lines import Lines, Piece

if TYPE_CHECKING:
    from analyzer.rows import Row


class ExchangeList(Lines):
    """One line per exchange of a view."""

    def __init__(self, view: View, glyphs: Glyphs, times: str = "u") -> None:
        super().__init__(glyphs, id="exchanges")
        self.view = view
        self.marked: set[int] = set()
        self.times = times
        self._columns: list[Column] = []
        self._for = (0, "")

    def count(self) -> int:
        """Exchanges in the view."""
        return len(self.view)

    @property
    def index(self) -> int | None:
        """The store's index of the exchange under the cursor."""
        return self.view[self.cursor] if self.cursor < len(self.view) else None

    def columns(self, width: int) -> list[Column]:
        """The columns that fit."""
        if self._for != (width, self.times):
            times = Times(self.times)
            session = self.view.store.session
            if len(session):
                times.saw(session.times[0])
            self._columns = fitted(columns_of((), times), width - 2)
            self._for = (width, self.times) if len(session) else (0, "")
        return self._columns

    def heading(self, width: int) -> str:
        """The titles, as wide as the list."""
        cells = [
            padded(column.title, column.width or 20, right=column.right)
            for column in self.columns(width)
        ]
        return "  " + "  ".join(cells)

    def pieces(self, line: int, width: int) -> list[Piece]:
        """The cells of a row."""
        index = self.view[line]
        store = self.view.store
        row = cast("Row", ColumnRow(store.session, index))
        text = store.result(index)
        style = STYLES.get(text[:1], NORMAL)
        marked = index in self.marked
        out: list[Piece] = [("* " if marked else "  ", STYLES["mark"] if marked else NORMAL)]
        for column in self.columns(width):
            if column.name == "result":
                out.append((text, style))
                continue
            cell = padded(
                self.glyphs.text(column.cell(row, None)), column.width, right=column.right
            )
            out.append((f"{cell}  ", style))
        return out
