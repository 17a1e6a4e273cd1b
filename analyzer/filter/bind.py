"""Binding: resolves names of a syntax tree to fields and converts values to the fields' types.

All errors of a filter are found here or before, never during evaluation. All back ends start from
the bound filter.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from kafkascope.analyzer.filter import paths as filter_paths
from kafkascope.analyzer.filter.decoded.comparing import Typed, typed
from kafkascope.analyzer.filter.errors import FilterError, nearest
from kafkascope.analyzer.filter.fields import (
    DECODED,
    FIELDS,
    NOTED,
    WIRESHARK,
    Cost,
    Field,
    all_names,
    field_named,
    fields_from,
)
from kafkascope.analyzer.filter.known import Known
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
    Value,
    mapped,
    parse,
)
from kafkascope.analyzer.filter.values import CONVERT, Loose, Nearest
from kafkascope.schemas import paths as payload_paths

__all__ = ["And", "Not", "Or", "Search"]  # also parts of bound filters

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


Bound: TypeAlias = "And[Bound] | Or[Bound] | Not[Bound] | Search | Test"


def bind(text: str) -> Bound | None:
    """Read and bind a filter; return None for a blank one. Raises `FilterError` for any error."""
    tree = parse(text)
    return None if tree is None else mapped(tree, _Binder(text).leaf)


def leaves(bound: Bound) -> Iterator[Test | Search]:
    """Yield the comparisons and searches of a filter."""
    match bound:
        case And(terms) | Or(terms):
            for term in terms:
                yield from leaves(term)
        case Not(term):
            yield from leaves(term)
        case Test() | Search():
            yield bound


def cost(bound: Bound) -> Cost:
    """Return the cost of the most expensive field of a filter: i, s or b."""
    costs: Iterator[Cost] = (
        "b" if isinstance(leaf, Search) else leaf.field.cost for leaf in leaves(bound)
    )
    return max(costs, key="isb".index)


def fields_of(bound: Bound | None) -> set[str]:
    """Return the fields that a filter names; `request.`, `response.` and `body.` mean any field of
    a body, `record.key.` and `record.value.` any of a decoded key or value, `summary` a string
    alone."""
    return {
        "summary"
        if isinstance(leaf, Search)
        else f"{leaf.path[0]}."
        if leaf.path
        else leaf.field.name
        for leaf in (leaves(bound) if bound is not None else ())
    }


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
    known = filter_paths.known(side)
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
        known = filter_paths.known(side)
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


def _comparable(first: Any, last: Any) -> bool:
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

    def leaf(self, tree: Has | Compare | In | Search) -> Test | Search:
        match tree:
            case Search(text):
                return Search(text.lower())
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
            if type(first) is not type(last) or not _comparable(first, last):
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


LATE: Final = frozenset({"topic", "summary"}) | DECODED
"""Fields that use topic names, which may come after the exchange."""

_BODIES: Final = frozenset({"request.", "response.", "body."})
"""What `fields_of` returns for any field of a body."""
NUMBERS: Final = frozenset({"number", "conn"})
_OF_ALL: Final = NUMBERS | fields_from("order")
"""Ranks, and fields that need the exchange before: known when all of a capture has been read."""

IN_TASKS: Final = (
    ({field.name for field in FIELDS} | _BODIES | {"summary"}) - _OF_ALL - NOTED - DECODED
)
"""Fields that a task of the pipeline supports, which has only some of the connections."""
IN_TABLES: Final = {field.name for field in FIELDS if field.reads} - NOTED | {"summary"}
"""Fields that the table of exchanges supports: its columns, not the messages."""


def demand(bound: Bound | None, text: str, known: Collection[str], why: str, hint: str) -> None:
    """Raise `FilterError` at the first field of a filter that is not in `known`. `why` is the
    sentence, with `{}` for the field; `hint` says what to do instead."""
    for name in sorted(fields_of(bound) - set(known)):
        alone = name == "summary"
        word = name.rstrip(".")
        at = 0 if alone else max(text.lower().find(word), 0)
        path = name in DECODED and word != name
        shown = "a text on its own" if alone else f"{word}.<path>" if path else word
        raise FilterError(why.format(shown), text, at, 1 if alone else len(word), hint)


def decodes(bound: Bound | None, text: str, known: Known) -> None:
    """Raise `FilterError` for a filter about decoded values where nothing decodes them."""
    if known.decoding is None:
        named = fields_of(bound)
        why = "{} needs keys and values decoded with a schema"
        demand(bound, text, named - DECODED, why, "record.key and record.value are the bytes")


def bound_of(text: str, known: Known) -> Bound | None:
    """Return the bound filter of a text; `FilterError` also where it is about decoded values and
    nothing decodes them."""
    bound = bind(text)
    decodes(bound, text, known)
    return bound
