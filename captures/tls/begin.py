"""What the first bytes of a direction tell: whether they are TLS, and which side is the client.

Stateless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kafkascope.captures.model import Chunk, StreamEvent
from kafkascope.captures.tls.records import (
    ALERT,
    APPLICATION_DATA,
    HANDSHAKE,
    HEADER,
    LEAST_SEALED,
    MOST_RECORD,
)

CLIENT_HELLO: Final = 1
SERVER_HELLO: Final = 2
"""Types of handshake messages: the byte behind the header of the first record."""


OLD_HELLO: Final = re.compile(
    rb"[\x80-\xff].\x01(?:\x00\x02|\x03[\x00-\x04])..\x00[\x00\x10\x20]\x00[\x10-\x20]", re.DOTALL
)
"""A ClientHello in the format of SSLv2 (RFC 5246, E.2): length with the highest bit, type, version,
lengths of suites, session id and challenge. As a size of Kafka it would be negative."""


def looks_like_tls(data: bytes) -> bool:
    """Return whether TLS goes on or begins here, as it does with a packet: application data, an
    encrypted alert, or the hello of a client. As a size of Kafka it would be far too large."""
    head = bytes(data[: HEADER + 1])
    if len(head) <= HEADER or head[1] != 3:
        return False
    size = head[3] << 8 | head[4]
    if head[0] in (ALERT, APPLICATION_DATA):
        return head[2] == 3 and LEAST_SEALED <= size <= MOST_RECORD
    return begins_hello(head) and head[2] <= 4


def begins_hello(data: bytes) -> bool:
    """Return whether a record with a ClientHello begins here."""
    return len(data) > HEADER and data[0] == HANDSHAKE and data[HEADER] == CLIENT_HELLO


def client_of(events: Iterable[StreamEvent]) -> int | None:
    """Return the direction of the client of a connection that speaks TLS; None where the handshake
    was before these events."""
    first: int | None = None
    for event in events:
        if not isinstance(event, Chunk):
            continue
        head = event.data[: HEADER + 1]
        if len(head) > HEADER and head[0] == HANDSHAKE:
            if head[HEADER] == CLIENT_HELLO:
                return event.direction
            if head[HEADER] == SERVER_HELLO:
                return 1 - event.direction
        if head[:1] in (bytes((APPLICATION_DATA,)), bytes((ALERT,))):
            return None
        first = event.direction if first is None else first
    return first
