"""Sources of filter fields in the columns of a `Session`.

`NUMBERS`: fields with one number per row. `LISTS`: fields whose values are in a table, by a key per
row. `TEXTS`: the texts that a string alone is searched in.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from kafkascope.analyzer.exchanges.column import NONE
from kafkascope.analyzer.exchanges.rows import RowError
from kafkascope.analyzer.filter.fields import COLUMNS, FIELDS
from kafkascope.analyzer.filter.getters import Getter, Values, ends_of, errors, joined, plain
from kafkascope.analyzer.model import STATES
from kafkascope.analyzer.topics import nameless
from kafkascope.times import MS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from kafkascope.analyzer.session.session import Session

Bools: TypeAlias = "NDArray[np.bool_]"
Numbers: TypeAlias = "NDArray[np.int64]"

# Keys below are looked up in an array, others in a sorted list.
SMALL: Final = 1 << 22
FEW, SPARSE = 256, 16
"""So are keys from `FEW` on where the highest is `SPARSE` times as many as there are rows: each of
thousands of findings about some rows would have an array for all."""


class RowRange:
    """Rows begin..end of a session, or some of them; each column is read once."""

    def __init__(self, session: Session, begin: int, end: int) -> None:
        self.session = session
        self.begin = begin
        self.end = end
        self._at: Numbers | None = None
        """The places in the range of the rows that were chosen; None for all."""
        self._columns: dict[str, Numbers] = {}

    def __len__(self) -> int:
        return self.end - self.begin if self._at is None else len(self._at)

    @property
    def indexes(self) -> Numbers:
        """Where the rows are in the session."""
        return self._chosen(np.arange(self.begin, self.end))

    def numbers(self, name: str) -> Numbers:
        """Return a column as int64; a copy, because an array with an exported buffer cannot
        grow."""
        found = self._columns.get(name)
        if found is None:
            found = _numbers(self.session.columns[name], self.begin, self.end)
            self._columns[name] = found
        return self._chosen(found)

    def before(self, name: str) -> Numbers:
        """Return the values of a column in the rows before; 0 for the first of the session."""
        found = _numbers(self.session.columns[name], max(0, self.begin - 1), self.end - 1)
        if not self.begin and self.end > self.begin:
            found = np.concatenate((np.zeros(1, dtype=np.int64), found))
        return self._chosen(found)

    def _chosen(self, column: Numbers) -> Numbers:
        return column if self._at is None else column[self._at]

    def chosen(self, at: Numbers) -> RowRange:
        """Return the rows at these places of the range."""
        rows = RowRange(self.session, self.begin, self.end)
        rows._at, rows._columns = at, self._columns
        return rows


def _numbers(column: array[int], begin: int, end: int) -> Numbers:
    if end <= begin:
        return np.zeros(0, dtype=np.int64)
    kind = np.dtype(column.typecode)
    size = kind.itemsize
    return np.frombuffer(
        memoryview(column).cast("B")[begin * size : end * size], dtype=kind
    ).astype(np.int64)


class KeyedValues(NamedTuple):
    """The values of rows, by key."""

    keys: Numbers
    """One key per row, from 0."""
    values: Callable[[int], Any]
    """Returns the values of a key; while they are put together, those of an attribute."""
    room: int = 0
    """Keys of an attribute are below it."""
    settled: Callable[[int], bool] = lambda key: True
    """Returns whether the values of a key are final."""
    scheme: int = 0
    """How keys are made; with another scheme they have another meaning."""


class Lookup:
    """A predicate over values, evaluated once for each key."""

    def __init__(self, judge: Callable[[Values], bool]) -> None:
        self._judge = judge
        self._known = np.zeros(0, dtype=np.int8)
        """Results by key: 1 yes, 0 no, -1 not evaluated yet."""
        self._scheme = 0

    def __call__(self, column: KeyedValues) -> Bools:
        """Return the result for each row."""
        keys = column.keys
        if not len(keys):
            return np.zeros(0, dtype=np.bool_)
        if column.scheme != self._scheme:
            self._scheme = column.scheme
            self._known = np.zeros(0, dtype=np.int8)
        top = int(keys.max())
        if top >= SMALL or top >= max(FEW, SPARSE * len(keys)):
            return self._sorted(column)
        if top >= len(self._known):
            more = np.full(2 * (top + 1) - len(self._known), -1, dtype=np.int8)
            self._known = np.concatenate((self._known, more))
        answers = self._known[keys]
        new = keys[answers < 0]
        if not len(new):
            return answers > 0
        passing = []
        for each in np.flatnonzero(np.bincount(new)):
            key = int(each)
            self._known[key] = self._judge(column.values(key))
            if not column.settled(key):
                passing.append(key)
        answers = self._known[keys]
        self._known[passing] = -1
        return answers > 0

    def _sorted(self, column: KeyedValues) -> Bools:
        keys, place = np.unique(column.keys, return_inverse=True)
        judged = [self._judge(column.values(int(key))) for key in keys]
        found: Bools = np.array(judged, dtype=np.bool_)[place]
        return found


Source: TypeAlias = Callable[[RowRange], KeyedValues]
NumberSource: TypeAlias = "Callable[[RowRange], tuple[Numbers, Bools | None]]"


# --- one number a row ---------------------------------------------------------------------------


def _plain(name: str, none: int | None = NONE) -> NumberSource:
    def source(rows: RowRange) -> tuple[Numbers, Bools | None]:
        values = rows.numbers(name)
        return values, None if none is None else values != none

    return source


def _bytes(rows: RowRange) -> tuple[Numbers, None]:
    both = (rows.numbers("request_bytes"), rows.numbers("response_bytes"))
    total: Numbers = np.maximum(both[0], 0) + np.maximum(both[1], 0)
    return total, None


def _excess(rows: RowRange) -> tuple[Numbers, Bools]:
    latencies = rows.numbers("latency_ns")
    excess: Numbers = np.maximum(latencies - rows.numbers("wait_ns"), 0)
    return excess, latencies != NONE


def _connection_number(rows: RowRange) -> tuple[Numbers, None]:
    keys, connections = rows.numbers("connection"), rows.session.connections
    if len(keys) < len(connections):
        used, keys = np.unique(keys, return_inverse=True)
        connections = [connections[int(key)] for key in used]
    known = [connection.number for connection in connections]
    return np.array(known, dtype=np.int64)[keys], None


NUMBERS: Final[dict[str, NumberSource]] = {
    **{
        asked: _plain(name, column.absent)
        for asked, (name, column) in COLUMNS.items()
        if column.told_by is not None and column.kind.numbered
    },
    "time": _plain("time_ns", None),
    "time.delta": lambda rows: (
        rows.numbers("time_ns") - rows.before("time_ns"),
        rows.indexes > 0,
    ),
    "conn": _connection_number,
    "bytes": _bytes,
    "wait": lambda rows: (rows.numbers("wait_ns"), rows.numbers("latency_ns") != NONE),
    "excess": _excess,
    "throttle": lambda rows: (
        rows.numbers("throttle_ms") * MS,
        rows.numbers("state") == STATES.index("answered"),
    ),
}


def packets(rows: RowRange) -> list[tuple[Numbers, Bools]]:
    """Return the numbers of `frame`, which has up to two: the packets with the first byte of
    request and response."""
    both = (rows.numbers("request_packet"), rows.numbers("response_packet"))
    return [(numbers, numbers != NONE) for numbers in both]


# --- values by key ------------------------------------------------------------------------------


def _both(one: KeyedValues, other: KeyedValues) -> KeyedValues:
    """Return the arguments of a getter that two parts give, with a key for each pair."""
    width = 1 << other.room.bit_length()
    return KeyedValues(
        one.keys * width + other.keys,
        lambda key: (*one.values(key // width), *other.values(key % width)),
        one.room * width,
        lambda key: one.settled(key // width) and other.settled(key % width),
        one.scheme + other.scheme + width,
    )


def _argument(part: KeyedValues) -> KeyedValues:
    """Return the values of an attribute as the only argument of a getter."""
    return part._replace(values=lambda key: (part.values(key),))


def _table(rows: RowRange, name: str) -> KeyedValues:
    known = rows.session.tables[name].values
    return KeyedValues(rows.numbers(name), known.__getitem__, len(known))


def _topics(rows: RowRange, name: str) -> KeyedValues:
    known, names = rows.session.tables[name].values, rows.session.context.names
    return KeyedValues(
        rows.numbers(name),
        lambda key: names.late_all(known[key]),
        len(known),
        lambda key: not any(map(nameless, known[key])),
    )


def _state(rows: RowRange, name: str) -> KeyedValues:
    return KeyedValues(rows.numbers(name), STATES.__getitem__, len(STATES))


def _number(rows: RowRange, name: str) -> KeyedValues:
    """Return a number of 15 bits, or none."""
    return KeyedValues(rows.numbers(name) + 1, lambda key: key - 1 if key else None, 1 << 15)


def _errors(rows: RowRange, name: str) -> KeyedValues:
    """Return errors by the list of their codes: those of the response itself have one of their
    own."""
    part = _table(rows, name)
    return part._replace(
        values=lambda key: [RowError(code, "", top=name != "errors") for code in part.values(key)]
    )


def _undecoded(rows: RowRange, name: str) -> KeyedValues:
    """Return the undecoded bytes: each of the few rows that have any gets its own key, the others
    key 0."""
    session, indexes = rows.session, rows.indexes
    remarked = np.isin(indexes, np.array([*session.remarked()], dtype=np.int64))
    found = indexes[remarked]
    keys = np.zeros(len(rows), dtype=np.int64)
    keys[remarked] = np.arange(1, len(found) + 1)

    def value(key: int) -> Values:
        return session.remarks(int(found[key - 1]))[0] if key else ()

    return KeyedValues(keys, value, len(found) + 1, lambda key: not key)


_PARTS: Final[dict[str, Callable[[RowRange, str], KeyedValues]]] = {
    **dict.fromkeys(("topics", "implied_topics"), _topics),
    **dict.fromkeys(("api_key", "api_version"), _number),
    "state": _state,
    **dict.fromkeys(("errors", "error_tops"), _errors),
    "undecoded": _undecoded,
}
"""Attributes of rows that are no table of their own name."""


def _ends(rows: RowRange, names: tuple[str, ...], of: Getter) -> KeyedValues:
    """Return values that are made of addresses, by connection and side."""
    connections = rows.session.connections

    def values(key: int) -> Values:
        return of(*map(ends_of(connections[key // 2], key % 2).__getitem__, names))

    return KeyedValues(2 * rows.numbers("connection") + rows.numbers("client_side"), values)


def _source(names: tuple[str, ...], of: Getter) -> Source:
    """Return the source of values that a getter makes of attributes of rows."""

    def source(rows: RowRange) -> KeyedValues:
        if names[0] in ENDS:
            return _ends(rows, names, of)
        parts = (_PARTS.get(name, _table)(rows, name) for name in names)
        whole = reduce(_both, map(_argument, parts))
        return whole._replace(values=lambda key: of(*whole.values(key)))

    return source


ENDS: Final = frozenset({"client_address", "broker_address", "via"})

LISTS: Final[dict[str, Source]] = {
    field.name: _source(field.reads, field.of)
    for field in FIELDS
    if field.reads and field.name not in NUMBERS and field.name != "frame"
}
LISTS["error.top"] = _source(("error_tops", "state"), errors)

TEXTS: Final[tuple[Source, ...]] = (
    *(_source((name,), plain) for name in ("client_address", "broker_address")),
    *(_source((name,), plain) for name in ("client_id", "software", "api", "reason")),
    *(_source((name,), joined) for name in ("topics", "implied_topics")),
    *(_source((name,), joined) for name in ("groups", "transactional_ids")),
)


def by_value(name: str, rows: RowRange, wanted: Iterable[int]) -> Iterator[tuple[Values, Numbers]]:
    """Yield the values of a field with the places of the rows that have them. Of `NUMBERS`, where
    each row may have its own, only those that are `wanted`."""
    if name in LISTS:
        column = LISTS[name](rows)
        keys, values, at = column.keys, column.values, np.arange(len(rows))
    else:
        keys, _ = NUMBERS[name](rows)
        at = np.isin(keys, np.array([*wanted], dtype=np.int64)).nonzero()[0]

        def values(key: int) -> Values:
            return (key,)

    at = at[np.argsort(keys[at], kind="stable")]
    ends = np.diff(keys[at]).nonzero()[0] + 1
    for part in np.split(at, ends) if len(at) else ():
        yield values(int(keys[part[0]])), part
