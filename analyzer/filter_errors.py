"""What can be wrong with a display filter: one error with its place, its line and a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

LINE: Final = 100
"""A longer filter is shown as a window around the place of the error."""


class FilterError(Exception):
    """A filter that cannot be read; `str()` gives the sentence, the line and a caret below it.

    filter: unknown field "topik" at column 1
      topik == "orders"
      ^^^^^  did you mean topic?   (list: kafkascope fields topic)
    """

    def __init__(self, reason: str, text: str, at: int, width: int = 1, hint: str = "") -> None:
        super().__init__(reason, text, at, width, hint)
        self.reason = reason
        """What is wrong, without the place."""
        self.text = text
        """The whole filter."""
        self.at = at
        """Characters before the place."""
        self.width = width
        """Characters that are wrong."""
        self.hint = hint
        """What to write instead; may be empty."""

    @property
    def column(self) -> int:
        """The place, from 1."""
        return self.at + 1

    def __str__(self) -> str:
        # A line feed or a tab would move the caret away from its place.
        line = "".join(c if c.isprintable() else " " for c in self.text)
        at, width = self.at, max(1, self.width)
        if len(line) > LINE:
            cut = max(0, min(at - LINE // 2, len(line) - LINE))
            line, at = line[cut : cut + LINE], at - cut
            width = min(width, LINE - at)
        caret = f"  {' ' * at}{'^' * max(1, width)}"
        hint = f"  {self.hint}" if self.hint else ""
        return f"filter: {self.reason} at column {self.column}\n  {line}\n{caret}{hint}"


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that is most like the word, whatever its case; None when none is."""
    known = {name.lower(): name for name in names}
    wanted = word.lower()
    close = get_close_matches(wanted, known, n=1, cutoff=0.6)
    if close:
        return known[close[0]]
    inside = sorted((n for n in known if len(wanted) > 2 and wanted in n), key=len)
    return known[inside[0]] if inside else None
