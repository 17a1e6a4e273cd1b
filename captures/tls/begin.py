"""What the first bytes of a direction tell: whether they are TLS, and which side is the client; and
the alerts of TLS by number. Stateless."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Chunk, StreamEvent
from kafkascope.captures.tls.records import ALERT, APPLICATION_DATA, HANDSHAKE, HEADER, LEAST_SEALED

ALERTS: Final[dict[int, str]] = {
    0: "close_notify",
    10: "unexpected_message",
    20: "bad_record_mac",
    21: "decryption_failed",
    22: "record_overflow",
    30: "decompression_failure",
    40: "handshake_failure",
    41: "no_certificate",
    42: "bad_certificate",
    43: "unsupported_certificate",
    44: "certificate_revoked",
    45: "certificate_expired",
    46: "certificate_unknown",
    47: "illegal_parameter",
    48: "unknown_ca",
    49: "access_denied",
    50: "decode_error",
    51: "decrypt_error",
    60: "export_restriction",
    70: "protocol_version",
    71: "insufficient_security",
    80: "internal_error",
    86: "inappropriate_fallback",
    90: "user_canceled",
    100: "no_renegotiation",
    109: "missing_extension",
    110: "unsupported_extension",
    111: "certificate_unobtainable",
    112: "unrecognized_name",
    113: "bad_certificate_status_response",
    114: "bad_certificate_hash_value",
    115: "unknown_psk_identity",
    116: "certificate_required",
    120: "no_application_protocol",
}
"""The IANA registry of TLS alerts."""


CLIENT_HELLO: Final = 1
# Types of handshake messages: the byte after the header of the first record.
SERVER_HELLO: Final = 2


# A ClientHello in the format of SSLv2 (RFC 5246, E.2): length with the highest bit, type,
# version, lengths of suites, session id and challenge. As a size of Kafka it would be negative.
OLD_HELLO: Final = re.compile(
    rb"[\x80-\xff].\x01(?:\x00\x02|\x03[\x00-\x04])..\x00[\x00\x10\x20]\x00[\x10-\x20]", re.DOTALL
)


def looks_like_tls(data: bytes) -> bool:
    """Return whether TLS goes on or begins here, as it does with a packet: application data, an
    encrypted alert, or the hello of a client. As a size of Kafka it would be far too large."""
    head = bytes(data[: HEADER + 1])
    if len(head) <= HEADER or head[1] != 3:
        return False
    size = head[3] << 8 | head[4]
    if head[0] in (ALERT, APPLICATION_DATA):
        return head[2] == 3 and LEAST_SEALED <= size <= LIMITS.tls_record_bytes
    return begins_hello(head) and head[2] <= 4


def begins_hello(data: bytes) -> bool:
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
