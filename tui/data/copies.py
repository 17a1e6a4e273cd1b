"""Exchanges and bytes as text for the clipboard."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.session.session import Session
from kafkascope.analyzer.text import json_safe

WIDE: Final = 16


def octets(data: bytes, form: str, start: int = 0) -> str:
    """Return bytes as `hex`, `dump` (offsets count from `start`) or `python`."""
    if form == "python":
        return repr(data)
    if form == "hex":
        return data.hex()
    lines = []
    for at in range(0, len(data), WIDE):
        part = data[at : at + WIDE]
        text = "".join(chr(octet) if 32 <= octet < 127 else "." for octet in part)
        lines.append(f"{start + at:08x}  {part.hex(' '):<{3 * WIDE - 1}}  {text}")
    return "\n".join(lines)


def as_json(session: Session, index: int) -> str:
    """Return an exchange as `show --json` prints it, secrets hidden."""
    from kafkascope.analyzer.exchanges.full import full_line

    exchange = session.exchange(index)
    names = session.context.names
    line = full_line(row_of(exchange, names), exchange, names, [])
    return json_safe(line).decode().rstrip("\n")
