"""The exchange under the cursor, decoded in a thread: its tabs, fields and bytes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from textual.timer import Timer

from kafkascope.captures.inputs.spool import NotKept
from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.data.around import around
from kafkascope.tui.data.decoding import Decoder
from kafkascope.tui.document.tree import TABS, Item, Space, Tree
from kafkascope.tui.stack import Position
from kafkascope.tui.views.screen_tabs import tab_at

if TYPE_CHECKING:
    from kafkascope.tui.document.document import Document

# Seconds that the cursor rests before its message is decoded.
REST: Final = 0.03
NOTHING: Final = (0, 0)
# Seconds after which the detail says that a message is being decoded.
LONG: Final = 0.3


class InspectorState(NamedTuple):
    """Contents of the detail and bytes panes."""

    document: Document
    number: int | None
    """Number of the exchange."""
    tab: str
    chosen: str
    """The tab that the user chose; empty: the usual one."""
    row: Position
    """Row of the tree, by the number of the line."""
    octet: int
    """The byte under the cursor."""


class InspectorController(Controller):
    """Fills the detail pane and the bytes pane."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.tab = ""
        self.document: Document | None = None
        self.decoding = False
        self.shown: int | None = None
        """The number of the exchange that is shown, or is being decoded."""
        self._request = 0
        """Number of the last request to the decoder; results of earlier ones are dropped."""
        self._chosen = ""
        """The tab that the user chose, kept from exchange to exchange; empty: the usual one."""
        self._rest: Timer | None = None
        self._decoder = Decoder(lambda *told: self.shell.call_later(self._decoded, *told))

    # --- decoding ---------------------------------------------------------------------------

    def look_soon(self) -> None:
        """Decode the exchange under the cursor when the cursor rests."""
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.shell.set_timer(REST, self.shell.look)

    def look(self, *, anew: bool = False) -> None:
        """Decode the exchange under the cursor; one that is shown already only when wanted
        `anew`."""
        number = self.list.number
        if number == self.shown and not anew:
            return
        self.shown, self.document = number, None
        if number is None:
            self._request += 1
            self.decoding = False
            self._show(Tree([], []))
            self.shell.update_status()
            return
        workspace, chosen, pending = self.workspace, self._chosen, self.shell.findings_pending
        store = workspace.store

        def hints() -> list[str]:
            mentions = workspace.mentions.of(number)
            return around(store, workspace.notes, number, mentions, pending())

        def make() -> Document:
            from kafkascope.tui.document.document import Document  # loads while the list is drawn

            exchange = store.exchange(number)
            if exchange is None:
                raise NotKept(f"exchange {number} was evicted")
            names, payloads = store.session.context.names, workspace.feed.payloads
            made = Document(exchange, names, hints, store.find, payloads)
            made.tree(chosen or made.default_tab())
            return made

        self._want(make, self._show_decoding)

    def unfold(self, item: Item | None) -> None:
        """Open a line (None: all lines) in the decoder's thread, where that may take long."""
        tree = self.detail.tree_
        line = item or self.detail.item
        if line is None or self.decoding:
            return
        before = line.value

        def value(text: str) -> None:
            line.value = text
            self.detail.changed()

        def make() -> Callable[[], None]:
            if item is None:
                tree.set_all(True)
            else:
                tree.set_open(item, True)
            return partial(value, before)

        self._want(make, partial(value, f"{before}  decoding ..."))

    def _want(self, make: Callable[[], Any], slow: Callable[[], None]) -> None:
        """Run `make` in the decoder's thread; call `slow` when that takes long."""
        self._request += 1
        self.decoding, request = True, self._request
        self._decoder.want(request, make)

        def waited() -> None:
            if self.decoding and request == self._request:
                slow()

        self.shell.set_timer(LONG, waited)

    def _decoded(self, request: int, made: Any, why: str) -> None:
        """Show a result, unless something else was requested meanwhile."""
        if request != self._request:
            return
        self.decoding = False
        if callable(made):
            made()
            self.light_bytes()
        elif made is None:
            self._show(Tree([Item("", why, kind="error")], []))
            self.shell.update_status()
        else:
            self.document = made
            self._show_tree(self._chosen or made.default_tab())

    def _show(self, tree: Tree) -> None:
        self.detail.show(tree)
        self.hex.show(None)

    def _show_decoding(self) -> None:
        self._show(Tree([Item("", "decoding ...", kind="note")], []))

    # --- views ------------------------------------------------------------------------------

    def state(self) -> InspectorState | None:
        """Return what is shown, for going back to it."""
        if self.document is None or self.decoding:
            return None
        row = self.detail.row
        return InspectorState(self.document, self.shown, self.tab, self._chosen, row, self.hex.at)

    def restore(self, state: InspectorState) -> None:
        """Show again what was shown, as it was unfolded."""
        self._request += 1  # what is being decoded is not wanted any more
        self.decoding = False
        self.document, self.shown, self._chosen = state.document, state.number, state.chosen
        self._show_tree(state.tab)
        self.detail.move_to(state.row.key, tell=False)
        self.light_bytes()
        self.hex.at = state.octet
        self.hex.changed()
        top = self.detail.cursor - state.row.above
        self.detail.show_from(top)
        self.shell.call_after_refresh(self.detail.show_from, top)

    # --- tabs -------------------------------------------------------------------------------

    def look_again(self) -> None:
        """Make the context of the exchange again."""
        if self.document is None:
            return
        self.document.forget("Context")
        if self.tab == "Context":
            self.show_tab("Context")

    def show_tab(self, tab: str) -> None:
        """Show a tab of the exchange, and keep to it."""
        self._chosen = tab
        document = self.document
        if document is None or document.has(tab):
            self._show_tree(tab)
            return
        self.tab = tab

        def make() -> Document:
            document.tree(tab)
            return document

        self._want(make, self._show_decoding)
        self.shell.update_status()

    def _show_tree(self, tab: str) -> None:
        if self.document is None:
            return
        self.tab = tab
        tree = self.document.tree(tab)
        self.detail.show(tree)
        first = next((place for place, root in enumerate(tree.roots) if root.end), 0)
        if len(tree.roots) > first + 1 and tree.roots[first].end and not tree.roots[first].open:
            first += 1  # the header is closed: to the body
        if first:
            self.detail.move_to(first, tell=False)
        self.light_bytes()

    def click_tabs(self, x: int) -> None:
        if (tab := tab_at(TABS, x)) is not None:
            self.show_tab(tab)

    def side(self) -> None:
        """Switch between request and response."""
        self.show_tab("Request" if self.tab == "Response" else "Response")

    def next_tab(self) -> None:
        self.show_tab(TABS[(TABS.index(self.tab) + 1) % len(TABS)] if self.tab else TABS[0])

    # --- bytes ------------------------------------------------------------------------------

    def space_of(self, item: Item | None) -> Space | None:
        spaces = self.detail.tree_.spaces
        return spaces[item.space] if item is not None and item.space < len(spaces) else None

    def light_bytes(self) -> None:
        """Show the bytes of the field under the cursor."""
        item = self.detail.item
        if item is not None:
            space = self.space_of(item)
            self.hex.show(space, *highlights(item, space), item.start)
        self.shell.update_status()

    def pick_byte(self, at: int) -> None:
        """Put the cursor of the detail on the field of a byte."""
        number = self._space_number()
        if number is None:
            return
        if (item := self.detail.tree_.find(number, at)) is not None:
            self.detail.select(item)
            self.hex.span, self.hex.around = highlights(item, self.hex.space)
            self.hex.changed()
        self.shell.update_status()

    def next_space(self) -> None:
        """Show the next bytes: those on the wire, those that were compressed."""
        spaces = self.detail.tree_.spaces
        if len(spaces) < 2:
            self.shell.say("No alternate bytes. Expand a compressed batch first.")
            return
        here = self._space_number()
        self.hex.show(spaces[0 if here is None else (here + 1) % len(spaces)])
        self.shell.update_status()

    def _space_number(self) -> int | None:
        """Return which of the tree's spaces the bytes pane shows."""
        spaces = self.detail.tree_.spaces
        return next((n for n, space in enumerate(spaces) if space is self.hex.space), None)


def highlights(item: Item, space: Space | None) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the bytes that stand out for a line, strong and faint: a field, and what it is part
    of. A part with fields is faint, and a whole message not at all: it would only paint the pane.
    """
    if space is None:
        return NOTHING, NOTHING
    part = item if item.foldable else item.parent
    around = NOTHING
    if part is not None and part.parent is not None and part.space == item.space:
        whole = part.end - part.start >= len(space.data)
        around = NOTHING if whole else (part.start, part.end)
    return (NOTHING if item.foldable else (item.start, item.end)), around
