"""Reading and writing of one message on its own: a frame with its size, header and body, or a body
alone.

Traffic goes through conversation.py, which knows the kind of each frame; here it has to be derived
from the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from kafkascope.dissectors.codec.jsonform import body_from_json
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.errors import DissectError, Malformed, UnknownVersion
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.registry import (
    api_named,
    decode_request,
    decode_response,
    layout_of,
    message,
    read_best,
    request_header_version,
    response_header_version,
    write_layout,
)

Form = Literal["frame", "header and body", "body"]


@dataclass(frozen=True, slots=True)
class Whole:
    """A message as it was found in bytes."""

    form: Form
    header: Body | None
    """None for a body alone."""
    body: Body
    end: int
    """Offset after the body; less than the number of bytes when some are left over."""
    layouts: tuple[tuple[Layout, int], ...]
    """The layouts of header (where present) and body, each with its offset."""
    note: str = ""


def read_whole(name: str, version: int, data: bytes) -> Whole:
    """Read bytes as a frame, as header and body, or as a body: the first form that fits to the last
    byte.

    When none does, the likeliest form (a size that fits, then a header that names the message, then
    a body) is returned with bytes left over, or refused with its `DissectError`.
    """
    if version not in message(name).versions:
        raise UnknownVersion(f"{name} has versions {message(name).versions}, not {version}")
    partial: list[tuple[int, Whole]] = []
    refused: list[tuple[int, int, DissectError]] = []
    for form, at, size, likely in _forms(name, version, data):
        try:
            if form == "body":
                whole = _body(name, version, data)
            else:
                whole = _framed(name, version, data[: at + size], at)
        except DissectError as error:
            refused.append((likely, error.offset, error.without_frames()))
            continue
        if whole.end == len(data):
            return whole
        partial.append((likely, whole))
    best = max(partial, key=lambda each: each[0], default=None)
    worst = max(refused, key=lambda each: each[:2], default=None)
    if best is None or (worst is not None and worst[0] > best[0]):
        assert worst is not None
        raise worst[2]
    return best[1]


def _forms(name: str, version: int, data: bytes) -> Iterator[tuple[Form, int, int, int]]:
    """Yield the possible forms: form, offset of the payload, its size, and how likely it is when no
    form fits to the last byte."""
    kind, api, size = message(name).kind, b"", len(data)
    if kind in ("request", "response"):
        if kind == "request":
            api = struct.pack(">hh", api_named(name.removesuffix("Request")).key, version)
        said = struct.unpack_from(">i", data)[0] if size >= 4 else -1
        frame = 4 if said == size - 4 else 3 if api and data[4:8] == api else 1
        if frame > 1 or 0 < said < size - 4:
            yield "frame", 4, said if said >= 0 else size, frame
        yield "header and body", 0, size, 3 if api and data[:4] == api else 0
    yield "body", 0, size, 2


def _body(name: str, version: int, data: bytes) -> Whole:
    body, end, layout = read_best(message(name), version, data)
    releases = layout.message.releases
    note = f"layout of Kafka {releases}" if releases else ""
    return Whole("body", None, body, end, ((layout, 0),), note)


def _framed(name: str, version: int, data: bytes, at: int) -> Whole:
    payload = data[at:]
    try:
        if name.endswith("Request"):
            decoded = decode_request(payload)
        else:
            decoded = decode_response(
                payload, api_named(name.removesuffix("Response")).key, version
            )
    except DissectError as error:
        raise type(error)(error.reason, offset=error.offset + at, path=error.path) from None
    if name.endswith("Request") and (decoded.message, decoded.version) != (name, version):
        raise Malformed(f"its header says {decoded.message} version {decoded.version}", offset=at)
    return Whole(
        "frame" if at else "header and body",
        decoded.header,
        decoded.body,
        decoded.end + at,
        ((decoded.header_layout, at), (decoded.layout, decoded.body_at + at)),
        decoded.note,
    )


def write_body(name: str, version: int, value: Any) -> bytes:
    """Return the bytes of a JSON body."""
    layout = layout_of(name, version)
    return write_layout(layout, body_from_json(layout, value))


def write_frame(name: str, version: int, header: Any, value: Any) -> bytes:
    """Return a whole frame, size first, for a JSON header (missing fields are filled in) and a JSON
    body."""
    kind = message(name).kind
    if kind not in ("request", "response"):
        raise Malformed(f"{name} is neither request nor response: it has no frame")
    if not isinstance(header, dict):
        raise Malformed("the header is not an object")
    api = api_named(name.removesuffix("Request").removesuffix("Response"))
    number = response_header_version(api.key, version)
    if kind == "request":
        number = request_header_version(api.key, version)
        header = {**header, "request_api_key": api.key, "request_api_version": version}
    head = f"{kind.capitalize()}Header"
    if "client_id" not in {slot.name for slot in layout_of(head, number).body.slots}:
        header = {key: each for key, each in header.items() if key != "client_id"}
    full = write_body(head, number, header)
    payload = full + write_body(name, version, value)
    return struct.pack(">i", len(payload)) + payload
