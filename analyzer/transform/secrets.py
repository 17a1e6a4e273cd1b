"""Frames on their way out: without their secrets, and with what a policy makes of all else.

Which fields are secret is in the declarations (`secret=True`). Bytes that cannot be read where a
secret may be are hidden as a whole: nothing leaks for our ignorance.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Final

from kafkascope.analyzer.model import Side
from kafkascope.dissectors.embedded.internal import CLUSTER_METADATA_ID
from kafkascope.dissectors.embedded.masking import Policy, has_secrets, redacted
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import decode
from kafkascope.dissectors.records.redaction import masked_body
from kafkascope.dissectors.registry import (
    APIS,
    layout_of,
    read_layout,
    read_request_header,
    request_header_version,
    response_header_version,
    write_layout,
)
from kafkascope.dissectors.zookeeper.frames import HEAD, REPLY_HEAD
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT, is_zookeeper

HIDDEN: Final = b"*"
SIZE_BYTES: Final = 4
# Of a correlation id.
ID_BYTES: Final = 4
# Bytes of a request's header up to its client id.
FIXED_HEAD: Final = 10
METADATA_TOPIC: Final = b"__cluster_metadata"
METADATA_READERS: Final = frozenset({1, 59})
"""Keys of the APIs by which the metadata log is read: Fetch and FetchSnapshot."""
# Bytes at the start of a response, size and all, that name the metadata log if it is in it: nobody
# fetches it together with other topics.
TOLD_BY: Final = 64


@cache
def _secret(side: Side, key: int, version: int) -> bool:
    api = APIS.get(key)
    if api is None:
        return is_zookeeper(key)
    known = version if version in api.versions else api.versions.high
    return has_secrets(layout_of(f"{api.name}{side.capitalize()}", known))


def in_request(key: int, version: int) -> bool:
    """Whether a request may carry a secret."""
    return _secret("request", key, version)


def in_response(key: int, version: int) -> bool:
    """Whether a response may carry a secret."""
    return _secret("response", key, version)


def reads_metadata_log(key: int) -> bool:
    """Whether responses of an API may contain the metadata log; `TOLD_BY` bytes decide."""
    return key in METADATA_READERS


def of_metadata_log(data: bytes) -> bool:
    """Whether a response to who reads it, or its beginning, names the metadata log."""
    return METADATA_TOPIC in data or CLUSTER_METADATA_ID in data


def may_hold(data: bytes, side: Side, key: int, version: int) -> bool:
    """Whether there may be a secret in a frame, or in the payload or the beginning of one."""
    if _secret(side, key, version):
        return True
    return side == "response" and key in METADATA_READERS and of_metadata_log(data)


def hidden_token(frame: bytes) -> bytes:
    """A raw SASL token, size and all."""
    return frame[:4] + HIDDEN * (len(frame) - 4)


def redacted_payload(
    payload: bytes, side: Side, key: int, version: int, policy: Policy | None = None
) -> bytes | None:
    """Return the payload of a frame as it may leave; None when it cannot be decoded. Without a
    policy only secrets are hidden, and what cannot hold one is not looked into."""
    if policy is None and not may_hold(payload, side, key, version):
        return payload
    try:
        found = decode(payload, key, version, side)
        rest = HIDDEN * (len(payload) - found.end)
        if policy is None:
            header, body = found.header, masked_body(found.layout, found.body)
        else:
            header = redacted(found.header_layout, found.header, policy)
            body = redacted(found.layout, found.body, policy)
        if (header, body) == (found.header, found.body):
            return payload[: found.end] + rest  # odd encodings stay as they were
        written = found.with_body(payload, body, rest)
        if header != found.header:
            head = write_layout(found.header_layout, header)
            written = head + written[found.body_at :]
    except DissectError:
        return None
    return written


def _unread_payload(
    payload: bytes, side: Side, key: int, version: int, policy: Policy | None = None
) -> bytes | None:
    """Return the header of a payload of which no more can be read, asterisks after it. With a
    policy, None when not even the header of a request can be."""
    if is_zookeeper(key):
        kept = 0 if key == BASE + CONNECT else REPLY_HEAD if side == "response" else HEAD
    elif side == "response":
        kept = ID_BYTES + response_header_version(key, version)
    else:
        if policy is not None:
            return _redacted_header(payload, policy)
        try:
            kept = read_request_header(payload).end
        except DissectError:
            kept = FIXED_HEAD
    return payload[:kept] + HIDDEN * (len(payload) - kept)


def _redacted_header(payload: bytes, policy: Policy) -> bytes | None:
    """Return the redacted header of a request, asterisks after it; None when it cannot be
    read."""
    try:
        head = read_request_header(payload)
        layout = layout_of("RequestHeader", request_header_version(*head[:2]))
        header, end = read_layout(layout, payload)
        written = write_layout(layout, redacted(layout, header, policy))
    except DissectError:
        return None
    return written + HIDDEN * (len(payload) - end)


def any_payload(
    payload: bytes, side: Side, key: int, version: int, policy: Policy | None = None
) -> bytes | None:
    """Return the payload of a frame as it may leave, whether it can be decoded or not. With a
    policy, None when not even its header can be."""
    found = redacted_payload(payload, side, key, version, policy)
    # The empty payload of a ping's answer is one, too.
    return _unread_payload(payload, side, key, version, policy) if found is None else found


def _masked_frame(side: Side, frame: bytes, key: int, version: int) -> bytes:
    """Return a whole frame, size and all, or the beginning of one, as it may be recorded. Its size
    changes only where what is secret was encoded in an odd way or compressed."""
    if not may_hold(frame, side, key, version):
        return frame
    payload = frame[SIZE_BYTES:]
    hidden = any_payload(payload, side, key, version) or b""
    size = len(hidden).to_bytes(SIZE_BYTES, "big")
    return (frame[:SIZE_BYTES] if len(hidden) == len(payload) else size) + hidden


masked_request: Final = partial(_masked_frame, "request")
masked_response: Final = partial(_masked_frame, "response")
