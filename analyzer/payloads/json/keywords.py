"""Keywords of JSON Schema on top of jsonschema's, so that no schema and no value can hang.

Each application of a keyword is paid from a budget; patterns are RE2's; what compares or prints
large values costs what they are long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from kafkascope.analyzer.payloads.json.budget import Budget, Patterns, listed
from kafkascope.analyzer.payloads.json.unevaluated import Unevaluated

_MOST_MESSAGE: Final = 200
_NOTHING: Final[dict[str, Any]] = {"not": {}}
"""What `false` means, as an object: a library's message for `false` repeats the whole value."""

Keyword = Callable[[Any, Any, Any, Any], Iterable[Any] | None]


def counted(draft: Any, budget: Budget, patterns: Patterns) -> Any:
    """Return a validator class of jsonschema whose keywords are bounded."""
    from jsonschema import validators

    own = _Own(budget, patterns)
    keywords: dict[str, Keyword] = dict(draft.VALIDATORS)
    for name, keyword in own.keywords.items():
        if name in keywords:
            keywords[name] = keyword
    return validators.extend(
        draft, {name: _paid(keyword, budget, name) for name, keyword in keywords.items()}
    )


def _paid(keyword: Keyword, budget: Budget, name: str) -> Keyword:
    by_value = name in ("const", "enum")
    weights: dict[int, int] = {}

    def run(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        steps = 1
        if isinstance(value, list | dict):
            steps += len(value) >> 3
            if by_value:
                # The schema lives as long as this function: an object keeps its place.
                weight = weights.get(id(value))
                if weight is None:
                    weight = weights[id(value)] = _weight(value)
                steps += weight >> 3
        if isinstance(instance, list | dict):
            steps += len(instance) >> 3
        budget.spend(steps)
        if value is False and name in ("if", "not", "contains"):
            value = _NOTHING
        elif name in ("oneOf", "anyOf") and isinstance(value, list) and False in value:
            value = [_NOTHING if each is False else each for each in value]
        budget.enter()
        try:
            for error in keyword(validator, value, instance, schema) or ():
                # A message may repeat a value of megabytes, once for each branch that is wrong.
                if len(error.message) > _MOST_MESSAGE:
                    budget.spend(len(error.message) >> 4)
                    error.message = f"{error.message[:_MOST_MESSAGE]}..."
                yield error
        finally:
            budget.leave()

    return run


def _weight(value: Any) -> int:
    """Return the number of values inside of a value."""
    count = 0
    stack = [value]
    while stack:
        each = stack.pop()
        count += 1
        if isinstance(each, dict):
            stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)
    return count


class _Own:
    """Keywords that the library evaluates with Python's patterns, or in the square of a size."""

    def __init__(self, budget: Budget, patterns: Patterns) -> None:
        self._budget = budget
        self._patterns = patterns
        unevaluated = Unevaluated(budget, patterns)
        self.keywords: Final[dict[str, Keyword]] = {
            "pattern": self.pattern,
            "patternProperties": self.pattern_properties,
            "additionalProperties": self.additional_properties,
            "unevaluatedProperties": unevaluated.properties,
            "unevaluatedItems": unevaluated.items,
            "uniqueItems": self.unique_items,
        }

    def pattern(self, validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        from jsonschema import ValidationError

        if isinstance(instance, str) and self._patterns.matches(value, instance) is False:
            yield ValidationError(f"{instance[:100]!r} does not match {str(value)[:100]!r}")

    def pattern_properties(
        self, validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        if not isinstance(instance, dict):
            return
        for pattern, inner in value.items():
            for name, each in instance.items():
                if self._patterns.matches(pattern, name):
                    yield from validator.descend(each, inner, path=name, schema_path=pattern)

    def additional_properties(
        self, validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        from jsonschema import ValidationError

        if not isinstance(instance, dict):
            return
        known = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        # A pattern that is not applied may match any name.
        extras = [
            name
            for name in instance
            if name not in known
            and all(self._patterns.matches(each, name) is False for each in patterns)
        ]
        if isinstance(value, dict):
            for name in extras:
                yield from validator.descend(instance[name], value, path=name)
        elif value is False and extras:
            yield ValidationError(f"{listed(extras)}: no such property")

    def unique_items(self, validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        from jsonschema import ValidationError

        if not value or not isinstance(instance, list):
            return
        self._budget.spend(_weight(instance) >> 3)
        seen = set()
        for index, each in enumerate(instance):
            key = _hashable(each)
            if key in seen:
                yield ValidationError(f"item {index} is there twice")
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
