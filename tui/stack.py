"""The views that the user went in from, so that going back restores them. Knows no widgets.

Going in pushes, going back pops (k9s, lazygit). A tab that is on the stack with the same filter is
gone back to, and tabs that are switched through replace each other: the way out stays short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from kafkascope.tui.limits import LIMITS

LIST_PANE: Final = "exchanges"
"""Id of the first pane of the list's screen."""
ViewT = TypeVar("ViewT")


class Order(NamedTuple):
    """A column to sort by, and the direction."""

    name: str
    """Name of the column, which is that of a field."""
    downwards: bool


class Position(NamedTuple):
    """The cursor of a list, by what it is on, as lines may come and go."""

    key: Any
    """What identifies the line; None: the first line, wherever that is."""
    above: int
    """Lines of the screen above it."""


class BoardState(NamedTuple):
    """What a board shows, but for its numbers."""

    settings: dict[str, Any]
    """Those of `BoardSpec.choices`, by name."""
    tab: str
    limited: bool
    zoomed: bool
    sort: tuple[str, bool] | None
    """Column and direction of the table; None: the usual order."""
    row: Position
    low_row: Position
    """Row of the tab; its key is the number of the line."""
    below: bool
    """Whether the tab had the focus."""


class ViewState(NamedTuple):
    """Everything that going back restores."""

    screen: int
    filter: str
    """As it was written: `@slow`."""
    order: Order | None
    row: Position
    """Row of the list of exchanges, by their numbers."""
    following: bool
    """Whether the list stayed on its newest row."""
    pane: str
    """Id of the pane of the list's screen that had the focus."""
    zoomed: bool
    detail: Any = None
    """What the detail showed, if it or the bytes had the focus."""
    board: BoardState | None = None

    @property
    def inner(self) -> bool:
        """Whether another pane than the first one of the screen had the focus."""
        return self.pane != LIST_PANE if self.board is None else self.board.below

    @property
    def tab(self) -> tuple[int, str, Order | None]:
        """Screen, filter and order: views with the same ones are one tab."""
        return self.screen, self.filter, self.order


class ViewStack(Generic[ViewT]):
    """Views, the one to go back to last."""

    def __init__(self, limit: int = LIMITS.views) -> None:
        self._views: list[ViewT] = []
        self._limit = limit

    def __len__(self) -> int:
        return len(self._views)

    @property
    def top(self) -> ViewT | None:
        return self._views[-1] if self._views else None

    def push(self, view: ViewT) -> None:
        self._views.append(view)
        if len(self._views) > self._limit:
            del self._views[1]

    def pop(self) -> ViewT | None:
        """Return the view to go back to; None at the root."""
        return self._views.pop() if self._views else None

    def pop_to(self, wanted: Callable[[ViewT], bool]) -> ViewT | None:
        """Return the newest view that is `wanted` and forget those above it; None if there is none,
        and all stay."""
        for place in range(len(self._views) - 1, -1, -1):
            view = self._views[place]
            if wanted(view):
                del self._views[place:]
                return view
        return None
