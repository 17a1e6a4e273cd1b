"""`unevaluatedProperties` and `unevaluatedItems`: members and items that no keyword evaluates.

The library finds them by recursion, which a schema that refers to itself does not end, with
Python's patterns, and items in the square of their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafkascope.analyzer.payloads.json.budget import bounds, listed, misfit


def properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Yield the errors of members that no keyword evaluates."""
    if not isinstance(instance, dict):
        return
    seen: set[str] = set()
    for inner, part in _parts(validator, instance, schema):
        seen |= _names(inner, instance, part, part is schema)
    rest = [name for name in instance if name not in seen]
    if value is False and rest:
        yield misfit(f"{listed(rest)}: no such property")
    elif value is not False:
        for name in rest:
            yield from validator.descend(instance[name], value, path=name)


def items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """Yield the errors of elements that no keyword evaluates."""
    if not isinstance(instance, list):
        return
    seen: set[int] = set()
    for inner, part in _parts(validator, instance, schema):
        seen |= _indexes(inner, instance, part, part is schema)
    rest = [index for index in range(len(instance)) if index not in seen]
    if value is False and rest:
        yield misfit(f"item {rest[0]}: no such item")
    elif value is not False:
        for index in rest:
            yield from validator.descend(instance[index], value, path=index)


def _parts(validator: Any, instance: Any, schema: Any) -> Iterator[tuple[Any, Any]]:
    """Yield a schema and those inside of it that hold for the same value."""
    from referencing.jsonschema import lookup_recursive_ref

    stack = [(validator, schema)]
    while stack:
        around, part = stack.pop()
        if not isinstance(part, dict):
            continue
        bounds.get().spend(1 + (len(instance) >> 3))
        yield around, part
        resolver = around._resolver
        found = [resolver.lookup(part[name]) for name in _REFERENCES if name in part]
        if "$recursiveRef" in part:
            found.append(lookup_recursive_ref(resolver))
        for each in found:
            inner = around.evolve(schema=each.contents, _resolver=each.resolver)
            stack.append((inner, each.contents))
        if isinstance(instance, dict):
            for name, each in part.get("dependentSchemas", {}).items():
                if name in instance:
                    stack.append((around, each))
        for keyword in ("allOf", "oneOf", "anyOf"):
            for each in part.get(keyword, []):
                if fits(around, instance, each):
                    stack.append((around, each))
        if "if" in part:
            if fits(around, instance, part["if"]):
                stack += [(around, part["if"]), (around, part.get("then"))]
            else:
                stack.append((around, part.get("else")))


def _names(validator: Any, instance: dict[str, Any], schema: Any, outermost: bool) -> set[str]:
    known = schema.get("properties", {})
    out = set(known.keys() & instance.keys())
    patterns = schema.get("patternProperties", {})
    for pattern in patterns:
        # One that is not applied may match any name.
        out |= {name for name in instance if bounds.get().matches(pattern, name) is not False}
    if "additionalProperties" in schema:
        # Members that break it are an error of their own.
        out |= instance.keys()
    if "unevaluatedProperties" in schema and not outermost:
        inner = schema["unevaluatedProperties"]
        out |= {name for name in instance if fits(validator, instance[name], inner)}
    return out


def _indexes(validator: Any, instance: list[Any], schema: Any, outermost: bool) -> set[int]:
    items = schema.get("items")
    # Until 2019-09 an array is what `prefixItems` is since.
    first = items if isinstance(items, list) else schema.get("prefixItems", [])
    if (items is not None and not isinstance(items, list)) or (
        isinstance(items, list) and "additionalItems" in schema
    ):
        return set(range(len(instance)))
    out = set(range(min(len(first), len(instance))))
    draft = str(validator.META_SCHEMA.get("$id", ""))
    keywords = ["contains"] if "contains" in schema and _CONTAINS in draft else []
    if "unevaluatedItems" in schema and not outermost:
        keywords.append("unevaluatedItems")
    for keyword in keywords:
        inner = schema[keyword]
        out |= {index for index, each in enumerate(instance) if fits(validator, each, inner)}
    return out


_REFERENCES = ("$ref", "$dynamicRef")
_CONTAINS = "2020-12"
"""Since this draft `contains` says something of the elements that fit to it."""


def fits(validator: Any, instance: Any, schema: Any) -> bool:
    """Return whether a value fits a schema inside of another one."""
    return next(iter(validator.descend(instance, schema)), None) is None
