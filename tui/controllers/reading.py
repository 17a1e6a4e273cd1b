"""Takes in what the reading process tells: new rows, and how reading ended."""

from __future__ import annotations

from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.marks import MarksController
from kafkascope.tui.controllers.order import OrderController


class ReadingController(Controller):
    """Keeps the list up to date while the input is read; it tells other controllers."""

    def __init__(
        self,
        context: Context,
        marks: MarksController,
        order: OrderController,
        inspector: InspectorController,
    ) -> None:
        super().__init__(context)
        self.marks, self.order, self.inspector = marks, order, inspector
        self._ended = False

    def tick(self) -> None:
        """Take in rows, filter and sort some, and update what shows them."""
        workspace, rows = self.workspace, self.list
        store, view = workspace.store, workspace.view
        before, dropped = len(view), store.session.dropped
        here = rows.number
        grew = workspace.feed.poll(0.05)
        grew |= view.advance(0.03)
        if store.waiting:
            store.waiting = False
            rows.changed()
        if not grew and not workspace.unsettled:
            return
        workspace.unsettled = grew or not store.progress.done
        self.marks.resolve()
        moved = store.session.dropped != dropped or (view.order is not None and grew)
        if view.moved() or moved:
            self._stay_with(here)
        elif len(view) != before:
            if before < rows.size.height:
                rows.changed()
            rows.grown()
        if self.order.following and len(view) != before:
            self.order.follow(before)
        if rows.number != self.inspector.shown:
            self.shell.look()
        self.shell.update_status()
        if store.progress.done and not self._ended:
            self._ended = True
            self._tell_end()

    def _stay_with(self, number: int | None) -> None:
        """Keep the cursor on its exchange when rows have moved."""
        rows = self.list
        index = None if number is None else self.workspace.session.index_of(number)
        before = rows.cursor
        rows.changed()
        place = 0 if index is None else self.workspace.view.place_of(index)
        if place != before:
            rows.move_to(place, tell=False)

    def _tell_end(self) -> None:
        self.workspace.colours.forget()  # names of topics may have come late
        progress, empty = self.workspace.store.progress, not len(self.workspace.store)
        if progress.failure and empty:
            self.shell.exit(return_code=progress.code or 1, message=progress.failure)
            return
        said = [progress.failure] if progress.failure else []
        for text in (*said, *progress.said, *(progress.remarks if empty else ())):
            self.shell.tell(text, "warning")
        if not empty:
            self.shell.remark("; ".join(progress.remarks))
