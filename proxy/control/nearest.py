"""The request that came nearest to a filter: which of its terms it met, and what it had instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.analyzer.text import safe

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.rows import Row
    from kafkascope.analyzer.filter.syntax import Tree
    from kafkascope.analyzer.model import Exchange

MOST_TERMS: Final = 8
LONGEST: Final = 80
"""Characters of a value."""


class _Term(NamedTuple):
    """A term of a filter."""

    holds: Callable[[Row, Exchange], bool]
    names: tuple[str, ...]
    """The fields that it uses."""


class Nearest:
    """Looks at requests, and keeps the first of those that meet most terms."""

    def __init__(self, text: str) -> None:
        """`text`: a filter; only one whose terms all have to hold has something nearest."""
        self._terms = _terms(text)
        self._most = 0
        self._told = ""

    def __str__(self) -> str:
        """A line, or nothing."""
        return self._told

    def see(self, row: Row, exchange: Exchange) -> None:
        """Look at a request."""
        if not self._terms:
            return
        missed = [term for term in self._terms if not term.holds(row, exchange)]
        met = len(self._terms) - len(missed)
        if missed and met > self._most:
            self._most = met
            self._told = _line(row, exchange, missed)


def _terms(text: str) -> list[_Term]:
    from kafkascope.analyzer.filter.bind import bind, fields_of
    from kafkascope.analyzer.filter.fields import DECODED
    from kafkascope.analyzer.filter.language import compile_filter, parse
    from kafkascope.analyzer.filter.syntax import And

    tree = parse(text)
    if not isinstance(tree, And) or len(tree.terms) > MOST_TERMS or fields_of(bind(text)) & DECODED:
        return []
    return [
        _Term(compile_filter(str(term)), tuple(dict.fromkeys(_names(term)))) for term in tree.terms
    ]


def _names(tree: Tree) -> Iterator[str]:
    from kafkascope.analyzer.filter.syntax import And, Compare, Has, In, Not, Or

    match tree:
        case And() | Or():
            for term in tree.terms:
                yield from _names(term)
        case Not():
            yield from _names(tree.term)
        case Has() | Compare() | In():
            yield tree.name.text
        case _:
            pass  # a text, which any field may hold


def _line(row: Row, exchange: Exchange, missed: list[_Term]) -> str:
    had = "; ".join(_had(name, row, exchange) for term in missed for name in term.names)
    client = f" of {row.client_id}" if row.client_id else ""
    about = f": {had}" if had else ""
    text = f"{row.api} v{row.api_version}{client} (number {row.number}) came nearest{about}"
    return f"  {safe(text)}"  # it is printed in tests' reports


def _had(name: str, row: Row, exchange: Exchange) -> str:
    from kafkascope.analyzer.filter.errors import FilterError
    from kafkascope.analyzer.render.listing import columns_of
    from kafkascope.analyzer.render.times import Times

    try:
        (column,) = columns_of((name,), Times("a"))
    except FilterError:
        return f"{name} is another"
    value = column.cell(row, exchange)
    if len(value) > LONGEST:
        value = f"{value[:LONGEST]}..."
    return f"{name} is {value}" if value else f"{name} has no value"
