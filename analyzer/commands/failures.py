"""Which exceptions users cause or can do something about: the sentence for stderr and the exit
code."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.captures.errors import CaptureError, CutShort, NotACapture, NotAllowed
from kafkascope.dissectors.errors import DissectError
from kafkascope.extras import MissingExtra

USAGE: Final = 2
INPUT: Final = 3
PARTIAL: Final = 4
RIGHTS: Final = 5


class Failure(NamedTuple):
    """One line, or a few, and an exit code."""

    text: str
    code: int


def explain(error: BaseException) -> Failure | None:
    """What to say and how to leave; None when the error is a mistake of ours."""
    match error:
        case MissingExtra():
            return Failure(str(error), RIGHTS)
        case FilterError():
            return Failure(str(error), USAGE)
        case NotAllowed():
            return Failure(f"kafkascope: {error}", RIGHTS)
        case CutShort():
            return Failure(f"kafkascope: {error}", PARTIAL)
        case NotACapture() | CaptureError():
            return Failure(f"kafkascope: {error}", INPUT)
        case DissectError():
            return Failure(f"kafkascope: {_where(error)}{error.reason}", USAGE)
        case FileNotFoundError() | IsADirectoryError() | NotADirectoryError() | PermissionError():
            return Failure(f"kafkascope: {error.filename}: {error.strerror}", INPUT)
        case OSError() if error.filename:
            return Failure(f"kafkascope: {error.filename}: {error.strerror}", INPUT)
        case OSError() if error.strerror:
            return Failure(f"kafkascope: {error.strerror}", INPUT)
    return None


def _where(error: DissectError) -> str:
    at = f"byte {error.offset}" if error.offset else ""
    place = " at ".join(part for part in (error.path, at) if part)
    return f"{place}: " if place else ""
