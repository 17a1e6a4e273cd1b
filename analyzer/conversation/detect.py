"""What a connection speaks, by its first bytes: Kafka on any port, or something else in a sentence.

Stateless. A request that passes `plausible.judge_request` and, where it is whole, decodes as well,
is Kafka: ZooKeeper's first packet, for one, has a header that could be a Produce of version 0.
"""

from __future__ import annotations

import struct
from typing import Final, Literal

from kafkascope.analyzer.conversation import plausible, sasl
from kafkascope.analyzer.conversation.limits import LIMITS
from kafkascope.captures import signatures
from kafkascope.captures.signatures import TLS, protocol_of, sign_of
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.misfits import lacks_client_id
from kafkascope.dissectors.registry import (
    API_VERSIONS,
    APIS,
    RequestHeader,
    decode_request,
    read_request_header,
)

Look = Literal["kafka", "token", "other", "short"]

PRODUCE: Final = 0

KAFKA_PORTS: Final = frozenset({9092, 9093, 9094, 9095})
"""Ports on which Kafka is expected: nonsense there is worth a row. Content decides, not these."""

# A first request up to this size has to be seen whole before an unknown port is believed.
WHOLE_FIRST: Final = 64 * 1024


_SIZE = struct.Struct(">i")
_SHORT = struct.Struct(">h")
_START = struct.Struct(">ihh")
_HEAD = struct.Struct(">ihhih")
_SENTENCES: Final = {
    TLS: f"{TLS}: pass its key log (--keylog; `kafkascope tls-keys` shows how to obtain one), or "
    "capture through `kafkascope proxy`"
}
"""Sentences about protocols of which there is more to say than that they are not Kafka."""


UNKNOWN: Final = "not a Kafka request: unknown protocol"
GIVEN_UP: Final = "protocol not detected: too many idle connections at once"
"""Reason for connections that were silent when the memory was needed."""

NO_HEADER: Final = "no valid request header"
HEADER_MISSING: Final = "the request header is missing from the capture"
FRAMING_LOST: Final = "framing lost"
"""Reasons of unreadable frames on connections that are Kafka's."""

MASKED: Final = b"****"
"""In place of a size that a recording does not show."""


def describe(data: plausible.Data, side: signatures.Side = "") -> str:
    """Say what bytes that are not Kafka look like; `side`: who sent them, where that is known."""
    protocol = protocol_of(data, side)
    if protocol:
        return _SENTENCES.get(protocol, f"{protocol}, not Kafka")
    head = bytes(data[:16])
    if len(head) >= 4:
        (size,) = _SIZE.unpack_from(head)
        if size < 0:
            return f"not a Kafka request: frame size {size}"
        if size == 0:
            return "not a Kafka request: empty frame"
        if size > LIMITS.frame_bytes and head[:4] != MASKED:
            return f"not a Kafka request: frame size {size} bytes"
    return UNKNOWN


def is_other(reason: str) -> bool:
    """Return whether the reason of an opaque row says that its whole connection is not Kafka's."""
    return not reason.startswith((NO_HEADER, HEADER_MISSING, FRAMING_LOST))


def is_tls(data: plausible.Data) -> bool:
    return protocol_of(data) == TLS


def stand_in(data: plausible.Data) -> bytes:
    """Return bytes that may replace the first ones without their content: with asterisks
    after them `describe` calls them the same kind of thing, and `look` takes them for Kafka no
    more than the original."""
    sign = sign_of(data)
    if sign or len(data) < 4:
        return sign
    (size,) = _SIZE.unpack_from(data)
    if size < 0:
        return _SIZE.pack(-1)
    # Four asterisks are a size beyond all limits; after a size they would be a hidden token.
    return (
        b"" if size > LIMITS.frame_bytes else (_SIZE.pack(min(size, ord("*"))) + b"-")[: len(data)]
    )


def look(data: plausible.Data, kafka_port: bool, *, first: bool = True) -> Look:
    """Judge what the side that speaks first says with its first bytes. Without `first` they are any
    bytes that look like a request: then the body has to be one, too."""
    verdict = plausible.judge_request(data, 0, known_versions=not kafka_port)
    if verdict is plausible.Plausibility.MORE:
        return "short"
    if verdict is plausible.Plausibility.NO:
        if kafka_port and (is_token(data) or _has_form(data)):
            return "token"
        return _other_protocol_or_undecided(data, kafka_port) if first else "other"
    if kafka_port:
        return "kafka"
    return _decodes(data, first)


def look_cut(data: plausible.Data, gap: int, kafka_port: bool) -> bool:
    """Return whether a request starts here of which the next `gap` bytes are missing. On ports of
    which nothing is known a client id is wanted, and a size that agrees with the packet's."""
    if not plausible.cut_request(data, 0, known_versions=not kafka_port):
        return False
    size, _, _, _, named = _HEAD.unpack_from(data)
    return kafka_port or (named > 0 and 4 + size == len(data) + gap)


def _other_protocol_or_undecided(data: plausible.Data, kafka_port: bool) -> Look:
    """Judge a request whose header looks wrong: a client id may be any bytes, and a client may
    forget it. Then the whole request has to decode, or nothing but Kafka has such a head."""
    if len(data) < 8:
        return "other"
    size, key, version = _START.unpack_from(data)
    if not 8 <= size <= LIMITS.frame_bytes or key not in APIS or version not in APIS[key].versions:
        return "other"
    payload = bytes(data[4 : 4 + size])
    if size > WHOLE_FIRST:
        return _implausible_part(data, payload) if kafka_port else "other"
    if len(payload) < size:
        return "short"
    try:
        decoded = decode_request(payload)
    except DissectError:
        return "kafka" if _is_malformed(payload, None, kafka_port) else "other"
    # ZooKeeper's first packet looks like a Produce, and so do responses: these name no client.
    named = kafka_port or key != PRODUCE or bool(decoded.header.get("client_id"))
    if decoded.end == size and named:
        return "kafka"
    return "kafka" if _is_malformed(payload, None, kafka_port) else "other"


def _implausible_part(data: plausible.Data, payload: bytes) -> Look:
    """Judge the beginning of a request that is too large to wait for, by its header."""
    if len(data) < _HEAD.size:
        return "short"
    try:
        header = read_request_header(payload)
    except DissectError:
        return "other"
    return "kafka" if header.client_id and _is_low(payload) else "other"


def _is_low(payload: bytes) -> bool:
    """Return whether the correlation id is one that a client begins with."""
    correlation_id: int = _SIZE.unpack_from(payload, 4)[0]
    return -1 <= correlation_id <= LIMITS.first_correlation_id


def _is_malformed(payload: bytes, header: RequestHeader | None, kafka_port: bool) -> bool:
    """Return whether a whole frame that cannot be decoded is a request of Kafka all the same: API,
    version and correlation id make sense, and so does the client id, or where it is missing."""
    (key,) = _SHORT.unpack_from(payload)
    named = header is not None and bool(header.client_id)
    if not _is_low(payload) or (key == PRODUCE and not named):
        return False  # ZooKeeper's first packet is a Produce without a client id
    if kafka_port or key == API_VERSIONS or lacks_client_id(payload):
        return True
    return header is not None and header.client_id != ""


def _decodes(data: plausible.Data, first: bool) -> Look:
    size: int = _SIZE.unpack_from(data)[0]
    payload = bytes(data[4 : 4 + size])
    if len(payload) < size <= WHOLE_FIRST:
        return "short"
    try:
        header = read_request_header(payload)
    except DissectError:
        whole = first and len(payload) == size
        return "kafka" if whole and _is_malformed(payload, None, False) else "other"
    named = bool(header.client_id)
    if len(payload) < size:
        return "kafka" if named else "other"
    try:
        decoded = decode_request(payload)
    except DissectError:
        # A newer client may ask for a version of ApiVersions that we do not know.
        if header.api_key == API_VERSIONS and named:
            return "kafka"
        return "kafka" if first and _is_malformed(payload, header, False) else "other"
    # Answers look like a Produce of a version that is their correlation id: it has to fit whole.
    named = named and header.api_key != PRODUCE
    return "kafka" if decoded.end == len(payload) or named else "other"


def _has_form(data: plausible.Data) -> bool:
    """Return whether the first frame is a token by its form, as in a capture that lacks the
    handshake."""
    if len(data) < 8:
        return False
    size: int = _SIZE.unpack_from(data)[0]
    return 0 < size <= LIMITS.token_bytes and sasl.is_token(bytes(data[4 : 4 + size]))


def is_token(data: plausible.Data) -> bool:
    """Return whether a raw GSSAPI token starts here, as 0.9 clients send it without any
    handshake."""
    if len(data) < 6 or data[4] != 0x60:
        return False
    size: int = _SIZE.unpack_from(data)[0]
    return 0 < size <= LIMITS.token_bytes
