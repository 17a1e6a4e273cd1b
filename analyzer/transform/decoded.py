"""What differs between two keys or values that their schemas decode, field by field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafkascope.dissectors.embedded.internal import is_internal

if TYPE_CHECKING:
    from kafkascope.analyzer.payloads.decoding import Decoded, Payloads
    from kafkascope.analyzer.payloads.model import Value
    from kafkascope.analyzer.transform.diff import Decode
    from kafkascope.dissectors.records.records import Record

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
        found = list(_written(one, two))
        found += _differences(one.value, two.value, "")
        return found or None

    return decode


def _decoded(payloads: Payloads, topic: str | None, name: str, record: Record) -> Decoded | None:
    data = record.key if name == "key" else record.value
    found = payloads.decode(topic, "key" if name == "key" else "value", data, record.headers)
    return found if found is not None and found.error is None else None


def _written(one: Decoded, two: Decoded) -> Iterator[tuple[str, Any, Any]]:
    """Yield the schemas, where they are different ones."""
    shown = [str(each.key) if each.key is not None else None for each in (one, two)]
    if shown[0] != shown[1]:
        yield " schema", shown[0], shown[1]


def _differences(one: Value, two: Value, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the fields that differ; None for one that is not there."""
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
