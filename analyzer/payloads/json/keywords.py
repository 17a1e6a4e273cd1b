"""Keywords of JSON Schema on top of jsonschema's, so that no schema and no value can hang.

Each application of a keyword is paid from a budget; patterns are RE2's; what compares or prints
large values costs what they are long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

MAX_PATTERN: Final = 10_000
"""Characters of a pattern; a longer one is not applied."""

_MOST_MESSAGE: Final = 200
_NOTHING: Final[dict[str, Any]] = {"not": {}}
"""What `false` means, as an object: a library's message for `false` repeats the whole value."""

Keyword = Callable[[Any, Any, Any, Any], Iterable[Any] | None]


class Exhausted(Exception):
    """A schema needs more steps for a value than it may."""


class Budget:
    """Counts steps down."""

    def __init__(self) -> None:
        self.left = 0

    def spend(self, steps: int) -> None:
        """Take steps; `Exhausted` if there are not as many left."""
        self.left -= steps
        if self.left < 0:
            raise Exhausted


class Patterns:
    """Has the compiled patterns of a schema."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._compiled: dict[str, Any] = {}
        self.skipped: list[str] = []
        """Patterns that RE2 does not have (look-around, references): they are not applied."""

    def matches(self, pattern: Any, text: str) -> bool | None:
        """Return whether a text has a match anywhere; None for a pattern that is not applied."""
        if pattern not in self._compiled:
            self._compiled[pattern] = self._compile(pattern)
        compiled = self._compiled[pattern]
        if compiled is None:
            return None
        self._budget.spend(1 + len(text) // 256)
        return compiled.search(text.encode("utf-8", "replace")) is not None

    def _compile(self, pattern: Any) -> Any:
        import re2

        self._budget.spend(50)
        options = re2.Options()
        options.log_errors = False
        if isinstance(pattern, str) and len(pattern) <= MAX_PATTERN:
            try:
                return re2.compile(_of_ecma(pattern).encode("utf-8", "replace"), options)
            except re2.error:
                pass
        if len(self.skipped) < 100:
            self.skipped.append(str(pattern)[:MAX_PATTERN])
        return None


def _of_ecma(pattern: str) -> str:
    r"""Return a pattern of JavaScript in RE2's words: `\u00e9` is `\x{00e9}`, `\/` is `/`."""
    out = []
    at = 0
    while at < len(pattern):
        if pattern[at] != "\\" or at + 1 >= len(pattern):
            out.append(pattern[at])
            at += 1
        elif pattern[at + 1] == "u" and _is_hex(pattern[at + 2 : at + 6]):
            out.append(f"\\x{{{pattern[at + 2 : at + 6]}}}")
            at += 6
        elif pattern[at + 1] == "/":
            out.append("/")
            at += 2
        else:
            out.append(pattern[at : at + 2])
            at += 2
    return "".join(out)


def _is_hex(text: str) -> bool:
    return len(text) == 4 and all(each in "0123456789abcdefABCDEF" for each in text)


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
        for error in keyword(validator, value, instance, schema) or ():
            # A message may repeat a value of megabytes, once for each branch that does not fit.
            if len(error.message) > _MOST_MESSAGE:
                budget.spend(len(error.message) >> 4)
                error.message = f"{error.message[:_MOST_MESSAGE]}..."
            yield error

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
        self.keywords: Final[dict[str, Keyword]] = {
            "pattern": self.pattern,
            "patternProperties": self.pattern_properties,
            "additionalProperties": self.additional_properties,
            "unevaluatedProperties": self.unevaluated_properties,
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
            yield ValidationError(f"{_listed(extras)}: no such property")

    def unevaluated_properties(
        self, validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[Any]:
        from jsonschema import ValidationError

        if not isinstance(instance, dict):
            return
        evaluated = self._evaluated(validator, instance, schema)
        rest = [name for name in instance if name not in evaluated]
        if value is False:
            if rest:
                yield ValidationError(f"{_listed(rest)}: no such property")
            return
        for name in rest:
            yield from validator.descend(instance[name], value, path=name)

    def _evaluated(self, validator: Any, instance: dict[str, Any], schema: Any) -> set[str]:
        """Return the names that a schema says something of."""
        if not isinstance(schema, dict):
            return set()
        self._budget.spend(1 + (len(instance) >> 3))
        out: set[str] = set()
        for keyword in ("$ref", "$dynamicRef"):
            if keyword in schema:
                out |= self._behind(
                    validator, instance, validator._resolver.lookup(schema[keyword])
                )
        if "$recursiveRef" in schema:
            from referencing.jsonschema import lookup_recursive_ref

            out |= self._behind(validator, instance, lookup_recursive_ref(validator._resolver))
        known = schema.get("properties")
        if isinstance(known, dict):
            out |= known.keys() & instance.keys()
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in schema:
                if keyword == "additionalProperties":
                    mine = set(known or ())
                    patterns = schema.get("patternProperties", {})
                    names = [
                        name
                        for name in instance
                        if name not in mine
                        and not any(self._patterns.matches(each, name) for each in patterns)
                    ]
                else:
                    names = list(instance)
                out.update(
                    name for name in names if _fits(validator, instance[name], schema[keyword])
                )
        for pattern in schema.get("patternProperties", {}):
            out.update(
                name for name in instance if self._patterns.matches(pattern, name) is not False
            )
        for name, inner in schema.get("dependentSchemas", {}).items():
            if name in instance:
                out |= self._evaluated(validator, instance, inner)
        for keyword in ("allOf", "oneOf", "anyOf"):
            for inner in schema.get(keyword, []):
                if _fits(validator, instance, inner):
                    out |= self._evaluated(validator, instance, inner)
        if "if" in schema:
            if _fits(validator, instance, schema["if"]):
                out |= self._evaluated(validator, instance, schema["if"])
                out |= self._evaluated(validator, instance, schema.get("then"))
            else:
                out |= self._evaluated(validator, instance, schema.get("else"))
        return out

    def _behind(self, validator: Any, instance: dict[str, Any], resolved: Any) -> set[str]:
        inner = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
        return self._evaluated(inner, instance, resolved.contents)

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


def _fits(validator: Any, instance: Any, schema: Any) -> bool:
    return next(iter(validator.descend(instance, schema)), None) is None


def _hashable(value: Any) -> Any:
    """Return what equals for equal values: 1 is 1.0, and no true."""
    if isinstance(value, bool):
        return (value,)
    if isinstance(value, list):
        return ("array", tuple(_hashable(each) for each in value))
    if isinstance(value, dict):
        return ("object", frozenset((name, _hashable(each)) for name, each in value.items()))
    return value


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(repr(each[:60]) for each in names[:3]) + more
