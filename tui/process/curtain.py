"""What the terminal shows before Textual is there, which takes most of a second: what is opened."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kafkascope.analyzer.text import safe

BEGIN: Final = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
"""Another screen, which Textual takes too, empty and without a cursor."""
END: Final = "\x1b[?25h\x1b[?1049l"


@contextmanager
def curtain(title: str) -> Iterator[None]:
    """Show it; it is taken away when something fails, and else left for Textual to draw over."""
    out = sys.stderr
    # What a file is called must not steer the terminal.
    out.write(f"{BEGIN} kafkascope  {safe(title)}\r\n reading")
    out.flush()
    try:
        yield
    except BaseException:
        out.write(END)
        out.flush()
        raise
