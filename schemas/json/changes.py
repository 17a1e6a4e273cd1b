"""Finds what of a new version of a JSON Schema refuses values of the old one: the plain cases."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkascope.schemas.json.text import schema_of
from kafkascope.schemas.limits import LIMITS


def breaking_changes(old: str, new: str) -> list[str]:
    """Return a sentence for each change; empty where they cannot be compared."""
    return list(_compare(schema_of(old), schema_of(new), "", 0))


def _compare(old: Any, new: Any, path: str, depth: int) -> Iterator[str]:
    if not isinstance(old, dict) or not isinstance(new, dict) or depth > LIMITS.compared_nesting:
        if new is False and old is not False:
            yield f"{path or 'value'}: no value is valid any more"
        return
    place = path or "value"
    was, now = _types(old), _types(new)
    gone = [each for each in was if each not in now and not (each == "integer" and "number" in now)]
    if was and now and gone:
        yield f"{place}: type was {' or '.join(was)}, is {' or '.join(now)}"
    if now and not was and not ({"enum", "const", "$ref", "allOf", "anyOf", "oneOf"} & old.keys()):
        yield f"{place}: type was any, is {' or '.join(now)}"
    if isinstance(old.get("enum"), list) and isinstance(new.get("enum"), list):
        left = [each for each in old["enum"] if each not in new["enum"]]
        if left:
            yield f"{place}: enum lost {_listed(left)}"
    elif isinstance(new.get("enum"), list) and "const" not in old and "$ref" not in old:
        yield f"{place}: restricted to the values of an enum"
    required = _names(new.get("required"))
    for name in required:
        if name not in _names(old.get("required")):
            yield f"{_join(path, name)}: required now"
    yield from _properties(old, new, path, depth)
    if isinstance(old.get("items"), dict) and isinstance(new.get("items"), dict):
        yield from _compare(old["items"], new["items"], f"{path}[]", depth + 1)


def _properties(old: dict[str, Any], new: dict[str, Any], path: str, depth: int) -> Iterator[str]:
    before, after = old.get("properties"), new.get("properties")
    before = before if isinstance(before, dict) else {}
    after = after if isinstance(after, dict) else {}
    closed = new.get("additionalProperties") is False
    if closed and old.get("additionalProperties") is not False:
        yield f"{path or 'value'}: additional properties are no longer allowed"
    for name, each in before.items():
        if name in after:
            yield from _compare(each, after[name], _join(path, name), depth + 1)
        elif closed and "patternProperties" not in new:
            yield f"{_join(path, name)}: property removed"


def _types(schema: dict[str, Any]) -> list[str]:
    said = schema.get("type")
    return [said] if isinstance(said, str) else _names(said)


def _names(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(values: list[Any]) -> str:
    more = f" and {len(values) - 3} more" if len(values) > 3 else ""
    return ", ".join(f"{each!r:.40}" for each in values[:3]) + more
