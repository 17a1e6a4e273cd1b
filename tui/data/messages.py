"""Messages as text: for the clipboard, and to search in them one after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from kafkascope.analyzer.exchanges.full import full_line
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.render.tree import dump_lines
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.errors import CaptureError
from kafkascope.tui.data.store import Store

_HEX: Final = re.compile(r"(0x)?[0-9a-f]{2}([: ]?[0-9a-f]{2})*\Z", re.IGNORECASE)


def octets(data: bytes, form: str, start: int = 0) -> str:
    """Return bytes as `hex`, `dump` (offsets count from `start`) or `python`."""
    if form == "python":
        return repr(data)
    if form == "hex":
        return data.hex()
    return "\n".join(line.removeprefix("  ") for line in dump_lines(data, start))


def as_json(exchange: Exchange, names: TopicNames) -> bytes:
    """Return an exchange as `show --json` prints it, secrets hidden."""
    return full_line(row_of(exchange, names), exchange, names, [])


def search(store: Store, numbers: Iterable[int], text: str, scope: str) -> Iterator[int | None]:
    """Yield for each exchange its number if the text is in it, else None."""
    names = store.session.context.names
    needles = _octets(text) if scope == "bytes" else _json(text)
    for number in numbers:
        found = None
        try:
            exchange = store.exchange(number)
            if exchange is not None:
                data = _wire(exchange) if scope == "bytes" else as_json(exchange, names).lower()
                if any(needle in data for needle in needles):
                    found = number
        except (CaptureError, IndexError):
            pass  # its bytes are gone
        yield found


def _wire(exchange: Exchange) -> bytes:
    sides = (exchange.request, exchange.response)
    return b"\n".join(side.frame.payload for side in sides if side is not None)


def _octets(text: str) -> list[bytes]:
    """Return the bytes of a text, and those of hexadecimal digits if it may be some."""
    found = [text.encode("utf-8", "surrogatepass")]
    if _HEX.match(text) and (text.lower().startswith("0x") or ":" in text or " " in text):
        plain = text[2:] if text.lower().startswith("0x") else text
        found.append(bytes.fromhex(plain.replace(":", "")))
    return found


def _json(text: str) -> list[bytes]:
    """Return the bytes of a text in JSON, with and without escapes."""
    wanted = text.lower()
    return [
        json.dumps(wanted, ensure_ascii=ascii_)[1:-1].encode("utf-8", "surrogatepass")
        for ascii_ in (False, True)
    ]
