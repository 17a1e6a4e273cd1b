"""Requests and responses inside Envelope (KIP-590), principals, addresses."""

from __future__ import annotations

import ipaddress
import struct

from kafkascope.dissectors.embedded.masking import masked
from kafkascope.dissectors.embedded.model import Embedded
from kafkascope.dissectors.errors import Truncated
from kafkascope.dissectors.layout import Layout, resolve
from kafkascope.dissectors.registry import (
    Decoded,
    decode_request,
    decode_response,
    message,
    read_layout,
)


def request(value: bytes) -> Embedded:
    """Decode header and body of the nested request; its versions follow from its own header."""
    found = decode_request(value)
    note = found.note
    if found.end < len(value):
        note = f"{len(value) - found.end} bytes left over"
    body = {"header": found.header, "body": masked(found.layout, found.body)}
    return Embedded(f"{found.message} v{found.version}", body, note, _layouts(found))


def response(value: bytes, asked: tuple[int, int] | None) -> Embedded:
    """Decode header and body of the nested response; only the request tells its API."""
    if asked is None:
        return Embedded("response", {"bytes": len(value)}, "the request inside is not known")
    found = decode_response(value, *asked)
    body = {"header": found.header, "body": masked(found.layout, found.body)}
    note = found.note
    if found.end < len(value):
        note = f"{len(value) - found.end} bytes left over"
    return Embedded(f"{found.message} v{found.version}", body, note, _layouts(found))


def _layouts(found: Decoded) -> dict[str, Layout]:
    return {"header": found.header_layout, "body": found.layout}


def principal(value: bytes) -> Embedded:
    """Decode an int16 version and DefaultPrincipalData."""
    if len(value) < 2:
        raise Truncated("the version is missing")
    (stated,) = struct.unpack_from(">h", value)
    declared = message("DefaultPrincipalData")
    version = min(max(stated, declared.versions.low), declared.versions.high)
    body, _ = read_layout(resolve(declared, version), value, 2)
    note = "" if stated == version else f"version {stated}, read as {version}"
    return Embedded("DefaultPrincipalData", body, note)


def address(value: bytes) -> Embedded | None:
    """Return the 4 or 16 bytes of an IP address."""
    if len(value) not in (4, 16):
        return None
    return Embedded("address", str(ipaddress.ip_address(value)))
