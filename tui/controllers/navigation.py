"""Going in and back: from view to view over one stack, and between the tabs of the screens."""

from __future__ import annotations

from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.controllers.filter import FilterController
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.controllers.panes import PanesController
from kafkascope.tui.controllers.search import SearchController
from kafkascope.tui.screens import EXCHANGES
from kafkascope.tui.stack import Position, ViewStack, ViewState


class NavigationController(Controller):
    """Leaves views for others and restores them; the one way from a view to another."""

    def __init__(
        self,
        context: ControllerContext,
        panes: PanesController,
        filter_: FilterController,
        order: OrderController,
        inspector: InspectorController,
        search: SearchController,
    ) -> None:
        super().__init__(context)
        self.panes, self.filter, self.order = panes, filter_, order
        self.inspector, self.search = inspector, search
        self.stack: ViewStack[ViewState] = ViewStack()
        self._row: Position | None = None
        """The row to restore, while a filter has not come to it yet."""
        self._switched: tuple[object, ...] | None = None
        """The tab that was switched to last: the next one takes its place."""

    # --- the view that is shown -------------------------------------------------------------

    def here(self) -> ViewState:
        """Return the view that is shown."""
        rows, board = self.list, self.host.board
        pane = self.panes.entered if board is None else self.list
        return ViewState(
            screen=self.host.number,
            filter=self.filter.text,
            order=self.workspace.view.order,
            row=self._row or rows.row._replace(key=rows.number),
            following=self.order.following,
            pane=pane.id or "",
            zoomed=self.panes.zoomed and board is None,
            detail=None if pane is self.list else self.inspector.state(),
            board=None if board is None else board.state(),
        )

    def push(self, view: ViewState | None = None) -> None:
        """Remember a view, usually the one that is shown, before another one is."""
        self.stack.push(view or self.here())

    def restore(self, view: ViewState) -> None:
        """Show a view again: filter, order, row, pane and scroll are as they were."""
        self.filter.restore(view.filter)
        self.order.restore(view.order, following=view.following)
        board = self.host.show(view.screen)
        if board is None:
            pane = next(pane for pane in self.panes.all if pane.id == view.pane)
            self.panes.enter(pane, zoomed=view.zoomed)
        else:
            self.panes.show_board(board)
        self._row = view.row
        self.tick()
        # Panes that were hidden get their sizes, which scrolling depends on, with the next layout.
        self.shell.call_after_refresh(self._scroll, view.row)
        if view.detail is None:
            self.shell.look()
        else:
            self.inspector.restore(view.detail)
        if board is not None and view.board is not None:
            board.restore(view.board)
        self.shell.update_status()

    def tick(self) -> None:
        """Put the cursor on the row to restore, as soon as the filter has come to it."""
        if self._row is None:
            return
        view, row = self.workspace.view, self._row
        index = None if row.key is None else self.workspace.session.index_of(row.key)
        place = 0 if index is None else view.place_of(index)
        there = place < len(view) and view[place] == index
        if view.behind and not there:
            return
        self._row = None
        self.list.move_to(place, tell=False)
        self._scroll(row)

    def _scroll(self, row: Position) -> None:
        """Put as many rows above the cursor as there were, unless the user went on meanwhile."""
        if self.list.number == row.key:
            self.list.show_from(self.list.cursor - row.above)

    def follow_cursor(self) -> None:
        """Take the row that the user goes to for the one that is wanted."""
        self._row = None

    # --- going in ---------------------------------------------------------------------------

    async def show_screen(self, number: int) -> None:
        """Show a screen; go back to it if it is on the stack with the same filter. Tabs that are
        switched through take each other's place, so that q leaves them with one key."""
        if number == self.host.number:
            return
        if self.shell.hello:
            self.shell.hello = ""
            self.shell.clear_notifications()
        here = self.here()
        wanted = here._replace(screen=number).tab
        if (view := self.stack.pop_to(lambda view: view.tab == wanted)) is not None:
            self.restore(view)
            return
        if here.tab != self._switched:
            self.stack.push(here)
        await self._show(number)
        self._switched = wanted

    async def _show(self, number: int) -> None:
        host = self.host
        board = host.show(number)
        if board is None:
            self.panes.enter(self.list)
            return
        if not board.is_attached:
            await self.panes.boards.mount(board)
        self.panes.show_board(board)

    async def show_limited(self, number: int, text: str) -> None:
        here = self.here()
        if self.filter.apply(text, entered=True):
            self.stack.push(here)
            self.filter.put_applied(text)
            self.host.made(number).limited = True
            await self._show(number)

    def show_filter(self, text: str) -> None:
        here, index = self.here(), self.list.index
        if self.filter.apply(text, entered=True):
            self.stack.push(here)
            self.filter.put_applied(text)
            if here.screen != EXCHANGES and self.list.index != index:
                self.list.move_to(0, tell=False)  # of evidence the first exchange
            self._show_list()

    def show_exchange(self, number: int) -> None:
        """Go to an exchange in the list; a filter that leaves it out is removed."""
        self.push()
        workspace, view = self.workspace, self.workspace.view
        index = workspace.session.index_of(number)
        if index is not None and view.text and not view.behind and not view.selects(index):
            self.filter.put_applied("")
            self.filter.apply("", entered=True)
            self.shell.say(f"Filter removed to show exchange {number}. Esc restores it.")
        self._show_list()
        self.search.goto(str(number))

    def _show_list(self) -> None:
        self.host.show(EXCHANGES)
        self.panes.enter(self.list)

    @property
    def at_root(self) -> bool:
        """Whether q quits."""
        return not self.stack and not self.here().inner

    # --- going back -------------------------------------------------------------------------

    def back(self) -> bool:
        """Go back to the view before; return whether there was one. A pane that the user went to
        with tab or the mouse is left first."""
        here, top = self.here(), self.stack.top
        if here.inner and (top is None or top.tab != here.tab or top.inner):
            self.panes.focus_view()
            return True
        while (view := self.stack.pop()) == here:
            pass  # tab has gone round all panes
        if view is None:
            return False
        self.restore(view)
        return True
