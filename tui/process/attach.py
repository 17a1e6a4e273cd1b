"""The terminal UI on a running proxy: exchanges from its live capture, screen 8 on its control
socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.reading.options import SchemaOptions

MOST: Final = 1 << 16
"""Bytes of the response before a stream."""
TIMEOUT_S: Final = 10.0


def stream(path: Path) -> socket.socket:
    """Return a connection that carries what passes the proxy from now on, as pcapng; `OSError` with
    a sentence."""
    found = socket.socket(socket.AF_UNIX)
    try:
        found.settimeout(TIMEOUT_S)
        found.connect(str(path))
        found.sendall(b'{"do":"capture"}\n')
        line = b""
        # What follows the answer is not ours to read.
        while not line.endswith(b"\n") and len(line) < MOST:
            octet = found.recv(1)
            if not octet:
                raise OSError(f"the proxy at {path} has ended")
            line += octet
        answer = json.loads(line)
        if not answer.get("ok"):
            raise OSError(f"the proxy at {path} refuses: {answer.get('error', '')}")
    except (OSError, ValueError) as error:
        found.close()
        raise OSError(f"no proxy answers at {path}: {error}") from error
    found.settimeout(None)
    return found


def open_proxy(path: Path, schemas: SchemaOptions) -> int:
    """Show the proxy behind a control socket until the user leaves; return the exit code.
    `schemas`: where those of keys and values come from, besides the traffic."""
    from kafkascope.tui.data.feed import Feed
    from kafkascope.tui.process.control import Control
    from kafkascope.tui.showing import check_terminal, show

    check_terminal()
    try:
        data = stream(path)
    except OSError as error:
        raise click.ClickException(str(error)) from error
    made = _payloads(schemas) if schemas.words() else None
    feed = Feed(
        ["-"],
        stdin=data.fileno(),
        payloads=(lambda: made) if made else (lambda: _payloads(schemas)),
        schema_words=schemas.words(),
    )
    data.close()
    control = Control(path)
    try:
        return show(feed, path.stem, control=control).code
    finally:
        feed.close()


def _payloads(schemas: SchemaOptions) -> Payloads | None:
    if schemas.off:
        return None
    from kafkascope.analyzer.payloads.decoding import Payloads
    from kafkascope.analyzer.reading.schemas import known_of

    return Payloads(known_of(schemas))
