"""Finds the schema of a record's key or value in its bytes and headers. Stateless.

Wire formats: Confluent's (byte 0 and an int32, or a header with a GUID), Apicurio's (headers, or
byte 0 and an int64 or int32), AWS Glue's (byte 3, compression, GUID), Azure's (four bytes 0 or a
header, and a GUID as text), single objects of Avro.
"""

from __future__ import annotations

import re
import struct
import uuid
import zlib
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import Namespace, PayloadError, SchemaKey, Selector, misfit

Side = Literal["key", "value"]
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
"""Names and values of the headers of a record."""
Typed: TypeAlias = 'Literal["", "index", "unsigned", "name", "position"]'

MOST_IDS: Final = 1 << 31
# Registries count from 1; larger numbers after a byte 0 are more likely other data.
PLAUSIBLE: Final = 1 << 24
APICURIO: Final[tuple[Namespace, ...]] = ("globalId", "contentId")

_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_AZURE: Final = re.compile(rb"\0{4}([0-9a-fA-F]{32})")
_AZURE_TYPE: Final = re.compile(rb"avro/binary\+([0-9a-fA-F]{32})")
_TYPE: Final = "protobuf.type"
"""Header of Apicurio with the name of a Protobuf message; the only one not named after the side."""


class Candidate(NamedTuple):
    """A schema that a payload may have been written with."""

    key: SchemaKey
    data: bytes
    """The payload, with the index or name of a Protobuf message before it."""
    at: int
    """Offset of `data` in the key or value."""
    certain: bool
    """Whether the framing proves it: a header, or a form that nothing else has."""
    typed: Typed = ""
    """What precedes a Protobuf message in `data`: indexes (Confluent; unsigned in its deprecated
    format), its name (Apicurio), or its position among the sorted names of all messages (AWS Glue).
    """
    selector: Selector = None
    json: bool = False
    """Whether Avro is written as JSON."""
    packed: bool = False
    """Whether `data` is compressed: see `unpacked`."""

    @property
    def confluent(self) -> bool:
        """Whether the form is one of Confluent's."""
        space = self.key.namespace
        return space == "id" or (space == "guid" and self.at == 0)


def worth(data: bytes | None, headers: Headers) -> bool:
    """Return whether `candidates` could return any: a cheap test for records without schemas."""
    return bool(headers) or (data is not None and data[:1] in (b"\0", b"\3", b"\xc3"))


def candidates(side: Side, data: bytes, headers: Headers) -> list[Candidate]:
    """Return the schemas that a key or value names, the likeliest first. A header wins over the
    bytes."""
    if headers:
        found = _in_headers(side, data, headers)
        if found:
            return found
    first = data[:1]
    if first == b"\0":
        return _zero(data)
    if first == b"\3":
        return _glue(data)
    if data[:2] == b"\xc3\x01" and len(data) >= 10:
        key = SchemaKey("fingerprint", int.from_bytes(data[2:10], "little"))
        return [Candidate(key, data[10:], 10, True)]
    return []


def _in_headers(side: Side, data: bytes, headers: Headers) -> list[Candidate]:
    """Return the candidates that headers of Confluent or Apicurio name."""
    apicurio = f"apicurio.{side}."
    typed = "apicurio.protobuf.type.key" if side == "key" else "apicurio.protobuf.type"
    said: dict[str, bytes] = {}
    for name, value in headers:
        if value is None:
            continue
        if name == f"__{side}_schema_id":
            confluent = _confluent_header(data, value)
            if confluent is not None:
                return [confluent]
        elif name.startswith(apicurio):
            said[name[len(apicurio) :]] = value
        elif name == typed:
            said[_TYPE] = value
        elif name == "content-type" and side == "value" and (azure := _AZURE_TYPE.fullmatch(value)):
            return [Candidate(_guid(azure), data, 0, True)]
    found = []
    name = said.get(_TYPE, b"").decode("utf-8", "replace")
    at = _behind_name(data, name) if name else 0
    as_json = said.get("encoding", b"").upper() == b"JSON"
    for word in APICURIO:
        if (number := _number(said.get(word))) is not None:
            key = SchemaKey(word, number)
            found.append(Candidate(key, data[at:], at, True, "", name or None, as_json))
    return found


def _behind_name(data: bytes, name: str) -> int:
    """Return the offset of a message whose name is in a header: 3.x writes the name before the
    message as well."""
    try:
        found, at = message_name(data)
    except PayloadError:
        found, at = "", 0
    return at if found == name else _behind_index(data, 0)


def _behind_index(data: bytes, at: int) -> int:
    """Return the offset after a message index, if there is one: no message begins as one of up to
    three numbers does, for that would be the tag of a field 0."""
    if data[at : at + 1] not in (b"\0", b"\2", b"\4", b"\6"):
        return at
    try:
        return at + message_index(data[at:])[1]
    except PayloadError:
        return at


def _number(value: bytes | None) -> int | None:
    if value is None or len(value) not in (4, 8):
        return None
    number = int.from_bytes(value, "big", signed=True)
    return number if number > 0 else None


def _confluent_header(data: bytes, value: bytes) -> Candidate | None:
    """Read a header: byte 1 and a GUID, or byte 0 and an id; then Protobuf's message index."""
    if value[:1] == b"\1" and len(value) >= 17:
        key = SchemaKey("guid", str(uuid.UUID(bytes=value[1:17])))
        rest = value[17:]
    elif value[:1] == b"\0" and len(value) >= 5:
        key = SchemaKey("id", _INT.unpack_from(value, 1)[0])
        rest = value[5:]
    else:
        return None
    selector: Selector = None
    if rest:
        try:
            selector = message_index(rest)[0]
        except PayloadError:
            return None
    return Candidate(key, data, 0, True, "", selector)


def _zero(data: bytes) -> list[Candidate]:
    """Return the readings of a byte 0: what follows is an int32 or an int64, and of Apicurio the
    id of an artifact or of a content."""
    if azure := _AZURE.match(data):
        return [Candidate(_guid(azure), data[azure.end() :], azure.end(), True)]
    found: list[tuple[Namespace, int, int]] = []
    if len(data) >= 5:
        (number,) = _INT.unpack_from(data, 1)
        if number > 0:
            # Apicurio 3.x writes an id of content of itself, where 2.x has to be told to.
            found += [("id", number, 5), ("contentId", number, 5), ("globalId", number, 5)]
    if len(data) >= 9:
        (number,) = _LONG.unpack_from(data, 1)
        if 0 < number < MOST_IDS:
            found += [("globalId", number, 9), ("contentId", number, 9)]
    return [
        Candidate(
            SchemaKey(space, number), data[at:], at, False, "index" if space == "id" else "name"
        )
        for space, number, at in found
    ]


def _guid(azure: re.Match[bytes]) -> SchemaKey:
    return SchemaKey("guid", str(uuid.UUID(azure[1].decode())))


def _glue(data: bytes) -> list[Candidate]:
    """Read AWS Glue's form: byte 3, byte 0 or 5 (zlib), a GUID."""
    if len(data) < 18 or data[1] not in (0, 5):
        return []
    key = SchemaKey("guid", str(uuid.UUID(bytes=data[2:18])))
    payload, packed = data[18:], data[1] == 5
    if packed:
        inflater = zlib.decompressobj()
        try:
            inflater.decompress(payload, LIMITS.inflated_probe)
        except zlib.error:
            return []
        if not inflater.eof and not inflater.unconsumed_tail:
            return []  # cut off
    return [Candidate(key, payload, 18, False, "position", packed=packed)]


def unpacked(each: Candidate) -> Candidate:
    """Return a candidate with its payload decompressed; `PayloadError` where that fails."""
    if not each.packed:
        return each
    inflater = zlib.decompressobj()
    try:
        data = inflater.decompress(each.data, LIMITS.inflated)
    except zlib.error:
        raise misfit("the compressed data is damaged", each.at) from None
    if not inflater.eof:
        much = len(data) >= LIMITS.inflated
        why = f"it expands to more than {LIMITS.inflated >> 20} MB" if much else "it is truncated"
        raise PayloadError("bad-schema" if much else "does-not-fit", why, offset=each.at)
    return each._replace(data=data, packed=False)


def plausible(found: Sequence[Candidate], size: int, spaces: frozenset[str]) -> Candidate | None:
    """Return the candidate to report when its schema is unknown; None where the bytes may be
    anything. `size`: of the key or value. `spaces`: namespaces of known schemas."""
    for each in found:
        if each.certain:
            return each
        number = each.key.value
        if each.key.namespace == "guid":
            if "guid" in spaces:
                return each
        elif isinstance(number, int) and number < PLAUSIBLE:
            # An int64 or a double as key has eight bytes, and often begins with zeros. An int16 and
            # a time of 2004 to 2039, which is a heartbeat of MirrorMaker, begin as id 1.
            other = size == 8 or (size == 10 and number == 1)
            if each.key.namespace == "id" and size >= 6 and not other:
                return each
            if each.at == 9 and each.key.namespace in spaces and size > 9:
                return each
    return None


def likely(each: Candidate) -> bool:
    """Return whether a candidate is worth a request to a registry."""
    number = each.key.value
    return each.certain or not isinstance(number, int) or number < PLAUSIBLE


def message_index(data: bytes, signed: bool = True) -> tuple[tuple[int, ...], int]:
    """Read Confluent's message index: count and indexes as zigzag varints, where a single byte 0
    is the first message. Return it with the offset after it."""
    read = _zigzag if signed else varint
    count, at = read(data, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= 2 * LIMITS.message_nesting:
        raise misfit(f"a message index of {count} numbers")
    found = []
    for _ in range(count):
        number, at = read(data, at)
        if number < 0:
            raise misfit(f"the message index {number}", at)
        found.append(number)
    return tuple(found), at


def message_name(data: bytes) -> tuple[str, int]:
    """Read Apicurio's `Ref`: the size of a message that has the type's name as field 1. Return the
    name and the offset after it, and after an index, which 3.x writes when configured to."""
    size, at = varint(data, 0)
    end = at + size
    if end > len(data):
        raise misfit("the message type name is truncated", at)
    if not size:
        return "", end
    if data[at] != 0x0A:
        raise misfit("no message type name", at)
    length, at = varint(data, at + 1)
    if at + length != end:
        raise misfit("the message type name has two sizes", at)
    try:
        return data[at:end].decode(), _behind_index(data, end)
    except UnicodeDecodeError:
        text = "the message type name is not text"
        raise misfit(text, at) from None


def varint(data: bytes, at: int = 0) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 28:
            raise misfit("no message type number", at)
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = varint(data, at)
    return (value >> 1) ^ -(value & 1), at
