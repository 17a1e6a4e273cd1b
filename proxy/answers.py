"""Lines of JSON that ask, and those that answer: what the channels of docs/control.md share."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TextIO

PROTOCOL: Final = 3
"""Goes up with requests and members that clients may need. What is there keeps its meaning."""
MAX_LINE: Final = 64 * 1024 * 1024
"""An edited body may be large."""
NO_PIPES: Final = "--control - needs pipes as stdin and stdout"
REFUSED: Final = (ValueError, KeyError, TypeError)


def read(line: bytes) -> tuple[dict[str, Any], bytes]:
    """Parse a request; or return the refusal of a line that is none."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {}, written({"ok": False, "error": str(error)})
    if not isinstance(request, dict):
        return {}, written({"ok": False, "error": "expected an object"})
    return request, b""


def response(
    request: dict[str, Any],
    do: Callable[[], dict[str, Any]],
    refused: tuple[type[Exception], ...] = REFUSED,
) -> bytes:
    """Return the line that answers a request: what `do` returns, or why it refuses."""
    try:
        out = {"ok": True, **do()}
    except refused as error:
        reason = f"{error.args[0]!r} is missing" if type(error) is KeyError else str(error)
        out = {"ok": False, "error": reason}
    if "id" in request:
        out["id"] = request["id"]
    return written(out)


def written(message: dict[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":"), default=_plain).encode() + b"\n"


def _plain(value: Any) -> Any:
    from kafkascope.dissectors.codec.jsonform import dumps

    return json.loads(dumps(value))


def is_pipe(stream: TextIO) -> bool:
    """Return whether somebody is at the other end. On a file or /dev/null the event loop aborts."""
    mode = os.fstat(stream.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stream.isatty()


def has_pipes() -> bool:
    """Return whether stdin and stdout can be served."""
    return is_pipe(sys.stdin) and is_pipe(sys.stdout)


async def standard_pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return stdin and stdout as streams."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE)
    # Copies: these close what they are given, and the command still flushes stdout at its end.
    stdin = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    stdout = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdout)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


@cache
def release() -> str:
    """Return the version of kafkascope; empty where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("kafkascope")
    except PackageNotFoundError:
        return ""
