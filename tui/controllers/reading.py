"""Takes in what the reading process tells: new rows, and how reading ended."""

from __future__ import annotations

import time
from typing import Final

from kafkascope.tui.controllers.controller import Controller, ControllerContext
from kafkascope.tui.controllers.inspector import InspectorController
from kafkascope.tui.controllers.marks import MarksController
from kafkascope.tui.controllers.order import OrderController
from kafkascope.tui.views.empty import Empty, empty

# Seconds between two updates of findings while rows come; the last update comes at once.
AGAIN: Final = 3.0
# The next update comes at the earliest after this many times as long as one took.
SHARE: Final = 20
# And after this many times as long as rows were looked up: each update looks all of them up.
LOOKED: Final = 5
# Seconds of a tick for looking up rows.
SPENT: Final = 0.02


class FindingsController(Controller):
    """Shows findings in the list, the context of an exchange, and filters."""

    few = 200_000
    """Exchanges up to which findings are counted without being asked for."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.due = 0.0
        """When to update findings, on the monotonic clock."""
        self._version = -1
        self._counts: dict[str, int] = {}
        """How many causes there are of each severity, as `check` counts them."""
        self._final = False
        """Whether the last tick saw final findings."""

    @property
    def needed(self) -> bool:
        """Whether something on the screen depends on findings."""
        work = self.workspace
        few = work.store.progress.done and 0 < len(work.store) <= self.few
        filtered = work.filters_by("finding", "expected") or work.colours.use("finding")
        return filtered or few or self.shell.shows_context()

    @property
    def busy(self) -> bool:
        """Whether findings are wanted that are not known yet."""
        return self.needed and (self._version < 0 or self.workspace.mentions.busy)

    def words(self) -> str:
        """Count causes by severity, for the header."""
        counts = [(self._counts.get(word, 0), word) for word in ("error", "warning")]
        words = [f"{count} {word}{'s' * (count > 1)}" for count, word in counts if count]
        more = " so far" if words and self.pending() else ""
        return f"{', '.join(words)}{more} (7)" if words else ""

    def pending(self) -> str:
        version, so_far = self.host.findings_state()
        if self._version < 0:
            return so_far or "not counted yet"
        busy = self._version != version or self.workspace.mentions.busy
        return so_far or ("looked up row by row" if busy else "")

    def tick(self) -> None:
        """Count findings, look rows up and show both, for `SPENT` seconds at most."""
        if not self.needed:
            return
        workspace, mentions = self.workspace, self.workspace.mentions
        now = time.monotonic()
        if not mentions.busy:
            result = self.host.causes(self._version, final=now < self.due)
            if result is not None:
                from kafkascope.analyzer.findings.causes import counted, unfolded

                self._version, causes = result
                self._counts = counted(causes)
                mentions.update(unfolded(causes))
                self.due = now + max(AGAIN, SHARE * (time.monotonic() - now))
        begin = time.monotonic()
        looked = mentions.advance(SPENT)
        if mentions.busy or looked:
            self.due += LOOKED * (time.monotonic() - begin)
        if looked:
            workspace.colours.forget()
            self.list.changed()
            if workspace.filters_by("finding", "expected"):
                workspace.notes_changed()
        pending = self.pending()
        final, self._final = not pending and not self._final, not pending
        if looked or final:
            self.shell.update_status()
            number = self.list.number
            if final or (number is not None and mentions.of(number)):
                self.shell.look_again()


class ReadingController(Controller):
    """Keeps the list up to date while the input is read; it tells other controllers."""

    def __init__(
        self,
        context: ControllerContext,
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
        if view.has_reordered() or moved:
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
            self._show_end()

    def _watch_proxy(self) -> None:
        """Show what the proxy reports, once each."""
        proxy = self.host.proxy
        if proxy is None or proxy.version == self._proxy_version:
            return
        self._proxy_version = proxy.version
        for text in proxy.notices:
            if text not in self._notices:
                self._notices.add(text)
                self.shell.say(f"proxy: {text}", "warning")

    def _show_empty(self) -> None:
        """Keep the sentence in the place of rows up to date."""
        why = self._empty
        if not len(self.workspace.view):
            self._empty = empty(self.workspace, self.host.proxy)
        if self._empty != why:
            self.list.changed()

    def _stay_with(self, number: int | None) -> None:
        """Keep the cursor on its exchange when rows have moved."""
        index = None if number is None else self.workspace.session.index_of(number)
        before = self.list.cursor
        self.list.changed()
        place = 0 if index is None else self.workspace.view.place_of(index)
        if place != before:
            self.list.move_to(place, tell=False)

    def _show_end(self) -> None:
        self.workspace.colours.forget()  # names of topics may have come late
        progress = self.workspace.store.progress
        if progress.failure and not len(self.workspace.store):
            self.shell.exit(return_code=progress.code or 1, message=progress.failure)
            return
        for text in filter(None, (progress.failure, *progress.said)):
            self.shell.say(text, "warning")
        self.shell.remark("; ".join(progress.remarks))
