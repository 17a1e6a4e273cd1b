"""Bounds what the check of a value may cost: steps, depth, and patterns in linear time."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

_FRAMES: Final = 4
"""Frames of Python's stack for each keyword inside of another one, at most."""

_MARGIN: Final = 120
"""Frames that are left for what a keyword calls."""

MAX_PATTERN: Final = 10_000
"""Characters of a pattern; a longer one is not applied."""


class Exhausted(Exception):
    """A schema needs more steps for a value than it may."""


class Budget:
    """Counts steps down."""

    def __init__(self) -> None:
        self.left = 0
        self._depth = self._most = 0

    def start(self, steps: int) -> None:
        """Begin with a value: with steps, and as deep as the stack of the caller leaves room."""
        self.left, self._depth = steps, 0
        used, frame = 0, sys._getframe()
        while frame.f_back is not None:
            used, frame = used + 1, frame.f_back
        self._most = (sys.getrecursionlimit() - used - _MARGIN) // _FRAMES

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


class Patterns:
    """Has the compiled patterns of a schema."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._compiled: dict[str, Any] = {}
        self.skipped: list[str] = []
        """Patterns that RE2 does not have (look-around, references): they are not applied."""

    def matches(self, pattern: Any, text: str) -> bool | None:
        """Return whether a text has a match anywhere; None for a pattern that is not applied."""
        if pattern not in self._compiled:
            self._compiled[pattern] = self._compile(pattern)
        compiled = self._compiled[pattern]
        if compiled is None:
            return None
        self._budget.spend(1 + len(text) // 256)
        return compiled.search(text.encode("utf-8", "replace")) is not None

    def _compile(self, pattern: Any) -> Any:
        import re2

        self._budget.spend(50)
        options = re2.Options()
        options.log_errors = False
        if isinstance(pattern, str) and len(pattern) <= MAX_PATTERN:
            try:
                return re2.compile(_of_ecma(pattern).encode("utf-8", "replace"), options)
            except re2.error:
                pass
        if len(self.skipped) < 100:
            self.skipped.append(str(pattern)[:MAX_PATTERN])
        return None


@dataclass(slots=True, eq=False)
class SchemaBounds:
    """What one schema may cost. It lives as long as the schema: `weights` has values of that by
    their place in memory."""

    budget: Budget = field(default_factory=Budget)
    patterns: Patterns = field(init=False)
    weights: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.patterns = Patterns(self.budget)


bounds: Final[ContextVar[SchemaBounds]] = ContextVar("bounds")
"""Those of the schema that is applied: keywords are made once for each draft. A class for each
schema would cost a millisecond and 28 KB."""


def _of_ecma(pattern: str) -> str:
    r"""Return a pattern of JavaScript in RE2's words: `\u00e9` is `\x{00e9}`, `\/` is `/`."""
    out = []
    at = 0
    while at < len(pattern):
        if pattern[at] != "\\" or at + 1 >= len(pattern):
            out.append(pattern[at])
            at += 1
        elif pattern[at + 1] == "u" and _is_hex(pattern[at + 2 : at + 6]):
            out.append(f"\\x{{{pattern[at + 2 : at + 6]}}}")
            at += 6
        elif pattern[at + 1] == "/":
            out.append("/")
            at += 2
        else:
            out.append(pattern[at : at + 2])
            at += 2
    return "".join(out)


def _is_hex(text: str) -> bool:
    return len(text) == 4 and all(each in "0123456789abcdefABCDEF" for each in text)


def listed(names: list[str]) -> str:
    """Return the first of some names, for people."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(repr(each[:60]) for each in names[:3]) + more
