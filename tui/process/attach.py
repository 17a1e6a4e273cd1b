"""The terminal UI on a running proxy: exchanges from its live capture, screen 8 on its control
socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Final

import click

from kafkascope.analyzer.reading.options import ReadOptions, SchemaOptions
from kafkascope.tui.limits import LIMITS

TIMEOUT_S: Final = 10.0


def stream(path: Path) -> socket.socket:
    """Return a connection that carries what passes the proxy from now on, as pcapng; `OSError` with
    a sentence."""
    return _request(path, "capture")[0]


def _request(path: Path, do: str) -> tuple[socket.socket, dict[str, Any]]:
    found = socket.socket(socket.AF_UNIX)
    try:
        found.settimeout(TIMEOUT_S)
        found.connect(str(path))
        found.sendall(f'{{"do":"{do}"}}\n'.encode())
        line = b""
        # What follows the answer is not ours to read.
        while not line.endswith(b"\n") and len(line) < LIMITS.greeting_bytes:
            octet = found.recv(1)
            if not octet:
                raise OSError(f"the proxy at {path} has ended")
            line += octet
        answer = json.loads(line)
        if not answer.get("ok"):
            raise OSError(f"the proxy at {path} refuses: {answer.get('error', '')}")
    except (OSError, ValueError) as error:
        found.close()
        raise OSError(f"no proxy responds at {path}: {error}") from error
    found.settimeout(None)
    return found, answer


def open_proxy(
    path: Path,
    schemas: SchemaOptions,
    filter_text: str = "",
    *,
    plain: bool = False,
    times: str = "a",
) -> int:
    """Show the proxy behind a control socket until the user leaves; return the exit code.
    `schemas`: where those of keys and values come from, besides the traffic."""
    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.process.control import Control
    from kafkascope.tui.showing import check_terminal, payloads_maker, show

    check_terminal()
    try:
        data, (connection, status) = stream(path), _request(path, "status")
        connection.close()
    except OSError as error:
        raise click.ClickException(str(error)) from error
    feed = Feed(
        ["-"],
        stdin=data.fileno(),
        payloads=payloads_maker(ReadOptions(("-",), schemas=schemas)),
        schema_words=schemas.words(),
    )
    data.close()
    how: Any = {"filter_text": filter_text, "plain": plain, "times": times}
    try:
        title = f"clients: {status.get('bootstrap', '')}"
        return show(feed, title, **how, control=Control(path)).return_code or 0
    finally:
        feed.close()
