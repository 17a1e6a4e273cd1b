"""Keys and values that a schema decodes as text: what they are, their fields, or why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kafkascope.analyzer.render.values import LIST_SHOWN
from kafkascope.analyzer.text import escaped
from kafkascope.dissectors.codec.jsonform import dumps
from kafkascope.schemas.decoding import Decoded, Payloads
from kafkascope.schemas.framing import Side
from kafkascope.schemas.model import PayloadError, Piece, SchemaKey, Value, is_mark, is_unread

# Characters of a value as JSON up to which it stands on the line of its record.
ON_LINE: Final = 80
# Bytes of a payload that is shown; compressed ones may unfold to much more.
LONGEST: Final = 1 << 20
# Bytes of a payload whose fields are shown with their bytes: about half a second.
EXPLAINED: Final = 1 << 17
# Fields of a payload that are shown with their bytes.
PIECES_SHOWN: Final = 10_000


class PayloadText(NamedTuple):
    """A key or value on the line of its record, and the lines below that."""

    on_line: str
    below: list[str]


def payload_text(
    side: Side, decoded: Decoded, payloads: Payloads, raw: str, data: bytes, at: int | None
) -> PayloadText:
    """Return the text of a key or value. `raw`: its bytes as text, for what cannot be decoded;
    `at`: where it begins, to show the bytes of its fields; None to show none."""
    title, found = schema_title(decoded), decoded.found
    if decoded.error is not None:
        return PayloadText(f"{title} {raw}", [f"! {side} {error_text(decoded.error)}"])
    if found is not None and (size := len(found.data)) > LONGEST:
        return PayloadText(f"{title} {size:,} bytes, not shown (records --json has all)", [])
    if at is not None and found is not None and has_places(decoded, data):
        whole = payloads.explain(found)
        return PayloadText(f"{title} {len(data)} bytes", list(_piece_lines(side, whole, at)))
    text = _json(decoded.value)
    if len(text) <= ON_LINE:
        return PayloadText(f"{title} {text}", [])
    return PayloadText(f"{title} {len(data)} bytes", list(_value_lines(side, decoded.value)))


def schema_title(decoded: Decoded) -> str:
    """Return the schema of a key or value as text: `(avro geo.City, schema 2)`."""
    words = []
    if decoded.found is not None:
        name = decoded.found.codec.type_name
        words.append(decoded.found.schema.format + (f" {escaped(name)}" if name else ""))
    if decoded.key is not None:
        words.append(f"schema {key_text(decoded.key)}")
    return f"({', '.join(words)})"


def key_text(key: SchemaKey) -> str:
    """Return the number of a schema; with its kind where it is not the usual one."""
    return str(key.value) if key.namespace == "id" else str(key)


def error_text(error: PayloadError) -> str:
    """Return why a key or value is not decoded: the reason, the place and the sentence."""
    path = f" at {escaped(error.path)}" if error.path else ""
    return f"{error.reason}{path}: {escaped(error.text)}"


def has_places(decoded: Decoded, data: bytes) -> bool:
    """Return whether the fields of a payload are shown with their bytes in the key or value: not
    where it is compressed, or long."""
    found = decoded.found
    return found is not None and len(found.data) <= EXPLAINED and found.data == data[found.at :]


def piece_text(piece: Piece) -> str:
    """Return the value of a piece on one line; of one with others below its type."""
    if is_unread(piece):
        return f"! {escaped(piece.type)}"
    if piece.pieces:
        return f"({escaped(piece.type)})" if piece.type else ""
    return _json(piece.value)


def pieces_below(piece: Piece) -> list[Piece]:
    """Return the fields of a piece, without counts and indexes."""
    return [each for each in piece.pieces if not is_mark(each)]


def _json(value: Value) -> str:
    return dumps(value).decode("utf-8", "replace")


def _value_lines(name: str, value: Value) -> Iterator[str]:
    """Yield `name: value`, and the fields of a value below its name."""
    if isinstance(value, dict) and value and value.keys() != {"base64"}:
        yield name
        for key, inner in value.items():
            yield from (f"  {line}" for line in _value_lines(escaped(key), inner))
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        yield f"{name}: {len(value)}"
        for index, inner in enumerate(value[:LIST_SHOWN]):
            yield from (f"  {line}" for line in _value_lines(f"[{index}]", inner))
        if len(value) > LIST_SHOWN:
            yield f"  ... {len(value) - LIST_SHOWN:,} more"
    else:
        yield f"{name}: {_json(value)}"


def _piece_lines(side: Side, whole: Piece, at: int) -> Iterator[str]:
    stack = [(whole._replace(name=side), 0)]
    shown = 0
    while stack:
        piece, depth = stack.pop()
        if shown >= PIECES_SHOWN:
            yield "... more fields, not shown"
            return
        shown += 1
        name = f"{escaped(piece.name)}: " if piece.name else ""
        begin, end = at + piece.begin, at + piece.end
        place = f" (bytes {begin}-{end - 1})" if end > begin else ""
        yield f"{'  ' * depth}{name}{piece_text(piece)}{place}"
        stack += [(each, depth + 1) for each in reversed(pieces_below(piece))]
