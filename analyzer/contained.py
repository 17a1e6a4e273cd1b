"""The formats inside the bytes fields of an exchange: what one side of it, or its connection,
knows about the other."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from analyzer.model import Exchange, Request, Response
from dissectors.embedded import Around, Embedded, embedded_in


def embedded_of(
    exchange: Exchange, side: Request | Response | None
) -> Iterator[tuple[str, Embedded]]:
    """(path, what is inside) of one side; secrets are masked."""
    if side is not None and side.decoded is not None:
        yield from embedded_in(side.decoded.layout, side.decoded.body, _around(exchange))


def _around(exchange: Exchange) -> Around:
    asked = None if exchange.request is None else exchange.request.body
    nested = None
    if exchange.api == "Envelope" and asked is not None and len(asked["request_data"]) >= 4:
        key, version = struct.unpack_from(">hh", asked["request_data"])
        nested = (key, version)
    protocol = (asked or {}).get("protocol_type") or ""
    return Around(mechanism=exchange.mechanism, protocol_type=protocol, request=nested)
