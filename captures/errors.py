"""What can be wrong with an input, as one tree.

CaptureError(text)          one sentence for people: the input and, where it helps, the remedy
├── NotACapture             missing, unreadable, a directory without captures, or some other kind of file
├── CutShort                the file ends inside a record, or a record is damaged: what came before it is whole
└── NotAllowed              the right to capture or read is missing
"""


class CaptureError(Exception):
    """An input that cannot be read as it should be."""


class NotACapture(CaptureError):
    """Not a file that we can read."""


class CutShort(CaptureError):
    """The input ends early or is damaged; everything before the damage was delivered."""


class NotAllowed(CaptureError):
    """A right is missing."""
