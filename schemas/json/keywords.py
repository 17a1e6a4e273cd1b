"""Keywords of JSON Schema on top of jsonschema's, so that no schema and no value can hang.

Each application of a keyword is paid from a budget of steps; its depth is bounded; patterns are
RE2's, in linear time; what compares or prints large values costs what they are long. Keywords that
the library evaluates with Python's patterns, by recursion without an end, or in the square of a
size are our own. A deadline would not do: values are decoded in threads, which no signal reaches,
and a search of `re` cannot be interrupted. Steps also give the same verdict on each machine.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import cache
from typing import Any, Final

from kafkascope.schemas.limits import LIMITS
from kafkascope.schemas.model import nested


class Exhausted(Exception):
    """A schema needs more steps for a value than it may."""


class SchemaBounds:
    """What one schema may cost: steps, which count down, and depth; with its compiled patterns. It
    lives as long as the schema: `weights` has values of that by their place in memory."""

    def __init__(self) -> None:
        self.left = 0
        self.weights: dict[int, int] = {}
        self._depth = self._most = 0
        self._patterns: dict[str, Any] = {}

    def start(self, steps: int) -> None:
        """Begin with a value: with steps, and as deep as the stack of the caller leaves room."""
        self.left, self._depth = steps, 0
        used, frame = 0, sys._getframe()
        while frame.f_back is not None:
            used, frame = used + 1, frame.f_back
        left = sys.getrecursionlimit() - used - LIMITS.spare_frames
        self._most = left // LIMITS.frames_per_keyword

    def enter(self) -> None:
        """Go into a keyword; `RecursionError` where keywords nest too deep.

        Python would raise it too, but below it stands a library in Rust, which does not bear it.
        """
        self._depth += 1
        if self._depth > self._most:
            raise RecursionError

    def leave(self) -> None:
        self._depth -= 1

    def spend(self, steps: int) -> None:
        """Take steps; `Exhausted` if there are not as many left."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted

    def matches(self, pattern: Any, text: str) -> bool | None:
        """Return whether a text has a match anywhere; None for a pattern that is not applied."""
        if pattern not in self._patterns:
            self.spend(50)
            self._patterns[pattern] = _compiled(pattern)
        compiled = self._patterns[pattern]
        if compiled is None:
            return None
        self.spend(1 + len(text) // 256)
        return compiled.search(text.encode("utf-8", "replace")) is not None


# Those of the schema that is applied: keywords are made once for each draft. A class for each
# schema would cost a millisecond and 28 KB.
bounds: Final[ContextVar[SchemaBounds]] = ContextVar("bounds")

_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)


def _compiled(pattern: Any) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    if isinstance(pattern, str) and len(pattern) <= LIMITS.pattern_chars:
        try:
            return re2.compile(_of_ecma(pattern).encode("utf-8", "replace"), options)
        except re2.error:
            pass
    return None  # RE2 has no look-around and no references.


def _of_ecma(pattern: str) -> str:
    r"""Return a pattern of JavaScript in RE2's words: `\u00e9` is `\x{00e9}`, `\/` is `/`."""
    return _ESCAPE.sub(
        lambda m: f"\\x{{{m[1]}}}" if m[1] else "/" if m[2] == "/" else m[0], pattern
    )


def _surplus(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(repr(each[:60]) for each in names[:3]) + f"{more}: no such property"


def _misfit(message: str) -> Any:
    """Return the library's error for a value that does not fit."""
    from jsonschema import ValidationError

    return ValidationError(message)


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
        yield _misfit(f"{instance[:100]!r} does not match {str(value)[:100]!r}")


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
        yield _misfit(_surplus(extras))


def _unique_items(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if not value or not isinstance(instance, list):
        return
    bounds.get().spend(_weight(instance) >> 3)
    seen = set()
    for index, each in enumerate(instance):
        key = _hashable(each)
        if key in seen:
            yield _misfit(f"item {index} is a duplicate")
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


# --- members and items that no other keyword evaluates


def _unevaluated(kind: Any, evaluated: Any, message: Callable[[list[Any]], str]) -> Keyword:
    """Return the keyword of objects or arrays. `evaluated`: returns the members or items that one
    part of the schema evaluates."""

    def run(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if not isinstance(instance, kind):
            return
        seen: set[Any] = set()
        for inner, part in _parts(validator, instance, schema):
            seen |= evaluated(inner, instance, part, part is schema)
        every: Iterable[Any] = range(len(instance)) if kind is list else instance
        rest = [each for each in every if each not in seen]
        if value is False and rest:
            yield _misfit(message(rest))
        elif value is not False:
            for each in rest:
                yield from validator.descend(instance[each], value, path=each)

    return run


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
        found = [resolver.lookup(part[name]) for name in ("$ref", "$dynamicRef") if name in part]
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
                if _fits(around, instance, each):
                    stack.append((around, each))
        if "if" in part:
            if _fits(around, instance, part["if"]):
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
        out |= {name for name in instance if _fits(validator, instance[name], inner)}
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
    # Since 2020-12 `contains` evaluates the items that fit.
    newest = "2020-12" in str(validator.META_SCHEMA.get("$id", ""))
    keywords = ["contains"] if "contains" in schema and newest else []
    if "unevaluatedItems" in schema and not outermost:
        keywords.append("unevaluatedItems")
    for keyword in keywords:
        inner = schema[keyword]
        out |= {index for index, each in enumerate(instance) if _fits(validator, each, inner)}
    return out


def _fits(validator: Any, instance: Any, schema: Any) -> bool:
    """Return whether a value fits a schema inside of another one."""
    return next(iter(validator.descend(instance, schema)), None) is None


_OWN: Final[dict[str, Keyword]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": _unevaluated(dict, _names, _surplus),
    "unevaluatedItems": _unevaluated(list, _indexes, lambda rest: f"item {rest[0]}: no such item"),
    "uniqueItems": _unique_items,
}
