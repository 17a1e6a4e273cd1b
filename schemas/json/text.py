"""Texts of JSON Schemas: the addresses and properties that they define, and the text without what
says nothing about values: titles, descriptions, defaults, examples, and keywords of others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urldefrag, urljoin

from kafkascope.schemas.json.values import dump, parse
from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import PayloadError
from kafkascope.schemas.paths import Path, below

_BY_NAME: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
"""Objects of schemas by name."""
_INSIDE: Final = frozenset(
    (
        *("allOf", "anyOf", "oneOf", "prefixItems", "items", "additionalItems", "contains", "not"),
        *("unevaluatedItems", "if", "then", "else", "additionalProperties", "propertyNames"),
        *("unevaluatedProperties", "contentSchema", "extends"),
    )
)
"""A schema, or an array of some."""
_PLAIN: Final = frozenset(
    (
        *("$schema", "$id", "id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor"),
        *("$recursiveRef", "$recursiveAnchor", "$vocabulary", "type", "enum", "const"),
        *("multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
        *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems"),
        *("maxContains", "minContains", "maxProperties", "minProperties", "required"),
        *("dependentRequired", "format", "contentEncoding", "contentMediaType"),
        *("divisibleBy", "disallow"),
    )
)
"""What is kept as it is."""
_BESIDE: Final = ("allOf", "anyOf", "oneOf", "prefixItems", "items", "then", "else")
_LOCAL: Final = re.compile(r'"\$(?:ref|dynamicRef|recursiveRef)"\s*:\s*"[^"#]*#/([^"/]+)')


def schema_of(text: str) -> Any:
    if len(text) > LIMITS.schema_chars:
        raise PayloadError("bad-schema", f"{len(text)} characters, more than {LIMITS.schema_chars}")
    try:
        schema, _ = parse(text.encode("utf-8", "replace"))
    except PayloadError as error:
        raise PayloadError("bad-schema", error.text, offset=error.offset) from None
    if not isinstance(schema, dict | bool):
        raise PayloadError("bad-schema", "a schema must be an object, true or false")
    return schema


def address_of(base: str, ref: str) -> str:
    try:
        return urldefrag(urljoin(base, ref)).url
    except ValueError:
        return ""


def objects(schema: Any, base: str) -> Iterator[tuple[dict[str, Any], str, list[str]]]:
    """Yield each object of a schema, the address around it and the references in it."""
    stack = [(schema, base)]
    while stack:
        value, around = stack.pop()
        if isinstance(value, list):
            stack.extend((each, around) for each in value)
        elif isinstance(value, dict):
            for name in ("$id", "id"):
                own = value.get(name)
                if isinstance(own, str) and not own.startswith("#"):
                    around = address_of(around, own)
                    break
            refs = [value.get(name) for name in ("$ref", "$dynamicRef", "$recursiveRef")]
            yield value, around, [each for each in refs if isinstance(each, str)]
            stack.extend((each, around) for each in value.values())


def defined_names(text: str) -> list[str]:
    """Return the `$id`s of a schema and of those inside of it, each as a whole address."""
    return list(dict.fromkeys(base for _, base, _ in objects(schema_of(text), "") if base))


def field_paths(text: str) -> Iterator[Path]:
    """Yield the paths of properties, as far as the text alone defines them; `PayloadError`."""
    schema, _ = parse(text.encode("utf-8", "replace"))
    return below([schema], lambda node: _properties(schema, node))


def _properties(root: Any, node: Any) -> Iterator[tuple[str, Any]]:
    """Yield the properties of an object, of its alternatives and of what it refers to: each part of
    the schema once, for references may go in circles."""
    seen: set[int] = set()
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict) or id(part) in seen or len(seen) >= LIMITS.schema_parts:
            continue
        seen.add(id(part))
        properties = part.get("properties")
        if isinstance(properties, dict):
            yield from properties.items()
        for name in _BESIDE:
            inner = part.get(name)
            waiting += inner if isinstance(inner, list) else [inner]
        if isinstance(ref := part.get("$ref"), str):
            waiting.append(_referred(root, ref))


def _referred(root: Any, ref: str) -> Any:
    if ref == "#":
        return root
    if not ref.startswith("#/"):
        return None
    found = root
    for step in ref[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict) or name not in found:
            return None
        found = found[name]
    return found


def bare(text: str) -> str:
    """Return the schema without what says nothing about values; `PayloadError` where it is none."""
    _, schema = parse(text.encode("utf-8", "replace"))
    if not isinstance(schema, dict | bool):
        raise PayloadError("bad-schema", "a schema must be an object, true or false")
    referred = frozenset(_LOCAL.findall(text)) - _BY_NAME - _INSIDE - _PLAIN
    return dump(_schema(schema, referred)).decode()


def _schema(value: Any, referred: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_schema(each, referred) for each in value]
    if not isinstance(value, dict):
        return value
    out: dict[str, Any] = {}
    for name, inner in value.items():
        if name in _BY_NAME and isinstance(inner, dict):
            out[name] = {each: _schema(one, referred) for each, one in inner.items()}
        elif name in _INSIDE:
            out[name] = _schema(inner, referred)
        elif name in _PLAIN:
            out[name] = inner
        elif name in referred:
            out[name] = _folder(inner, referred)
    return out


def _folder(value: Any, referred: frozenset[str]) -> Any:
    """Return what a reference leads into although the language has no such keyword: schemas, or
    objects of such."""
    if not isinstance(value, dict) or any(name in _PLAIN | _INSIDE | _BY_NAME for name in value):
        return _schema(value, referred)
    kept = (dict, list, bool)
    return {n: _folder(inner, referred) for n, inner in value.items() if isinstance(inner, kept)}
