"""The layer Kafka, and a class of it for each message at each version, made when it is first used.

    Kafka(api="Fetch", version=12, max_wait_ms=500)     a request; kind="response" for the other
    Kafka(data)                                         a frame: a request, or bytes with a reason

A frame is one packet: size, header and body are its fields. Bytes that cannot be read become
`KafkaUndecoded` with a reason; nothing that is dissected raises.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from typing import Any, Final, Literal

from scapy.fields import SignedIntField, StrField
from scapy.layers.inet import TCP
from scapy.packet import Packet

from kafkascope.analyzer.conversation.detect import describe
from kafkascope.analyzer.conversation.limits import LIMITS as CONVERSATION_LIMITS
from kafkascope.analyzer.conversation.plausible import Plausibility, judge_request
from kafkascope.bridges.scapy.fields import (
    KnownField,
    SlotField,
    TagsField,
    field_name,
    field_of,
    plain,
    value_of,
)
from kafkascope.dissectors.codec.structs import construct_of, parse_part
from kafkascope.dissectors.errors import DissectError, UnknownApi
from kafkascope.dissectors.layout import Layout, Slot, StructWire
from kafkascope.dissectors.registry import (
    Decoded,
    api_named,
    api_of,
    decode_request,
    decode_response,
    layout_of,
    request_header_version,
    response_header_version,
)

Kind = Literal["request", "response"]

# Of brokers, where nothing else is said.
PORT: Final = 9092
PART: Final = "a part of a message"
NO_REQUEST: Final = "not a request; responses are dissected in a TCPSession"
# Bytes of the size.
HEADER: Final = 4

_INT = struct.Struct(">i")
_NAMED = re.compile(r"([A-Z]\w+?)(Request|Response)(\d+)")


class KafkaStruct(Packet):
    """Fields of a struct. Messages are structs with a size and a header."""

    wire: StructWire | None = None
    """None where there is no struct: bytes that nobody can read."""

    def fill(self, body: Any) -> None:
        """Take the values that a reader gave."""
        for field in self.fields_desc:
            if isinstance(field, TagsField):
                tags = body.get("_tagged_fields") or ()
                self.fields[field.name] = [(each["tag"], each["data"]) for each in tags]
            elif (slot := getattr(field, "slot", None)) is not None and slot.name in body:
                self.fields[field.name] = value_of(field, body[slot.name], self)

    def body(self) -> dict[str, Any]:
        """Return the values as a reader gives them, and a writer takes them."""
        packet = self if self.explicit else next(iter(self))
        assert self.wire is not None
        body = {
            slot.name: plain(packet.getfieldval(field_name(slot)))
            for slot in (*self.wire.slots, *self.wire.tags)
        }
        if self.wire.flexible and (unknown := packet.getfieldval("unknown_tags")):
            body["_tagged_fields"] = [{"tag": tag, "data": data} for tag, data in unknown]
        return body

    def do_dissect(self, s: bytes) -> bytes:
        """Read the struct alone."""
        assert self.wire is not None
        try:
            body, end = parse_part(construct_of(self.wire), s)
        except DissectError:
            return self._taken(s, 0)
        self.fill(body)
        return self._taken(s, end)

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        """Leave what follows to who has the struct."""
        return b"", s

    def _taken(self, s: bytes, end: int) -> bytes:
        """Note which bytes these fields are; until one changes, they are built from these."""
        self.raw_packet_cache = s[:end]
        self.raw_packet_cache_fields = {
            field.name: self._raw_packet_cache_field_value(field, value, copy=True)
            for field in self.fields_desc
            if (field.islist or field.holds_packets)
            and (value := self.fields.get(field.name)) is not None
        }
        self.explicit = 1
        return s[end:]


class Kafka(KafkaStruct):
    """A frame of Kafka: makes a packet of the class that fits."""

    name = "Kafka"
    match_subclass = True
    """`Kafka in packet` and `packet[Kafka]` find every message."""
    fields_desc: tuple[Any, ...] = (SignedIntField("size", None),)

    kind: Kind | None = None
    layout: Layout | None = None
    """Layout of the body."""

    def __init__(self, *args: Any, kind: str = "", **fields: Any) -> None:
        if "api" in fields and type(self) is KafkaUndecoded:
            # The message that was asked for does not exist: this says why.
            layer_of(fields["api"], fields.get("version"), kind or "request")
        super().__init__(*args, **fields)

    @classmethod
    def dispatch_hook(cls, _pkt: bytes = b"", *args: Any, **fields: Any) -> Any:
        """Return the class for these bytes, or for this API, version and kind."""
        data = bytes(_pkt or b"")
        if "api" in fields:
            try:
                kind = fields.get("kind") or "request"
                return layer_of(fields["api"], fields.get("version"), kind)
            except DissectError:
                return KafkaUndecoded
        return KafkaUndecoded if undecoded_request(data) else of_request(data)

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        """Split what follows the body: the rest of the frame, and what comes after it."""
        size, read = self.fields.get("size"), len(self.raw_packet_cache or b"")
        if size is None:
            return s, None
        left = max(0, HEADER + size - read)
        return s[:left], s[left:]

    def post_build(self, pkt: bytes, pay: bytes) -> bytes:
        """Fill in the size; a frame after this one is not part of it."""
        if self.getfieldval("size") is None and len(pkt) >= HEADER:
            inside = 0 if isinstance(self.payload, Kafka) else len(pay)
            pkt = _INT.pack(len(pkt) - HEADER + inside) + pkt[HEADER:]
        return pkt + pay


class KafkaUndecoded(Kafka):
    """Bytes of Kafka that are no message, or whose format is unknown."""

    name = "Kafka, not decoded"
    api = version = None
    """As a message has them."""
    fields_desc = (SignedIntField("size", None), StrField("data", b""))
    __slots__ = ("reason",)

    def __init__(self, *args: Any, reason: str = "", **fields: Any) -> None:
        self.reason = reason
        super().__init__(*args, **fields)
        if self.reason:
            self.name = f"Kafka: {self.reason}"

    def do_dissect(self, s: bytes) -> bytes:
        """Take all bytes of the frame."""
        self.reason = self.reason or undecoded_request(s)
        end = len(s)
        if len(s) >= HEADER:
            (size,) = _INT.unpack_from(s)
            if 0 <= size <= len(s) - HEADER:
                end = HEADER + size
            self.fields["size"] = size
        self.fields["data"] = s[HEADER:end]
        return self._taken(s, end)

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        """Leave what comes after the frame."""
        return b"", s

    def copy(self) -> Any:
        """Return a copy with its reason."""
        return self._same(super().copy())

    def clone_with(self, payload: Any = None, **fields: Any) -> Any:
        """Return a copy with other values."""
        return self._same(super().clone_with(payload, **fields))

    def _same(self, other: Any) -> Any:
        other.reason, other.name = self.reason, self.name
        return other

    def mysummary(self) -> str:
        """Say what it is, and why it is not decoded."""
        return f"Kafka {self.reason or 'frame'}"


class KafkaMessage(Kafka):
    """A request or a response."""

    header: StructWire | None = None

    def do_dissect(self, s: bytes) -> bytes:
        """Read size, header and body; all bytes stay as they are where they do not fit."""
        (size,) = _INT.unpack_from(s) if len(s) >= HEADER else (-1,)
        try:
            decoded = self._decoded(s[HEADER : HEADER + size]) if size >= 0 else None
        except DissectError:
            decoded = None
        if decoded is None or HEADER + size > len(s):
            return self._taken(s, 0)
        assert self.layout is not None
        self.fields["size"] = size
        self.fill({**decoded.header, "_tagged_fields": None})
        self.fill(decoded.body)
        for name in ("api", "version"):
            self.fields.setdefault(name, self.default_fields[name])
        if unknown := decoded.header.get("_tagged_fields"):
            self.fields["header_tags"] = [(each["tag"], each["data"]) for each in unknown]
        elif "header_tags" in self.fields:
            self.fields["header_tags"] = []
        return self._taken(s, HEADER + decoded.end)

    def _decoded(self, payload: bytes) -> Decoded | None:
        assert self.layout is not None
        if self.kind == "request":
            decoded = decode_request(payload)
        else:
            key, version = self.default_fields["api"], self.default_fields["version"]
            decoded = decode_response(payload, key, version)
        return decoded if decoded.layout is self.layout else None

    def answers(self, other: Any) -> int:
        """Whether this is the response to that request."""
        if not isinstance(other, KafkaMessage) or (self.kind, other.kind) != (
            "response",
            "request",
        ):
            return 0
        mine = (self.api, self.correlation_id)
        return int(mine == (other.api, other.correlation_id))

    def hashret(self) -> bytes:
        """Return what a request and its response have in common."""
        return _INT.pack(self.correlation_id & 0x7FFF_FFFF)

    def mysummary(self) -> str:
        """Say which message it is."""
        who = (
            f" of {self.client_id!r}"
            if self.kind == "request" and "client_id" in self.fields
            else ""
        )
        return f"Kafka {self._name.removeprefix('Kafka ')} #{self.correlation_id}{who}"


def layer_of(api: str | int, version: int | None = None, kind: str = "request") -> Any:
    """Return the class of a message; `UnknownApi` or `UnknownVersion`. Without a version, the
    newest one."""
    if kind not in ("request", "response"):
        raise UnknownApi(f"unknown kind {kind!r}: use request or response")
    found = api_named(api) if isinstance(api, str) else api_of(api)
    number = found.versions.high if version is None else version
    return made(layout_of(f"{found.name}{kind.capitalize()}", number), number)


@cache
def made(layout: Layout, version: int) -> Any:
    """Return the class of a layout. `version`: of the request that is answered, which an answer to
    ApiVersions may not have."""
    message, key, kind = layout.message, layout.message.key, layout.message.kind
    assert key is not None
    side = kind.capitalize()
    header_version = request_header_version if kind == "request" else response_header_version
    number = header_version(key, version)
    api = message.name.removesuffix(side)
    releases = f" of Kafka {message.releases}" if message.releases else ""
    header = layout_of(f"{side}Header", number).body
    known = layout_of("RequestHeader", 0).body.slots[:2]
    fields: list[Any] = [SignedIntField("size", None)]
    if kind == "response":
        fields += [
            KnownField(slot, value) for slot, value in zip(known, (key, version), strict=True)
        ]
    # No header has a struct.
    fields += [SlotField(slot) for slot in header.slots]
    if kind == "request":
        for field, value in zip(fields[1:3], (key, version), strict=True):
            field.default = value
    if header.flexible:
        fields.append(TagsField("header_tags", header))
    suffix = re.sub(r"\W", "_", message.releases)
    name = f"{message.name}{layout.version}{'_' + suffix if suffix else ''}"
    fields += _fields(layout.body, name)
    return _class_of(
        name,
        KafkaMessage,
        f"{api} {kind}, version {layout.version}{releases}.",
        name=f"Kafka {api} {kind} v{layout.version}{releases}",
        fields_desc=fields,
        overload_fields={TCP: {"dport" if kind == "request" else "sport": PORT}},
        kind=kind,
        layout=layout,
        wire=layout.body,
        header=header,
    )


def _class_of(class_name: str, base: type, doc: str, **members: Any) -> Any:
    return type(Packet)(class_name, (base,), {"__doc__": doc, "__module__": __name__, **members})


def _fields(wire: StructWire, path: str) -> list[Any]:
    def element(slot: Slot, inner: StructWire) -> Any:
        name = f"{path}_{slot.name}"
        doc = f"An element of {slot.name}."
        members = {"name": slot.name, "fields_desc": _fields(inner, name), "wire": inner}
        return _class_of(f"_{name}", KafkaStruct, doc, **members)

    fields = [field_of(slot, element) for slot in (*wire.slots, *wire.tags)]
    if wire.flexible:
        fields.append(TagsField("unknown_tags", wire))
    return fields


def undecoded_request(data: bytes) -> str:
    """Return why bytes are no whole request; empty when they are one."""
    if len(data) < HEADER:
        return PART
    (size,) = _INT.unpack_from(data)
    likely = judge_request(data, 0, known_versions=False) is not Plausibility.NO
    if not likely and not 0 <= size <= CONVERSATION_LIMITS.frame_bytes:
        return describe(data)
    if len(data) < HEADER + size:
        return PART if likely else NO_REQUEST
    try:
        decoded = decode_request(data[HEADER : HEADER + size])
    except DissectError as error:
        # The correlation id of a response looks like Produce (0), of some version.
        return str(error) if likely and data[4:6] != b"\0\0" else NO_REQUEST
    return "" if decoded.end == size or (likely and data[4:6] != b"\0\0") else NO_REQUEST


def of_request(data: bytes) -> Any:
    """Return the class of a request; `DissectError` when it cannot be read."""
    (size,) = _INT.unpack_from(data)
    decoded = decode_request(data[HEADER : HEADER + size])
    return made(decoded.layout, decoded.version)


def of_response(frame: bytes, key: int, version: int) -> Any:
    """Return the class of a response, by its request; `DissectError` when it cannot be read."""
    decoded = decode_response(frame[HEADER:], key, version)
    return made(decoded.layout, decoded.version)


def __getattr__(name: str) -> Any:
    # So that packets can be pickled, and classes imported: FetchRequest12.
    found = _NAMED.fullmatch(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return layer_of(found[1], int(found[3]), found[2].lower())
    except DissectError as error:
        raise AttributeError(str(error)) from None
