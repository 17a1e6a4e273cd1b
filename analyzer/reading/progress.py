"""Shows the progress of a reading on the terminal."""

from __future__ import annotations

import sys
import time

from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.terminal import status
from kafkascope.captures.inputs.files import Source


class Progress:
    """A progress line on a terminal's stderr, shown after the first second, at most ten times per
    second."""

    def __init__(self, options: ReadOptions, source: Source) -> None:
        self._source = source
        self._begun = time.monotonic()
        self._next = self._begun + 1.0
        self._shown = False
        # Lines that scroll on the same terminal show progress themselves.
        terminal = sys.stderr.isatty() and not sys.stdout.isatty()
        self._on = options.progress and not options.quiet and terminal

    def tick(self, exchanges: int) -> None:
        """Show the number of exchanges so far, and of bytes read."""
        now = time.monotonic()
        if not self._on or now < self._next:
            return
        self._next = now + 0.1
        source = self._source
        read = source.statistics.captured_bytes
        text = f"{exchanges:,} exchanges, {read / 1e6:,.0f} MB".replace(",", " ")
        if 0 < read < source.size:
            left = (now - self._begun) * (source.size / read - 1)
            text += f" ({100 * read // source.size} %, {left:.0f} s left)"
        status(text)
        self._shown = True

    def clear(self) -> None:
        if self._shown:
            status()
            self._shown = False
