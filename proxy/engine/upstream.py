"""Why no connection to a broker can be opened, as a sentence; and a try at the start.

A wrong `--upstream` is otherwise seen when the first client fails, in the client's words.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkascope.proxy.engine.directory import Address

TRY_S: Final = 5.0
"""Seconds for a connection at the start."""
_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
"""In the text of asyncio's error about several addresses of a host, which has no number itself."""


def no_broker(host: str, port: int, error: Exception) -> str:
    """Return the sentence about a connection that failed."""
    return f"no broker answers at {host}:{port} ({reason(error)})"


def reason(error: Exception) -> str:
    """Return why a connection failed, in the words of the operating system."""
    if isinstance(error, socket.gaierror):
        return (error.strerror or "the host has no address").lower()
    if isinstance(error, TimeoutError):
        return "timed out"
    number = getattr(error, "errno", None)
    inside = _ERRNO.search(str(error))
    if number is None and inside is not None:
        number = int(inside[1])
    if number is not None:
        return os.strerror(number).lower()
    return str(error) or "no reason given"


def unanswered(addresses: Sequence[Address], report: Callable[[str], None]) -> None:
    """Try each address and report those at which no broker answers. Blocks: for a thread."""
    for address in addresses:
        try:
            socket.create_connection((address.host, address.port), TRY_S).close()
        except (OSError, UnicodeError) as error:
            report(no_broker(address.host, address.port, error))
