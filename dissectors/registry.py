"""Finds declarations by API key and version, or by name, and decodes frames with them.

Modules of messages load on first use. A frame's payload is what follows its int32 size: header,
then body.
"""

from __future__ import annotations

import importlib
import struct
from functools import cache, lru_cache, partial
from typing import Any, Final, Literal, NamedTuple

from kafkascope.dissectors.codec.reader import (
    REFUSALS,
    UNKNOWN_TAG_WEIGHT,
    Body,
    Reader,
    reader,
    too_large,
)
from kafkascope.dissectors.codec.writer import REFUSALS as WRITER_REFUSALS
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.errors import Malformed, TooLarge, Truncated, UnknownApi, UnknownVersion
from kafkascope.dissectors.layout import Layout, implied_default, resolve
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.messages import APIS as APIS
from kafkascope.dissectors.messages import DATA
from kafkascope.dissectors.messages import Api as Api
from kafkascope.dissectors.schema import Message
from kafkascope.dissectors.values import read_uvarint

API_VERSIONS: Final = 18
CONTROLLED_SHUTDOWN: Final = 7
UNSUPPORTED_VERSION: Final = 35


_BY_NAME: Final = {api.name.lower(): api for api in APIS.values()}


def api_named(name: str) -> Api:
    """Return the API of that name, whatever its case; `UnknownApi` otherwise."""
    try:
        return _BY_NAME[name.lower()]
    except KeyError:
        from difflib import get_close_matches

        near = get_close_matches(name.lower(), _BY_NAME, n=1)
        hint = f"did you mean {_BY_NAME[near[0]].name}?" if near else "list: kafkascope grammar"
        raise UnknownApi(f'there is no API "{name}" ({hint})') from None


def api_of(key: int) -> Api:
    """Return the API of that key; `UnknownApi` otherwise."""
    try:
        return APIS[key]
    except KeyError:
        raise UnknownApi(f"api key {key} is not known") from None


def api_names() -> list[str]:
    """Return the names of all APIs."""
    return [api.name for api in APIS.values()]


def message_names() -> list[str]:
    calls = [f"{api.name}{kind}" for api in APIS.values() for kind in ("Request", "Response")]
    return calls + list(DATA)


@cache
def message(name: str) -> Message:
    """Return the declaration of a message by Kafka's name (FetchRequest, OffsetCommitValue)."""
    module = DATA.get(name)
    if module is None:
        api = _BY_NAME.get(name.removesuffix("Request").removesuffix("Response").lower())
        if api is None:
            raise UnknownApi(f"there is no message {name!r}")
        module = api.module
    loaded = importlib.import_module(f"kafkascope.dissectors.messages.{module}")
    for value in vars(loaded).values():
        if isinstance(value, Message) and value.name == name:
            return value
    raise UnknownApi(f"there is no message {name!r}")


@cache
def layout_of(name: str, version: int) -> Layout:
    """Return the layout of a message at a version; `UnknownApi` or `UnknownVersion`."""
    return resolve(message(name), version)


def variants_of(name: str, version: int) -> tuple[Layout, ...]:
    """Return the other layouts that some releases had for that version."""
    return _variants(message(name), version)


@cache
def _variants(declared: Message, version: int) -> tuple[Layout, ...]:
    return tuple(resolve(each, version) for each in declared.variants if version in each.versions)


# --- bodies
# ------------------------------------------------------------------------------------------------


def read_layout(layout: Layout, data: bytes, at: int = 0) -> tuple[Body, int]:
    """Read a body; return it and the offset after it. When it does not fit, the reference parser
    tells where and why, or up to where it does fit."""
    try:
        return reader(layout)(data, at)
    except TooLarge:
        raise
    except REFUSALS:
        from kafkascope.dissectors.codec.structs import parse

        parse(layout, data, at, steps=LIMITS.explained_values)
        raise Malformed("the generated reader refuses these bytes", offset=at) from None


def write_layout(layout: Layout, body: Body) -> bytes:
    """Write a complete body; `DissectError` with the path of what does not fit."""
    try:
        return writer(layout)(body)
    except WRITER_REFUSALS:
        from kafkascope.dissectors.codec.structs import build

        build(layout, body)
        raise Malformed("the generated writer refuses this body") from None


def decode_body(name: str, version: int, data: bytes, at: int = 0) -> tuple[Body, int]:
    """Decode the body of a message by name; return it and the offset after it."""
    return read_layout(layout_of(name, version), data, at)


def encode_body(name: str, version: int, body: Body) -> bytes:
    return write_layout(layout_of(name, version), body)


def encode_response(key: int, version: int, correlation_id: int, body: Body) -> bytes:
    """Write a response as a frame has it after its size: header and body. Errors: see
    `write_layout`."""
    header = encode_response_header(key, version, correlation_id)
    return header + encode_body(f"{APIS[key].name}Response", version, body)


def encode_response_header(key: int, version: int, correlation_id: int) -> bytes:
    kind = response_header_version(key, version)
    return encode_body("ResponseHeader", kind, {"correlation_id": correlation_id})


def encode_request_header(head: RequestHeader) -> bytes:
    """Write the header of a request without tagged fields."""
    kind = request_header_version(head.api_key, head.api_version)
    return encode_body("RequestHeader", kind, _header_body(head, kind))


def unsupported_response(correlation_id: int, versions: dict[int, tuple[int, int]]) -> bytes:
    """Write the response to an ApiVersions request of a version that is not supported, with the
    versions of APIs by key: in version 0, whatever was asked for (KIP-511)."""
    keys = [
        {"api_key": key, "min_version": low, "max_version": high}
        for key, (low, high) in versions.items()
    ]
    body = {"error_code": UNSUPPORTED_VERSION, "api_keys": keys}
    return encode_response(API_VERSIONS, 0, correlation_id, body)


def read_best(
    declared: Message, version: int, data: bytes, at: int = 0
) -> tuple[Body, int, Layout]:
    """Read a body by the main layout, or by a variant if that fits and the main one does not.

    A layout fits when it reads all bytes and meets no tag that it lacks: a wrong one may take the
    bytes of a field that it does not know for a tagged section.
    """
    main = resolve(declared, version)
    for layout in (main, *_variants(declared, version)):
        try:
            body, end = reader(layout)(data, at)
        except REFUSALS:
            continue
        if end == len(data) and not has_unknown_tags(body):
            return body, end, layout
    body, end = read_layout(main, data, at)
    return body, end, main


def has_unknown_tags(value: Any) -> bool:
    if isinstance(value, dict):
        return "_tagged_fields" in value or any(map(has_unknown_tags, value.values()))
    return isinstance(value, list) and any(map(has_unknown_tags, value))


# --- headers
# -----------------------------------------------------------------------------------------------


class RequestHeader(NamedTuple):
    """Header of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    tagged_fields: list[Body]
    end: int


_FIXED = struct.Struct(">hhi")
_WITH_LENGTH = struct.Struct(">hhih")
# Makes a `RequestHeader` of a tuple without a Python frame.
_header = partial(tuple.__new__, RequestHeader)
_SHORT = struct.Struct(">h")


@lru_cache(4096)
def request_header_version(key: int, version: int) -> int:
    """Return 0 for ControlledShutdown 0, 2 for flexible versions, else 1; 1 for unknown APIs."""
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return 0
    api = APIS.get(key)
    return 2 if api is not None and version in api.flexible else 1


def response_header_version(key: int, version: int) -> int:
    """Return 1 for flexible versions, else 0. ApiVersions has always 0: the client may not know
    more yet."""
    api = APIS.get(key)
    return int(api is not None and version in api.flexible and key != API_VERSIONS)


def read_request_header(data: bytes) -> RequestHeader:
    """Read the header of a request; of unknown APIs and versions the fields that all headers have.

    Raises `Truncated` or `Malformed` if these are missing.
    """
    try:
        key, version, correlation_id, length = _WITH_LENGTH.unpack_from(data)
    except struct.error:
        return _stepwise_header(data)
    kind = request_header_version(key, version)
    stop = 10 + length
    if kind and length >= 0 and stop <= len(data):
        client_id = data[10:stop].decode("utf-8", "surrogateescape")
        if kind == 1:
            return _header((key, version, correlation_id, client_id, [], stop))
        if stop < len(data) and not data[stop]:
            return _header((key, version, correlation_id, client_id, [], stop + 1))
    return _stepwise_header(data)


def _stepwise_header(data: bytes) -> RequestHeader:
    """Read the header step by step: short, without a client id, with tags, or wrong."""
    try:
        key, version, correlation_id = _FIXED.unpack_from(data)
    except struct.error:
        raise Truncated("a request header has 8 bytes at least", offset=0) from None
    end = 8
    kind = request_header_version(key, version)
    if kind == 0:
        return RequestHeader(key, version, correlation_id, None, [], end)
    try:
        (length,) = _SHORT.unpack_from(data, end)
    except struct.error:
        raise Truncated("the client id is missing", offset=end, path="client_id") from None
    end += 2
    if length < -1:
        raise Malformed(f"the length is {length}", offset=end - 2, path="client_id")
    client_id = None
    if length >= 0:
        if end + length > len(data):
            raise Truncated("the bytes end inside the client id", offset=end - 2, path="client_id")
        client_id = data[end : end + length].decode("utf-8", "surrogateescape")
        end += length
    tagged: list[Body] = []
    if kind == 2:
        tagged, end = _read_tags(data, end)
    return RequestHeader(key, version, correlation_id, client_id, tagged, end)


def _read_tags(data: bytes, at: int) -> tuple[list[Body], int]:
    start = at
    count, at = read_uvarint(data, at)
    if min(count, len(data) - at) * UNKNOWN_TAG_WEIGHT > LIMITS.body_bytes:
        raise too_large(start, "_tagged_fields")
    fields: list[Body] = []
    for _ in range(count):
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        if at + size > len(data):
            raise Truncated("the bytes end inside a tag", offset=at, path="_tagged_fields")
        fields.append({"tag": tag, "data": data[at : at + size]})
        at += size
    return fields, at


class Decoded(NamedTuple):
    """A request or response, decoded."""

    message: str
    version: int
    """Version of the body: 0 for an ApiVersions response that fell back."""
    header: Body
    body: Body
    body_at: int
    end: int
    """Offset after the body; less than the payload's length when bytes are left over."""
    note: str
    """Not empty when the body has a layout that only some releases had for the version."""
    layout: Layout
    header_layout: Layout

    @property
    def parts(self) -> tuple[tuple[Layout, int], ...]:
        """Layouts and offsets of the header and the body, without those that have no fields."""
        both = ((self.header_layout, 0), (self.layout, self.body_at))
        return tuple(each for each in both if each[0].body.slots or each[0].flexible) or both[1:]

    def with_body(self, payload: bytes, body: Body, rest: bytes | None = None) -> bytes:
        """Return the payload with another body, its header as it is; `rest`: in place of the bytes
        after the body. `DissectError` when the body does not fit."""
        written = write_layout(self.layout, body)
        return payload[: self.body_at] + written + (payload[self.end :] if rest is None else rest)


def _note(layout: Layout) -> str:
    releases = layout.message.releases
    return f"layout of Kafka {releases}" if releases else ""


def _known(key: int, version: int) -> Api:
    api = api_of(key)
    if version not in api.versions:
        raise UnknownVersion(f"{api.name} has versions {api.versions}, not {version}")
    return api


class _Plan(NamedTuple):
    """What all messages of an API's version and side share."""

    message: str
    kind: int
    """Version of the header."""
    header_layout: Layout
    read_header: Reader
    layout: Layout
    read: Reader
    varies: bool
    """Whether some releases had another layout: `read_best` chooses."""
    note: str


def _plan(side: Literal["Request", "Response"], key: int, version: int) -> _Plan:
    name = f"{_known(key, version).name}{side}"
    of_header = request_header_version if side == "Request" else response_header_version
    kind = of_header(key, version)
    header, layout = layout_of(f"{side}Header", kind), layout_of(name, version)
    varies = bool(variants_of(name, version))
    return _Plan(name, kind, header, reader(header), layout, reader(layout), varies, _note(layout))


_request_plan: Final = lru_cache(4096)(partial(_plan, "Request"))
_response_plan: Final = lru_cache(4096)(partial(_plan, "Response"))


# Makes a `Decoded` of a tuple without a Python frame.
_decoded = partial(tuple.__new__, Decoded)


def decode_request(payload: bytes, head: RequestHeader | None = None) -> Decoded:
    """Decode the payload of a request, header and body; `DissectError` when that fails. `head` is
    its header, if that was read before."""
    head = read_request_header(payload) if head is None else head
    version = head.api_version
    plan = _request_plan(head.api_key, version)
    if head.tagged_fields:
        # Only the layout knows what tags may be there, and in which order.
        header, body_at = read_layout(plan.header_layout, payload)
    else:
        header, body_at = _header_body(head, plan.kind), head.end
    return _body_by(plan, payload, version, header, body_at)


def _body_by(plan: _Plan, payload: bytes, version: int, header: Body, body_at: int) -> Decoded:
    name, header_layout, layout, note = plan.message, plan.header_layout, plan.layout, plan.note
    if plan.varies:
        body, end, layout = read_best(layout.message, version, payload, body_at)
        note = _note(layout)
    else:
        try:
            body, end = plan.read(payload, body_at)
        except REFUSALS:
            body, end = read_layout(layout, payload, body_at)  # says where and why
    return _decoded((name, version, header, body, body_at, end, note, layout, header_layout))


def _header_body(head: RequestHeader, kind: int) -> Body:
    """Return the header as the generated reader reads it."""
    header: Body = {
        "request_api_key": head.api_key,
        "request_api_version": head.api_version,
        "correlation_id": head.correlation_id,
    }
    if kind:
        header["client_id"] = head.client_id
    return header


def decode_response(payload: bytes, key: int, version: int) -> Decoded:
    """Decode the payload of a response to a request of that key and version; `DissectError` when
    that fails. `body`: to the end of the payload, where it was read before.

    A broker that lacks the version of an ApiVersions request answers in version 0 with error 35
    (KIP-511).
    """
    if key == API_VERSIONS and version > APIS[key].versions.high:
        version = 0  # nobody answers a version that is not there in any other way
    plan = _response_plan(key, version)
    try:
        header, body_at = plan.read_header(payload, 0)
    except REFUSALS:
        header, body_at = read_layout(plan.header_layout, payload)
    if key == API_VERSIONS and version > 0 and _is_fallback(payload, body_at):
        version = 0
        plan = _response_plan(key, 0)
    return _body_by(plan, payload, version, header, body_at)


def _is_fallback(payload: bytes, at: int) -> bool:
    if payload[at : at + 2] != _SHORT.pack(UNSUPPORTED_VERSION):
        return False
    try:
        _, end = reader(layout_of("ApiVersionsResponse", 0))(payload, at)
    except REFUSALS:
        return False
    return end == len(payload)


def example(name: str, version: int) -> dict[str, Any]:
    body: dict[str, Any] = implied_default(layout_of(name, version).body)
    return body
