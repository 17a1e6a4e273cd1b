"""What all controllers have: the workspace, the app around them, the panes, and their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from textual.actions import parse
from textual.app import SystemCommand

from kafkascope.tui.data.workspace import Workspace
from kafkascope.tui.keys import Key
from kafkascope.tui.screens.picker import Screens
from kafkascope.tui.views.detail import DetailPane
from kafkascope.tui.views.exchanges import ExchangeList
from kafkascope.tui.views.hexpane import HexPane

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.style import Style
    from textual.geometry import Size
    from textual.timer import Timer
    from textual.widget import Widget

    from kafkascope.tui.host import Host
    from kafkascope.tui.settings.palette import Glyphs
    from kafkascope.tui.stack import ViewState


class Shell(Screens, Protocol):
    """All of the app that controllers see: words and questions, timers, ways from one noun to
    another, the focus."""

    glyphs: Glyphs
    host: Host
    """The boards, and which one is shown."""

    # --- words and questions ----------------------------------------------------------------

    def tell(self, text: str, severity: Any = "information") -> None:
        """Say a sentence."""

    def remark(self, text: str) -> None:
        """Say something about the capture in the footer, for a while."""

    def update_status(self) -> None:
        """Draw header, titles, tabs, the state of the filter and the footer again."""

    def pick(
        self,
        title: str,
        choices: list[tuple[str, str]],
        chosen: Callable[[str], object],
        here: str | None = None,
    ) -> None:
        """Let the user choose one of (key, text); `chosen` gets its key."""

    def ask(self, what: str, answer: Callable[[str], object], text: str = "") -> None:
        """Ask for a line of text."""

    def typed(self) -> str | None:
        """The answer so far; None while nothing is asked for."""

    def put_on_clipboard(self, text: str) -> None:
        """Give a text to the clipboard of the terminal."""

    # --- timers ----------------------------------------------------------------------------

    def set_timer(self, delay: float, callback: Callable[[], Any]) -> Timer:
        """Call it after so many seconds."""

    def call_later(self, callback: Callable[..., Any], *args: Any) -> bool:
        """Call it after the messages that wait by now. May be called in any thread."""

    def call_after_refresh(self, callback: Callable[..., Any], *args: Any) -> bool:
        """Call it when the screen was drawn."""

    # --- other nouns -----------------------------------------------------------------------

    def look(self, *, anew: bool = False) -> None:
        """Decode the exchange under the cursor; `anew`: even if it is shown already."""

    def look_again(self) -> None:
        """Make the context of the exchange again."""

    def show_filter(self, text: str) -> None:
        """Show the exchanges that a filter wants."""

    def prepare_filter(self, text: str) -> None:
        """Put a filter into its box."""

    def take_choice(self) -> bool:
        """Complete what is typed into the filter; False when nothing is typed or known."""

    def rows_changed(self) -> None:
        """Draw the board again if it is about the rows that the filter shows."""

    def show_exchange(self, number: int) -> None:
        """Put the cursor of the list on an exchange."""

    def in_list(self) -> bool:
        """Whether the list was the last pane to have the focus."""

    def shows_context(self) -> bool:
        """Whether the detail shows the context of an exchange."""

    async def show_screen(self, number: int) -> None:
        """Go to a screen: 1 is the list, the others are boards."""

    def here(self) -> ViewState:
        """Return the view that is shown."""

    def push_view(self, view: ViewState | None = None) -> None:
        """Remember a view, usually the one that is shown, for going back to it."""

    def restore_view(self, view: ViewState) -> None:
        """Show a view again."""

    def step(self, by: int, wanted: NDArray[np.bool_], what: str) -> bool:
        """Put the cursor on the next row that is wanted; `wanted` is about all rows."""

    def findings_pending(self) -> str:
        """Tell what is left to be done before findings are final; empty when they are."""

    def stop_activity(self) -> None:
        """Stop the search or the export that runs."""

    def exit(self, *, return_code: int = 0, message: Any = None) -> None:
        """Leave the program."""

    # --- the focus -------------------------------------------------------------------------

    @property
    def size(self) -> Size:
        """Columns and lines of the terminal."""

    @property
    def focused(self) -> Widget | None:
        """The widget that gets keys."""

    def focus_now(self, widget: Widget) -> None:
        """Give a widget the focus before the next key is looked at."""

    def focus_view(self) -> None:
        """Give the focus to the list, or to the board that is shown."""

    def write(self, name: str, text: str, style: Style) -> None:
        """Put a text into a line of the main screen, by its id."""


class Context(NamedTuple):
    """What every controller is given."""

    workspace: Workspace
    shell: Shell
    list: ExchangeList
    detail: DetailPane
    hex: HexPane


class Controller:
    """Owns one noun of the program."""

    KEYS: tuple[Key, ...] = ()

    def __init__(self, context: Context) -> None:
        self.workspace, self.shell, self.list, self.detail, self.hex = context

    def commands(self) -> Iterable[SystemCommand]:
        """Return what the palette offers besides the keys."""
        return ()

    def actions(self) -> dict[str, Callable[[], Any]]:
        """Return what the keys call, by their ids."""
        parsed = {key.id: parse(key.action) for key in self.KEYS if key.bound != key.action}
        return {
            id_: partial(getattr(self, name), *arguments)
            for id_, (_, name, arguments) in parsed.items()
        }
