"""What boards want of the program around them, and the keys that all of them have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from kafkascope.tui.keys import Key

if TYPE_CHECKING:
    from kafkascope.analyzer.render.times import Times
    from kafkascope.tui.data.store import Store
    from kafkascope.tui.settings.palette import Glyphs

BOARD_KEYS: Final = (
    Key("board.open", "enter", "Enter", "open_line", "the exchanges behind the line"),
    Key("board.tab", "R", "R", "tab(1)", "next tab of the lower part"),
    Key("board.sort", "o", "o", "sort", "order by a column; a click on a title does so, too"),
    Key("board.reverse", "v", "v", "reverse", "the other way round"),
    Key("board.limit", "L", "L", "limit", "only what the filter shows, or everything"),
    Key("board.prepare", "a", "a", "prepare", "put the line's filter into the filter box"),
    Key("board.copy", "y", "y", "copy_line", "copy the line"),
    Key("board.command", "Y", "Y", "copy_command", "copy the command that prints this table"),
)


class Scene(Protocol):
    """What a board needs of the program around it."""

    store: Store
    glyphs: Glyphs

    def statistic(self, name: str, *, limited: bool) -> Any | None:
        """An accumulator as it is by now, of everything or of what the filter shows; None as long
        as it is not there."""

    def so_far(self, *, limited: bool) -> str:
        """How far counting is; empty when accumulators are of the whole input."""

    def times(self) -> Times:
        """How times are written."""

    def filter_text(self) -> str:
        """The filter that is in use."""

    def input_name(self) -> str:
        """The input, as a command line wants it."""

    def show_filter(self, text: str) -> None:
        """The exchanges that a filter wants."""

    def prepare_filter(self, text: str) -> None:
        """Put a filter into its box."""

    def show_exchange(self, number: int) -> None:
        """One exchange among its neighbours."""

    def tell(self, text: str, severity: Any = "information") -> None:
        """Say a sentence."""
