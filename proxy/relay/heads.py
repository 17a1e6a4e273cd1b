"""Reads the first bytes of requests, as far as forwarding needs them. Bodies are not decoded.

The versions of headers are the registry's; here is the walk over bytes that may not all have come.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from kafkascope.captures.proxy_protocol import V2
from kafkascope.dissectors.registry import APIS, layout_of, request_header_version

Bytes: TypeAlias = bytes | bytearray | memoryview

FIXED_BYTES: Final = 14
"""Size, key, version, correlation id and the client id's length."""
MAX_HEAD: Final = 128 * 1024
"""Of a Produce, until its acks: a client id and a transactional id have 32 KB at most."""
PRODUCE: Final = 0

_FIXED = struct.Struct(">ihhih")
_SHORT = struct.Struct(">h")


class Head(NamedTuple):
    """The header of a request, and whether it has a response."""

    size: int
    """As its size field says: bytes that follow the field."""
    key: int
    version: int
    correlation_id: int
    client_id: str | None
    answered: bool
    """False for a Produce with acks=0."""


class _Short(Exception):
    """More bytes are needed."""


def read_head(data: Bytes, at: int, end: int) -> Head | int:
    """Read the head of the request whose size field is at `at`, or say how many of its bytes are
    needed.

    `ValueError` when the bytes are no request.
    """
    have = end - at
    if have < FIXED_BYTES:
        if have >= 4:
            size = int.from_bytes(data[at : at + 4], "big", signed=True)
            if size < FIXED_BYTES - 4:
                return _short_request(data, at, end, size)
        return FIXED_BYTES
    size, key, version, correlation_id, length = _FIXED.unpack_from(data, at)
    if size < FIXED_BYTES - 4:
        return _short_request(data, at, end, size)
    if length < -1 or length > size - 10:
        raise ValueError(f"a client id of {length} bytes")
    body = at + FIXED_BYTES + max(length, 0)
    if body > end:
        return int(body - at)
    client_id = str(data[at + FIXED_BYTES : body], "utf-8", "replace") if length >= 0 else None
    answered = True
    if key == PRODUCE:
        try:
            answered = _acks(data, body, end, version) != 0
        except _Short:
            most = min(size + 4, MAX_HEAD)
            if have < most:
                return int(min(most, max(2 * have, 64)))
    return Head(size, key, version, correlation_id, client_id, answered)


def _short_request(data: Bytes, at: int, end: int, size: int) -> Head | int:
    """Read a ControlledShutdown v0, which has no client id; no other request is so short."""
    if size < 8:
        raise ValueError(f"a size of {size}")
    if end - at < 12:
        return 12
    _, key, version, correlation_id = struct.unpack_from(">ihhi", data, at)
    if request_header_version(key, version) != 0:
        raise ValueError("no room for a client id")
    return Head(size, key, version, correlation_id, None, True)


@lru_cache(256)
def _produce_form(version: int) -> tuple[bool, bool]:
    """Whether a Produce is flexible, and whether a transactional id stands before its acks; for
    versions that are not known as in the nearest one that is."""
    known = APIS[PRODUCE].versions
    layout = layout_of("ProduceRequest", min(max(version, known.low), known.high))
    return layout.flexible, layout.has("transactional_id")


def _acks(data: Bytes, at: int, end: int, version: int) -> int:
    """The acks of a Produce whose body, or whose header's tags, are at `at`."""
    flexible, transactional = _produce_form(version)
    if flexible:
        count, at = _uvarint(data, at, end)
        for _ in range(count):
            _, at = _uvarint(data, at, end)
            size, at = _uvarint(data, at, end)
            at += size
        length, at = _uvarint(data, at, end)
        at += max(length - 1, 0)
    elif transactional:
        length = _int16(data, at, end)
        at += 2 + max(length, 0)
    return _int16(data, at, end)


def _int16(data: Bytes, at: int, end: int) -> int:
    if at + 2 > end:
        raise _Short
    value: int = _SHORT.unpack_from(data, at)[0]
    return value


def _uvarint(data: Bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= end or shift > 28:
            raise _Short
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def sane(view: memoryview, at: int) -> bool:
    """Whether a size at the start of a connection is plausible; those of TLS, HTTP and garbage are
    not."""
    first = view[at]
    if first in (0x14, 0x15, 0x16, 0x17) and view[at + 1] == 3:
        return False
    if first == V2[0] and view[at : at + 4] == V2[:4]:
        return False  # 218 MB, or a header of the PROXY protocol
    return first < 0x20
