"""What differs between two exchanges, field by field, as `diff` prints it and the UI shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafkascope.analyzer.model import Exchange, Request, Response
from kafkascope.analyzer.transform.diff import Decode, differences
from kafkascope.dissectors.codec.tree import Node, annotate
from kafkascope.dissectors.embedded.internal import is_internal
from kafkascope.dissectors.embedded.masking import has_secrets
from kafkascope.dissectors.records.redaction import masked_body

if TYPE_CHECKING:
    from kafkascope.dissectors.records.records import Record
    from kafkascope.schemas.decoding import Decoded, Payloads
    from kafkascope.schemas.model import Value


# Bytes of a field that a line shows.
OCTETS: Final = 16


def compared(
    a: Exchange,
    b: Exchange,
    sides: tuple[str, ...],
    strict: bool,
    show_hex: bool,
    decode: Decode | None = None,
) -> Iterator[dict[str, Any]]:
    """What differs, the head first. `decode`: for keys and values of records."""
    for name in ("api", "api_version", "client_id", "state", "correlation_id"):
        one, two = getattr(a, name), getattr(b, name)
        if one != two and (strict or name != "correlation_id"):
            yield {"side": "exchange", "path": name, "left": one, "right": two}
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
        words = tuple(
            "none" if each is None else "undecoded" if each.decoded is None else "decoded"
            for each in (a, b)
        )
        if words[0] != words[1]:
            yield {"side": side, "path": "", "left": words[0], "right": words[1]}
        return
    one, two = a.decoded, b.decoded
    bodies = masked_body(one.layout, one.body), masked_body(two.layout, two.body)
    spans: tuple[Any, Any] = (None, None)
    if show_hex:
        spans = _octets_of(a), _octets_of(b)
    found = differences(one.layout, bodies[0], two.layout, bodies[1], strict=strict, decode=decode)
    for each in found:
        line = {"side": side, "path": each.path, "left": each.left, "right": each.right}
        if show_hex and "records[" not in each.path:
            line["left_bytes"] = spans[0](each.left_place)
            line["right_bytes"] = spans[1](each.right_place)
        yield line


def _octets_of(message: Request | Response) -> Any:
    """place -> the bytes of that field as text; empty when it is not there."""
    decoded, payload = message.decoded, message.frame.payload
    assert decoded is not None
    if has_secrets(decoded.layout):
        return lambda place: ""
    root = annotate(decoded.layout, payload, decoded.body_at)
    named: dict[int, dict[str, Node]] = {}
    """Children by name, of the nodes that were asked for: arrays may be long."""

    def octets(place: tuple[str | int, ...]) -> str:
        node: Node | None = root
        for part in place:
            assert node is not None
            children = named.get(id(node))
            if children is None:
                children = named[id(node)] = {each.name: each for each in node.children}
            node = children.get(f"[{part}]" if isinstance(part, int) else part)
            if node is None:
                return ""
        assert node is not None
        data = payload[node.start : node.end]
        more = " ..." if len(data) > OCTETS else ""
        return f"[{node.start}-{max(node.end - 1, node.start)}] {data[:OCTETS].hex(' ')}{more}"

    return octets


MISSING: Final = object()


def decoder(left: Payloads | None, right: Payloads | None) -> Decode | None:
    """Return what compares decoded keys and values; None where neither side is decoded."""
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
        found: list[tuple[str, Any, Any]] = [] if was == now else [(" schema", was, now)]
        found += _differences(one.value, two.value, "")
        return found or None

    return decode


def _decoded(payloads: Payloads, topic: str | None, name: str, record: Record) -> Decoded | None:
    data = record.key if name == "key" else record.value
    found = payloads.decode(topic, "key" if name == "key" else "value", data, record.headers)
    return found if found is not None and found.error is None else None


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
