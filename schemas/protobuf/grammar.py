"""Parses the text of a `.proto` file into a FileDescriptorProto: proto2, proto3, editions.

Names of types stay as they are written; `files` resolves them. What bytes and JSON forms do not
depend on is skipped: services, custom options, default values, comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.protobuf.kinds import GROUP, MAP_KEYS, MESSAGE, SCALARS
from kafkascope.schemas.protobuf.options import option, options, service
from kafkascope.schemas.protobuf.tokens import Tokens

_LABELS: Final = {"optional": 1, "required": 2, "repeated": 3}
_BREAKS: Final = re.compile(r"\n[ \t]*(?=\n)")
_END_OF_FIELDS: Final = 0x20000000
_END_OF_EXTENSIONS_OF_SETS: Final = 0x7FFFFFFF
_END_OF_VALUES: Final = 0x7FFFFFFF


def parse(text: str, name: str) -> Any:
    """Return the FileDescriptorProto of a source; `PayloadError` with the line where it is none."""
    return _Parser(text, name).file()


def without_options(text: str) -> str:
    """Return a source without comments, and options that do not say how bytes are read."""
    parser = _Parser(text, "")
    parser.file()
    parts, at = [], 0
    for begin, end, instead in sorted(parser.tokens.cuts):
        if begin >= at:
            parts += [text[at:begin], instead]
            at = end
    return _BREAKS.sub("", "".join((*parts, text[at:])).rstrip()) + "\n"


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        from google.protobuf import descriptor_pb2

        self._pb = descriptor_pb2
        self.tokens = Tokens(text)
        self._out = descriptor_pb2.FileDescriptorProto(name=name)
        self._proto3 = False

    def file(self) -> Any:
        tokens, out = self.tokens, self._out
        if tokens.next.text in ("syntax", "edition"):
            self._syntax(tokens.take().text)
        while tokens.next.kind != "end":
            if tokens.skip(";"):
                continue
            word = tokens.word("a declaration")
            match word:
                case "import":
                    self._import()
                case "package":
                    out.package = tokens.name("a package")
                    tokens.expect(";")
                case "option":
                    option(tokens, out)
                case "service":
                    tokens.word("a name")
                    if tokens.next.text != "{":
                        raise tokens.wrong("expected '{'")
                    service(tokens, self._pb.ServiceDescriptorProto())
                case "extend":
                    self._extend(out.extension, out.message_type, 0)
                case _:
                    self._type(word, out.message_type, out.enum_type, 0)
        return out

    def _syntax(self, word: str) -> None:
        tokens, out = self.tokens, self._out
        tokens.expect("=")
        at = tokens.next.begin
        version = tokens.string("proto2 or proto3" if word == "syntax" else "an edition")
        try:
            if word == "edition":
                out.edition = self._pb.Edition.Value(f"EDITION_{version}")
            elif version not in ("proto2", "proto3"):
                raise ValueError
        except ValueError:
            raise tokens.error(f"unknown {word} {version[:40]!r}", at) from None
        self._proto3 = version == "proto3"
        if version != "proto2":
            out.syntax = version if word == "syntax" else "editions"
        tokens.expect(";")

    def _block(self) -> Iterator[None]:
        """Yield where a statement begins, until the bracket that ends them."""
        self.tokens.expect("{")
        while not self.tokens.skip("}"):
            if not self.tokens.skip(";"):
                yield

    def _type_or_keyword(self) -> str:
        """Return the first word of a statement; that of a type's name from the root has a dot."""
        tokens = self.tokens
        return "." + tokens.name("a field") if tokens.skip(".") else tokens.word("a field")

    def _is_option(self, word: str) -> bool:
        return word == "option" and self._next_is("(")

    def _next_is(self, sign: str) -> bool:
        """Return whether a word or a sign follows: a field's type may have the name of a keyword,
        and then something else does."""
        return self.tokens.next.kind == "word" or self.tokens.next.text == sign

    def _import(self) -> None:
        tokens, out = self.tokens, self._out
        # `import option` (edition 2024) brings options only.
        kind = tokens.take().text if tokens.next.text in ("public", "weak", "option") else ""
        path = tokens.string("a path")
        tokens.expect(";")
        if kind == "option":
            return
        if kind == "public":
            out.public_dependency.append(len(out.dependency))
        elif kind == "weak":
            out.weak_dependency.append(len(out.dependency))
        out.dependency.append(path)

    def _type(self, word: str, messages: Any, enums: Any, depth: int) -> None:
        tokens = self.tokens
        if word in ("export", "local") and tokens.next.text in ("message", "enum"):
            word = tokens.take().text
        if word == "message":
            message = messages.add(name=tokens.word("a name"))
            self._message(message, depth + 1)
        elif word == "enum":
            self._enum(enums.add(name=tokens.word("a name")))
        else:
            raise tokens.wrong(f"{word[:40]!r} does not start a declaration")

    def _message(self, message: Any, depth: int) -> None:
        tokens = self.tokens
        if depth > LIMITS.message_nesting:
            raise tokens.wrong(f"messages nested deeper than {LIMITS.message_nesting}")
        optional: list[Any] = []
        for _ in self._block():
            at = tokens.next
            word = self._type_or_keyword()
            following = tokens.next
            if (word in ("message", "enum") and following.kind == "word") or (
                word in ("export", "local") and following.text in ("message", "enum")
            ):
                self._type(word, message.nested_type, message.enum_type, depth)
            elif self._is_option(word):
                option(tokens, message)
            elif word == "extend" and self._next_is("."):
                self._extend(message.extension, message.nested_type, depth)
            elif word == "oneof" and following.kind == "word":
                self._oneof(message, depth)
            elif word == "extensions" and following.kind == "number":
                self._ranges(message.extension_range, message)
            elif word == "reserved" and following.kind in ("number", "text", "word"):
                if not self._reserved(message, at.begin):
                    self._field(message.field, message.nested_type, word, None, depth)
            else:
                field = self._member(message.field, message.nested_type, word, depth)
                if field.proto3_optional:
                    optional.append(field)
        self._synthetic(message, optional)
        self._close_sets(message)

    def _synthetic(self, message: Any, optional: list[Any]) -> None:
        """Give each optional field of proto3 the oneof that protoc makes for it."""
        if not optional:
            return
        names = {each.name for each in (*message.field, *message.oneof_decl)}
        for field in optional:
            name = field.name if field.name.startswith("_") else f"_{field.name}"
            while name in names:
                name = f"X{name}"
            names.add(name)
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=name)

    def _close_sets(self, message: Any) -> None:
        """`max` of an extension range is further away in messages of the old set format."""
        if message.options.message_set_wire_format:
            for each in message.extension_range:
                if each.end == _END_OF_FIELDS:
                    each.end = _END_OF_EXTENSIONS_OF_SETS

    def _member(self, fields: Any, nested: Any, word: str, depth: int) -> Any:
        tokens = self.tokens
        if word not in _LABELS or not self._next_is("."):
            return self._field(fields, nested, tokens.rest_of_name(word), None, depth)
        field = self._field(fields, nested, tokens.name("a type"), _LABELS[word], depth)
        if word == "optional" and self._proto3:
            field.proto3_optional = True
        return field

    def _field(self, fields: Any, nested: Any, kind: str, label: int | None, depth: int) -> Any:
        tokens = self.tokens
        if kind == "map" and tokens.next.text == "<":
            return self._map(fields, nested)
        at = tokens.next.begin
        name = tokens.word("a name")
        field = fields.add(label=label or 1)
        tokens.expect("=")
        field.number = self._number(tokens.integer("a number"), at)
        if kind == "group":
            field.name, field.type, field.type_name = name.lower(), GROUP, name
            self._field_options(field)
            self._message(nested.add(name=name), depth + 1)
            return field
        field.name = name
        scalar = SCALARS.get(kind)
        if scalar is None:
            field.type_name = kind
        else:
            field.type = scalar
        self._field_options(field)
        tokens.expect(";")
        return field

    def _number(self, number: int, at: int) -> int:
        if not 0 < number < _END_OF_FIELDS:
            raise self.tokens.error(f"{number} is not a valid field number", at)
        return number

    def _map(self, fields: Any, nested: Any) -> Any:
        tokens = self.tokens
        at = tokens.next.begin
        tokens.expect("<")
        key = tokens.word("a type")
        if key not in MAP_KEYS:
            raise tokens.error(f"{key[:40]!r} is not allowed as a map key", at)
        tokens.expect(",")
        value = tokens.name("a type")
        tokens.expect(">")
        name = tokens.word("a name")
        tokens.expect("=")
        number = self._number(tokens.integer("a number"), at)
        camel = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
        entry = nested.add(name=f"{camel}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=1, type=SCALARS[key])
        second = entry.field.add(name="value", number=2, label=1)
        if value in SCALARS:
            second.type = SCALARS[value]
        else:
            second.type_name = value
        field = fields.add(name=name, number=number, label=3, type=MESSAGE, type_name=entry.name)
        self._field_options(field)
        features = field.options.features
        if field.options.HasField("features"):
            # What a map's field says of its text counts for its keys and values.
            for each in entry.field:
                if features.HasField("utf8_validation"):
                    each.options.features.utf8_validation = features.utf8_validation
        tokens.expect(";")
        return field

    def _oneof(self, message: Any, depth: int) -> None:
        tokens = self.tokens
        index = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=tokens.word("a name"))
        for _ in self._block():
            word = tokens.name("a field")
            if self._is_option(word):
                option(tokens, oneof)
            else:
                field = self._field(message.field, message.nested_type, word, None, depth)
                field.oneof_index = index

    def _extend(self, extensions: Any, nested: Any, depth: int) -> None:
        extendee = self.tokens.name("a message")
        for _ in self._block():
            field = self._member(extensions, nested, self._type_or_keyword(), depth)
            field.extendee = extendee

    def _enum(self, enum: Any) -> None:
        tokens = self.tokens
        for _ in self._block():
            at = tokens.next.begin
            word = tokens.word("a value")
            if word == "option" and tokens.next.text != "=":
                option(tokens, enum)
            elif word == "reserved" and tokens.next.text != "=":
                if not self._reserved(enum, at):
                    raise tokens.wrong("expected '='")
            else:
                tokens.expect("=")
                number = tokens.integer("a number")
                if not -0x80000000 <= number <= 0x7FFFFFFF:
                    raise tokens.error(f"{number} exceeds 32 bits", at)
                value = enum.value.add(name=word, number=number)
                if tokens.skip("["):
                    options(tokens, value)
                tokens.expect(";")

    def _range(self, last: int) -> tuple[int, int]:
        tokens = self.tokens
        at = tokens.next.begin
        first = tokens.integer("a number")
        end = first
        if tokens.skip("to"):
            end = last if tokens.skip("max") else tokens.integer("a number or max")
        if not (-0x80000000 <= first <= end <= last):
            raise tokens.error(f"{first} to {end} is not a range", at)
        return first, end

    def _ranges(self, ranges: Any, message: Any) -> None:
        tokens = self.tokens
        while True:
            first, last = self._range(_END_OF_FIELDS - 1)
            ranges.add(start=first, end=last + 1)
            if not tokens.skip(","):
                break
        if tokens.next.text == "[":
            begin = tokens.next.begin
            tokens.skip_balanced()
            tokens.cut(begin)
        tokens.expect(";")

    def _reserved(self, owner: Any, at: int) -> bool:
        """Read reserved numbers or names; False for a field whose type has that name."""
        tokens = self.tokens
        of_enum = hasattr(owner, "value")
        if tokens.next.kind == "word" and self._out.syntax != "editions":
            if not of_enum:
                return False
            raise tokens.wrong("expected a number or text")
        while True:
            if tokens.next.kind == "text":
                owner.reserved_name.append(tokens.string("a name"))
            elif tokens.next.kind == "word":
                owner.reserved_name.append(tokens.take().text)
            else:
                first, last = self._range(_END_OF_VALUES if of_enum else _END_OF_FIELDS - 1)
                owner.reserved_range.add(start=first, end=last if of_enum else last + 1)
            if not tokens.skip(","):
                break
        tokens.expect(";")
        return True

    def _field_options(self, field: Any) -> None:
        if self.tokens.skip("["):
            options(self.tokens, field)
