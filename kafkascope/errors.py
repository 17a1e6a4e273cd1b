"""The root of all errors that users of kafkascope may meet, and the exit codes of all commands.
Imports nothing of ours."""

from __future__ import annotations

from typing import Final, Self

# docs/commands.md explains them. Below 3 they are those of click and grep; 130 and 141 are a
# shell's for SIGINT and SIGPIPE.
USAGE: Final = 2
UNAVAILABLE: Final = 3
PARTIAL: Final = 4
RIGHTS: Final = 5
INTERRUPTED: Final = 130
CLOSED_PIPE: Final = 141


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
