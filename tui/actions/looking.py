"""The exchange under the cursor: decoded beside the keyboard, as tabs, fields and bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from textual import events, on
from textual.message import Message
from textual.timer import Timer

from kafkascope.tui.actions.base import Base
from kafkascope.tui.data.around import around
from kafkascope.tui.data.decoding import Decoder
from kafkascope.tui.document.tree import TABS, Item, Tree
from kafkascope.tui.views.detail import DetailPane
from kafkascope.tui.views.exchanges import ExchangeList
from kafkascope.tui.views.hexpane import HexPane
from kafkascope.tui.views.lines import Lines

if TYPE_CHECKING:
    from kafkascope.tui.document.document import Document

REST: Final = 0.03
"""Seconds that the cursor rests before a message is decoded."""
LONG: Final = 0.3
"""Seconds after which it is said that decoding takes its time."""


class Looking(Base):
    """Detail and bytes."""

    class Decoded(Message):
        """A tree is there, or the reason why not."""

        def __init__(self, wish: int, made: Any, why: str) -> None:
            super().__init__()
            self.wish, self.made, self.why = wish, made, why

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.tab = ""
        self.document: Document | None = None
        self.wish = 0
        """Number of the last wish to decode."""
        self.decoding = False
        self._chosen = ""
        """The tab that the user wants, whatever the exchange."""
        self._shown_number: int | None = None
        self._rest: Timer | None = None
        self._decoder = Decoder(self._decoded)

    def _decoded(self, wish: int, made: Any, why: str) -> None:
        self.post_message(self.Decoded(wish, made, why))  # may be called in any thread

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """The mouse moves the focus, too."""
        if event.widget in (self.list, self.detail, self.hex):
            assert isinstance(event.widget, Lines)
            self._pane = event.widget

    @on(Lines.Moved)
    def moved(self, event: Lines.Moved) -> None:
        """Another exchange, or another field."""
        if event.lines is self.list:
            self.cursor_moved()
            if self._rest is not None:
                self._rest.stop()
            self._rest = self.set_timer(REST, self.look)
        elif event.lines is self.detail:
            self._mark_bytes()

    def look(self) -> None:
        """Decode the exchange under the cursor."""
        number = self.list.number
        if number == self._shown_number:
            return
        self._shown_number = number
        self.document = None
        if number is None:
            self.wish += 1
            self.decoding = False
            self.detail.show(Tree([], []))
            self.hex.show(None, 0, 0)
            self.say()
            return
        store, chosen = self.feed.store, self._chosen
        mentions, notes, pending = self.mentions, self.notes, self.findings_pending

        def hints() -> list[str]:
            return around(store, notes, number, mentions.of(number), pending())

        def make() -> Document:
            from kafkascope.captures.inputs.spool import NotKept
            from kafkascope.tui.document.document import Document  # loads while the list is drawn

            exchange = store.exchange(number)
            if exchange is None:
                raise NotKept(f"exchange {number} is no longer kept")
            made = Document(exchange, store.session.context.names, hints, store.find)
            made.tree(chosen or made.usual_tab())
            return made

        self._want(make)

    def _want(self, make: Any) -> None:
        self.wish += 1
        self.decoding = True
        wish = self.wish
        self._decoder.want(wish, make)

        def slow() -> None:
            if self.decoding and wish == self.wish:
                self.detail.show(Tree([Item("", "decoding ...", kind="note")], []))
                self.hex.show(None, 0, 0)

        self.set_timer(LONG, slow)

    @on(DetailPane.Wanted)
    def unfold(self, event: DetailPane.Wanted) -> None:
        """Make what is below a line, beside the keyboard; another exchange is not kept waiting."""
        tree, item = self.detail.tree_, event.item
        line = item or self.detail.item
        if line is None or self.decoding:
            return
        before = line.value

        def make() -> Callable[[], None]:
            if item is None:
                tree.set_all(True)
            else:
                tree.set_open(item, True)

            def show() -> None:
                line.value = before
                self.detail.changed()

            return show

        self.wish += 1
        self.decoding = True
        wish = self.wish
        self._decoder.want(wish, make)

        def slow() -> None:
            if self.decoding and wish == self.wish:
                line.value = f"{before}  decoding ..."
                self.detail.changed()

        self.set_timer(LONG, slow)

    @on(Decoded)
    def arrived(self, event: Decoded) -> None:
        """Show it, unless the cursor is somewhere else by now."""
        if event.wish != self.wish:
            return
        self.decoding = False
        if callable(event.made):
            event.made()
            self._mark_bytes()
            return
        if event.made is None:
            self.detail.show(Tree([Item("", event.why, kind="error")], []))
            self.hex.show(None, 0, 0)
            self.say()
            return
        self.document = event.made
        self._show_tree(self._chosen or event.made.usual_tab())

    def look_again(self) -> None:
        """What stands around it is another thing now."""
        if self.document is None:
            return
        self.document.forget("Context")
        if self.tab == "Context":
            self.show_tab("Context")

    def show_tab(self, tab: str) -> None:
        """Another tab of the same exchange."""
        self._chosen = tab
        document = self.document
        if document is None:
            return
        if document.has(tab):
            self._show_tree(tab)
            return
        self.tab = tab

        def make() -> Document:
            document.tree(tab)
            return document

        self._want(make)
        self.say()

    def _show_tree(self, tab: str) -> None:
        if self.document is None:
            return
        self.tab = tab
        tree = self.document.tree(tab)
        self.detail.show(tree)
        if len(tree.roots) > 1 and tree.roots[0].end and not tree.roots[0].open:
            self.detail.move_to(1, tell=False)
        self._mark_bytes()

    def space_of(self, item: Item | None) -> Any:
        """The bytes that a line stands for."""
        spaces = self.detail.tree_.spaces
        return spaces[item.space] if item is not None and item.space < len(spaces) else None

    def _mark_bytes(self) -> None:
        item = self.detail.item
        if item is not None:
            self.hex.show(self.space_of(item), item.start, item.end)
        self.say()

    @on(HexPane.Picked)
    def picked(self, event: HexPane.Picked) -> None:
        """The field of a byte."""
        spaces = self.detail.tree_.spaces
        number = next((n for n, space in enumerate(spaces) if space is self.hex.space), None)
        if number is None:
            return
        item = self.detail.tree_.find(number, event.at)
        if item is not None:
            self.detail.select(item)
            self.hex.span = (item.start, item.end)
            self.hex.changed()
        self.say()

    @on(ExchangeList.Opened)
    def opened(self) -> None:
        """A double click."""
        self.action_open()

    def action_open(self) -> None:
        """Into the detail; below 100 columns it takes the screen."""
        self.look()
        self.enter(self.detail)

    def action_side(self) -> None:
        """Request or response."""
        self.show_tab("Request" if self.tab == "Response" else "Response")

    def action_tab(self) -> None:
        """The tab behind this one."""
        self.show_tab(TABS[(TABS.index(self.tab) + 1) % len(TABS)] if self.tab else TABS[0])

    def action_space(self) -> None:
        """The next bytes: those on the wire, those that were compressed."""
        spaces = self.detail.tree_.spaces
        if len(spaces) < 2:
            self.tell("there are no other bytes here; opening compressed records makes some")
            return
        here = next((n for n, space in enumerate(spaces) if space is self.hex.space), -1)
        self.hex.show(spaces[(here + 1) % len(spaces)], 0, 0)
        self.say()

    @on(events.Click, "#tabs")
    def tab_clicked(self, event: events.Click) -> None:
        """The tab under the mouse."""
        left = 0
        for tab in TABS:
            if left <= event.x < left + len(tab) + 2:
                self.show_tab(tab)
            left += len(tab) + 4
