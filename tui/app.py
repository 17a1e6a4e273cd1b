"""The terminal UI: wires feed, screens and parts. Decides nothing about Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from textual import events, on
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette
from textual.widgets import Input, TextArea

from kafkascope.tui.actions.base import BYTES, LAYOUTS
from kafkascope.tui.actions.helping import Helping
from kafkascope.tui.actions.noting import Noting
from kafkascope.tui.actions.telling import Telling
from kafkascope.tui.commands import GoTo, commands
from kafkascope.tui.host import Counted, Host
from kafkascope.tui.keys import KEYS, LIST_ACTIONS
from kafkascope.tui.settings.palette import use
from kafkascope.tui.settings.themes import register
from kafkascope.tui.views.lines import Lines
from kafkascope.tui.views.splitter import Splitter
from kafkascope.tui.views.typing import Shown

if TYPE_CHECKING:
    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.process.control import Control
    from kafkascope.tui.settings.config import Config
    from kafkascope.tui.settings.notes import Notes

TICK: Final = 0.1
HELLO: Final = 30.0
"""Seconds that the first words stay."""
FIRST: Final = frozenset({"app.stop", "pane.next", "pane.previous", "list.find", "filter.focus"})
"""Before whatever has the focus, and before Textual's own: keys that follow at once go where the
focus is by then."""


class ScopeApp(Telling, Helping, Noting):
    """One source of exchanges."""

    CSS_PATH = Path(__file__).with_name("app.tcss")  # a subclass may live elsewhere
    TITLE = "kafkascope"
    COMMANDS = App.COMMANDS | {GoTo}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(key.keys, key.action, key.help, id=key.id, show=False, priority=key.id in FIRST)
            for key in KEYS
        ),
        Binding("escape", "escape", "leave", show=False),
    ]

    def __init__(
        self,
        feed: Feed,
        name: str,
        *,
        filter_text: str = "",
        plain: bool = False,
        times: str = "u",
        counted: Counted | None = None,
        control: Control | None = None,
        notes: Notes | None = None,
        config: Config | None = None,
    ) -> None:
        """`counted` makes numbers for the screens, `control` steers a proxy."""
        super().__init__(
            feed,
            name,
            filter_text=filter_text,
            plain=plain,
            times=times,
            notes=notes,
            config=config,
        )
        self._said = False
        self.hello = ""
        """What is said first."""
        self.host = Host(self, counted, control)
        if config is not None and config.keys:
            self.set_keymap(config.keys)

    def on_mount(self) -> None:
        """Start the clock."""
        said = list(self.config.said) if self.config is not None else []
        said.append(register(self, self.config.theme if self.config is not None else ""))
        said += [self.notes.said, self.saved_said, self.colours.said]
        self.notes.said = ""
        for text in filter(None, said):
            self.tell(text, "warning")
        if self.hello:
            lines = [self.glyphs.text(line) for line in self.hello.splitlines()]
            self.notify("\n".join(lines), timeout=HELLO, markup=False)
        self.theme_changed_signal.subscribe(self, lambda theme: self._recolour(theme.dark))
        self.focus_now(self.list)
        self.rearrange()
        self.set_interval(TICK, self.tick)
        self.tick()

    def _recolour(self, dark: bool) -> None:
        use(dark=dark)
        for lines in self.screen_stack[0].query(Lines):
            lines.changed()
        self.say()

    def on_unmount(self) -> None:
        """Nobody looks at numbers any more."""
        self.host.close()

    def on_resize(self, event: events.Resize) -> None:
        """Another layout, perhaps."""
        self.arrange(event.size.width, event.size.height)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys of the list do nothing while another screen is there; / is a letter where text is
        typed; keys that come first (`FIRST`) do not reach below a dialog."""
        if action in ("pane", "find", "filter") and len(self.screen_stack) > 1:
            return False
        if action == "filter" and isinstance(self.focused, Input | TextArea):
            return False
        return self.host.board is None or action not in LIST_ACTIONS

    def commands(self) -> Iterable[SystemCommand]:
        """All that can be done now."""
        yield from commands(self)

    @on(CommandPalette.Opened)
    def palette_opened(self) -> None:
        """Its box draws as ours do."""
        for box in self.screen.query(Input):
            box.highlighter = Shown(self.glyphs)

    # --- what arrives -----------------------------------------------------------------------

    def tick(self) -> None:
        """Take in rows, filter and sort some, say how far it is."""
        self.host.tick()
        self.mention()
        store, view = self.feed.store, self.view_
        before, dropped = len(view), store.session.dropped
        here = self.list.number
        grew = self.feed.poll(0.05)
        grew |= view.advance(0.03)
        if store.waiting:
            store.waiting = False
            self.list.changed()
        if not grew and not self._busy:
            return
        self._busy = grew or not store.progress.done
        ignored = frozenset(self.notes.ignored)
        if self.notes.resolve(store.session):
            for number in self.notes.ignored - ignored:
                index = store.session.index_of(number)
                assert index is not None  # it came just now
                view.hide(index)
            self.noted()
            self._busy = True
        moved = store.session.dropped != dropped or (view.order is not None and grew)
        if view.moved() or moved:
            self._stay_with(here)
        elif len(view) != before:
            if before < self.list.size.height:
                self.list.changed()
            self.list.grown()
        if self.following and len(view) != before:
            self.follow(before)
        if self.list.number != self._shown_number:
            self.look()
        self.say()
        if store.progress.done and not self._said:
            self._ended()

    def _stay_with(self, number: int | None) -> None:
        """The cursor stays with its exchange when rows move."""
        index = None if number is None else self.feed.store.session.index_of(number)
        before = self.list.cursor
        self.list.changed()
        place = 0 if index is None else self.view_.place_of(index)
        if place != before:
            self.list.move_to(place, tell=False)

    def _ended(self) -> None:
        self._said = True
        self.colours.forget()  # names of topics may have come late
        progress = self.feed.store.progress
        if progress.failure and not len(self.feed.store):
            self.exit(return_code=progress.code or 1, message=progress.failure)
            return
        for text in ([progress.failure] if progress.failure else []) + progress.said:
            self.tell(text, "warning")
        if len(self.feed.store):
            self.remark("; ".join(progress.remarks))
        else:
            for text in progress.remarks:
                self.tell(text, "warning")

    # --- screens ----------------------------------------------------------------------------

    async def action_screen(self, number: int) -> None:
        """Another screen: 1 is the list, the others are boards."""
        if number == self.host.number:
            return
        if self.hello:
            self.hello = ""
            self.clear_notifications()
        board = self.host.show(number)
        boards = self.query_one("#boards")
        if board is None:
            self.enter(self._pane)
            return
        if not board.is_attached:
            await boards.mount(board)
        for other in boards.children:
            other.display = other is board
        boards.display = True
        self.focus_now(board.table)
        self.rearrange()
        self.host.tick()
        board.refresh_numbers()

    # --- panes ------------------------------------------------------------------------------

    def action_pane(self, by: int) -> None:
        """The pane beside, where it has one; in the filter: what may stand there."""
        if self.box.has_focus and self.take_choice():
            return
        if self.host.board is not None:
            self.host.board.enter_pane(by)
            return
        panes: list[Lines] = [self.list, self.detail, self.hex]
        self.look()
        self.enter(panes[(panes.index(self._pane) + by) % 3])

    def action_zoom(self) -> None:
        """This pane alone."""
        if self.host.board is not None:
            self.host.board.zoom()
            return
        self.enter(self._pane, zoomed=not self._zoomed)

    def action_layout(self) -> None:
        """The next way to arrange the panes."""
        self._layout_ = LAYOUTS[(LAYOUTS.index(self._layout_) + 1) % len(LAYOUTS)]
        self.rearrange()
        self._share_list()
        if self.size.width < 140:
            self.tell(f"panes: {self._layout_}, from 140 columns on")

    def action_resize(self, by: int) -> None:
        """Shares of list and detail."""
        if self.host.board is not None:
            self.host.board.resize(by)
            return
        step = 1.3 if by > 0 else 1 / 1.3
        self._share = 1.0 if not by else min(5.0, max(0.2, self._share * step))
        self._share_list()
        if not by:
            self._bytes = BYTES
            self.rearrange()

    def action_widen(self, by: int) -> None:
        """The width of the bytes."""
        self._widen(self._bytes + 6 * by)

    def _widen(self, width: int) -> None:
        self._bytes = max(24, min(self.size.width - 40, width))
        self.rearrange()

    @on(Splitter.Dragged, "#bar")
    def bar_dragged(self, event: Splitter.Dragged) -> None:
        """The bytes end there."""
        self._widen(self.hex.region.right - event.x - 2)

    @on(Splitter.Dragged, "#tabs")
    def tabs_dragged(self, event: Splitter.Dragged) -> None:
        """The list ends there."""
        main = self.query_one("#main").region
        if self._beside:
            at, size = event.x - main.x, main.width
        else:
            at, size = event.y - main.y, main.height
        above = min(max((at + 0.5) / max(1, size), 0.1), 0.9)
        self._share = above / (1 - above)
        self._share_list()

    def _share_list(self) -> None:
        share = f"{self._share:.3f}fr"
        styles = self.query_one("#list").styles
        styles.height, styles.width = ("1fr", share) if self._beside else (share, "1fr")
