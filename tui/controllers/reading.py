"""Takes in what the reading process tells: new rows, and how reading ended."""

from __future__ import annotations

from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.marks import MarksController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.views.empty import Empty, empty


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
        self._empty = Empty("")
        self._proxy_version = 0
        self._notices: set[str] = set()
        """Notices of the proxy that were shown."""
        self.list.empty = lambda: self._empty

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
        self._watch_proxy()
        self._show_empty()
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

    def _watch_proxy(self) -> None:
        """Show what the proxy reports, once each."""
        proxy = self.shell.host.proxy
        if proxy is None or proxy.version == self._proxy_version:
            return
        self._proxy_version = proxy.version
        for text in proxy.notices:
            if text not in self._notices:
                self._notices.add(text)
                self.shell.tell(f"proxy: {text}", "warning")

    def _show_empty(self) -> None:
        """Keep the sentence in the place of rows up to date."""
        if len(self.workspace.view):
            return
        found = empty(self.workspace, self.shell.host.proxy)
        if found != self._empty:
            self._empty = found
            self.list.changed()

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
        progress = self.workspace.store.progress
        if progress.failure and not len(self.workspace.store):
            self.shell.exit(return_code=progress.code or 1, message=progress.failure)
            return
        said = [progress.failure] if progress.failure else []
        for text in (*said, *progress.said):
            self.shell.tell(text, "warning")
        self.shell.remark("; ".join(progress.remarks))
