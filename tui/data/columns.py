"""Rows by their columns, with numpy: their order, and which are of a kind."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kafkascope.analyzer.filter.backends.sources import LISTS, NUMBERS, KeyedValues, RowRange
from kafkascope.analyzer.filter.bind import resolve
from kafkascope.analyzer.filter.known import Known
from kafkascope.analyzer.filter.language import compile_query
from kafkascope.analyzer.model import STATES
from kafkascope.analyzer.render.listing import LARGEST_FIRST, SORTED_DOWN
from kafkascope.analyzer.session.session import Session
from kafkascope.tui.data.store import BAD_STATES, Store
from kafkascope.tui.stack import Order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]

# The key of rows without a value, which come last in either direction.
LAST: Final = 2**62
WORST: Final = {"lost": 0, "orphan": 1}


def default_order(name: str) -> Order:
    """Return the usual order by a column: sizes and times largest first."""
    found = resolve(name)
    if found is None:
        return Order(name, False)
    field = found[0]
    return Order(name, field.type in LARGEST_FIRST or field.name in SORTED_DOWN)


def sortable(name: str) -> bool:
    """Return whether a column can be sorted by without reading messages."""
    found = resolve(name)
    return name == "result" or (
        found is not None
        and not found[1]
        and (found[0].name in NUMBERS or found[0].name in LISTS)
        and found[0].name != "time.delta"
    )


def ordered(
    session: Session, order: Order, wanted: array[int] | None, rows: int
) -> NDArray[np.int64]:
    """Return the indexes of `wanted` (None: of the first rows), sorted; equal ones stay in order of
    the capture."""
    keys = _keys(session, order.name, rows if wanted is None else len(session))
    if order.downwards:
        keys = np.where(keys == LAST, LAST, -keys)
    if wanted is None:
        return np.argsort(keys, kind="stable")
    indexes = np.array(wanted[:rows], dtype=np.int64)
    found: NDArray[np.int64] = indexes[np.argsort(keys[indexes], kind="stable")]
    return found


def _keys(session: Session, name: str, rows: int) -> NDArray[np.int64]:
    part = RowRange(session, 0, rows)
    if name == "result":
        return _troubles(session, part)
    found = resolve(name)
    assert found is not None
    field = found[0].name
    if field in LISTS:
        return _ranks(LISTS[field](part))
    values, there = NUMBERS[field](part)
    return values if there is None else np.where(there, values, LAST)


def _ranks(column: KeyedValues) -> NDArray[np.int64]:
    """Return the rank of each row's value among all values."""
    keys, place = np.unique(column.keys, return_inverse=True)
    values = [_first(column.values(int(key))) for key in keys]
    sorted_values = sorted({value for value in values if value is not None}, key=_comparable)
    rank = {value: number for number, value in enumerate(sorted_values)}
    ranks = [LAST if value is None else rank[value] for value in values]
    found: NDArray[np.int64] = np.array(ranks, dtype=np.int64)[place]
    return found


def _first(values: tuple[Any, ...]) -> Any:
    return next((value for value in values if value not in (None, "")), None)


def _comparable(value: Any) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float) else (1, str(value).lower())


def _troubles(session: Session, part: RowRange) -> NDArray[np.int64]:
    """Return keys that put what failed first, by its error."""
    states = part.numbers("state")
    errors = part.numbers("errors")
    lists = session.tables["errors"].values
    rank = np.array([min(found) + 1000 if found else LAST for found in lists] or [LAST])
    keys: NDArray[np.int64] = rank[errors] if len(errors) else errors
    for state, key in WORST.items():
        keys = np.where(states == STATES.index(state), key, keys)
    return keys


# --- rows of a kind -------------------------------------------------------------------------------


def column(session: Session, name: str) -> NDArray[np.int64]:
    """Return a copy of a column: an array that numpy looks at cannot grow."""
    return np.array(session.columns[name], dtype=np.int64)


def bad(store: Store) -> Bools:
    """Select exchanges with an unexpected error or without the response that was due."""
    return failed(store) | np.isin(column(store.session, "state"), list(BAD_STATES))


def failed(store: Store) -> Bools:
    """Select responses with an unexpected error."""
    known = Known(expected=store.decided)
    found, _ = compile_query("failed and not expected", known).settle(store.session)
    return found


def same_connection(store: Store, index: int) -> Bools:
    found: Bools = column(store.session, "connection") == store.session.columns["connection"][index]
    return found


def numbered(store: Store, numbers: Collection[int]) -> Bools:
    return np.isin(column(store.session, "number"), list(numbers))


def with_text(store: Store, text: str) -> Bools:
    """Select exchanges whose line has a text: result, API, client, topics, groups and so on."""
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    found, _ = compile_query(quoted).settle(store.session)
    pattern = re.compile(re.escape(text.encode("utf-8", "surrogatepass")), re.IGNORECASE)
    hits = store.texts.rows_with(pattern)
    found[hits] = True  # for rows after the last text only columns count
    return found
