"""What all parts of the program share: its state, its panes and where they have a place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Static

from kafkascope.tui.data.mentions import Mentions
from kafkascope.tui.data.view import View
from kafkascope.tui.screens.picker import Picker
from kafkascope.tui.settings.colours import Colours
from kafkascope.tui.settings.notes import Notes
from kafkascope.tui.settings.palette import NORMAL, Glyphs
from kafkascope.tui.views.box import Box
from kafkascope.tui.views.choices import Choices
from kafkascope.tui.views.detail import DetailPane
from kafkascope.tui.views.exchanges import ExchangeList
from kafkascope.tui.views.heading import Heading
from kafkascope.tui.views.hexpane import HexPane
from kafkascope.tui.views.splitter import Bar, Splitter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from textual.widget import Widget

    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.host import Host
    from kafkascope.tui.settings.config import Config
    from kafkascope.tui.views.lines import Lines

WIDE: Final = 140
MIDDLE: Final = 100
LOW: Final = 24
"""Lines below which the list stands alone, and columns for bytes beside and for a detail."""
BYTES: Final = 78
LAYOUTS: Final = ("below", "beside", "no bytes")


class Base(App[None]):
    """State and layout."""

    host: Host

    def __init__(
        self,
        feed: Feed,
        name: str,
        *,
        filter_text: str = "",
        plain: bool = False,
        times: str = "u",
        notes: Notes | None = None,
        config: Config | None = None,
    ) -> None:
        super().__init__()
        self.feed = feed
        self.source_name = name
        self.glyphs = Glyphs(plain)
        self.notes = notes or Notes()
        self.notes.tell_names(feed.store.session)
        self.view_ = View(feed.store, filter_text, self.notes.known)
        self.mentions = Mentions(feed.store, self.notes.known)
        self.colours = Colours(feed.store, self.notes.known)
        self.colours.read()
        self.list = ExchangeList(
            self.view_, self.glyphs, self.notes, times, self.mentions, self.colours
        )
        self.detail = DetailPane(self.glyphs)
        self.hex = HexPane(self.glyphs)
        self.config = config
        self.wanted: str | None = None
        """A file to be shown in the place of this one, empty for the same again."""
        self.once = ""
        """Why this one cannot be shown again; empty when it can."""
        self.wanted_ports: frozenset[int] | None = None
        """Ports to be decoded as Kafka when it is shown again."""
        self.busy_with = ""
        """What is going on beside reading; ctrl+c stops it."""
        self.animation_level = "none"
        self._pane: Lines = self.list
        self._zoomed = False
        self._layout_ = LAYOUTS[0]
        self._share = 1.0
        """Of the list, against all below or beside it."""
        self._beside = False
        self._bytes = BYTES
        self._asked: Callable[[str], None] | None = None
        self._busy = True

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield Static(id="header", markup=False)
        with Horizontal(id="filterline"):
            yield Static(" / ", id="slash", markup=False)
            yield Box(
                self.view_.text, id="filter", compact=True, placeholder="filter: api == Fetch"
            )
            yield Static(id="filterstate", markup=False)
        yield Choices(self.glyphs)
        with Vertical(id="main"):
            with Vertical(id="list"):
                yield Heading(self.list)
                yield self.list
            with Vertical(id="below"):
                yield Splitter(id="tabs", markup=False)
                with Horizontal(id="panes"):
                    yield self.detail
                    yield Bar(self.glyphs.text("│"), id="bar")
                    yield self.hex
        yield Vertical(id="boards")
        with Horizontal(id="promptline"):
            yield Static(id="asking", markup=False)
            yield Box(id="prompt", compact=True)
        yield Static(id="footer", markup=False)

    # --- what other parts fill in -----------------------------------------------------------

    def say(self) -> None:
        """Header, heading, tabs, filter state, footer."""
        raise NotImplementedError

    def look(self) -> None:
        """Decode the exchange under the cursor."""
        raise NotImplementedError

    def look_again(self) -> None:
        """What stands around the exchange is another thing now."""
        raise NotImplementedError

    def findings_pending(self) -> str:
        """What is left to be done before findings are final; empty when they are."""
        raise NotImplementedError

    def cursor_moved(self) -> None:
        """The user, or the program, put the cursor of the list somewhere."""
        raise NotImplementedError

    def show_filter(self, text: str) -> None:
        """The exchanges that a filter wants."""
        raise NotImplementedError

    def step(self, by: int, wanted: NDArray[np.bool_], what: str) -> bool:
        """To the next row of the view that is wanted, of all rows."""
        raise NotImplementedError

    # --- layout -----------------------------------------------------------------------------

    def arrange(self, width: int, height: int) -> None:
        """Which panes have a place. The focus moves before its pane goes, so that no key is
        lost to the filter."""
        narrow = width < MIDDLE or height < LOW
        pane = self._pane
        alone = narrow or self._zoomed
        board = self.host.board is not None
        beside = self._layout_ == "beside" and width >= WIDE
        self._beside = beside and not alone
        self.query_one("#main").styles.layout = "horizontal" if beside and not alone else "vertical"
        self.query_one("#panes").styles.layout = "vertical" if beside else "horizontal"
        self._show(self.query_one("#boards"), board)
        self._show(self.query_one("#main"), not board)
        self._show(self.query_one("#list"), not alone or pane is self.list)
        self._show(self.query_one("#below"), not alone or pane is not self.list)
        both = width >= WIDE and not alone and self._layout_ != "no bytes"
        self._show(self.hex, both or pane is self.hex)
        self._show(self.detail, both or pane is not self.hex)
        self._show(self.query_one("#bar"), both and not beside)
        self.hex.styles.width = self._bytes if both and not beside else "1fr"
        self.say()
        self.call_after_refresh(self.say)  # by then all have their widths

    def rearrange(self) -> None:
        """The same size, another layout."""
        self.arrange(self.size.width, self.size.height)

    def _show(self, widget: Widget, wanted: bool) -> None:
        if widget.display != wanted:
            widget.display = wanted

    def enter(self, pane: Lines, *, zoomed: bool = False) -> None:
        """Give a pane the focus, and a place."""
        self._pane, self._zoomed = pane, zoomed
        pane.display = True
        self.query_one("#main").display = True
        self.query_one("#list" if pane is self.list else "#below").display = True
        self.focus_now(pane)
        self.rearrange()

    def focus_now(self, widget: Widget) -> None:
        """Give it the focus before the next key is looked at: `Widget.focus` does so later, and
        what is typed quickly would go astray."""
        self.screen_stack[0].set_focus(widget)

    def back(self) -> None:
        """To the board, or the list."""
        if self.host.board is None:
            self.enter(self.list)
        else:
            self.focus_now(self.host.board.table)

    # --- words ------------------------------------------------------------------------------

    def tell(self, text: str, severity: Any = "information") -> None:
        """Say a sentence."""
        self.notify(self.glyphs.text(text), severity=severity, markup=False)

    def _static(self, name: str, text: str, style: Style = NORMAL) -> None:
        new = self.glyphs.rich(text, style)
        for widget in self.screen_stack[0].query(f"#{name}").results(Static):
            old = widget.content
            if not isinstance(old, Text) or (old.plain, old.style) != (new.plain, style):
                # Another layout is for those that are as wide as their text.
                widget.update(new, layout=bool(widget.styles.is_auto_width))

    def put_on_clipboard(self, text: str, what: str = "") -> None:
        """Through the terminal (OSC 52): works over ssh and in tmux."""
        self.copy_to_clipboard(text.encode("utf-8", "replace").decode())
        self.tell(f"copied {what or f'{len(text):,} characters'}")

    # --- questions --------------------------------------------------------------------------

    def pick(
        self,
        title: str,
        choices: list[tuple[str, str]],
        chosen: Callable[[str], None],
        here: str | None = None,
    ) -> None:
        """Let the user choose; nothing happens when there is no choice."""

        def done(key: str | None) -> None:
            if key is not None:
                chosen(key)

        self.push_screen(Picker(title, choices, self.glyphs, here), done)

    def ask(self, what: str, answer: Callable[[str], None], text: str = "") -> None:
        """Ask for a line of text."""
        self._asked = answer
        self._static("asking", f" {what}: ")
        prompt = self.query_one("#prompt", Input)
        prompt.value = text
        prompt.cursor_position = len(text)
        self.query_one("#promptline").display = True
        self.focus_now(prompt)

    @on(Input.Submitted, "#prompt")
    def answered(self, event: Input.Submitted) -> None:
        """Do what was asked for."""
        self.end_question()
        asked, self._asked = self._asked, None
        if asked is not None:
            asked(event.value.strip())

    def end_question(self) -> None:
        """No question any more."""
        # The focus goes first, so that no key is lost to the filter.
        self.back()
        self.query_one("#promptline").display = False
