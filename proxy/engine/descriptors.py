"""Derives the number of connections from the system's limit on open files.

Each connection takes two descriptors. Some are left for files, listeners of brokers that are yet to
be named, and whoever else is in the process: a connection that is refused with a sentence is better
than one that cannot be served, or a recording that cannot go on.
"""

from __future__ import annotations

from typing import Final

# At least and at most left for other things; in between an eighth.
RESERVE: Final = (32, 256)


def limit() -> int:
    """The limit on open files; 0: unknown."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 0 if soft == resource.RLIM_INFINITY else soft


def connections() -> int:
    """How many connections may be open at once; 0: any number."""
    files = limit()
    return max(1, (files - min(max(files // 8, RESERVE[0]), RESERVE[1])) // 2) if files else 0


def raise_limit() -> None:
    """Raise the soft limit to the hard one: it is low only for programs that use select()."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            pass  # macOS has a lower limit than it says
