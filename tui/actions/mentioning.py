"""Findings in the list: counted beside the keyboard once all is read, and looked up row by row."""

from __future__ import annotations

import time
from typing import Any, Final

from kafkascope.tui.actions.looking import Looking

AGAIN: Final = 3.0
"""Seconds between two looks at findings of what still grows; the last one comes at once."""
SHARE: Final = 20
"""So many times longer than a look took, the next one is away at least."""
SPENT: Final = 0.02
"""Seconds of a tick that may go into looking up rows."""


class Mentioning(Looking):
    """Signs in the list, lines in the context, `finding` in filters."""

    few = 200_000
    """Exchanges up to which findings are counted without being asked for."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._version = -1
        self._counts: dict[str, int] = {}
        """Causes of each severity, as `check` counts them."""
        self._final = False
        """Nothing is to be found any more."""
        self._due = 0.0

    @property
    def finding(self) -> bool:
        """Whether findings are wanted that are not known yet."""
        return self._wants_findings() and (self._version < 0 or self.mentions.busy)

    def _wants_findings(self) -> bool:
        progress = self.feed.store.progress
        few = progress.done and 0 < len(self.feed.store) <= self.few
        asked = "finding" in self.view_.text or self.colours.asks("finding")
        return asked or few or self.tab == "Context"

    def finding_words(self) -> str:
        """Causes for the header."""
        counts = [(self._counts.get(word, 0), word) for word in ("error", "warning")]
        words = [f"{count} {word}{'s' * (count > 1)}" for count, word in counts if count]
        more = " so far" if words and self.findings_pending() else ""
        return f"{', '.join(words)}{more}: 7" if words else ""

    def findings_pending(self) -> str:
        """What is left to be done before findings are final; empty when they are."""
        so_far = self.host.findings_so_far()
        if self._version < 0:
            return so_far or "not counted yet"
        newest = self._version == self.host.findings_version and not self.mentions.busy
        return so_far or ("" if newest else "looked up row by row")

    def mention(self) -> None:
        """Count, look up, and show, for a moment."""
        if not self._wants_findings():
            return
        now = time.monotonic()
        if not self.mentions.busy:
            told = self.host.causes(self._version, final=now < self._due)
            if told is not None:
                from kafkascope.analyzer.findings.causes import counted, unfolded

                self._version, causes = told
                self._counts = counted(causes)
                self.mentions.tell(unfolded(causes))
            spent = time.monotonic() - now
            self._due = now + (max(AGAIN, SHARE * spent) if told is not None else 0.0)
        looked = self.mentions.advance(SPENT)
        if looked:
            self.colours.forget()
            self.list.changed()
            if "finding" in self.view_.text:
                self.view_.noted()
                self._busy = True
        pending = self.findings_pending()
        final, self._final = not pending and not self._final, not pending
        if looked or final:
            self.say()
            number = self.list.number
            if final or (number is not None and self.mentions.of(number)):
                self.look_again()
