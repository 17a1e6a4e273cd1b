"""Completion of filters at the cursor: fields, operators, values, conjunctions.

    found = complete("api == Fe", 9, seen_in(session))
    found.items[0].text        "Fetch", the replacement of text[found.begin:found.end]
    found.error                the `FilterError` of the whole text, None when it is a filter
    found.unfinished           whether the only error is that the filter is incomplete

The line editor of the UI and the completion of shells both use this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from kafkascope.analyzer.filter.bind import TEXTUAL, UNORDERED, bind, resolve
from kafkascope.analyzer.filter.errors import FilterError, nearest
from kafkascope.analyzer.filter.fields import (
    COLUMNS,
    COST_WORDS,
    DECODED,
    FIELDS,
    WIRESHARK,
    Field,
    field_of,
)
from kafkascope.analyzer.filter.getters import ends_of
from kafkascope.analyzer.filter.lexer import Token, tokens
from kafkascope.analyzer.filter.limits import LIMITS
from kafkascope.analyzer.filter.syntax import RESERVED, SPELLINGS, Value
from kafkascope.analyzer.model import STATES, Cause, Point
from kafkascope.schemas.model import Reason

if TYPE_CHECKING:
    from kafkascope.analyzer.session.session import Session

_PARTS: Final = re.compile(r"[._-]")
# Limit of table entries that are searched for values.
LOOKED_AT: Final = 100_000

Kind = Literal["field", "operator", "value", "word"]
Place = Literal["field", "operator", "value", "set", "join"]
Seen: TypeAlias = Callable[[str], Iterable[str]]
"""Returns the values that a capture has for a field, by the field's name."""


class Item(NamedTuple):
    """One item that may stand at the cursor."""

    text: str
    kind: Kind
    hint: str = ""


class Completion(NamedTuple):
    """The result of `complete`."""

    begin: int
    end: int
    """`begin` and `end` delimit the characters that an item replaces."""
    items: tuple[Item, ...]
    error: FilterError | None
    unfinished: bool


def nothing_seen(field: str) -> Iterable[str]:
    """Return no values: there is no capture."""
    return ()


def complete(
    text: str, cursor: int | None = None, values: Seen = nothing_seen, findings: Iterable[str] = ()
) -> Completion:
    """Return the items for the word at the cursor (the end of the text when None), best first.
    `findings`: names of findings, which this package does not know."""
    cursor = len(text) if cursor is None else max(0, min(cursor, len(text)))
    before = _tokens_before(text, cursor)
    current = before.pop() if before and _touches(before[-1], cursor) else None
    place, field, depth = _place(before)
    if current is not None and current.kind in ("op", "punct") and place != "operator":
        # The next word begins after an operator, except that > may become >=.
        before.append(current)
        place, field, depth = _place(before)
        current = None
    begin = cursor if current is None else current.at
    end = max(cursor, _end_of_word(text, begin, cursor, current))
    typed = "" if current is None else text[begin:cursor]
    if current is not None and current.kind == "string":
        typed = typed.strip('"')
    items = tuple(_items(place, field, depth, typed, values, findings))[: LIMITS.completions]
    error = None
    try:
        bind(text)
    except FilterError as found:
        error = found
    unfinished = error is not None and (
        error.unfinished or _is_begun(error, begin, end, items, typed)
    )
    return Completion(begin, end, items, error, unfinished)


def _is_begun(
    error: FilterError, begin: int, end: int, items: tuple[Item, ...], typed: str
) -> bool:
    """Return whether the error is at the word at the cursor, and that is the beginning of a valid
    one."""
    inside = begin <= error.at <= end
    return inside and any(item.text.lower().startswith(typed.lower()) for item in items)


def _tokens_before(text: str, cursor: int) -> list[Token]:
    """Return the tokens that begin before the cursor; an incomplete one (a string without its end)
    is one word."""
    head = text[:cursor]
    try:
        return tokens(head)[:-1]
    except FilterError as error:
        at = min(error.at, len(head))
        try:
            found = tokens(head[:at])[:-1]
        except FilterError:
            return []
        if head[at : at + 1] == "=":
            found.append(Token("op", "=", at, 1))
        elif at < len(head) and (head[at] == '"' or head[at : at + 2].lower() == 'r"'):
            if found and found[-1].text.endswith(".") and _touches(found[-1], at):
                at = found.pop().at  # A step of a path: record.value."user
                found.append(Token("word", head[at:], at, len(head) - at))
            else:
                found.append(Token("string", head[at:].strip('"'), at, len(head) - at))
        return found


def _touches(token: Token, cursor: int) -> bool:
    return token.at + token.width >= cursor


def _end_of_word(text: str, begin: int, cursor: int, current: Token | None) -> int:
    if current is None or current.kind not in ("word", "string"):
        return cursor
    try:
        whole = tokens(text)
    except FilterError:
        return cursor
    return next((token.at + token.width for token in whole if token.at == begin), cursor)


def _place(before: list[Token]) -> tuple[Place, str, int]:
    """Return (what comes next, the field that it belongs to, open parentheses)."""
    place: Place = "field"
    field, depth = "", 0
    for token in before:
        word = token.text.lower() if token.kind == "word" else ""
        sign = token.text if token.kind in ("op", "punct") else ""
        if place == "set":
            if sign == "}":
                place = "join"
        elif word in ("and", "or") or sign in ("&&", "||"):
            place = "field"
        elif sign == "(":
            place, depth = "field", depth + 1
        elif sign == ")":
            place, depth = "join", max(0, depth - 1)
        elif place == "field":
            if token.kind == "string":
                place = "join"
            elif word and word not in RESERVED:
                place, field = "operator", token.text
        elif place == "operator":
            if word == "in" or sign == "{":
                place = "set"
            elif (word or sign) in SPELLINGS:
                place = "value"
        elif place == "value" and token.kind in ("word", "string"):
            place = "join"
    return place, field, depth


def _items(
    place: Place, name: str, depth: int, typed: str, values: Seen, findings: Iterable[str]
) -> Iterator[Item]:
    if place == "field":
        yield from _fields(typed, values)
        return
    found = resolve(name) if name else None
    field = None if found is None else found[0]
    if place == "operator":
        yield from _operators(field, typed)
    elif place in ("value", "set"):
        yield from _values(
            field, typed, values, findings if field is not None and field.name == "finding" else ()
        )
        if place == "set" and not typed:
            yield Item("}", "word", "closes the set")
        return
    if place == "join" or (place == "operator" and field is not None):
        words = [Item("and", "word", "both hold"), Item("or", "word", "one holds")]
        if depth:
            words.append(Item(")", "word", "closes the parenthesis"))
        yield from (word for word in words if word.text.startswith(typed.lower()))


def ranked(typed: str, names: Iterable[str]) -> list[str]:
    """Return the names that match what was typed: those that begin with it, those with a part that
    begins with it, those that contain it; when there are none, the nearest one."""
    wanted = typed.lower()
    groups: tuple[list[str], list[str], list[str]] = ([], [], [])
    every = list(dict.fromkeys(names))
    for name in every:
        low = name.lower()
        if low.startswith(wanted):
            groups[0].append(name)
        elif any(part.startswith(wanted) for part in _PARTS.split(low)):
            groups[1].append(name)
        elif wanted in low:
            groups[2].append(name)
    found = [name for group in groups for name in group]
    if not found and len(wanted) > 1 and (near := nearest(typed, every)):
        return [near]
    return found


def _fields(typed: str, values: Seen) -> Iterator[Item]:
    front = "kafka." if typed.lower().startswith("kafka.") else ""
    typed = typed[len(front) :]
    for whose in ("record.key.", "record.value."):
        if typed.lower().startswith(whose):
            for path in ranked(typed[len(whose) :], values(whose)):
                yield Item(f"{front}{whose}{path}", "field", "value, decodes: seen in the capture")
            return
    side, dot, rest = typed.partition(".")
    inside = dot and side.lower() in ("request", "response", "body")
    hints = {field.name: f"{field.type}, {COST_WORDS[field.cost]}: {field.doc}" for field in FIELDS}
    others = {alias: f"also {field.name}" for field in FIELDS for alias in field.aliases}
    others |= {name: f"also body.{path}" for name, path in WIRESHARK.items()}
    others |= dict.fromkeys(("request.", "response.", "body."), "any field of a body")
    others |= dict.fromkeys(("record.key.", "record.value."), "any field decoded by schema")
    others |= {"not": "negates the next condition", "any": "one value", "all": "all values"}
    if typed:
        # Other names only once they are begun: they would hide the usual ones.
        hints |= {name: hint for name, hint in others.items() if name.startswith(typed.lower())}
    else:
        hints |= {name: others[name] for name in ("request.", "response.", "body.", "not")}
    found = [n for n in hints if n.startswith(typed.lower())] if inside else ranked(typed, hints)
    for name in found:
        kind: Kind = "word" if name in ("not", "any", "all") else "field"
        yield Item(front + name, kind, hints[name])
    if inside:
        yield from _paths(side.lower(), rest, front)


def _paths(side: str, typed: str, front: str) -> Iterator[Item]:
    from kafkascope.analyzer.filter.paths import known, leaves

    paths = leaves() if side == "body" else known(side)
    for path in ranked(typed, sorted(paths, key=lambda path: (path.count("."), path))):
        kinds = " or ".join(sorted(paths[path])).lower()
        yield Item(f"{front}{side}.{path}", "field", f"{kinds}, decodes")


_MEANING: Final = {
    "==": "any value is equal",
    "!=": "not equal",
    ">": "greater",
    "<": "less",
    ">=": "not less",
    "<=": "not greater",
    "contains": "contains the text",
    "matches": "matches a regular expression",
    "in": "one of { , .. }",
    "===": "all values are equal",
    "!==": "any value is not equal",
}


def _operators(field: Field | None, typed: str) -> Iterator[Item]:
    if field is None:
        return
    for operator, meaning in _MEANING.items():
        if operator in ("contains", "matches") and field.type not in TEXTUAL:
            continue
        if operator in (">", "<", ">=", "<=") and field.type in UNORDERED:
            continue
        if operator.startswith(typed.lower()):
            yield Item(operator, "operator", meaning)


def _values(field: Field | None, typed: str, values: Seen, more: Iterable[str]) -> Iterator[Item]:
    if field is None:
        return
    seen = dict.fromkeys(values(field.name), "seen here")
    known = seen | dict.fromkeys(
        (value for value in (*_known(field), *more) if value not in seen), ""
    )
    for value in ranked(typed, known):
        yield Item(str(Value(value)), "value", known[value])
    if not known and not typed and field.example:
        yield Item(field.example.rsplit(" ", 1)[-1], "value", "for example")


def _known(field: Field) -> Iterator[str]:
    """Yield the values that are known without a capture."""
    match field.type:
        case "api":
            from kafkascope.dissectors.registry import APIS

            yield from sorted(api.name for api in APIS.values())
        case "error":
            from kafkascope.dissectors.reference.codes import ERRORS

            yield from (error.name for error in ERRORS.values())
        case "state":
            yield from STATES
        case "bool":
            yield from ("true", "false")
        case "release" if field.name == "removed_in":
            from kafkascope.dissectors.reference.releases import RELEASES

            yield from reversed(RELEASES)
    yield from _WORDS.get(field.name, ())


_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "finding.severity": ("error", "warning", "note", "chat"),
    "schema.error": get_args(Reason),
    "codec": ("none", "gzip", "snappy", "lz4", "zstd"),
    "stalled_by": get_args(Cause),
    "capture_point": get_args(Point),
}


def seen_in(session: Session, decoded: Seen | None = None) -> Seen:
    """Return the function that gives the values of a session so far, in the order of their first
    appearance. `decoded`: gives those of fields that are decoded by schema."""

    def values(name: str) -> Iterable[str]:
        if name in DECODED:
            return () if decoded is None else decoded(name)
        match name:
            case "topic":
                names, tables = session.context.names, session.tables
                lists = (*tables["topics"].values[:LOOKED_AT], *tables["implied_topics"].values)
                return dict.fromkeys(names.late(topic) for found in lists for topic in found)
            case "api":
                return sorted(api for api in session.tables["api"].values if api)
            case "error" | "error.top":
                from kafkascope.dissectors.reference.codes import error_name

                codes = {code for found in session.tables["errors"].values for code in found}
                return [error_name(code) for code in sorted(codes)]
            case "broker" | "broker.ip" | "client.ip" | "ip" | "via":
                return _addresses(session, name)
        named = COLUMNS.get(name)
        table = None if named is None else session.tables.get(named.name)
        if named is None or table is None:
            return ()
        if named.column.kind.many:
            return dict.fromkeys(str(one) for many in table.values[:LOOKED_AT] for one in many)
        return [value for value in table.values if value]

    return values


def _addresses(session: Session, name: str) -> Iterable[str]:
    field = field_of(name)
    found: dict[str, None] = {}
    connections, asking = session.columns["connection"], session.columns["client_side"]
    sides = dict(zip(connections[:LOOKED_AT], asking[:LOOKED_AT], strict=True))
    for index, side in sides.items():
        ends = ends_of(session.connections[index], side)
        # The second value of `broker` and `via` is the host alone.
        values = field.of(*map(ends.__getitem__, field.reads))
        found |= dict.fromkeys(values[: 1 if name in ("broker", "via") else None])
    return found
