"""The formats inside the bytes fields of an exchange, decoded with what the other side or the
connection knows about them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from kafkascope.analyzer.conversation.sasl import is_answer, is_token
from kafkascope.analyzer.model import Exchange, Request, Response
from kafkascope.dissectors.embedded import Around, Embedded, embedded_in, sasl_token
from kafkascope.dissectors.embedded.masking import has_secrets
from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.dissectors.zookeeper.types import is_zookeeper

SASL_AUTHENTICATE: Final = 36


def embedded_of(
    exchange: Exchange, side: Request | Response | None
) -> Iterator[tuple[str, Embedded]]:
    """Yield (path, decoded contents) of one side; secrets are masked."""
    if side is not None and side.decoded is not None:
        yield from embedded_in(side.decoded.layout, side.decoded.body, _around(exchange))


def token_of(exchange: Exchange, side: Request | Response) -> Embedded | None:
    """Return the non-secret parts of a raw SASL token."""
    from_client = isinstance(side, Request)
    return sasl_token(side.frame.payload, exchange.mechanism, from_client=from_client)


def may_hide(exchange: Exchange, side: Request | Response) -> bool:
    """Return whether undecoded bytes of a side may be a secret."""
    if is_zookeeper(exchange.api_key):
        return True  # Passwords, tokens, and what is in nodes.
    api = APIS.get(-1 if exchange.api_key is None else exchange.api_key)
    if api is None:
        return is_token(side.frame.payload) or is_answer(side.frame.payload)
    if side.decoded is not None:
        # Surplus after a whole message.
        return api.key == SASL_AUTHENTICATE
    name = f"{api.name}{'Request' if isinstance(side, Request) else 'Response'}"
    return has_secrets(layout_of(name, api.versions.high))


def _around(exchange: Exchange) -> Around:
    asked = None if exchange.request is None else exchange.request.body
    nested = None
    if exchange.api == "Envelope" and asked is not None and len(asked["request_data"]) >= 4:
        key, version = struct.unpack_from(">hh", asked["request_data"])
        nested = (key, version)
    protocol = (asked or {}).get("protocol_type") or ""
    about = exchange.zookeeper
    path = "" if about is None or about.path is None else about.path
    return Around(mechanism=exchange.mechanism, protocol_type=protocol, request=nested, path=path)
