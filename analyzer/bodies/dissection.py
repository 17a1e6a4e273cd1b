"""Frames to bodies: the only place that turns a `DissectError` into an `Undecoded`.

Stateless: the header of the request suffices for either side.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

from kafkascope.analyzer.model import Frame, Side, Undecoded
from kafkascope.dissectors.codec.reader import REFUSALS, Body, Reader, reader
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.keyed import decode_request, decode_response
from kafkascope.dissectors.layout import Layout, StructWire
from kafkascope.dissectors.registry import APIS, Decoded, RequestHeader, layout_of

PRODUCE: Final = 0

_HEAD = struct.Struct(">hhih")


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
        return None, (_undecoded("request", error, frame.payload, header.end),)
    if decoded.end == len(frame.payload):
        return decoded, ()
    return decoded, _surplus("request", decoded, frame.payload)


def dissect_response(
    frame: Frame, header: RequestHeader
) -> tuple[Decoded | None, tuple[Undecoded, ...]]:
    """Return the body of the response to a request, and the part that could not be decoded."""
    if frame.cut:
        return None, cut_of(frame, "response")
    try:
        decoded = decode_response(frame.payload, header.api_key, header.api_version)
    except DissectError as error:
        return None, (_undecoded("response", error, frame.payload, 4),)
    if decoded.end == len(frame.payload):
        return decoded, ()
    return decoded, _surplus("response", decoded, frame.payload)


def _undecoded(side: Side, error: DissectError, payload: bytes, body_at: int) -> Undecoded:
    offset = min(max(error.offset, body_at), len(payload))
    return Undecoded(side, error.word, offset, len(payload) - offset, str(error), error.path)


def _surplus(side: Side, decoded: Decoded, payload: bytes) -> tuple[Undecoded, ...]:
    left = len(payload) - decoded.end
    text = f"{left} bytes after the end of the message"
    return (Undecoded(side, "surplus", decoded.end, left, text),)


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
