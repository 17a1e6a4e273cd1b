"""The formats inside the bytes fields of an exchange, decoded with what the other side or the
connection knows about them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kafkascope.analyzer.conversation.detect import FRAMING_LOST, NO_HEADER
from kafkascope.analyzer.conversation.sasl import is_answer, is_token
from kafkascope.analyzer.model import Exchange, Request, Response
from kafkascope.dissectors.embedded import Around, Embedded, embedded_in, sasl_token
from kafkascope.dissectors.embedded.masking import has_secrets
from kafkascope.dissectors.registry import APIS, layout_of
from kafkascope.dissectors.zookeeper.types import is_zookeeper


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
        payload = side.frame.payload
        if exchange.reason.startswith(FRAMING_LOST):
            return True  # of whatever message these bytes are
        api = APIS.get(int.from_bytes(payload[:2], "big")) if len(payload) >= 8 else None
        if api is None or not exchange.reason.startswith(NO_HEADER):
            return is_token(payload) or is_answer(payload)
    # The same for surplus after a whole message: it may be of the message that a secret is in.
    name = f"{api.name}{'Request' if isinstance(side, Request) else 'Response'}"
    return has_secrets(layout_of(name, api.versions.high))


def _around(exchange: Exchange) -> Around:
    request = None if exchange.request is None else exchange.request.body
    nested = None
    if exchange.api == "Envelope" and request is not None and len(request["request_data"]) >= 4:
        key, version = struct.unpack_from(">hh", request["request_data"])
        nested = (key, version)
    protocol = (request or {}).get("protocol_type") or ""
    about = exchange.zookeeper
    path = "" if about is None or about.path is None else about.path
    return Around(mechanism=exchange.mechanism, protocol_type=protocol, request=nested, path=path)
