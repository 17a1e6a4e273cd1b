"""Moving in the list: the next of a kind, numbers, times, texts; its order and its clock."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from textual import on
from textual.message import Message
from textual.widgets import Input

from kafkascope.analyzer.render.times import TIME_FORMATS
from kafkascope.tui.actions.base import Base
from kafkascope.tui.views.exchanges import SINCE_MARK
from kafkascope.tui.views.heading import Heading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CLOCKS: Final = ("a", "u", "r", "dd", SINCE_MARK, "e", "ad", "ud")
"""Formats in the order in which `t` takes them."""
SINCE_MARK_WORDS: Final = "seconds since the reference (T)"
SCOPES: Final = ("the list", "fields and records", "bytes")
TOLD: Final = 0.2


class Moving(Base):
    """The cursor of the list, and its order."""

    class Found(Message):
        """A search in messages is so far; `number` is where it ended, `why` why it could not."""

        def __init__(
            self, search: int, share: float, number: int | None, done: bool, why: str = ""
        ) -> None:
            super().__init__()
            self.search, self.share, self.number, self.done = search, share, number, done
            self.why = why

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.following = self.feed.store.progress.ring
        """The cursor stays on the newest row."""
        self.found = ""
        self.scope = SCOPES[0]
        self._search = 0

    def step(self, by: int, wanted: NDArray[np.bool_], what: str) -> bool:
        """To the next row of the view that is wanted, of all rows."""
        import numpy as np

        rows = self.view_.array()
        rows = rows[rows < len(wanted)]
        here = self.list.cursor
        part = rows[here + 1 :] if by > 0 else rows[:here][::-1]
        places = np.flatnonzero(wanted[part])
        if not len(places):
            self.tell(f"no {what} {'below' + self._yet() if by > 0 else 'above'}")
            return False
        self.list.move_to(here + by * (int(places[0]) + 1))
        return True

    def _yet(self) -> str:
        """Whether more may come."""
        return "" if self.feed.store.progress.done and not self.view_.behind else " yet"

    def action_error(self, by: int) -> None:
        """The next exchange that went wrong, unless that is normal, or that is evidence of an
        error."""
        from kafkascope.tui.data.masks import bad, numbered, probes

        store, mentions = self.feed.store, self.mentions
        normal = probes(store.session) | numbered(store, mentions.worst("chat"))
        wanted = bad(store) & ~normal
        self.step(by, wanted | numbered(store, mentions.worst("error")), "error")

    def action_connection(self, by: int) -> None:
        """The next exchange on this connection."""
        from kafkascope.tui.data.masks import same_connection

        index = self.list.index
        if index is not None:
            wanted = same_connection(self.feed.store, index)
            self.step(by, wanted, "exchange on this connection")

    def endless(self) -> bool:
        """Whether there is no end to be waited for."""
        progress = self.feed.store.progress
        return not progress.done and (progress.following or progress.ring)

    def cursor_moved(self) -> None:
        """Moving away ends following, moving to the end of what grows begins it."""
        at_end = self.list.cursor == self.list.count() - 1
        following = at_end and (self.following or self.endless())
        if following != self.following:
            self.following = following
            self.say()

    def follow(self, before: int) -> None:
        """To the newest row, unless the wheel went away from it, or a message is being read; there
        were `before` rows."""
        exchanges = self.list
        reading = self.detail.has_focus or self.hex.has_focus
        shown = exchanges.scroll_offset.y + max(1, exchanges.scrollable_content_region.height)
        if reading or (shown < before and exchanges.cursor == before - 1):
            self.following = False
        else:
            exchanges.move_to(exchanges.count() - 1)

    def action_tail(self) -> None:
        """Stay at the end."""
        self.following = not self.following
        self.list.move_to(self.list.count() - 1 if self.following else self.list.cursor)
        self.tell("following the end" if self.following else "no longer following")
        self.say()

    # --- order ------------------------------------------------------------------------------

    def action_sort(self) -> None:
        """Ask for a column."""
        from kafkascope.tui.data.sorting import sortable

        columns = self.list.columns(400)
        choices = [("", "order of the capture")]
        choices += [(c.name, c.title) for c in columns if sortable(c.name)]
        names = {c.name for c in columns}
        more = ("excess", "wait", "error", "topic", "group", "conn", "throttle", "records")
        choices += [(name, name) for name in more if name not in names]
        order = self.view_.order
        self.pick("order by", choices, self.order_by, order.name if order else "")

    def order_by(self, name: str) -> None:
        """Order by a column; by the same one again, the other way round."""
        from kafkascope.tui.data.sorting import Order, sortable, usual

        order = self.view_.order
        if not name:
            self._order(None)
        elif order is not None and order.name == name:
            self._order(Order(name, not order.downwards))
        elif sortable(name):
            self._order(usual(name))
        else:
            self.tell(f"{name} cannot be sorted by: it is read from messages", "warning")

    def _order(self, order: Any) -> None:
        index = self.list.index
        self.following = self.following and order is None
        self.view_.sort(order)
        self.list.cursor = 0 if index is None else self.view_.place_of(index)
        self.list.changed()
        self.list.move_to(self.list.cursor, tell=False)
        self.say()

    def action_reverse(self) -> None:
        """The other way round."""
        order = self.view_.order
        if order is None:
            self.order_by("number")
            self.order_by("number")
        else:
            self.order_by(order.name)

    @on(Heading.Picked)
    def title_clicked(self, event: Heading.Picked) -> None:
        """Order by the column."""
        self.order_by(event.name)

    # --- times ------------------------------------------------------------------------------

    def clock_words(self) -> str:
        """How times are written, for the header."""
        if self.list.times == SINCE_MARK:
            return SINCE_MARK_WORDS
        return TIME_FORMATS[self.list.times]

    def action_time(self) -> None:
        """The next way to write times."""
        ways = [way for way in CLOCKS if way != SINCE_MARK or self.list.reference_ns is not None]
        here = self.list.times
        self._clock(ways[(ways.index(here) + 1) % len(ways)] if here in ways else ways[0])

    def action_reference(self) -> None:
        """Times count from the exchange under the cursor."""
        index = self.list.index
        if index is not None:
            self.list.reference_ns = self.feed.store.session.columns["time_ns"][index]
            self._clock(SINCE_MARK)

    def _clock(self, way: str) -> None:
        self.list.times = way
        self.list.changed()
        if self.host.board is not None:
            self.host.board.refresh_numbers()
        self.say()

    # --- numbers and times ------------------------------------------------------------------

    def action_goto(self) -> None:
        """Ask for a number."""
        self.ask("go to number or time (1206, 12:03:07, 5s)", self.goto)

    def show_exchange(self, number: int) -> None:
        """One exchange among its neighbours."""
        self.host.show(1)
        self.enter(self.list)
        self.goto(str(number))

    def goto(self, text: str) -> None:
        """To an exchange by its number, or to the first one at a time."""
        plain = text.lstrip(":").replace(",", "")
        if not plain:
            return
        session = self.feed.store.session
        if not (plain.isascii() and plain.isdigit()):
            self._goto_time(plain if text.lstrip(":") == plain else text)
            return
        index = session.index_of(int(plain)) if len(plain) < 19 else None
        if index is None:
            self.tell(f"there is no exchange {text}{self._yet()}", "warning")
            return
        place = self.view_.place_of(index)
        if place < len(self.view_) and self.view_[place] == index:
            self.list.move_to(place)
        elif self.view_.behind:
            self.tell(f"exchange {text} is not shown yet: rows are being filtered", "warning")
        elif int(plain) in self.notes.ignored:
            self.tell(f"exchange {text} is not shown: it is ignored (I shows those)", "warning")
        else:
            self.tell(f"exchange {text} is not shown: the filter leaves it out", "warning")

    def _goto_time(self, text: str) -> None:
        from kafkascope.analyzer.render.times import mark
        from kafkascope.tui.data.masks import column

        session = self.feed.store.session
        try:
            wanted = mark(text)
        except ValueError as error:
            self.tell(f'"{text}": {error}', "warning")
            return
        if not len(session):
            return
        times = column(session, "time_ns")
        at = wanted.of(int(times[0]), int(times.max()))
        self.list.move_to(self.list.cursor, tell=False)
        rows = self.view_.array()
        later = (times[rows] >= at).nonzero()[0]
        if len(later):
            self.list.move_to(int(later[0]))
        else:
            self.tell("nothing is shown at that time or later", "warning")

    # --- texts ------------------------------------------------------------------------------

    def action_find(self) -> None:
        """Ask for a text; ctrl+f once more looks somewhere else."""
        prompt = self.query_one("#prompt", Input)
        if prompt.has_focus:
            self.scope = SCOPES[(SCOPES.index(self.scope) + 1) % len(SCOPES)]
        hint = " (text, or 0x0aff)" if self.scope == "bytes" else ""
        text = prompt.value if prompt.has_focus else self.found
        self.ask(f"find in {self.scope}{hint}; ctrl+f changes where", self._find, text)

    def _find(self, text: str) -> None:
        self.found = text
        self.action_find_next(1)

    def action_find_next(self, by: int) -> None:
        """The next row with the text."""
        if not self.found:
            self.action_find()
        elif self.scope == SCOPES[0]:
            from kafkascope.tui.data.masks import with_text

            self.step(by, with_text(self.feed.store, self.found), f'"{self.found}"')
        else:
            self._find_in_messages(by)

    def _find_in_messages(self, by: int) -> None:
        """Messages are read beside the keyboard."""
        from kafkascope.tui.data.masks import column
        from kafkascope.tui.data.searching import search

        self._search += 1
        number, store = self._search, self.feed.store
        rows = self.view_.array()
        here = self.list.cursor
        part = rows[here + 1 :] if by > 0 else rows[:here][::-1]
        numbers = column(store.session, "number")[part]
        self.busy_with = f'searching "{self.found}"'
        self.say()

        def look() -> None:
            told = time.monotonic()
            for seen, found in enumerate(search(store, map(int, numbers), self.found, self.scope)):
                if number != self._search:
                    return
                if found is not None:
                    self.post_message(self.Found(number, 1.0, found, True))
                    return
                if time.monotonic() - told > TOLD:
                    told = time.monotonic()
                    self.post_message(self.Found(number, seen / len(numbers), None, False))
            self.post_message(self.Found(number, 1.0, None, True))

        def run() -> None:
            try:
                look()
            except Exception as error:  # the outermost guard of the thread: it tells
                why = f"the search failed: {error!r}"
                self.post_message(self.Found(number, 1.0, None, True, why))

        threading.Thread(target=run, daemon=True).start()

    def stop_search(self) -> None:
        """Look no further."""
        self._search += 1
        self.busy_with = ""
        self.say()

    @on(Found)
    def search_told(self, event: Found) -> None:
        """So far, or there."""
        if event.search != self._search:
            return
        if not event.done:
            self.busy_with = f'searching "{self.found}" {100 * event.share:.0f} %'
        else:
            self.busy_with = ""
            if event.why:
                self.tell(event.why, "warning")
            elif event.number is None:
                self.tell(f'"{self.found}" is not in {self.scope} of what follows{self._yet()}')
            else:
                self.goto(str(event.number))
        self.say()
