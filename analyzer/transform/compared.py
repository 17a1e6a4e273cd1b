"""Compares two exchanges field by field, for `diff` and the terminal UI."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.model import Exchange, Request, Response
from kafkascope.analyzer.transform.diff import Decode, ValuePath, differences
from kafkascope.dissectors.codec.tree import Node, annotate
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.embedded.masking import has_secrets
from kafkascope.dissectors.records.redaction import masked_body

if TYPE_CHECKING:
    from kafkascope.dissectors.records.records import Record
    from kafkascope.schemas.decoding import Decoded, Payloads
    from kafkascope.schemas.model import Value


# Of a field.
MAX_SHOWN_BYTES: Final = 16


def compared(
    a: Exchange,
    b: Exchange,
    sides: tuple[str, ...],
    strict: bool,
    show_hex: bool,
    decode: Decode | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the differences as objects with `side`, `path`, `left`, and `right`, those of the
    headers first. `decode`: compares keys and values of records by their schemas."""
    for name in ("api", "api_version", "client_id", "state", "correlation_id"):
        left, right = getattr(a, name), getattr(b, name)
        if left != right and (strict or name != "correlation_id"):
            yield {"side": "exchange", "path": name, "left": left, "right": right}
    if a.api_key != b.api_key:
        return
    for side in sides:
        yield from _messages(side, getattr(a, side), getattr(b, side), strict, show_hex, decode)


def _messages(
    side: str,
    a: Request | Response | None,
    b: Request | Response | None,
    strict: bool,
    show_hex: bool,
    decode: Decode | None,
) -> Iterator[dict[str, Any]]:
    if a is None or b is None or a.decoded is None or b.decoded is None:
        left, right = (
            "none" if each is None else "undecoded" if each.decoded is None else "decoded"
            for each in (a, b)
        )
        if left != right:
            yield {"side": side, "path": "", "left": left, "right": right}
        return
    layouts = a.decoded.layout, b.decoded.layout
    bodies = masked_body(layouts[0], a.decoded.body), masked_body(layouts[1], b.decoded.body)
    if show_hex:
        left_bytes, right_bytes = _bytes_by_path(a), _bytes_by_path(b)
    for each in differences(
        layouts[0], bodies[0], layouts[1], bodies[1], strict=strict, decode=decode
    ):
        line = {"side": side, "path": each.path, "left": each.left, "right": each.right}
        if show_hex and "records[" not in each.path:
            line["left_bytes"] = left_bytes(each.left_place)
            line["right_bytes"] = right_bytes(each.right_place)
        yield line


def _bytes_by_path(message: Request | Response) -> Callable[[ValuePath], str]:
    """Return a function that shows the offsets and bytes of a field; "" for a missing field, and in
    messages with secrets."""
    decoded, payload = message.decoded, message.frame.payload
    assert decoded is not None
    if has_secrets(decoded.layout):
        return lambda path: ""
    root = annotate(decoded.layout, payload, decoded.body_at)
    by_name: dict[int, dict[str, Node]] = {}
    """Children by name, by id of their node: without it each element of an array would be searched
    for among all."""

    def shown(path: ValuePath) -> str:
        node = root
        for part in path:
            if id(node) not in by_name:
                by_name[id(node)] = {child.name: child for child in node.children}
            child = by_name[id(node)].get(f"[{part}]" if isinstance(part, int) else part)
            if child is None:
                return ""
            node = child
        data = payload[node.start : node.end]
        text = data[:MAX_SHOWN_BYTES].hex(" ") + " ..." * (len(data) > MAX_SHOWN_BYTES)
        return f"[{node.start}-{max(node.end - 1, node.start)}] {text}"

    return shown


MISSING: Final = object()


def decoder(left: Payloads | None, right: Payloads | None) -> Decode | None:
    """Return a function that compares decoded keys and values; None if a side has no decoder."""
    if left is None or right is None:
        return None

    def decode(
        topic: str | None, name: str, pair: tuple[Record, Record]
    ) -> list[tuple[str, Any, Any]] | None:
        if is_internal(topic, None):
            return None
        one, two = (
            _decoded(payloads, topic, name, record)
            for payloads, record in zip((left, right), pair, strict=True)
        )
        if one is None or two is None:
            return None
        was, now = (None if each.key is None else str(each.key) for each in (one, two))
        different: list[tuple[str, Any, Any]] = [] if was == now else [(" schema", was, now)]
        different += _differences(one.value, two.value, "")
        return different or None

    return decode


def _decoded(payloads: Payloads, topic: str | None, name: str, record: Record) -> Decoded | None:
    if name == "key":
        decoded = payloads.decode(topic, "key", record.key, record.headers)
    else:
        decoded = payloads.decode(topic, "value", record.value, record.headers)
    return decoded if decoded is not None and decoded.error is None else None


def _differences(one: Value, two: Value, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, dict) and isinstance(two, dict) and "base64" not in one:
        for name in dict.fromkeys((*one, *two)):
            was, now = one.get(name, MISSING), two.get(name, MISSING)
            yield from _pair(was, now, f"{path}.{name}")
    elif isinstance(one, list) and isinstance(two, list):
        for index in range(max(len(one), len(two))):
            was = one[index] if index < len(one) else MISSING
            now = two[index] if index < len(two) else MISSING
            yield from _pair(was, now, f"{path}[{index}]")
    elif type(one) is not type(two) or one != two:
        yield path, one, two


def _pair(was: Any, now: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if was is MISSING or now is MISSING:
        yield path, None if was is MISSING else was, None if now is MISSING else now
    else:
        yield from _differences(was, now, path)
