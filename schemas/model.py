"""Schemas, what refers to them, and decoded values."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from kafkascope.errors import Error
from kafkascope.schemas.limits import LIMITS

Format = Literal["avro", "protobuf", "json"]

Source = Literal["folder", "registry", "capture"]
"""Where a schema comes from. Files that the user names count as a folder."""

Namespace = Literal["id", "globalId", "contentId", "guid", "fingerprint"]
"""What numbers a schema: a registry that speaks Confluent's protocol, Apicurio by artifact,
Apicurio by content, a uuid (Confluent's header form, AWS Glue), the CRC-64 of Avro's single
objects."""

Reason = Literal["unknown-schema", "does-not-fit", "surplus", "bad-schema"]


class SchemaKey(NamedTuple):
    """An identifier of a schema, as payloads name it."""

    namespace: Namespace
    value: int | str
    """An int; of a guid its text in lower case, with hyphens."""

    def __str__(self) -> str:
        return f"{self.namespace} {self.value}"


class PayloadError(Error):
    """A key or value that could not be decoded, or a value that could not be encoded."""

    def __init__(self, reason: Reason, text: str, *, path: str = "", offset: int = 0) -> None:
        """`path`: of the field, `lines[2].price`; empty for the whole. `offset`: in bytes from the
        start of the payload."""
        super().__init__(text)
        self.reason: Final = reason
        self.text: Final = text
        self.path = path
        self.offset: Final = offset

    def within(self, part: str) -> None:
        """Put the field or element in which the error is before its path."""
        dot = "." if self.path and not self.path.startswith("[") else ""
        self.path = f"{part}{dot}{self.path}"

    def shifted(self, by: int) -> PayloadError:
        return PayloadError(self.reason, self.text, path=self.path, offset=self.offset + by)

    def as_json(self) -> dict[str, Any]:
        """Return the error as record/1 has it."""
        return {"reason": self.reason, "path": self.path, "offset": self.offset, "text": self.text}


def misfit(text: str, offset: int = 0, path: str = "") -> PayloadError:
    """Return the error of a payload or value that does not fit its schema."""
    return PayloadError("does-not-fit", text, path=path, offset=offset)


class Reference(NamedTuple):
    """A reference from one schema to another."""

    name: str
    """As the schema spells it: a full name of Avro, an import of Protobuf, a `$ref` of JSON."""
    subject: str = ""
    version: int = 0
    """Version of the schema that is referred to; 0 where unknown, as an empty subject."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema as it was registered."""

    format: Format
    text: str
    """Avro and JSON: JSON. Protobuf: source text, or base64 of a FileDescriptorProto."""
    keys: tuple[SchemaKey, ...] = ()
    subjects: tuple[tuple[str, int], ...] = ()
    """Subjects with the version that it is there; 0 where that is not known."""
    references: tuple[Reference, ...] = ()
    source: Source = "folder"
    origin: str = ""
    """Where exactly, for people: a path, a host and port, a topic."""


def size_of(text: str) -> int:
    """Return the approximate memory of a text: one character beyond Latin-1 makes all of them
    wide."""
    return len(text) * (1 if text.isascii() else 4)


def is_too_much(data: bytes) -> bool:
    """Return whether JSON would take too much memory; brackets and commas in strings count, too."""
    values = sum(map(data.count, (b"[", b"{", b",")))
    return len(data) > LIMITS.json_bytes or values > LIMITS.json_values


class Exact(str):
    """A decimal number as text: filters compare it as a number."""

    __slots__ = ()


class Moment(str):
    """A time, date or timestamp as ISO 8601: filters compare it in the order of time."""

    __slots__ = ()


Value: TypeAlias = Any
"""A decoded value, as orjson writes it: dict with names, list, str (`Exact`, `Moment`), int of any
size up to 64 bits, finite float, bool, None; bytes are `{"base64": TEXT}`, NaN and the infinities
"NaN", "Infinity", "-Infinity"."""


NON_FINITE: Final = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def of_bytes(data: bytes) -> dict[str, str]:
    """Return bytes as values have them."""
    return {"base64": b2a_base64(data, newline=False).decode("ascii")}


def of_double(number: float) -> float | str:
    """Return a number as values have it: by its name where JSON has none."""
    if number - number == 0.0:
        return number
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


def varint(number: int) -> bytes:
    """Return a number that is not negative in groups of seven bits, the least first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def nested(value: Value) -> Iterator[Value]:
    """Yield a value, and all values inside of it."""
    stack = [value]
    while stack:
        one = stack.pop()
        yield one
        if isinstance(one, dict | list):
            stack.extend(one.values() if isinstance(one, dict) else one)


UNKNOWN: Final = "_unknown_fields"
"""Member of a Protobuf message with the fields that its type does not know."""


def has_unknown(value: Value) -> bool:
    """Return whether a message, or one inside of it, has fields that its type does not know."""
    return any(isinstance(one, dict) and UNKNOWN in one for one in nested(value))


class Piece(NamedTuple):
    """A part of a payload and where its bytes are."""

    name: str
    """The field, or `[3]`; empty for the whole."""
    type: str
    """As the schema calls it."""
    value: Value
    """None for one with pieces, whose values stand there."""
    begin: int
    end: int
    """Bytes, from the start of the payload."""
    pieces: tuple[Piece, ...] = ()


UNREAD: Final = "not read"
"""Type of a nameless piece with the bytes that were not read; `UNFIT` is followed by the reason."""
UNFIT: Final = "does not match the schema"


def is_mark(piece: Piece) -> bool:
    """Return whether a piece is the count or index that introduces others."""
    return not piece.name and not piece.pieces and not is_unread(piece)


def is_unread(piece: Piece) -> bool:
    """Return whether a piece is what could not be read."""
    return not piece.name and (piece.type == UNREAD or piece.type.startswith(UNFIT))


class Codec(Protocol):
    """A schema, ready to decode payloads of one type."""

    @property
    def type_name(self) -> str:
        """Name of the record, message, or title; empty where the schema has none."""

    def decode(self, data: bytes) -> Value:
        """Return the value; `PayloadError` where the bytes do not fit to the last one."""

    def encode(self, value: Value) -> bytes:
        """Return the bytes of a value in the form of `decode`; `PayloadError` where it does not
        fit."""

    def explain(self, data: bytes) -> Piece:
        """Return the pieces of a payload with their bytes, as far as it can be read."""


Selector: TypeAlias = "tuple[int, ...] | int | str | None"
"""Which message of a Protobuf file: indexes, the position among the sorted names of all messages, a
full or simple name; None for the first."""


class Compiled(Protocol):
    """A schema with all that it refers to."""

    def codec(self, which: Selector = None, data: bytes = b"") -> Codec:
        """Return what decodes one type of the schema; `PayloadError` where there is none such.
        `data`: the payload, where serializers select in different ways."""


Lookup: TypeAlias = Callable[[str], str | None]
"""Text of the schema that defines a name which no reference resolves; None if there is none."""
