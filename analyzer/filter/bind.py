"""Binding: resolves names of a syntax tree to fields and converts values to the fields' types.

All errors of a filter are found here or before, never during evaluation. All back ends start from
the bound filter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from kafkascope.analyzer.filter import paths as filter_paths
from kafkascope.analyzer.filter.decoded.literals import Typed, typed
from kafkascope.analyzer.filter.errors import FilterError, nearest
from kafkascope.analyzer.filter.fields import WIRESHARK, Cost, Field, all_names, field_named
from kafkascope.analyzer.filter.regex import Regex, RegexError
from kafkascope.analyzer.filter.syntax import (
    And,
    Compare,
    Has,
    In,
    Name,
    Not,
    Or,
    Search,
    Tree,
    Value,
    parse,
)
from kafkascope.analyzer.filter.values import CONVERT, Loose, Nearest
from kafkascope.analyzer.payloads import paths as payload_paths

Relation = Literal["==", "!=", ">", "<", ">=", "<=", "contains", "matches", "in"]
Scope = Literal["has", "any", "all", "none"]

TEXTUAL: Final = frozenset(
    {"string", "api", "error", "state", "address", "uuid", "body", "bytes", "release", "value"}
)
"""Types that `contains` and `matches` treat as text."""
UNORDERED: Final = frozenset({"bool", "state", "uuid"})
_DECODED: Final = re.compile(
    r"(?:kafka\.)?(record\.(?:key|value))\.(.+)", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Test:
    """One comparison.

    A field may have no value, one or many. `has`: there is one (or a true one); `any` and `all`:
    one holds, there are some and all hold; `none`: there are some and none holds.
    """

    field: Field
    path: filter_paths.Path
    """For a generic field the side (or `record.key`, `record.value`) and the steps; else empty."""
    scope: Scope
    relation: Relation = "=="
    value: Any = None
    """Converted; for `matches` a Regex, for `in` pairs (value, None) or (first, last)."""


@dataclass(frozen=True, slots=True)
class Every:
    """All terms hold."""

    terms: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one term holds."""

    terms: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class Unless:
    """The term does not hold."""

    term: Bound


@dataclass(frozen=True, slots=True)
class Find:
    """The summary contains the text, which is in lower case."""

    text: str


Bound: TypeAlias = Every | Some | Unless | Find | Test


def bind(text: str) -> Bound | None:
    """Read and bind a filter; return None for a blank one. Raises `FilterError` for any error."""
    tree = parse(text)
    return None if tree is None else _Binder(text).bind(tree)


def cost(bound: Bound) -> Cost:
    """Return the cost of the most expensive field of a filter: i, s or b."""
    match bound:
        case Every(terms) | Some(terms):
            return max((cost(term) for term in terms), key="isb".index)
        case Unless(term):
            return cost(term)
        case Find():
            return "b"
        case Test():
            return bound.field.cost


def fields_of(bound: Bound | None) -> set[str]:
    """Return the fields that a filter names; `request.`, `response.` and `body.` stand for any
    field of a body, `record.key.` and `record.value.` for any of a decoded key or value, `summary`
    for a string alone."""
    match bound:
        case None:
            return set()
        case Every(terms) | Some(terms):
            return set().union(*map(fields_of, terms))
        case Unless(term):
            return fields_of(term)
        case Find():
            return {"summary"}
        case Test():
            return {f"{bound.path[0]}."} if bound.path else {bound.field.name}


def resolve(name: str) -> tuple[Field, filter_paths.Path] | None:
    """Return the field of a name, and the path of a generic one; None when there is none."""
    field = field_named(name)
    if field is not None:
        return field, ()
    if decoded := _DECODED.fullmatch(name):
        return _of_decoded(decoded[1].lower(), decoded[2])
    plain = name.lower().removeprefix("kafka.")
    side, dot, rest = plain.partition(".")
    if not dot and plain in WIRESHARK:
        side, dot, rest = "body", ".", WIRESHARK[plain]
    if side == "body":
        kinds = filter_paths.named(rest)
        if kinds is None:
            return None
        return Field(f"body.{rest}", "body", "b", ", ".join(sorted(kinds)), ""), ("body", rest)
    if not dot or side not in ("request", "response"):
        return None
    known = filter_paths.known("request" if side == "request" else "response")
    path = filter_paths.split(rest)
    bare = ".".join(step for step in path if isinstance(step, str))
    if bare not in known:
        return None
    return Field(plain, "body", "b", ", ".join(sorted(known[bare])), ""), (side, *path)


def _of_decoded(whose: str, rest: str) -> tuple[Field, filter_paths.Path] | None:
    """Return the field of a path into decoded keys or values, whose names no declaration has."""
    try:
        steps = payload_paths.split(rest)
    except ValueError:
        return None
    doc = f"a field of decoded {whose.rpartition('.')[2]}s"
    return Field(f"{whose}.{rest}", "value", "b", doc, "", told_by="schemas"), (whose, *steps)


def unknown_field(name: str, text: str, at: int) -> FilterError:
    """Return the error for a name that no field has."""
    plain = name.removeprefix("kafka.")
    side, dot, rest = plain.partition(".")
    near = None
    if dot and side in ("request", "response"):
        known = filter_paths.known("request" if side == "request" else "response")
        last = rest.rpartition(".")[2]
        ends = sorted((path for path in known if path.rpartition(".")[2] == last), key=len)
        found = ends[0] if ends else nearest(rest, known)
        near = f"{side}.{found}" if found else None
    near = near or nearest(plain, all_names())
    hint = f"did you mean {near}?   (list: kafkascope fields {near.split('.')[0]})" if near else ""
    return FilterError(
        f'unknown field "{name}"', text, at, len(name), hint or "(list: kafkascope fields)"
    )


_NUMBERS: Final = frozenset({"Int8", "Int16", "Int32", "Int64", "Uint16", "Uint32", "Float64"})


def fits(value: Loose, field: Field) -> None:
    """Raise `ValueError` when no message has a value at the field's path that could equal this
    one."""
    kinds = frozenset(field.doc.split(", "))
    if kinds <= {"Struct", "Array"}:
        raise ValueError("it is a group of fields: use one of them")
    if value.number is None and value.code is None and kinds <= _NUMBERS:
        raise ValueError("expected a number")
    if value.truth is None and value.number not in (0, 1) and kinds <= {"Bool"}:
        raise ValueError("expected true or false")


def _alike(first: Any, last: Any) -> bool:
    """Return whether both ends of a range about decoded values have a kind in common."""
    if not isinstance(first, Typed):
        return True
    kinds = ("number", "text", "moment")
    return any(
        getattr(first, kind) is not None and getattr(last, kind) is not None for kind in kinds
    )


class _Binder:
    def __init__(self, text: str) -> None:
        self.text = text

    def bind(self, tree: Tree) -> Bound:
        match tree:
            case And(terms):
                return Every(tuple(self.bind(term) for term in terms))
            case Or(terms):
                return Some(tuple(self.bind(term) for term in terms))
            case Not(term):
                return Unless(self.bind(term))
            case Search(text):
                return Find(text.lower())
            case Has(name):
                return Test(*self.field(name), "has")
            case In(name, items):
                return self.members(name, items)
            case Compare():
                return self.compare(tree)

    def field(self, name: Name) -> tuple[Field, filter_paths.Path]:
        found = resolve(name.text)
        if found is None:
            at = self.text.find(name.text, name.at)
            raise unknown_field(name.text, self.text, max(at, 0))
        return found

    def error(self, value: Value, reason: str, hint: str = "") -> FilterError:
        return FilterError(reason, self.text, value.at, value.width, hint)

    def convert(self, field: Field, value: Value) -> Any:
        try:
            if field.type == "value":
                return typed(value.text, value.quoted)
            converted = CONVERT[field.type](value.text)
            if isinstance(converted, Loose):
                fits(converted, field)
            return converted
        except Nearest as error:
            raise self.error(value, str(error), error.hint) from None
        except ValueError as error:
            raise self.error(
                value, f'"{value.text}" is not a value of {field.name}: {error}'
            ) from None

    def members(self, name: Name, items: tuple[tuple[Value, Value | None], ...]) -> Test:
        field, path = self.field(name)
        pairs = []
        for low, high in items:
            first = self.convert(field, low)
            if high is None:
                pairs.append((first, None))
                continue
            if field.type in UNORDERED:
                raise self.error(low, f"{field.name} has no order, so ranges do not work")
            last = self.convert(field, high)
            if type(first) is not type(last) or not _alike(first, last):
                raise self.error(high, "both ends of a range must have the same type")
            pairs.append((first, last))
        return Test(field, path, name.quantifier or "any", "in", tuple(pairs))

    def compare(self, tree: Compare) -> Test:
        field, path = self.field(tree.name)
        operator, value = tree.operator, tree.value
        if operator in ("contains", "matches"):
            if field.type not in TEXTUAL:
                raise self.error(value, f'"{operator}" works on text; {field.name} is not text')
            return Test(
                field, path, tree.name.quantifier or "any", operator, self.pattern(operator, value)
            )
        if operator not in ("==", "!=", "===", "!==") and field.type in UNORDERED:
            raise self.error(value, f"{field.name} has no order", "== and != work")
        converted = self.convert(field, value)
        scope: Scope = tree.name.quantifier or "any"
        match operator:
            case "===":
                return Test(field, path, "all", "==", converted)
            case "!==":
                return Test(field, path, "any", "!=", converted)
            case "!=" if not tree.name.quantifier:
                return Test(field, path, "none", "==", converted)
            case _:
                return Test(field, path, scope, operator, converted)

    def pattern(self, operator: str, value: Value) -> Any:
        if operator == "contains":
            return value.text
        try:
            return Regex(value.text)
        except RegexError as error:
            raise self.error(value, f"invalid regular expression: {error}") from None
