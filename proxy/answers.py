"""Lines of JSON that ask, and those that answer: what the channels of docs/control.md share."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from typing import Any, Final, TextIO

from kafkascope.proxy.limits import LIMITS

# Goes up with requests and members that clients may need. What is there keeps its meaning.
PROTOCOL: Final = 3
NO_PIPES: Final = "--control - needs pipes as stdin and stdout"
REFUSED: Final = (ValueError, KeyError, TypeError)


def read(line: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        return {}, written({"ok": False, "error": str(error)})
    if not isinstance(request, dict):
        return {}, written({"ok": False, "error": "expected an object"})
    return request, b""


def response(request: dict[str, Any], outcome: dict[str, Any] | Exception) -> bytes:
    """Return the line that answers a request: with members, or with an error as its refusal."""
    if isinstance(outcome, Exception):
        missing = f"{outcome.args[0]!r} is missing" if type(outcome) is KeyError else ""
        out = {"ok": False, "error": missing or str(outcome)}
    else:
        out = {"ok": True, **outcome}
    if "id" in request:
        out["id"] = request["id"]
    return written(out)


def written(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), default=_plain).encode() + b"\n"


def _plain(value: Any) -> Any:
    from kafkascope.dissectors.codec.jsonform import dumps

    return json.loads(dumps(value))


def is_pipe(stream: TextIO) -> bool:
    """Return whether the stream is a pipe, socket or terminal. On a file or /dev/null the event
    loop aborts."""
    mode = os.fstat(stream.fileno()).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stream.isatty()


def has_pipes() -> bool:
    return is_pipe(sys.stdin) and is_pipe(sys.stdout)


async def standard_pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LIMITS.control_line_bytes)
    # Copies: these close what they are given, and the command still flushes stdout at its end.
    stdin = os.fdopen(os.dup(sys.stdin.fileno()), "rb", buffering=0)
    stdout = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdout)
    return reader, asyncio.StreamWriter(transport, protocol, None, loop)


async def stdin_ends() -> None:
    """Return when stdin ends; at once where it is no pipe, such as a file or /dev/null."""
    if is_pipe(sys.stdin):
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while await reader.read(1 << 16):
            pass
