"""The way out, other inputs, help and the palette."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.markup import escape
from textual.widgets import Input

from kafkascope.tui.actions.filtering import Filtering
from kafkascope.tui.actions.moving import Moving
from kafkascope.tui.actions.sharing import Sharing
from kafkascope.tui.guide.about import PANES
from kafkascope.tui.screens.picker import Picker
from kafkascope.tui.settings.config import recent
from kafkascope.tui.views.help import HelpScreen

if TYPE_CHECKING:
    from textual.screen import Screen


class Helping(Filtering, Moving, Sharing):
    """What a user is lost without."""

    # --- leaving ----------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Out of the detail or a board, else out of the program."""
        if self.host.board is not None:
            self.host.show(1)
            self.enter(self._pane)
        elif self.list.has_focus:
            self.exit(return_code=self._code())
        else:
            self.action_escape()

    def action_escape(self) -> None:
        """To the list; out of the filter it clears that, too."""
        if self.query_one("#prompt", Input).has_focus:
            self.end_question()
            return
        if self.box.has_focus and self.box.value:
            self.put("")
            self.apply_filter("", entered=True)
        self.filter_error = ""
        self.back()
        self.say()

    async def action_quit(self) -> None:
        """Leave."""
        self.exit(return_code=self._code())

    def _code(self) -> int:
        return self.feed.store.progress.code

    def action_stop(self) -> None:
        """Stop what is going on: an export, a search, reading; or tell how to quit."""
        if self.busy_with:
            self.stop_export()
            self.stop_search()
        elif self.feed.store.progress.done:
            self.tell("q quits")
        else:
            self.feed.stop()

    # --- other inputs -----------------------------------------------------------------------

    def _stays(self, *, other: bool = False) -> bool:
        """Whether neither this input nor an `other` one can be shown now: what was read would be
        lost."""
        why = "this is a proxy: q leaves it" if self.host.control is not None else ""
        why = why or ("" if other else self.once)
        if why:
            self.tell(why, "warning")
        return bool(why)

    def reopen(self, name: str) -> None:
        """Show another file in the place of this one; empty: this one again."""
        if self._stays(other=bool(name)):
            return
        self.wanted = name
        self.exit(return_code=self._code())

    def action_reload(self) -> None:
        """The same once more."""
        self.reopen("")

    def action_open_file(self) -> None:
        """Ask for a file."""
        if self._stays(other=True):
            return
        choices = [(name, name) for name in recent()]

        def chosen(name: str | None) -> None:
            if not name:
                return
            path = Path(name).expanduser()
            if path.exists():
                self.reopen(str(path))
            else:
                self.tell(f"{name}: no such file or folder", "warning")

        self.push_screen(Picker("open a capture", choices, self.glyphs, free=True), chosen)

    def action_decode_as(self) -> None:
        """Ask for ports that are Kafka's, and read again."""
        if self._stays():
            return

        def answer(text: str) -> None:
            from kafkascope.tui.document.values import ports

            try:
                self.wanted_ports = ports(text)
            except ValueError as error:
                self.tell(str(error), "warning")
                return
            self.reopen("")

        self.ask("ports to decode as Kafka (9094, 9100-9110)", answer)

    # --- help -------------------------------------------------------------------------------

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette offers."""
        about = "colours; ours are kafkascope and kafkascope-light"
        yield SystemCommand("theme", about, self.action_change_theme)
        yield SystemCommand("quit", "leave", self.action_quit)
        for title, about, run, *_ in self.commands():
            # The palette takes texts as markup, which can bind actions to a click.
            yield SystemCommand(
                escape(self.glyphs.text(title)), escape(self.glyphs.text(about)), run
            )

    def commands(self) -> Iterable[SystemCommand]:
        """All that can be done now."""
        raise NotImplementedError

    def action_help(self) -> None:
        """The keys of this screen."""
        board = self.host.board
        if board is None:
            self.push_screen(HelpScreen(self.glyphs))
        else:
            self.push_screen(board.help())

    def action_about(self) -> None:
        """What the pane with the focus is good for."""
        board, focused = self.host.board, self.focused
        name = focused.id if focused is not None else None
        if name not in ("filter",) and board is not None:
            self.push_screen(board.help())
            return
        about = PANES[name if name in PANES else "exchanges"]
        sections = ((about.title, about.keys),)
        self.push_screen(HelpScreen(self.glyphs, about.title, sections, about=about.text))
