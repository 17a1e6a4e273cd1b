"""A first screen for the time in which Textual loads, most of a second."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafkascope.analyzer.text import safe

BEGIN: Final = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
"""Switches to the alternate screen, as Textual does, clears it and hides the cursor."""
END: Final = "\x1b[?25h\x1b[?1049l"


@contextmanager
def splash(title: str) -> Iterator[None]:
    """Show the title until Textual draws over it, or the body raises."""
    out = sys.stderr
    # The name of a file may hold escape sequences.
    out.write(f"{BEGIN} kafkascope  {safe(title)}\r\n reading")
    out.flush()
    try:
        yield
    except BaseException:
        out.write(END)
        out.flush()
        raise
