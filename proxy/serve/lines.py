"""Log lines of a served capture: who connected, and what went wrong.

Clients choose what stands in them and how many there are: lines are short, move no cursor, do not
repeat without end, and a flood of different ones cannot fill a disk. Sans-I/O: a callable writes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from kafkascope.analyzer.text import safe

MOST_LINES: Final = 1_000
"""Different lines that are counted."""
LONGEST_LINE: Final = 400
BURST: Final = 200
"""Lines that may come at once."""
LINE_S: Final = 1.0
"""Seconds until there is room for another one after that: 20 MB a day at most."""


class Lines:
    """Writes lines, with limits on their number."""

    def __init__(
        self, out: Callable[[str], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._out = out
        self._clock = clock
        self._said: Counter[str] = Counter()
        self._room = float(BURST)
        self._last = clock()
        self._left_out = 0

    def tell(self, who: str, text: str, about: str = "") -> None:
        """Write a line the first time, the tenth, the hundredth that `about` (else the text) is
        told."""
        who, text = safe(who[:LONGEST_LINE]), safe(text[:LONGEST_LINE])
        key = about[:LONGEST_LINE] or text
        if key not in self._said and len(self._said) >= MOST_LINES:
            self._said.pop(next(iter(self._said)))
        self._said[key] += 1
        count = self._said[key]
        if count == 1:
            self._write(f"{who}: {text}")
        elif str(count).strip("0") == "1":
            self._write(f"{who}: {text} ({count} times)")

    def _write(self, line: str) -> None:
        now = self._clock()
        self._room = min(self._room + (now - self._last) / LINE_S, BURST)
        self._last = now
        if self._room < 1:
            self._left_out += 1
            return
        self._room -= 1
        if self._left_out:
            line = f"{line} ({self._left_out} lines before it were suppressed)"
            self._left_out = 0
        self._out(line)
