"""The syntax tree of a display filter and its parser. Knows no fields: names and values are text.

    filter     = and-list { ("or" | "||") and-list }
    and-list   = negation { ("and" | "&&") negation }
    negation   = { "not" | "!" } primary
    primary    = "(" filter ")" | string | [ "any" | "all" ] field [ comparison ]
    comparison = operator value | [ "not" ] "in" "{" item { "," item } "}"
    item       = value [ ".." value ]
    value      = word | string

`str()` of a tree is a filter that parses to the same tree. `filter.bind` resolves names and values;
the back ends evaluate the result for one exchange or whole columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.lexer import Token, quoted, tokens
from kafkascope.analyzer.filter.limits import LIMITS

Operator = Literal["==", "!=", "===", "!==", ">", "<", ">=", "<=", "contains", "matches"]
Quantifier = Literal["", "any", "all"]
Term = TypeVar("Term")
"""A part of a tree as it was written, or of one that is bound to fields."""


SPELLINGS: Final[dict[str, Operator]] = {
    "==": "==",
    "eq": "==",
    "!=": "!=",
    "ne": "!=",
    "===": "===",
    "!==": "!==",
    ">": ">",
    "gt": ">",
    "<": "<",
    "lt": "<",
    ">=": ">=",
    "ge": ">=",
    "<=": "<=",
    "le": "<=",
    "contains": "contains",
    "matches": "matches",
    "~": "matches",
}
"""Spellings of an operator and its canonical name."""

RESERVED: Final = frozenset(
    {"and", "or", "not", "in", "any", "all", *(word for word in SPELLINGS if word.isalpha())}
)
_FIELD: Final = re.compile(
    r"""[A-Za-z_][\w-]*(\[\d+\])*(\.([\w-]+|"([^"\\]|\\.)*")(\[\d+\])*)*\Z""", re.DOTALL
)
_BARE: Final = re.compile(r"[\w./:+*@%?$^;-]+\Z")


@dataclass(frozen=True, slots=True)
class Value:
    """A value as it was written, without quotes."""

    text: str
    at: int = field(default=0, compare=False)
    width: int = field(default=1, compare=False)
    quoted: bool = field(default=False, compare=False)
    """Whether quotes say that it is a text; only decoded values tell the difference."""

    def __str__(self) -> str:
        bare = not self.quoted and _BARE.match(self.text) and ".." not in self.text
        return self.text if bare and self.text.lower() not in RESERVED else quoted(self.text)


@dataclass(frozen=True, slots=True)
class Name:
    """A field as it was written, with the word before it."""

    text: str
    quantifier: Quantifier = ""
    at: int = field(default=0, compare=False)

    def __str__(self) -> str:
        return f"{self.quantifier} {self.text}".lstrip()


@dataclass(frozen=True, slots=True)
class And(Generic[Term]):
    """All terms hold; two or more."""

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return " and ".join(_inside(term, And, Or) for term in self.terms)


@dataclass(frozen=True, slots=True)
class Or(Generic[Term]):
    """At least one term holds; two or more."""

    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return " or ".join(_inside(term, Or) for term in self.terms)


@dataclass(frozen=True, slots=True)
class Not(Generic[Term]):
    """The term does not hold."""

    term: Term

    def __str__(self) -> str:
        return f"not {_inside(self.term, And, Or)}"


@dataclass(frozen=True, slots=True)
class Has:
    """A field alone: it is present, or true, or more than zero, depending on its type."""

    name: Name

    def __str__(self) -> str:
        return str(self.name)


@dataclass(frozen=True, slots=True)
class Compare:
    """A field, an operator and a value."""

    name: Name
    operator: Operator
    value: Value

    def __str__(self) -> str:
        return f"{self.name} {self.operator} {self.value}"


@dataclass(frozen=True, slots=True)
class In:
    """A field and a set of values and inclusive ranges."""

    name: Name
    items: tuple[tuple[Value, Value | None], ...]
    """(value, None), or (first, last) of a range."""

    def __str__(self) -> str:
        shown = (str(low) if high is None else f"{low}..{high}" for low, high in self.items)
        return f"{self.name} in {{{', '.join(shown)}}}"


@dataclass(frozen=True, slots=True)
class Search:
    """A string alone: the summary of the exchange contains it, ignoring case; once bound it is in
    lower case."""

    text: str

    def __str__(self) -> str:
        return quoted(self.text)


Tree: TypeAlias = "And[Tree] | Or[Tree] | Not[Tree] | Has | Compare | In | Search"


def mapped(tree: Any, leaf: Callable[[Any], Any], order: Callable[[Any], Any] = iter) -> Any:
    """Return a tree of the same shape with other leaves. `order`: of the terms of a list."""
    match tree:
        case And(terms) | Or(terms):
            return type(tree)(tuple(mapped(term, leaf, order) for term in order(terms)))
        case Not(term):
            return Not(mapped(term, leaf, order))
        case _:
            return leaf(tree)


def _inside(term: object, *lists: type) -> str:
    return f"({term})" if isinstance(term, lists) else str(term)


def parse(text: str) -> Tree | None:
    """Return the tree of a filter; None when it is blank, which matches everything. Raises
    `FilterError`."""
    parser = _Parser(text)
    if parser.is_over():
        return None
    tree = parser.either(0)
    if not parser.is_over():
        raise parser.unexpected()
    return tree


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.rest = iter(tokens(text))
        self.token = next(self.rest)
        self.last: Token | None = None

    def advance(self) -> Token:
        self.last, self.token = self.token, next(self.rest, self.token)
        return self.last

    def is_word(self, *words: str) -> bool:
        return self.token.kind == "word" and self.token.text.lower() in words

    def is_sign(self, *signs: str) -> bool:
        return self.token.kind in ("op", "punct") and self.token.text in signs

    def is_over(self) -> bool:
        return self.token.kind == "end"

    def error(self, reason: str, hint: str = "", token: Token | None = None) -> FilterError:
        token = token or self.token
        over = self.is_over()
        return FilterError(reason, self.text, token.at, token.width, hint, unfinished=over)

    def unexpected(self) -> FilterError:
        token = self.token
        if token.kind == "end":
            return self.error("the filter is incomplete")
        if token.kind in ("word", "string") and self.last is not None:
            hint = "join comparisons with and / or; operators: == != > < >= <= contains matches in"
            return self.error(f'"{token.text}" is not expected here', hint)
        return self.error(f'unexpected "{token.text}"')

    def deeper(self, depth: int) -> int:
        if depth >= LIMITS.nesting:
            raise self.error(f"more than {LIMITS.nesting} levels")
        return depth + 1

    def either(self, depth: int) -> Tree:
        terms = [self.both(depth)]
        while self.is_word("or") or self.is_sign("||"):
            self.advance()
            terms.append(self.both(depth))
        return terms[0] if len(terms) == 1 else Or(tuple(terms))

    def both(self, depth: int) -> Tree:
        terms = [self.negation(depth)]
        while self.is_word("and") or self.is_sign("&&"):
            self.advance()
            terms.append(self.negation(depth))
        return terms[0] if len(terms) == 1 else And(tuple(terms))

    def negation(self, depth: int) -> Tree:
        if self.is_word("not") or self.is_sign("!"):
            self.advance()
            return Not(self.negation(self.deeper(depth)))
        return self.primary(depth)

    def primary(self, depth: int) -> Tree:
        if self.is_sign("("):
            opened = self.advance()
            tree = self.either(self.deeper(depth))
            if not self.is_sign(")"):
                if self.token.kind == "end":
                    raise self.error("a parenthesis without its closing one", token=opened)
                raise self.unexpected()
            self.advance()
            return tree
        if self.token.kind == "string":
            return Search(self.advance().text)
        return self.comparison()

    def comparison(self) -> Tree:
        quantifier: Quantifier = ""
        if self.is_word("any", "all"):
            quantifier = "any" if self.advance().text.lower() == "any" else "all"
        name = self.name(quantifier)
        if self.is_word("in"):
            self.advance()
            return In(name, self.members())
        if self.is_word("not"):
            negated = self.advance()
            if not self.is_word("in"):
                raise self.error('"not" cannot follow a field', token=negated)
            self.advance()
            return Not(In(name, self.members()))
        operator = self.operator()
        if operator is None:
            if quantifier:
                raise self.error(f'after "{quantifier} {name.text}" an operator is missing')
            return Has(name)
        return Compare(name, operator, self.value(f'after "{operator}"'))

    def name(self, quantifier: Quantifier) -> Name:
        token = self.token
        if token.kind == "end":
            raise self.error("a comparison is missing")
        if token.kind != "word" or token.text.lower() in RESERVED:
            raise (
                self.unexpected()
                if token.kind != "word"
                else self.error(f'"{token.text}" is not a field')
            )
        if not _FIELD.match(token.text):
            raise self.error(f'"{token.text}" is not a field', 'to search for text, write "..."')
        self.advance()
        return Name(token.text, quantifier, token.at)

    def operator(self) -> Operator | None:
        if self.token.kind not in ("word", "op"):
            return None
        operator = SPELLINGS.get(self.token.text.lower())
        if operator is not None:
            self.advance()
        return operator

    def value(self, where: str) -> Value:
        token = self.token
        if token.kind == "end" or self.is_word("and", "or") or token.kind == "op":
            hint = "" if token.kind == "end" else f'the value "{token.text}" needs quotes'
            raise self.error(f"{where} a value is missing", hint)
        if token.kind == "punct":
            hint = "a set follows in: field in {1, 2}" if token.text == "{" else ""
            raise self.error(f"{where} a value is missing", hint)
        if token.kind == "word" and '"' in token.text:
            raise self.error(f"{where} a value is missing", "quote the whole value")
        self.advance()
        return Value(token.text, token.at, token.width, token.kind == "string")

    def members(self) -> tuple[tuple[Value, Value | None], ...]:
        if not self.is_sign("{"):
            raise self.error('after "in" a set is missing', "write in {1, 3..5}")
        opened = self.advance()
        items: list[tuple[Value, Value | None]] = []
        while True:
            low = self.value("in the set")
            high = None
            if self.is_sign(".."):
                self.advance()
                high = self.value('after ".."')
            items.append((low, high))
            if self.is_sign("}"):
                self.advance()
                return tuple(items)
            if self.token.kind == "end":
                raise self.error("a set without its closing brace", token=opened)
            if not self.is_sign(","):
                raise self.error("separate the values of a set with commas", "write {1, 2}")
            self.advance()
