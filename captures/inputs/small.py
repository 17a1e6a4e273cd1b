"""Files that are read whole: settings, rules, scripts, users. Each has a limit, for what has no
end (`/dev/zero`, a pipe) would take all memory."""

from __future__ import annotations

import errno
from pathlib import Path

from kafkascope.captures.limits import LIMITS


def read_small(path: Path, most: int = LIMITS.small_file_bytes) -> bytes:
    """Return the bytes of a file; `OSError`, also where it has more than `most`."""
    found, held = [], 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(min(1 << 20, most + 1 - held)):
            found.append(data)
            held += len(data)
            if held > most:
                raise OSError(errno.EFBIG, f"larger than {most >> 20} MB", str(path))
    return b"".join(found)
