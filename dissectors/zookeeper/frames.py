"""Decodes the payloads of ZooKeeper's frames: header and record, or the handshake.

A payload is what follows the int32 size of a frame. What a type needs less than is there, its
server ignores; that is left over as it is in Kafka's messages.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import Truncated, UnknownApi
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import Decoded, RequestHeader, layout_of, read_layout
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT, EVENT, SASL, TYPES

HEAD: Final = 8
REPLY_HEAD: Final = 16
# Bytes of the handshake of a client before its password; those of the server are 20.
HANDSHAKE: Final = 28
ANSWER_HANDSHAKE: Final = 20

_HEAD = struct.Struct(">ii")
_REPLY = struct.Struct(">iqi")
_INT = struct.Struct(">i")

NOTHING: Final = "zk.Nothing"
MULTI_RESPONSE: Final = "zk.MultiResponse"


@cache
def _layout(name: str, version: int = 0) -> Layout:
    return layout_of(name, version)


def read_head(payload: bytes, at: int = 0) -> RequestHeader:
    """Read the header of a request, `Truncated` where it is too short. Its API key is that of the
    type, its correlation id the xid."""
    if len(payload) < at + HEAD:
        raise Truncated("a request header has 8 bytes", offset=at)
    xid, kind = _HEAD.unpack_from(payload, at)
    key = BASE + kind if -(1 << 15) <= kind < 1 << 15 else BASE + (1 << 15)
    return RequestHeader(key, 0, xid, None, [], at + HEAD)


CONNECT_HEADER: Final = RequestHeader(BASE + CONNECT, 0, 0, None, [], 0)
EVENT_HEADER: Final = RequestHeader(BASE + EVENT, 0, -1, None, [], 0)
"""What stands for the header of a handshake, and of what a watch event would answer."""


def header_by(key: int, payload: bytes) -> RequestHeader:
    """Return the header of a request of which the key is known; `Truncated` where it is not
    there."""
    if key == CONNECT_HEADER.api_key:
        return CONNECT_HEADER
    return EVENT_HEADER if key == EVENT_HEADER.api_key else read_head(payload)


def is_handshake(payload: bytes) -> bool:
    """Return whether a payload is the first one of a client: a session, or a wish for one."""
    if len(payload) < HANDSHAKE:
        return False
    protocol, seen, timeout, _, size = struct.unpack_from(">iqiqi", payload)
    rest = len(payload) - HANDSHAKE - max(size, 0)
    # Timeouts are sent as they were asked for: a month is a mistake, but not another protocol.
    return (
        0 <= protocol < 256 and seen >= 0 and timeout >= 0 and -1 <= size <= 64 and rest in (0, 1)
    )


def decode_request(payload: bytes, head: RequestHeader) -> Decoded:
    """Decode the payload of a request; `DissectError` when that fails."""
    kind = head.api_key - BASE
    if kind == CONNECT:
        return _handshake("zk.ConnectRequest", payload, HANDSHAKE)
    found = TYPES.get(kind)
    if found is None and len(payload) > HEAD:
        raise UnknownApi(f"type {kind} of a request is not known", offset=HEAD)
    name = NOTHING if found is None else found.request
    layout = _layout(name)
    xid, number = _HEAD.unpack_from(payload)
    body, end = read_layout(layout, payload, HEAD)
    header: Body = {"xid": xid, "type": number}
    return Decoded(name, 0, header, body, HEAD, end, "", layout, _layout("zk.RequestHeader"))


def decode_response(payload: bytes, key: int) -> Decoded:
    """Decode the payload of an answer to a request of a key, or of a watch event; `DissectError`
    when that fails."""
    kind = key - BASE
    if kind == CONNECT:
        return _handshake("zk.ConnectResponse", payload, ANSWER_HANDSHAKE)
    header, layouts = _layout("zk.ReplyHeader"), TYPES.get(kind)
    if len(payload) < REPLY_HEAD:
        raise Truncated("the header of an answer has 16 bytes", offset=0)
    xid, zxid, err = _REPLY.unpack_from(payload)
    name = NOTHING if layouts is None else layouts.response
    if len(payload) == REPLY_HEAD:
        # Errors have no record after them, nor has the answer to an empty multi.
        bare = bool(err) or name == MULTI_RESPONSE
    else:
        bare = bool(err) and kind != SASL
    if bare:
        name = NOTHING
    layout = _layout(name)
    body, end = read_layout(layout, payload, REPLY_HEAD)
    return Decoded(
        name, 0, {"xid": xid, "zxid": zxid, "err": err}, body, REPLY_HEAD, end, "", layout, header
    )


def _handshake(name: str, payload: bytes, fixed: int) -> Decoded:
    """Decode a handshake; a byte after the password is there since 3.4."""
    if len(payload) < fixed:
        raise Truncated(f"a handshake has {fixed} bytes at least", offset=0)
    (size,) = _INT.unpack_from(payload, fixed - 4)
    layout = _layout(name, int(len(payload) > fixed + max(size, 0)))
    body, end = read_layout(layout, payload, 0)
    return Decoded(name, layout.version, {}, body, 0, end, "", layout, _layout(NOTHING))
