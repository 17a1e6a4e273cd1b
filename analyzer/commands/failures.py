"""Turns exceptions that users cause or can act on into a message and an exit code."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.captures.errors import CaptureError, CutShort, NotAllowed
from kafkascope.dissectors.errors import DissectError
from kafkascope.errors import PARTIAL, RIGHTS, UNAVAILABLE, USAGE
from kafkascope.extras import MissingExtra


class Failure(NamedTuple):
    """The message for stderr and the exit code of a command."""

    text: str
    code: int


_FAILURES: Final[tuple[tuple[type[BaseException], str, int], ...]] = (
    (MissingExtra, "", RIGHTS),
    (FilterError, "", USAGE),
    (NotAllowed, "kafkascope: ", RIGHTS),
    (CutShort, "kafkascope: ", PARTIAL),
    (CaptureError, "kafkascope: ", UNAVAILABLE),
)
"""Errors whose text is the whole message, subclasses first; the prefix of the text; the code."""


def explain(error: BaseException) -> Failure | None:
    """Return the message and exit code of an error; None for a bug of kafkascope."""
    for kind, prefix, code in _FAILURES:
        if isinstance(error, kind):
            return Failure(f"{prefix}{error}", code)
    if isinstance(error, DissectError):
        return Failure(f"kafkascope: {_where(error)}{error.reason}", USAGE)
    if isinstance(error, OSError) and error.strerror:
        file = f"{error.filename}: " if error.filename else ""
        return Failure(f"kafkascope: {file}{error.strerror}", UNAVAILABLE)
    return None


def _where(error: DissectError) -> str:
    offset = f"byte {error.offset}" if error.offset else ""
    where = " at ".join(filter(None, (error.path, offset)))
    return f"{where}: " if where else ""
