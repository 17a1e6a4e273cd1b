"""Headings of columns: the readable form of their names.

A column has one name in JSON, tables, filters and the library. People read it as `heading` spells
it, so that a heading cannot drift from its name.
"""

from __future__ import annotations

from typing import Final

HEADINGS: Final = {
    "client_id": "Client",
    "client_address": "Address",
    "broker_address": "Broker",
    "number": "No.",
    **{
        f"{side}_transfer_{part}": f"{side.capitalize()} {part}"
        for side in ("request", "response")
        for part in ("p50", "p95", "p99", "max")
    },
}
"""Names whose heading is shorter than their words; `No.` is Wireshark's."""
WORDS: Final = {
    **{word: word.upper() for word in ("alpn", "api", "id", "rtt", "sni", "tls")},
    "apis": "APIs",
    "ids": "IDs",
    "p50": "p50",
    "p95": "p95",
    "p99": "p99",
    "zxid": "zxid",
}
"""Words that have a spelling of their own, wherever they stand."""


def heading(name: str) -> str:
    """Return the heading of a column: `request_bytes` -> `Request bytes`."""
    known = HEADINGS.get(name)
    if known is not None:
        return known
    first, *others = name.replace(".", "_").split("_")
    words = [WORDS.get(first) or first[:1].upper() + first[1:]]
    return " ".join([*words, *(WORDS.get(word, word) for word in others)])
