"""The search for exchanges: by a text, a number or a time."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.render.times import mark
from kafkascope.tui.controllers.controller import Context, Controller
from kafkascope.tui.keys import Hint, Key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


SCOPES: Final = ("the list", "fields and records", "bytes")
TOLD: Final = 0.2
"""Seconds between two updates of the progress."""


class SearchController(Controller):
    """Moves the cursor of the list to what the user searches."""

    KEYS = (
        Key(
            "list.find",
            "ctrl+f",
            "ctrl+f",
            "find",
            "Find; again: in fields and records, in bytes",
            (Hint("list", 8, "find"),),
        ),
        Key("list.find_next", "n", "n", "find_next(1)", "Next match"),
        Key("list.find_previous", "N", "N", "find_next(-1)", "Previous match"),
        Key("list.goto", "ctrl+g", "ctrl+g", "ask_where", "Go to a number or a time"),
        Key(
            "app.palette",
            "colon,ctrl+p",
            ": ctrl+p",
            "app.command_palette",
            "Command palette; a number goes to that exchange",
            (Hint("list", 11, "commands"),),
        ),
    )

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.wanted = ""
        """The text that was searched last."""
        self.scope = SCOPES[0]
        self._search = 0

    def step(self, by: int, wanted: NDArray[np.bool_], what: str) -> bool:
        """Go to the next row of the view that is `wanted`, an array over all rows; return whether
        there is one. `what` names it."""
        import numpy as np

        rows = self.workspace.view.array()
        rows = rows[rows < len(wanted)]
        here = self.list.cursor
        part = rows[here + 1 :] if by > 0 else rows[:here][::-1]
        places = np.flatnonzero(wanted[part])
        if not len(places):
            where = "below" + self.workspace.yet if by > 0 else "above"
            self.shell.tell(f"No {what} {where}.")
            return False
        self.list.move_to(here + by * (int(places[0]) + 1))
        return True

    # --- numbers and times ------------------------------------------------------------------

    def ask_where(self) -> None:
        """Ask for a number or a time and go there."""
        self.shell.ask("Go to number or time (1206, 12:03:07, 5s)", self.goto)

    def goto(self, text: str) -> None:
        """Go to an exchange by its number, or to the first one at or after a time."""
        plain = text.lstrip(":").replace(",", "")
        if not plain:
            return
        workspace, view = self.workspace, self.workspace.view
        if not (plain.isascii() and plain.isdigit()):
            self._goto_time(plain if text.lstrip(":") == plain else text)
            return
        index = workspace.session.index_of(int(plain)) if len(plain) < 19 else None
        if index is None:
            self.shell.tell(f"No exchange {text}{workspace.yet}.", "warning")
            return
        place = view.place_of(index)
        if place < len(view) and view[place] == index:
            self.list.move_to(place)
            return
        if view.behind:
            why = " yet: filtering is not finished"
        elif int(plain) in workspace.notes.ignored:
            why = ": it is ignored; I shows ignored exchanges"
        else:
            why = ": the filter excludes it"
        self.shell.tell(f"Exchange {text} is not shown{why}.", "warning")

    def _goto_time(self, text: str) -> None:
        from kafkascope.tui.data.masks import column

        session = self.workspace.session
        try:
            wanted = mark(text)
        except ValueError as error:
            self.shell.tell(f'"{text}": {error}', "warning")
            return
        if not len(session):
            return
        times = column(session, "time_ns")
        at = wanted.of(int(times[0]), int(times.max()))
        self.list.move_to(self.list.cursor, tell=False)
        rows = self.workspace.view.array()
        later = (times[rows] >= at).nonzero()[0]
        if len(later):
            self.list.move_to(int(later[0]))
        else:
            self.shell.tell("No exchange at that time or later.", "warning")

    # --- texts ------------------------------------------------------------------------------

    def find(self) -> None:
        """Ask for a text; while it is asked for, switch to the next scope."""
        typed = self.shell.typed()
        if typed is not None:
            self.scope = SCOPES[(SCOPES.index(self.scope) + 1) % len(SCOPES)]
        hint = " (text, or 0x0aff)" if self.scope == "bytes" else ""
        text = self.wanted if typed is None else typed
        self.shell.ask(f"Find in {self.scope}{hint}; ctrl+f changes where", self._find, text)

    def _find(self, text: str) -> None:
        self.wanted = text
        self.find_next(1)

    def find_next(self, by: int) -> None:
        """Go to the next row with the text."""
        if not self.wanted:
            self.find()
        elif self.scope == SCOPES[0]:
            from kafkascope.tui.data.masks import with_text

            self.step(by, with_text(self.workspace.store, self.wanted), f'"{self.wanted}"')
        else:
            self._find_in_messages(by)

    def _find_in_messages(self, by: int) -> None:
        """Search messages in a thread."""
        from kafkascope.tui.data.masks import column
        from kafkascope.tui.data.searching import search

        self._search += 1
        number, store = self._search, self.workspace.store
        rows = self.workspace.view.array()
        here = self.list.cursor
        part = rows[here + 1 :] if by > 0 else rows[:here][::-1]
        numbers = column(store.session, "number")[part]
        self.workspace.activity = f'searching "{self.wanted}"'
        self.shell.update_status()
        later = self.shell.call_later

        def look() -> int | None:
            told = time.monotonic()
            for seen, found in enumerate(search(store, map(int, numbers), self.wanted, self.scope)):
                if found is not None or number != self._search:
                    return found
                if time.monotonic() - told > TOLD:
                    told = time.monotonic()
                    later(self._so_far, number, seen / len(numbers))
            return None

        def run() -> None:
            try:
                later(self._ended, number, look(), "")
            except Exception as error:  # the outermost guard of the thread: it tells
                later(self._ended, number, None, f"The search failed: {error}")

        threading.Thread(target=run, daemon=True).start()

    def stop(self) -> None:
        """Stop the search that runs."""
        self._search += 1
        self.workspace.activity = ""
        self.shell.update_status()

    def _so_far(self, search: int, share: float) -> None:
        if search == self._search:
            self.workspace.activity = f'searching "{self.wanted}" {100 * share:.0f} %'
            self.shell.update_status()

    def _ended(self, search: int, number: int | None, why: str) -> None:
        if search != self._search:
            return
        self.workspace.activity = ""
        if why:
            self.shell.tell(why, "warning")
        elif number is None:
            yet = self.workspace.yet
            self.shell.tell(f'No more "{self.wanted}" in {self.scope}{yet}.')
        else:
            self.goto(str(number))
        self.shell.update_status()


class JumpsController(Controller):
    """Moves the cursor to the next exchange of a kind."""

    KEYS = (
        Key(
            "list.connection_next",
            "right_square_bracket",
            "]",
            "connection(1)",
            "Next exchange on this connection",
        ),
        Key(
            "list.connection_previous",
            "left_square_bracket",
            "[",
            "connection(-1)",
            "Previous exchange on this connection",
        ),
        Key(
            "list.error_next",
            "e",
            "e",
            "error(1)",
            "Next error or missing response",
            (Hint("list", 3, "next error"),),
        ),
        Key("list.error_previous", "E", "E", "error(-1)", "Previous error or missing response"),
    )

    def error(self, by: int) -> None:
        """Go to the next exchange with an unexpected error or a missing response, or that is
        evidence of a finding of severity error."""
        from kafkascope.tui.data.masks import bad, numbered

        store, mentions = self.workspace.store, self.workspace.mentions
        wanted = bad(store) & ~numbered(store, mentions.worst("chat"))
        self.shell.step(by, wanted | numbered(store, mentions.worst("error")), "error")

    def connection(self, by: int) -> None:
        """Go to the next exchange on this connection."""
        from kafkascope.tui.data.masks import same_connection

        index = self.list.index
        if index is not None:
            wanted = same_connection(self.workspace.store, index)
            self.shell.step(by, wanted, "exchange on this connection")
