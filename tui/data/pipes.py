"""The pipes between the UI and its reading and counting processes: each message is its size and a
pickle."""

from __future__ import annotations

import json
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

SIZE: Final = struct.Struct(">Q")
# Commands to the reading process are single bytes: this one ends reading.
STOP: Final = b"s"


def start(
    module: str, options: dict[str, Any], *descriptors: int, stdin: int | None = subprocess.DEVNULL
) -> tuple[subprocess.Popen[bytes], int]:
    """Run a module of ours in a process of its own, with descriptors; return the process, and the
    end of the pipe on which `messages` come."""
    results, theirs = os.pipe()
    process = subprocess.Popen(
        # -P: the working directory may hold modules that are not ours.
        [sys.executable, "-P", "-m", module, json.dumps(options | {"results": theirs})],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(theirs, *descriptors),
    )
    os.close(theirs)
    return process, results


def send(results: int, message: dict[str, Any]) -> int:
    """Write a message to the UI, in as many pieces as its pipe takes; return its size in bytes."""
    data = pickle.dumps(message, protocol=5)
    try:
        for part in (SIZE.pack(len(data)), data):
            view = memoryview(part)
            while view:
                view = view[os.write(results, view) :]
    except OSError:
        os._exit(0)  # the UI is gone
    return len(data)


def messages(results: int) -> Iterator[bytes]:
    """Yield the pickles that `send` wrote, until the other process ends, be it in the middle."""
    with os.fdopen(results, "rb") as pipe:
        while len(head := pipe.read(SIZE.size)) == SIZE.size:
            size = SIZE.unpack(head)[0]
            data = pipe.read(size)
            if len(data) < size:
                return
            yield data
