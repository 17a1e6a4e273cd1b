"""Keywords of JSON Schema on top of jsonschema's, so that no schema and no value can hang.

Each application of a keyword is paid from a budget; patterns are RE2's; what compares or prints
large values costs what they are long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from kafkascope.analyzer.payloads.json import unevaluated
from kafkascope.analyzer.payloads.json.budget import bounds, listed, misfit
from kafkascope.analyzer.payloads.limits import LIMITS
from kafkascope.analyzer.payloads.model import nested

_NOTHING: Final[dict[str, Any]] = {"not": {}}
"""What `false` means, as an object: a library's message for `false` repeats the whole value."""

Keyword = Callable[[Any, Any, Any, Any], Iterable[Any] | None]


@cache
def counted(draft: Any) -> Any:
    """Return a validator class of jsonschema whose keywords keep within `bounds`."""
    from jsonschema import validators

    keywords: dict[str, Keyword] = dict(draft.VALIDATORS)
    for name, keyword in _OWN.items():
        if name in keywords:
            keywords[name] = keyword
    made: Any = validators.extend(
        draft, {name: _paid(keyword, name) for name, keyword in keywords.items()}
    )
    made.evolve = _evolving(made)
    return made


def _evolving(made: Any) -> Callable[..., Any]:
    """Return what makes the validator of a schema inside of another one. The library takes its own
    class, without bounds, for one that says its draft."""
    plain = made.evolve

    def evolve(self: Any, **changes: Any) -> Any:
        inner = plain(self, **changes)
        kind: Any = type(inner)
        if kind is made:
            return inner
        fields = [each for each in kind.__attrs_attrs__ if each.init]
        given = {each.alias: getattr(inner, each.name) for each in fields}
        return counted(kind)(**given)

    return evolve


def _paid(keyword: Keyword, name: str) -> Keyword:
    by_value = name in ("const", "enum")

    def run(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        bound = bounds.get()
        steps = 1
        if isinstance(value, list | dict):
            steps += len(value) >> 3
            if by_value:
                weight = bound.weights.get(id(value))
                if weight is None:
                    weight = bound.weights[id(value)] = _weight(value)
                steps += weight >> 3
        if isinstance(instance, list | dict):
            steps += len(instance) >> 3
        bound.spend(steps)
        if value is False and name in ("if", "not", "contains"):
            value = _NOTHING
        elif name in ("oneOf", "anyOf") and isinstance(value, list) and False in value:
            value = [_NOTHING if each is False else each for each in value]
        bound.enter()
        try:
            for error in keyword(validator, value, instance, schema) or ():
                # A message may repeat a value of megabytes, once for each branch that is wrong.
                if len(error.message) > LIMITS.message_chars:
                    bound.spend(len(error.message) >> 4)
                    error.message = f"{error.message[: LIMITS.message_chars]}..."
                yield error
        finally:
            bound.leave()

    return run


def _weight(value: Any) -> int:
    return sum(1 for _ in nested(value))


# --- keywords that the library evaluates with Python's patterns, or in the square of a size


def _pattern(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str) and bounds.get().matches(value, instance) is False:
        yield misfit(f"{instance[:100]!r} does not match {str(value)[:100]!r}")


def _pattern_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, inner in value.items():
        for name, each in instance.items():
            if bounds.get().matches(pattern, name):
                yield from validator.descend(each, inner, path=name, schema_path=pattern)


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    # A pattern that is not applied may match any name.
    extras = [
        name
        for name in instance
        if name not in known and all(bounds.get().matches(each, name) is False for each in patterns)
    ]
    if isinstance(value, dict):
        for name in extras:
            yield from validator.descend(instance[name], value, path=name)
    elif value is False and extras:
        yield misfit(f"{listed(extras)}: no such property")


def _unique_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not value or not isinstance(instance, list):
        return
    bounds.get().spend(_weight(instance) >> 3)
    seen = set()
    for index, each in enumerate(instance):
        key = _hashable(each)
        if key in seen:
            yield misfit(f"item {index} is a duplicate")
            return
        seen.add(key)


def _hashable(value: Any) -> Any:
    """Return what equals for equal values: 1 is 1.0, and no true."""
    if isinstance(value, bool):
        return (value,)
    if isinstance(value, list):
        return ("array", tuple(_hashable(each) for each in value))
    if isinstance(value, dict):
        return ("object", frozenset((name, _hashable(each)) for name, each in value.items()))
    return value


_OWN: Final[dict[str, Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": unevaluated.properties,
    "unevaluatedItems": unevaluated.items,
    "uniqueItems": _unique_items,
}
