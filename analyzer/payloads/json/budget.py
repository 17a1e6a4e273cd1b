"""SchemaBounds what the check of a value may cost: steps, depth, and patterns in linear time."""

from __future__ import annotations

import re
import sys
from contextvars import ContextVar
from typing import Any, Final

from kafkascope.analyzer.payloads.limits import LIMITS


class Exhausted(Exception):
    """A schema needs more steps for a value than it may."""


class SchemaBounds:
    """What one schema may cost: steps, which count down, and depth; with its compiled patterns. It
    lives as long as the schema: `weights` has values of that by their place in memory."""

    def __init__(self) -> None:
        self.left = 0
        self.weights: dict[int, int] = {}
        self._depth = self._most = 0
        self._patterns: dict[str, Any] = {}

    def start(self, steps: int) -> None:
        """Begin with a value: with steps, and as deep as the stack of the caller leaves room."""
        self.left, self._depth = steps, 0
        used, frame = 0, sys._getframe()
        while frame.f_back is not None:
            used, frame = used + 1, frame.f_back
        self._most = (
            sys.getrecursionlimit() - used - LIMITS.spare_frames
        ) // LIMITS.frames_per_keyword

    def enter(self) -> None:
        """Go into a keyword; `RecursionError` where keywords nest too deep.

        Python would raise it too, but below it stands a library in Rust, which does not bear it.
        """
        self._depth += 1
        if self._depth > self._most:
            raise RecursionError

    def leave(self) -> None:
        """Go out of a keyword."""
        self._depth -= 1

    def spend(self, steps: int) -> None:
        """Take steps; `Exhausted` if there are not as many left."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted

    def matches(self, pattern: Any, text: str) -> bool | None:
        """Return whether a text has a match anywhere; None for a pattern that is not applied."""
        if pattern not in self._patterns:
            self.spend(50)
            self._patterns[pattern] = _compiled(pattern)
        compiled = self._patterns[pattern]
        if compiled is None:
            return None
        self.spend(1 + len(text) // 256)
        return compiled.search(text.encode("utf-8", "replace")) is not None


bounds: Final[ContextVar[SchemaBounds]] = ContextVar("bounds")
"""Those of the schema that is applied: keywords are made once for each draft. A class for each
schema would cost a millisecond and 28 KB."""

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def _compiled(pattern: Any) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    if isinstance(pattern, str) and len(pattern) <= LIMITS.pattern_chars:
        try:
            return re2.compile(_of_ecma(pattern).encode("utf-8", "replace"), options)
        except re2.error:
            pass
    return None  # RE2 has no look-around and no references.


def _of_ecma(pattern: str) -> str:
    r"""Return a pattern of JavaScript in RE2's words: `\u00e9` is `\x{00e9}`, `\/` is `/`."""
    return _ESCAPE.sub(
        lambda m: f"\\x{{{m[1]}}}" if m[1] else "/" if m[2] == "/" else m[0], pattern
    )


def listed(names: list[str]) -> str:
    """Return the first of some names, for people."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(repr(each[:60]) for each in names[:3]) + more


def misfit(message: str) -> Any:
    """Return the library's error for a value that does not fit."""
    from jsonschema import ValidationError

    return ValidationError(message)
