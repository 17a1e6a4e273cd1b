"""Decodes keys and values of records: finds the schema, reads the payload to its last byte."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.schemas.framing import (
    Candidate,
    Headers,
    Side,
    candidates,
    likely,
    message_index,
    message_name,
    plausible,
    unpacked,
    varint,
    worth,
)
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import (
    Codec,
    Format,
    PayloadError,
    Piece,
    Schema,
    SchemaKey,
    Selector,
    has_unknown,
    is_too_much,
)
from kafkascope.schemas.paths import dumps

if TYPE_CHECKING:
    from kafkascope.schemas.known import KnownSchemas

SHORT: Final = min(map(LIMITS.payload, ("avro", "protobuf", "json")))
"""Payloads of this size are decoded of all formats."""
JSON_BEGINS: Final = (b"{", b"[", b'"')
# Bytes of Confluent's framing.
PREFIX: Final = 5


class FoundSchema(NamedTuple):
    """The schema of a payload, with what decodes it."""

    schema: Schema
    key: SchemaKey | None
    """The id in the payload; None where the user assigned the schema."""
    codec: Codec
    at: int
    """Size of the framing before the payload."""
    data: bytes
    """The payload."""
    subject: str
    """The subject that it was most likely written for; empty where none is known."""

    def as_json(self) -> dict[str, Any]:
        """Return the members of a schema in record/1."""
        out: dict[str, Any] = {"format": self.schema.format}
        if self.key is not None:
            out["guid" if self.key.namespace == "guid" else "id"] = self.key.value
        out["subject"] = self.subject or None
        out["type"] = self.codec.type_name or None
        out["source"] = self.schema.source
        return out


class Decoded(NamedTuple):
    """The result for a key or value that names a schema."""

    found: FoundSchema | None
    """None where no schema of that id is known."""
    key: SchemaKey | None
    value: Any = None
    error: PayloadError | None = None


class Payloads:
    """Decodes keys and values with the schemas that are known."""

    def __init__(self, known: KnownSchemas, *, late_names: bool = False) -> None:
        """`late_names`: for a topic without a name, list all subjects that its name could decide
        between, see `with_subject`."""
        self.known = known
        self._late_names = late_names
        self._prefixes: dict[tuple[str | None, Side, bytes], tuple[Schema, SchemaKey, Codec, str]]
        self._prefixes = {}
        self._forgotten = 0
        self._unfolded = 0
        """Size of values that expanded to an unusual multiple of their bytes."""

    def named(
        self, side: Side, data: bytes | None, headers: Headers
    ) -> tuple[SchemaKey, Schema | None] | None:
        """Return which schema a key or value names, by its framing alone, and the schema where it
        is known already; sends no request."""
        if data is None or not worth(data, headers):
            return None
        found = candidates(side, data, headers)
        each = next((each for each in found if self.known.knows(each.key)), None)
        each = each or plausible(found, len(data), self.known.spaces)
        if each is None:
            return None
        schemas = self.known.find(each.key) if self.known.knows(each.key) else []
        return each.key, schemas[0] if schemas else None

    def ready(self, side: Side, data: bytes, headers: Headers) -> bool:
        """Return whether `decode` returns at once: every schema that it may need is known, or no
        source is left to request it from."""
        if not worth(data, headers):
            return True
        return all(self.known.settled(each.key) for each in candidates(side, data, headers))

    def decode(
        self, topic: str | None, side: Side, data: bytes | None, headers: Headers
    ) -> Decoded | None:
        """Decode a key or value by its schema; None where it names none."""
        if data is None or not (worth(data, headers) or self.known.assigned):
            return None
        if not headers and data[:1] == b"\0" and len(data) <= SHORT:
            usual = self._prefixes.get((topic, side, data[:PREFIX]))
            if usual is not None:
                schema, key, codec, subject = usual
                try:
                    value = codec.decode(data[PREFIX:])
                except PayloadError:
                    pass  # Perhaps another reading fits.
                else:
                    found = FoundSchema(schema, key, codec, PREFIX, data[PREFIX:], subject)
                    return Decoded(found, key, value)
        return self._searched(topic, side, data, headers)

    def _searched(
        self, topic: str | None, side: Side, data: bytes, headers: Headers
    ) -> Decoded | None:
        named = candidates(side, data, headers)
        failed: Decoded | None = None
        # What is known needs no question to a registry: ids of other namespaces wait behind it.
        named.sort(key=lambda each: not self.known.knows(each.key))
        for each in named:
            if not (likely(each) or self.known.knows(each.key)):
                continue
            schemas = self.known.find(each.key)
            if schemas and each.packed:
                try:
                    each = self._unpacked(each)
                except PayloadError as error:
                    failed = failed or Decoded(None, each.key, None, error.without_frames())
                    continue
            for schema in schemas:
                for reading in _readings(each, schema):
                    decoded = self._with(topic, side, reading, schema)
                    if decoded.error is not None or (
                        reading.typed != each.typed and has_unknown(decoded.value)
                    ):
                        failed = failed or decoded
                        continue
                    found = decoded.found
                    if found is not None and found.at == PREFIX and schema.format != "protobuf":
                        self._remember(topic, side, data, found)
                    return decoded
        assigned = self.known.assigned.get((topic or "", side))
        if assigned is not None:
            whole = Candidate(SchemaKey("id", 0), data, 0, True, "", assigned.selector)
            decoded = self._with(topic, side, whole, assigned.schema)
            if decoded.found is not None:
                decoded = decoded._replace(key=None, found=decoded.found._replace(key=None))
            return decoded
        if failed is not None:
            return failed
        unknown = plausible(named, len(data), self.known.spaces)
        if unknown is None:
            return None
        text = f"no schema with {unknown.key}"
        return Decoded(None, unknown.key, None, PayloadError("unknown-schema", text))

    def _unpacked(self, each: Candidate) -> Candidate:
        """Decompress a payload, unless the total of unusual expansions is used up."""
        if self._unfolded > LIMITS.unusual_bytes:
            most, ratio = LIMITS.unusual_bytes >> 20, LIMITS.unusual_ratio
            why = f"more than {most} MB of values expand to more than {ratio} times their size"
            raise PayloadError("bad-schema", f"not read: {why}")
        found = unpacked(each)
        if len(found.data) > LIMITS.unusual_ratio * len(each.data):
            self._unfolded += len(found.data)
        return found

    def _with(self, topic: str | None, side: Side, each: Candidate, schema: Schema) -> Decoded:
        try:
            found = self._found(topic, side, each, schema)
        except PayloadError as error:
            return Decoded(None, each.key, None, error.without_frames())
        try:
            _refuse_too_much(schema.format, found.data)
            return Decoded(found, each.key, found.codec.decode(found.data))
        except PayloadError as error:
            return Decoded(found, each.key, None, error.shifted(found.at))

    def _found(self, topic: str | None, side: Side, each: Candidate, schema: Schema) -> FoundSchema:
        compiled = self.known.compiled(schema)
        at, data, selector = each.at, each.data, each.selector
        if schema.format == "protobuf" and each.typed:
            selector, skip = _type_of(each)
            at, data = at + skip, data[skip:]
        if schema.format == "avro" and not each.confluent:
            # Confluent's serializers write values of the schema "bytes" without their length.
            selector = "avro"
        if each.json and schema.format == "avro":
            codec: Codec = compiled.json_codec()  # type: ignore[attr-defined]
        else:
            codec = compiled.codec(selector, data)
        subject = _subject([name for name, _ in schema.subjects], topic, side)
        return FoundSchema(schema, each.key, codec, at, data, subject)

    def _remember(self, topic: str | None, side: Side, data: bytes, found: FoundSchema) -> None:
        if len(self._prefixes) >= LIMITS.prefixes or self._forgotten != self.known.forgotten:
            self._prefixes.clear()
            self._forgotten = self.known.forgotten
        if found.key is not None:
            entry = found.schema, found.key, found.codec, found.subject
            self._prefixes[topic, side, data[:PREFIX]] = entry

    def members(
        self,
        topic: str | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> bytes:
        """Return the decoded key and value of a record and their schemas, as JSON members of
        record/1; empty where neither names a schema."""
        out = b""
        if not (worth(key, headers) or worth(value, headers) or self.known.assigned):
            return out
        for side, data in (("key", key), ("value", value)):
            if data is None:
                continue
            decoded = self.decode(topic, side, data, headers)  # type: ignore[arg-type]
            if decoded is None:
                continue
            shown: dict[str, Any] = {}
            if decoded.found is not None:
                members = shown[f"{side}_schema"] = decoded.found.as_json()
                if topic is None and self._late_names:
                    names = [name for name, _ in decoded.found.schema.subjects]
                    members["subject"] = names if len(names) > 1 else members["subject"]
            if decoded.error is None:
                shown[f"{side}_decoded"] = decoded.value
            else:
                shown[f"{side}_error"] = decoded.error.as_json()
            out += (b"," if out else b"") + dumps(shown)[1:-1]
        return out

    def explain(self, found: FoundSchema) -> Piece:
        """Return the parts of a payload with their bytes, counted from the start of the key or
        value."""
        return shifted(found.codec.explain(found.data), found.at)


def _readings(each: Candidate, schema: Schema) -> Iterator[Candidate]:
    """Yield a candidate as its framing says, and as some serializers write with that framing."""
    yield each
    typed = each.typed == "index" and each.key.namespace == "id"
    if schema.format == "protobuf" and typed and each.data:
        # Confluent's clients for Python, by default before 1.8, and .NET, with
        # use.deprecated.format.
        yield each._replace(typed="unsigned")
        # KafkaJS writes no index before the first message of a file. Its fields never look like
        # one of three levels or less, which begins with a tag of field 0.
        yield each._replace(typed="")
    if schema.format == "avro" and not each.json and each.data[:1] in JSON_BEGINS:
        # What Apicurio's serializer writes with apicurio.registry.avro.encoding=JSON: with the id
        # before the payload, no header says so. In binary, a first field that begins as JSON does
        # would be a text of a negative length, or a number that text follows by chance.
        yield each._replace(json=True)


def _refuse_too_much(format: Format, data: bytes) -> None:
    """Refuse a payload whose value could take too much memory. It may be valid, so the reason is
    not `does-not-fit`."""
    most = LIMITS.payload(format)
    if len(data) > most:
        why = f"{len(data):,} bytes, more than {most:,} that are decoded of {format}"
        raise PayloadError("bad-schema", f"not read: {why}")
    if format == "json" and is_too_much(data):
        raise PayloadError("bad-schema", f"not read: more than {LIMITS.json_values:,} values")


def shifted(piece: Piece, by: int) -> Piece:
    inner = tuple(shifted(each, by) for each in piece.pieces)
    return piece._replace(begin=piece.begin + by, end=piece.end + by, pieces=inner)


def _type_of(each: Candidate) -> tuple[Selector, int]:
    """Read which message of a Protobuf file follows: in the framing's form, else in the other of
    those that begin alike."""
    if each.typed == "position":
        return varint(each.data)
    if each.typed == "unsigned":
        return message_index(each.data, signed=False)
    ways = (message_index, message_name) if each.typed == "index" else (message_name, message_index)
    first, other = ways
    try:
        return first(each.data)
    except PayloadError:
        return other(each.data)


def _subject(names: Sequence[str], topic: str | None, side: Side) -> str:
    """Return the subject of the default naming strategy (TOPIC-value), else the first."""
    usual = f"{topic}-{side}"
    return usual if usual in names else names[0] if names else ""


OPEN_SUBJECT: Final = '"subject":['
"""Begins the subject of a schema whose topic had no name yet."""


def with_subject(text: str, topic: str | None, side: Side) -> str:
    """Return the text of `key_schema` or `value_schema` with one subject, chosen once the topic's
    name is known."""
    members = json.loads(text)
    if isinstance(members["subject"], list):
        members["subject"] = _subject(members["subject"], topic, side)
    return dumps(members).decode()
