"""Leaves out of a JSON Schema what says nothing about values: titles, descriptions, defaults,
examples, and keywords of others."""

from __future__ import annotations

import re
from typing import Any, Final

from kafkascope.schemas.json.text import dump, parse
from kafkascope.schemas.model import PayloadError

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
_LOCAL: Final = re.compile(r'"\$(?:ref|dynamicRef|recursiveRef)"\s*:\s*"[^"#]*#/([^"/]+)')


def bare(text: str) -> str:
    """Return the schema without them; `PayloadError` where it is none."""
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
