"""Which exceptions users cause or can do something about: the sentence for stderr and the exit
code."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.captures.errors import CaptureError, CutShort, NotACapture, NotAllowed
from kafkascope.dissectors.errors import DissectError
from kafkascope.errors import PARTIAL, RIGHTS, UNAVAILABLE, USAGE
from kafkascope.extras import MissingExtra


class Failure(NamedTuple):
    """One line, or a few, and an exit code."""

    text: str
    code: int


_SAID: Final[tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str, int], ...]] = (
    (MissingExtra, "", RIGHTS),
    (FilterError, "", USAGE),
    (NotAllowed, "kafkascope: ", RIGHTS),
    (CutShort, "kafkascope: ", PARTIAL),
    ((NotACapture, CaptureError), "kafkascope: ", UNAVAILABLE),
)
"""Errors that say all themselves, the more special ones first: what stands before, and the code."""


def explain(error: BaseException) -> Failure | None:
    """What to say and how to leave; None when the error is a mistake of ours."""
    for kinds, front, code in _SAID:
        if isinstance(error, kinds):
            return Failure(f"{front}{error}", code)
    if isinstance(error, DissectError):
        return Failure(f"kafkascope: {_where(error)}{error.reason}", USAGE)
    named = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
    if isinstance(error, named) or (isinstance(error, OSError) and error.filename):
        return Failure(f"kafkascope: {error.filename}: {error.strerror}", UNAVAILABLE)
    if isinstance(error, OSError) and error.strerror:
        return Failure(f"kafkascope: {error.strerror}", UNAVAILABLE)
    return None


def _where(error: DissectError) -> str:
    at = f"byte {error.offset}" if error.offset else ""
    place = " at ".join(part for part in (error.path, at) if part)
    return f"{place}: " if place else ""
