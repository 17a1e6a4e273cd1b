"""Shows what is being opened until Textual has loaded, which takes most of a second."""

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
    """Show the title; Textual draws over it, or it is removed when the body raises."""
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
