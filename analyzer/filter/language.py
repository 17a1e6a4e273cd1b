"""Display filters: the entry point of the package. The language is in docs/filter.md.

    compile_filter(text)   one exchange after the other: Filter
    compile_query(text)    the columns of a session, a million rows at once: Query
    complete(text, place)  what may stand at the cursor

filter.lexer -> filter.syntax (tree) -> filter.bind (fields, values) -> a back end:
backends.exchange for one exchange, backends.columns for whole columns. A `Known` holds marks and
findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkascope.analyzer.filter.backends.exchange import Filter, compile_filter
from kafkascope.analyzer.filter.bind import Bound, bind, cost
from kafkascope.analyzer.filter.errors import FilterError
from kafkascope.analyzer.filter.known import NOTHING, Known
from kafkascope.analyzer.filter.syntax import Tree, parse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafkascope.analyzer.filter.backends.columns import Query
    from kafkascope.analyzer.filter.completion import Completion, Seen
    from kafkascope.analyzer.session.session import Session


def compile_query(text: str, known: Known = NOTHING) -> Query:
    """Return the query of a text; `FilterError` when it is invalid. Loads numpy."""
    from kafkascope.analyzer.filter.backends import columns as filter_columns

    return filter_columns.compile_query(text, known)


def complete(
    text: str, cursor: int | None = None, values: Seen | None = None, findings: Iterable[str] = ()
) -> Completion:
    """Return the items that may stand at the cursor: see `completion`."""
    from kafkascope.analyzer.filter import completion as filter_completion

    return filter_completion.complete(
        text, cursor, values or filter_completion.nothing_seen, findings
    )


def seen_in(session: Session, decoded: Seen | None = None) -> Seen:
    """Return the values that a session has, for `complete`; `decoded` gives those of fields that
    are decoded by schema."""
    from kafkascope.analyzer.filter import completion as filter_completion

    return filter_completion.seen_in(session, decoded)


__all__ = [
    "Bound",
    "Filter",
    "FilterError",
    "Known",
    "Tree",
    "bind",
    "compile_filter",
    "compile_query",
    "complete",
    "cost",
    "parse",
    "seen_in",
]
