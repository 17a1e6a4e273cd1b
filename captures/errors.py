"""Errors of inputs, as one tree.

CaptureError(text)          one sentence for people: the input and, where it helps, the remedy
├── NotACapture             missing, unreadable, a folder without captures, another kind of file
├── CutShort                the file ends inside a record or is damaged; what came before is whole
├── NotAllowed              the right to capture is missing
└── NotKept (spool.py)      bytes of a pipe that are wanted again and gone
"""

from kafkascope.errors import Error


class CaptureError(Error):
    """An input that cannot be read as it should be."""


class NotACapture(CaptureError):
    """Not a file that we can read."""


class CutShort(CaptureError):
    """The input ends early or is damaged; everything before the damage was delivered."""

    at: int | None = None
    """Offset in the (uncompressed) file, where that is known."""


class NotAllowed(CaptureError):
    """The right to capture is missing."""
