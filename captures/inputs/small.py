"""Reads files that are needed whole: settings, rules, scripts, users."""

from __future__ import annotations

import errno
from pathlib import Path

from kafkascope.captures.limits import LIMITS


def read_limited(path: Path, limit_bytes: int = LIMITS.small_file_bytes) -> bytes:
    """Return the content of a file; `OSError` also if it is larger than the limit. Without one a
    device or a pipe without end would fill the memory."""
    with path.open("rb") as file:
        data = file.read(limit_bytes + 1)
    if len(data) > limit_bytes:
        raise OSError(errno.EFBIG, f"larger than {limit_bytes >> 20} MB", str(path))
    return data
