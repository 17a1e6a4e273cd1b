"""Writes bodies of messages as JSON, from the bytes: the walker's other output. It goes over a tree
of `JsonField`s (`analyzer/export/pair_lines.py`), which says what stands where and what stands
before each value in JSON. A body has passed the walker before, so that its counts are bounded;
whatever does not fit here all the same is `Refused`, and the general way writes it.

Compiled by mypyc; the same source runs without.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter
from mypy_extensions import i64

from kafkascope.kernel.json_values import base64_of, text_of, uuid_of, write_number
from kafkascope.kernel.walker import (
    ARRAY,
    LONGEST_TEXT,
    MAX_TEXTS,
    NUMBER,
    STRING,
    STRUCT,
    TEXT,
    UUID,
    Refused,
    read_length,
    read_number,
    read_size,
)

# Kinds of fields beside those of the walker.
BOOL: Final[i64] = 7
# Its JSON is made beforehand: see `JsonBodies.write`.
RECORDS: Final[i64] = 8


class JsonField:
    """One field of one version, the element of an array, or the body itself."""

    def __init__(self, kind: i64) -> None:
        self.kind: i64 = kind
        self.before = b""
        """What stands before its value: a comma where another one is before it, and its name."""
        self.size: i64 = 0
        """Bytes of a number."""
        self.signed: bool = True
        self.compact: bool = False
        self.nullable: bool = False
        self.long: bool = False
        """A string with a length of four bytes."""
        self.kids: list[JsonField] = []
        """Fields of a struct, or the element of an array."""
        self.flexible: bool = False
        self.tags: list[JsonField] = []
        """Tagged fields, in the order of their tags, which is that of the JSON, too."""
        self.tag: i64 = -1
        self.default = b""
        """JSON of a tagged field that is not there."""


@final
class JsonTexts:
    """JSON of strings and ids by their bytes: each is encoded once."""

    def __init__(self) -> None:
        self.known: dict[bytes, bytes] = {}
        self.size: i64 = 0

    def of(self, raw: bytes) -> bytes:
        """Return the JSON of a string; raise `Refused` for one that is not UTF-8."""
        text = self.known.get(raw)
        if text is None:
            try:
                text = text_of(raw.decode())
            except UnicodeDecodeError:
                raise Refused from None
            if len(raw) <= LONGEST_TEXT:
                self.size += len(raw) + TEXT
                if self.size > MAX_TEXTS:
                    # All at once: as `Texts` of the walker.
                    self.known.clear()
                    self.size = len(raw) + TEXT
                self.known[raw] = text
        return text


@final
class JsonBodies:
    """Writes one body after the other."""

    def __init__(self, texts: JsonTexts) -> None:
        self.texts = texts
        self.out = BytesWriter()
        self.records: list[bytes] = []
        self.next: i64 = 0
        """Index of the records field that comes next."""

    def write(
        self,
        out: BytesWriter,
        field: JsonField,
        data: bytes,
        at: i64,
        end: i64,
        records: list[bytes],
    ) -> None:
        """Write the body in [at, end). `records`: the JSON of its records fields, in the order of
        the wire."""
        self.out = out
        self.records = records
        self.next = 0
        if self.value(field, data, at, end) != end or self.next != len(records):
            raise Refused

    def value(self, field: JsonField, data: bytes, at: i64, end: i64) -> i64:
        """Write one value; return the offset after it."""
        kind = field.kind
        out = self.out
        out.write(field.before)
        if kind == NUMBER:
            size = field.size
            if at + size > end:
                raise Refused
            write_number(out, read_number(data, at, size, field.signed))
            return at + size
        if kind == STRUCT:
            return self.struct(field, data, at, end)
        if kind == BOOL:
            if at >= end:
                raise Refused
            out.write(b"true" if data[at] != 0 else b"false")
            return at + 1
        if kind == UUID:
            if at + 16 > end:
                raise Refused
            out.write(uuid_of(data[at : at + 16]))
            return at + 16
        size, at = read_size(data, at, end, field.compact, kind == STRING and not field.long)
        if kind == RECORDS:
            if self.next >= len(self.records):
                raise Refused
            out.write(self.records[self.next])
            self.next += 1
            return at if size < 0 else at + size
        if size < 0:
            if size != -1 or not field.nullable:
                raise Refused
            out.write(b"null")
            return at
        if kind == ARRAY:
            return self.array(field, data, at, end, size)
        if at + size > end:
            raise Refused
        if kind == STRING:
            out.write(self.texts.of(data[at : at + size]))
        else:
            out.write(base64_of(data[at : at + size]))
        return at + size

    def array(self, field: JsonField, data: bytes, at: i64, end: i64, count: i64) -> i64:
        element = field.kids[0]
        out = self.out
        out.write(b"[")
        for index in range(count):
            if index > 0:
                out.write(b",")
            at = self.value(element, data, at, end)
        out.write(b"]")
        return at

    def struct(self, field: JsonField, data: bytes, at: i64, end: i64) -> i64:
        """Write the fields of a struct, and what is tagged after them."""
        out = self.out
        if field.nullable and field.tag < 0:
            if at >= end:
                raise Refused
            marker: i64 = data[at]
            at += 1
            if marker == 255:
                out.write(b"null")
                return at
            if marker != 1:
                raise Refused
        out.write(b"{")
        for kid in field.kids:
            at = self.value(kid, data, at, end)
        if field.flexible:
            if at >= end:
                raise Refused
            count, at = read_length(data, at, end)
            at = self.tagged(field, data, at, end, count)
        out.write(b"}")
        return at

    def tagged(self, field: JsonField, data: bytes, at: i64, end: i64, count: i64) -> i64:
        """Write the tagged fields, of which `count` are there; raise `Refused` where one of them is
        unknown."""
        out = self.out
        tag: i64 = -1
        size: i64 = 0
        if count > 0:
            tag, at = read_length(data, at, end)
            size, at = read_length(data, at, end)
        for known in field.tags:
            if known.tag != tag:
                out.write(known.before)
                out.write(known.default)
                continue
            stop = at + size
            if stop > end:
                raise Refused
            at = self.present(known, data, at, stop)
            if at != stop:
                raise Refused
            count -= 1
            tag = -1
            if count > 0:
                tag, at = read_length(data, at, end)
                size, at = read_length(data, at, end)
        if count > 0:
            raise Refused
        return at

    def present(self, field: JsonField, data: bytes, at: i64, end: i64) -> i64:
        """Write a tagged field that is there; its end is that of its bytes."""
        if field.kind == STRUCT and field.nullable:
            marker, at = read_length(data, at, end)
            if marker == 0:
                self.out.write(field.before)
                self.out.write(b"null")
                return at
            if marker != 1:
                raise Refused
        return self.value(field, data, at, end)
