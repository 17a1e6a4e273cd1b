"""What a message that its own layout does not fit is instead: another version's, or one without a
part of its header. Asked of bytes that were refused, never of good ones."""

from __future__ import annotations

import struct
from typing import Literal, NamedTuple

from kafkascope.dissectors.codec.reader import REFUSALS, reader
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.registry import (
    APIS,
    Api,
    has_unknown_tags,
    layout_of,
    request_header_version,
    response_header_version,
)

Side = Literal["request", "response"]


_HEAD = struct.Struct(">hhi")
_SHORT = struct.Struct(">h")


class Misfit(NamedTuple):
    """A layout that fits bytes to the last one."""

    versions: tuple[int, ...]
    """Versions with this layout, the nearest to the stated one first."""
    header_tags: bool | None = None
    """Whether the header has tagged fields where the stated version has none; False: it lacks
    them; None: the header is that of the stated version."""

    def text(self) -> str:
        """Return the layout in words: `the layout of v0`."""
        listed = ", ".join(f"v{version}" for version in sorted(self.versions)[:6])
        layout = f"the layout of {listed}"
        if self.header_tags is None:
            return layout
        return f"{layout}, after a header {'with' if self.header_tags else 'without'} tagged fields"


def misfit_of(payload: bytes, key: int, version: int, side: Side) -> Misfit | None:
    """Return the other layout of the same API and side that a payload has to its last byte; None
    where there is none."""
    api = APIS.get(key)
    if api is None or len(payload) > LIMITS.retried_bytes:
        return None
    if version not in api.versions:
        return None
    others = sorted(
        range(api.versions.low, api.versions.high + 1), key=lambda each: (abs(each - version), each)
    )
    own = {other: _kind(key, other, side) for other in others}
    found = [
        other
        for other in others
        if other != version and _fits(api, side, other, payload, own[other])
    ]
    if found or len(payload) > LIMITS.retried_header_bytes:
        return Misfit(tuple(found)) if found else None
    # A header of the other form is a mistake of its own: the tags of KIP-482 left out, or added.
    for tags in (False, True):
        kind = int(tags) + (side == "request")
        found = [
            other
            for other in others
            if own[other] not in (0 if side == "request" else -1, kind)
            and _fits(api, side, other, payload, kind)
        ]
        if found:
            return Misfit(tuple(found), tags)
    return None


def lacks_client_id(payload: bytes) -> bool:
    """Return whether a request is whole but for the client id: its body begins right after the
    correlation id."""
    if not _HEAD.size <= len(payload) <= LIMITS.retried_bytes:
        return False
    key, version, _ = _HEAD.unpack_from(payload)
    api = APIS.get(key)
    if api is None or version not in api.versions:
        return False
    flexible = request_header_version(key, version) == 2
    starts = (9, 8) if flexible and payload[8:9] == b"\0" else (8,)
    return any(_reads(api, "request", version, payload, at) for at in starts)


def _kind(key: int, version: int, side: Side) -> int:
    if side == "request":
        return request_header_version(key, version)
    return response_header_version(key, version)


def _body_at(payload: bytes, kind: int, side: Side) -> int | None:
    """Return where the body begins after a header of a kind; None where the header is not that."""
    tags = kind == 1 + (side == "request")
    at = 4
    if side == "request":
        at = 8
        if kind:
            if len(payload) < 10:
                return None
            (length,) = _SHORT.unpack_from(payload, 8)
            at = 10 + max(length, 0)
    if not tags:
        return at
    return at + 1 if payload[at : at + 1] == b"\0" else None


def _fits(api: Api, side: Side, version: int, payload: bytes, kind: int) -> bool:
    """Return whether a payload is a header of a kind and a body of a version, and no more."""
    at = _body_at(payload, kind, side)
    return at is not None and at < len(payload) and _reads(api, side, version, payload, at)


def _reads(api: Api, side: Side, version: int, payload: bytes, at: int) -> bool:
    name = f"{api.name}{'Request' if side == 'request' else 'Response'}"
    try:
        body, end = reader(layout_of(name, version))(payload, at)
    except REFUSALS:
        return False
    return end == len(payload) and not has_unknown_tags(body)
