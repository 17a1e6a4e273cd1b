"""The error of the display filter: its place, the line and a remedy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafkascope.analyzer.text import columns_taken, safe
from kafkascope.errors import Error

# Characters; a longer filter is shown as a window around the place of the error.
LINE: Final = 100


class FilterError(Error):
    """An invalid filter; `str()` gives the sentence, the line and a caret below it.

    filter: unknown field "topik" at column 1
      topik == "orders"
      ^^^^^  did you mean topic?   (list: kafkascope fields topic)
    """

    def __init__(
        self,
        reason: str,
        text: str,
        at: int,
        width: int = 1,
        hint: str = "",
        *,
        unfinished: bool = False,
    ) -> None:
        super().__init__(reason, text, at, width, hint)
        self.unfinished = unfinished
        """Whether the only error is that the filter ends here."""
        self.reason = reason
        """The problem, without the place."""
        self.text = text
        self.at = at
        """Characters before the place."""
        self.width = width
        """Number of characters that are wrong."""
        self.hint = hint
        """Text to write instead; may be empty."""

    @property
    def column(self) -> int:
        """The column of the error, counted from 1."""
        return self.at + 1

    @property
    def sentence(self) -> str:
        """What is wrong and what to write instead, for places where the filter itself need not be
        shown."""
        if not self.hint:
            return self.reason
        between = " " if self.hint.startswith("(") else "; "
        return f"{self.reason}{between}{' '.join(self.hint.split())}"

    def __str__(self) -> str:
        # A line feed or a tab would move the caret away from its place.
        line = safe(self.text)
        at, width = self.at, max(1, self.width)
        if len(line) > LINE:
            cut = max(0, min(at - LINE // 2, len(line) - LINE))
            line, at = line[cut : cut + LINE], at - cut
            width = min(width, LINE - at)
        caret = f"  {' ' * columns_taken(line[:at])}{'^' * max(1, width)}"
        hint = f"  {self.hint}" if self.hint else ""
        return f"filter: {self.reason} at column {self.column}\n  {line}\n{caret}{hint}"


def nearest(word: str, names: Iterable[str]) -> str | None:
    """Return the name that is probably meant, ignoring case; None when no name is similar.

    The order is: a slip of one letter (a transposition counts as one), names that begin with the
    word, those that begin with it but for one slip, more slips, names that contain it.
    """
    known = {name.lower(): name for name in names}
    wanted = word.lower()
    lengths = range(len(wanted) - 1, len(wanted) + 2)
    most = max(1, min(3, len(wanted) // 3))
    slips = {name: found for name in known if (found := distance(wanted, name, most)) <= most}
    best = min(slips, key=lambda name: (slips[name], -_common(wanted, name), name), default=None)
    if best is not None and slips[best] <= 1 and len(wanted) > 3:
        return known[best]
    begins = sorted((n for n in known if len(wanted) > 1 and n.startswith(wanted)), key=_length)
    if begins:
        return known[begins[0]]
    if len(wanted) > 4:  # not_leadr for NOT_LEADER_OR_FOLLOWER
        near = (n for n in known if any(distance(wanted, n[:end], 1) <= 1 for end in lengths))
        if begun := sorted(near, key=_length):
            return known[begun[0]]
    if best is not None:
        return known[best]
    inside = sorted((n for n in known if len(wanted) > 2 and wanted in n), key=_length)
    if inside:
        return known[inside[0]]
    from difflib import get_close_matches  # only invalid filters need it

    close = get_close_matches(wanted, known, n=1, cutoff=0.6)
    return known[close[0]] if close else None


def _length(name: str) -> tuple[int, str]:
    return len(name), name


def _common(one: str, other: str) -> int:
    """Return the length of the common prefix."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def distance(one: str, other: str, most: int) -> int:
    """Return the number of letters to insert, delete, replace or swap with their neighbour; `most`
    + 1 when there are more than `most`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, before, row = before, row, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
    return row[-1]
