"""The root of all errors that users of kafkascope may meet. Imports nothing of ours."""

from __future__ import annotations

from typing import Self


class Error(Exception):
    """Something that kafkascope cannot do; `str()` is a sentence for people."""

    # A traceback holds frames, and these their variables: a hundred megabytes of an expanded batch
    # for each error that is kept. Where a variable of a caller leads to the error it is a cycle
    # (CPython sets f_back of a frame that outlives its call), which only the collector ends, and
    # that one counts objects, not bytes.
    def without_frames(self) -> Self:
        """Return the error without the frames that it came through, to be kept."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self
