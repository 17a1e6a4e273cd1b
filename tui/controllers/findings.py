"""Findings in the list: counted once all is read, and looked up row by row."""

from __future__ import annotations

import time
from typing import Final

from kafkascope.tui.controllers.controller import Context, Controller

AGAIN: Final = 3.0
"""Seconds between two updates of findings while rows come; the last update comes at once."""
SHARE: Final = 20
"""The next update comes at the earliest after this many times as long as one took."""
LOOKED: Final = 5
"""And after this many times as long as rows were looked up: each update looks all of them up."""
SPENT: Final = 0.02
"""Seconds of a tick for looking up rows."""


class FindingsController(Controller):
    """Shows findings in the list, the context of an exchange, and filters."""

    few = 200_000
    """Exchanges up to which findings are counted without being asked for."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.due = 0.0
        """When to update findings, on the monotonic clock."""
        self._version = -1
        self._counts: dict[str, int] = {}
        """How many causes there are of each severity, as `check` counts them."""
        self._final = False
        """Whether the last tick saw final findings."""

    @property
    def wanted(self) -> bool:
        """Whether something on the screen depends on findings."""
        workspace = self.workspace
        few = workspace.store.progress.done and 0 < len(workspace.store) <= self.few
        asked = workspace.asks_about("finding", "expected") or workspace.colours.asks("finding")
        return asked or few or self.shell.shows_context()

    @property
    def busy(self) -> bool:
        """Whether findings are wanted that are not known yet."""
        return self.wanted and (self._version < 0 or self.workspace.mentions.busy)

    def words(self) -> str:
        """Count causes by severity, for the header."""
        counts = [(self._counts.get(word, 0), word) for word in ("error", "warning")]
        words = [f"{count} {word}{'s' * (count > 1)}" for count, word in counts if count]
        more = " so far" if words and self.pending() else ""
        return f"{', '.join(words)}{more} (7)" if words else ""

    def pending(self) -> str:
        """Tell what is left to be done before findings are final; empty when they are."""
        so_far = self.shell.host.findings_so_far()
        if self._version < 0:
            return so_far or "not counted yet"
        newest = self._version == self.shell.host.findings_version
        newest = newest and not self.workspace.mentions.busy
        return so_far or ("" if newest else "looked up row by row")

    def tick(self) -> None:
        """Count findings, look rows up and show both, for `SPENT` seconds at most."""
        if not self.wanted:
            return
        workspace, mentions = self.workspace, self.workspace.mentions
        now = time.monotonic()
        if not mentions.busy:
            told = self.shell.host.causes(self._version, final=now < self.due)
            if told is not None:
                from kafkascope.analyzer.findings.causes import counted, unfolded

                self._version, causes = told
                self._counts = counted(causes)
                mentions.tell(unfolded(causes))
                self.due = now + max(AGAIN, SHARE * (time.monotonic() - now))
        begin = time.monotonic()
        looked = mentions.advance(SPENT)
        if mentions.busy or looked:
            self.due += LOOKED * (time.monotonic() - begin)
        if looked:
            workspace.colours.forget()
            self.list.changed()
            if workspace.asks_about("finding", "expected"):
                workspace.notes_changed()
        pending = self.pending()
        final, self._final = not pending and not self._final, not pending
        if looked or final:
            self.shell.update_status()
            number = self.list.number
            if final or (number is not None and mentions.of(number)):
                self.shell.look_again()
