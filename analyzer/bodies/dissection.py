"""Frames to bodies: the only place that turns a `DissectError` into an `Undecoded`.

Stateless: the header of the request suffices for either side.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from kafkascope.analyzer.model import Frame, Side, Undecoded
from kafkascope.dissectors.codec.reader import REFUSALS, Body, Reader, reader
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.keyed import api_name, decode_request, decode_response
from kafkascope.dissectors.layout import Layout, StructWire
from kafkascope.dissectors.misfits import Misfit, lacks_client_id, misfit_of
from kafkascope.dissectors.registry import (
    APIS,
    Decoded,
    RequestHeader,
    layout_of,
    read_request_header,
)

PRODUCE: Final = 0

HEADER: Final = "header"
"""Why a request is not decoded whose header is damaged, see `Undecoded.reason`."""
FRAMING: Final = "framing"
"""The same of bytes that begin no frame, though they follow one."""
OTHER_LAYOUT: Final = "other-layout"
"""The same of a message that is laid out as another version's."""
BROKEN: Final = frozenset({Malformed.word, HEADER, FRAMING, OTHER_LAYOUT})
"""Reasons for which nobody can read a message that is whole."""

_HEAD = struct.Struct(">hhih")
_KEY_VERSION = struct.Struct(">hh")


def header_of_cut(payload: bytes, known: bytes | None) -> RequestHeader | None:
    """Return the request header of a frame that the capture cuts inside it: complete except for the
    end of the client id, which is `known` or shown with an ellipsis; None when too little is
    left."""
    if len(payload) < _HEAD.size:
        return None
    key, version, correlation_id, length = _HEAD.unpack_from(payload)
    if key not in APIS or version not in APIS[key].versions or length < -1:
        return None
    seen = payload[_HEAD.size : _HEAD.size + max(length, 0)]
    client_id: str | None = None
    if known is not None and len(known) == length and known.startswith(seen):
        client_id = known.decode("utf-8", "surrogateescape")
    elif length >= 0:
        client_id = seen.decode("utf-8", "ignore") + ("…" if len(seen) < length else "")
    return RequestHeader(key, version, correlation_id, client_id, [], len(payload))


def cut_of(frame: Frame, side: Side) -> tuple[Undecoded, ...]:
    """Return the missing part of a frame."""
    if not frame.cut:
        return ()
    have = len(frame.payload)
    texts = {
        "gap": "the rest is missing from the capture",
        "end": "the connection or the capture ends inside it",
        "too-large": "larger than the buffer for one frame, or for all incomplete frames",
    }
    return (Undecoded(side, frame.cut, have, frame.size - have, texts[frame.cut]),)


def dissect_request(
    frame: Frame, header: RequestHeader
) -> tuple[Decoded | None, tuple[Undecoded, ...]]:
    """Return the body of a request, and the part that could not be decoded."""
    if frame.cut:
        return None, cut_of(frame, "request")
    try:
        decoded = decode_request(frame.payload, header)
    except DissectError as error:
        return None, (_refused("request", error, frame.payload, header, header.end),)
    return _checked("request", decoded, frame.payload, header)


def dissect_response(
    frame: Frame, header: RequestHeader
) -> tuple[Decoded | None, tuple[Undecoded, ...]]:
    """Return the body of the response to a request, and the part that could not be decoded."""
    if frame.cut:
        return None, cut_of(frame, "response")
    try:
        decoded = decode_response(frame.payload, header.api_key, header.api_version)
    except DissectError as error:
        return None, (_refused("response", error, frame.payload, header, 4),)
    return _checked("response", decoded, frame.payload, header)


def header_misfit(payload: bytes) -> Undecoded | None:
    """Return why the header of a request cannot be read, though its API and version are known; None
    where it can, or where it is nothing like a header."""
    if len(payload) < _HEAD.size - 2:
        return None
    key, version = _KEY_VERSION.unpack_from(payload)
    if key not in APIS or version not in APIS[key].versions:
        return None
    try:
        read_request_header(payload)
    except DissectError as error:
        if lacks_client_id(payload):
            return _without_client_id(payload, f"{APIS[key].name} v{version}")
        misfit = misfit_of(payload, key, version, "request")
        text = f"{APIS[key].name} v{version}: {error if misfit is None else misfit.text()}"
        return Undecoded(
            "request", HEADER, error.offset, len(payload) - error.offset, text, error.path
        )
    return None


def _without_client_id(payload: bytes, what: str) -> Undecoded:
    text = f"{what}: client_id is missing, the body follows the correlation id"
    return Undecoded("request", HEADER, 8, len(payload) - 8, text, "client_id")


def _refused(
    side: Side, error: DissectError, payload: bytes, header: RequestHeader, body_at: int
) -> Undecoded:
    key, version = header.api_key, header.api_version
    if isinstance(error, Truncated | Malformed):
        named = header.client_id and header.client_id.isprintable()
        if side == "request" and not named and lacks_client_id(payload):
            return _without_client_id(payload, f"{api_name(key)} v{version}")
        misfit = misfit_of(payload, key, version, side)
        if misfit is not None:
            return _other_layout(side, misfit, payload)
    offset = min(max(error.offset, body_at), len(payload))
    # Nothing of the frame is missing: its bytes are wrong where they end too soon.
    word = Malformed.word if isinstance(error, Truncated) else error.word
    return Undecoded(side, word, offset, len(payload) - offset, str(error), error.path)


def _other_layout(side: Side, misfit: Misfit, payload: bytes) -> Undecoded:
    return Undecoded(side, OTHER_LAYOUT, 0, len(payload), misfit.text())


def _checked(
    side: Side, decoded: Decoded, payload: bytes, header: RequestHeader
) -> tuple[Decoded | None, tuple[Undecoded, ...]]:
    """Return a message that was decoded, and the bytes after its end, where there are any: then it
    may be another version's, of which its own layout reads only a part."""
    left = len(payload) - decoded.end
    if not left:
        return decoded, ()
    misfit = misfit_of(payload, header.api_key, header.api_version, side)
    # librdkafka's Metadata has 3 bytes too many, which fit an old body after a new header: a
    # header of the other form counts for the stated version alone, and not for a byte at the end.
    mixed = misfit is not None and misfit.header_tags is not None
    own = misfit is not None and header.api_version in misfit.versions and left > 1
    if misfit is not None and (own or not mixed):
        # Brokers ignore what is left over, so that a request means what its own layout reads.
        known = decoded if side == "request" else None
        return known, (_other_layout(side, misfit, payload),)
    text = f"{left} bytes after the end of the message"
    return decoded, (Undecoded(side, "surplus", decoded.end, left, text),)


@cache
def _acks_reader(version: int) -> Reader | None:
    """Return a reader for a Produce request up to its acks: the part that a cut frame still has."""
    if version not in APIS[PRODUCE].versions:
        return None
    whole = layout_of("ProduceRequest", version)
    slots = whole.body.slots
    names = [slot.name for slot in slots]
    wire = StructWire(slots[: names.index("acks") + 1], (), flexible=False, nullable=False)
    return reader(Layout(whole.message, version, wire))


def acks_of(payload: bytes, header: RequestHeader, known: Body | None) -> int | None:
    """Return the acks of a Produce request, of which the body may be known; None when they cannot
    be read."""
    if known is not None:
        acks: int = known["acks"]
        return acks
    read = _acks_reader(header.api_version)
    if read is None:
        return None
    try:
        body, _ = read(payload, header.end)
    except REFUSALS:
        return None
    return body["acks"]  # type: ignore[no-any-return]
