"""The search for exchanges: by a text, a number or a time."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

from kafkascope.analyzer.render.times import mark
from kafkascope.tui.controllers.controller import Controller, ControllerContext

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


SCOPES: Final = ("the list", "fields and records", "bytes")


class SearchController(Controller):
    """Moves the cursor of the list to what the user searches."""

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self.wanted = ""
        """The text that was searched last."""
        self.scope = SCOPES[0]

    def step(self, by: int, wanted: NDArray[np.bool_], what: str) -> bool:
        """Go to the next row of the view that is `wanted`, an array over all rows; return whether
        there is one. `what` names it."""
        import numpy as np

        rows, here = self.workspace.view.array(), self.list.cursor
        rows = rows[rows < len(wanted)]
        part = rows[here + 1 :] if by > 0 else rows[:here][::-1]
        places = np.flatnonzero(wanted[part])
        if not len(places):
            where = "below" + self.workspace.yet if by > 0 else "above"
            self.shell.say(f"No {what} {where}.")
            return False
        self.list.move_to(here + by * (int(places[0]) + 1))
        return True

    # --- numbers and times ------------------------------------------------------------------

    def ask_where(self) -> None:
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
            self.shell.say(f"No exchange {text}{workspace.yet}.", "warning")
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
        self.shell.say(f"Exchange {text} is not shown{why}.", "warning")

    def _goto_time(self, text: str) -> None:
        from kafkascope.tui.data.columns import column

        session = self.workspace.session
        try:
            wanted = mark(text)
        except ValueError as error:
            self.shell.say(f'"{text}": {error}', "warning")
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
            self.shell.say("No exchange at that time or later.", "warning")

    # --- texts ------------------------------------------------------------------------------

    def find(self) -> None:
        """Prompt for a text to find; in an open prompt, switch to the next scope."""
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
        if not self.wanted:
            self.find()
        elif self.scope == SCOPES[0]:
            from kafkascope.tui.data.columns import with_text

            self.step(by, with_text(self.workspace.store, self.wanted), f'"{self.wanted}"')
        else:
            self._find_in_messages(by)

    def _find_in_messages(self, by: int) -> None:
        from kafkascope.tui.data.columns import column
        from kafkascope.tui.data.messages import search

        store, wanted, scope = self.workspace.store, self.wanted, self.scope
        rows, here = self.workspace.view.array(), self.list.cursor
        part = rows[here + 1 :] if by > 0 else rows[:here][::-1]
        numbers = column(store.session, "number")[part]

        def look() -> Generator[float, None, int | None]:
            for seen, found in enumerate(search(store, map(int, numbers), wanted, scope)):
                if found is not None:
                    return found
                yield 100 * seen / len(numbers)
            return None

        self.run_beside(f'searching "{wanted}"', look(), self._ended)

    def stop(self) -> None:
        self._task = None
        self.show_activity("")

    def _ended(self, result: int | Exception | None) -> None:
        if isinstance(result, Exception):
            self.shell.say(f"The search failed: {result}", "warning")
        elif result is None:
            yet = self.workspace.yet
            self.shell.say(f'No more "{self.wanted}" in {self.scope}{yet}.')
        else:
            self.goto(str(result))

    # --- the next one of a kind -------------------------------------------------------------

    def error(self, by: int) -> None:
        """Go to the next exchange with an unexpected error or a missing response, or that is
        evidence of a finding of severity error."""
        from kafkascope.tui.data.columns import bad, numbered

        store, mentions = self.workspace.store, self.workspace.mentions
        wanted = bad(store) & ~numbered(store, mentions.worst("chat"))
        self.step(by, wanted | numbered(store, mentions.worst("error")), "error")

    def connection(self, by: int) -> None:
        from kafkascope.tui.data.columns import same_connection

        if (index := self.list.index) is not None:
            mask = same_connection(self.workspace.store, index)
            self.step(by, mask, "exchange on this connection")
