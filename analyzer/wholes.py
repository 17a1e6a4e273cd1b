"""Bytes of one message that come alone: a frame with its size, header and body, or a body alone.
And back.

Traffic goes through conversation.py, which knows what a frame is; here the bytes have to tell.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, Literal

from dissectors.errors import DissectError, Malformed, UnknownVersion
from dissectors.jsonform import body_from_json
from dissectors.layout import Layout
from dissectors.reader import Body
from dissectors.registry import (
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
    """One message as it was found in bytes."""

    form: Form
    header: Body | None
    """None of a body alone."""
    body: Body
    end: int
    """Offset behind the body; less than the number of bytes when some are left over."""
    layouts: tuple[tuple[Layout, int], ...]
    """Of header (if there is one) and body, each with its offset."""
    note: str = ""


def read_whole(name: str, version: int, data: bytes) -> Whole:
    """Read bytes as a frame, as header and body, or as a body: the first that fits to the last
    byte.

    When none does: a body with bytes left over if it is one, else `DissectError` of the form that
    got furthest.
    """
    if version not in message(name).versions:
        raise UnknownVersion(f"{name} has versions {message(name).versions}, not {version}")
    forms: list[tuple[Form, int]] = [("header and body", 0), ("body", 0)]
    sized = len(data) >= 4 and struct.unpack_from(">i", data)[0] == len(data) - 4
    if sized:
        forms.insert(0, ("frame", 4))
    if message(name).kind not in ("request", "response"):
        forms = [("body", 0)]
    partial: Whole | None = None
    furthest: DissectError | None = None
    for form, at in forms:
        try:
            whole = (
                _body(name, version, data) if form == "body" else _framed(name, version, data, at)
            )
        except DissectError as error:
            # A size that fits speaks for a frame, whatever else is wrong.
            if furthest is None or (error.offset > furthest.offset and not sized):
                furthest = error
            continue
        if whole.end == len(data):
            return whole
        if partial is None or form == "body":
            partial = whole
    if partial is not None:
        return partial
    assert furthest is not None
    raise furthest


def _body(name: str, version: int, data: bytes) -> Whole:
    body, end, layout = read_best(name, version, data)
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
    """The bytes of a JSON body."""
    layout = layout_of(name, version)
    return write_layout(layout, body_from_json(layout, value))


def write_frame(name: str, version: int, header: Any, value: Any) -> bytes:
    """A whole frame, size in front, of a JSON header (what it lacks is filled in) and a JSON
    body."""
    kind = message(name).kind
    if kind not in ("request", "response"):
        raise Malformed(f"{name} is neither request nor response: it has no frame")
    if not isinstance(header, dict):
        raise Malformed("the header is no object")
    api = api_named(name.removesuffix("Request").removesuffix("Response"))
    if kind == "request":
        fixed = {"request_api_key": api.key, "request_api_version": version}
        number = request_header_version(api.key, version)
        full = write_body(
            "RequestHeader", number, _trimmed("RequestHeader", number, {**header, **fixed})
        )
    else:
        number = response_header_version(api.key, version)
        full = write_body("ResponseHeader", number, _trimmed("ResponseHeader", number, header))
    payload = full + write_body(name, version, value)
    return struct.pack(">i", len(payload)) + payload


def _trimmed(name: str, number: int, header: dict[str, Any]) -> dict[str, Any]:
    """Without the client id where the header's version has none."""
    known = {slot.name for slot in layout_of(name, number).body.slots}
    return {key: each for key, each in header.items() if key != "client_id" or key in known}
