"""Compiles generated source: the only `exec` of the project.

The source is registered in `linecache`, so that a traceback and a debugger show it; `kafkascope
grammar API VERSION --source` prints it.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

# Sources that tracebacks can show; those of schemas in traffic come without end.
MOST: Final = 5_000

_registered: Final[dict[str, None]] = {}


def compile_function(name: str, source: str, names: dict[str, Any], origin: str) -> Any:
    """Return the function `name` of `source`. `names` are its globals, `origin` names it in
    tracebacks."""
    filename = f"<{origin}>"
    _registered[filename] = _registered.pop(filename, None)
    if len(_registered) > MOST:
        oldest = next(iter(_registered))
        del _registered[oldest]
        linecache.cache.pop(oldest, None)
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = dict(names)
    exec(compile(source, filename, "exec"), namespace)
    # Not among its own globals: it would be in a circle, and go late.
    return namespace.pop(name)


class SourceLines:
    """Source under construction: indented lines and fresh variable names."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0
        self.count = 0

    def add(self, *lines: str) -> None:
        """Append lines at the current depth."""
        self.lines += ["    " * self.depth + line for line in lines]

    @contextmanager
    def block(self, *lines: str) -> Iterator[None]:
        """Append lines, the last of which begins a block of what is appended inside."""
        self.add(*lines)
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, prefix: str = "v") -> str:
        """Return a variable name that was not used yet."""
        self.count += 1
        return f"{prefix}{self.count}"

    def text(self) -> str:
        """Return the source."""
        return "\n".join(self.lines) + "\n"
