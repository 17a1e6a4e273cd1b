"""What accumulators are made of: measures that merge by rule, bounded keys, bounded events.

Each has `merge`, `dump` (the state as JSON) and `load`, which takes over what `dump` gave and is
asked of one that holds nothing yet.

Everything here commutes: whatever the order in which exchanges come and parts are merged, the
result is the same, limits included. A limit on keys keeps those with the smallest hashes, a limit
on events the latest ones; whatever a part has dropped, the whole would have dropped, too.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from hashlib import blake2b
from heapq import heapify, heapreplace
from operator import itemgetter
from typing import (
    Any,
    ClassVar,
    Final,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
)

from kafkascope.analyzer.exchanges.rows import Row

MAX_KEYS: Final = 10_000
"""Of one statistic. More are summed up as others."""
MAX_NAMES: Final = 64
"""Of one set of names beside a key."""
MANY: Final = 1_024
RECENT: Final = 16
"""Values that are not hashed again, as they were counted last."""
MAX_EVENTS: Final = 4_000
FEW: Final = 1_000
TABLE_EVENTS: Final = 1 << 19
"""Of all keys of a table together, some 200 MB: where there are more than 128 keys each keeps
fewer. The number of keys decides, in whatever order they came."""
TABLE_NAMES: Final = 1 << 18
"""The same of each set of names: where there are more than 4,096 keys each keeps fewer."""
SHARED_FROM: Final = 128
"""Keys of a table from which on they share the above."""
MOST_TEXT: Final = 500
"""Characters of a name in a key, or in a set of names. Of a longer one the first are kept, its
length and a hash: Kafka allows names of 32 KB, and ten thousand are a third of a gigabyte."""
BEGINNING: Final = 200
"""Characters that are kept of a longer one."""
OTHERS: Final = "(others)"
"""Stands for the keys beyond the limit."""

Key: TypeAlias = tuple[Any, ...]
"""Of texts, numbers and None."""

T = TypeVar("T")


def rank(key: Any) -> int:
    """Return a number that depends on nothing but the key."""
    text = repr(key).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest())


def bounded(value: T) -> T:
    """Return a name as it is kept: a long text in part, anything else as it is."""
    if isinstance(value, tuple):
        short = tuple(map(bounded, value))
        return value if short == value else short  # type: ignore[return-value]
    if not isinstance(value, str) or len(value) <= MOST_TEXT:
        return value
    some = value[:BEGINNING]
    return f"{some}... ({len(value):,} characters, {rank(value):016x})"  # type: ignore[return-value]


_BOUNDED: Final = re.compile(r"\.\.\. \([0-9,]+ characters, [0-9a-f]{16}\)")


def has_bounded(text: str) -> bool:
    """Return whether a name in a text is there in part (`bounded`): no filter finds it."""
    return _BOUNDED.search(text) is not None


# --- measures -----------------------------------------------------------------------------------


class MergeRule(NamedTuple):
    """How two values of a measure, of which none is None, become one, and how one is written
    down."""

    combine: Callable[[Any, Any], Any]
    dump: Callable[[Any], Any] | None = None
    """None: as it is; so `load`."""
    load: Callable[[Any], Any] | None = None


def _merged(a: Any, b: Any) -> Any:
    a.merge(b)
    return a


def total() -> Any:
    """Declare a field that adds up."""
    return field(default=0, metadata={"rule": MergeRule(lambda a, b: a + b)})


def bits() -> Any:
    """Declare a field that keeps all bits that are set in any value. It is written as text: a
    number of so many bits is none of JSON."""
    rule = MergeRule(lambda a, b: a | b, lambda value: f"{value:x}", lambda state: int(state, 16))
    return field(default=0, metadata={"rule": rule})


def least() -> Any:
    """Declare a field that keeps the smallest value; None when there was none."""
    return field(default=None, metadata={"rule": MergeRule(min, _plain, _tupled)})


def most() -> Any:
    """Declare a field that keeps the largest value; None when there was none. Tuples are compared
    as such."""
    return field(default=None, metadata={"rule": MergeRule(max, _plain, _tupled)})


def whole(kind: Callable[[], Any]) -> Any:
    """Declare a field of a kind that merges by itself: a histogram, `Names`, `Events`."""
    rule = MergeRule(_merged, lambda value: value.dump(), lambda state: kind().load(state))
    return field(default_factory=kind, metadata={"rule": rule})


def _plain(value: Any) -> Any:
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _tupled(state: Any) -> Any:
    return tuple(_tupled(each) for each in state) if isinstance(state, list) else state


@dataclass_transform(field_specifiers=(field,))
def measured(kind: type[T]) -> type[T]:
    """Make a class of measures: a dataclass with slots. Of the functions that `dataclass` writes it
    gets `__init__` only; each other one costs every start a tenth of a millisecond, for each of
    some seventy classes."""
    made: Any = dataclass(slots=True, repr=False, eq=False)(kind)
    made.RULES = {each.name: each.metadata["rule"] for each in fields(made)}
    return made  # type: ignore[no-any-return]


@measured
class Measures:
    """Base of a `measured` class, whose fields are made by `total`, `bits`, `least`, `most` or
    `whole`."""

    RULES: ClassVar[dict[str, MergeRule]] = {}
    """Of the fields, in their order."""

    def __repr__(self) -> str:
        values = (f"{name}={getattr(self, name)!r}" for name in self.RULES)
        return f"{type(self).__name__}({', '.join(values)})"

    def merge(self, other: Self) -> None:
        """Add what the other one measured."""
        self.take(**{name: getattr(other, name) for name in self.RULES})

    def take(self, **values: Any) -> None:
        """Combine fields with values, each by its rule: a `least` keeps the smaller one, and so on.
        What is measured of every exchange is written out instead."""
        rules = self.RULES
        for name, value in values.items():
            if value is not None:
                mine = getattr(self, name)
                setattr(self, name, value if mine is None else rules[name].combine(mine, value))

    def dump(self) -> list[Any]:
        """Return the values, in the order of the fields."""
        return [
            getattr(self, name) if rule.dump is None else rule.dump(getattr(self, name))
            for name, rule in self.RULES.items()
        ]

    def load(self, state: list[Any]) -> Self:
        """Take over what `dump` gave."""
        for (name, rule), value in zip(self.RULES.items(), state, strict=True):
            setattr(self, name, value if rule.load is None else rule.load(value))
        return self


def stretch(measures: Any, time_ns: int) -> None:
    """Let `first_ns` and `last_ns` of measures reach a time."""
    if measures.first_ns is None or time_ns < measures.first_ns:
        measures.first_ns = time_ns
    if measures.last_ns is None or time_ns > measures.last_ns:
        measures.last_ns = time_ns


# --- names --------------------------------------------------------------------------------------


class Names:
    """A set of texts or numbers that keeps at most so many, and says when there were more."""

    __slots__ = ("_limit", "_values", "_worst", "more")

    def __init__(self, limit: int = MAX_NAMES) -> None:
        self._limit = limit
        self._values: dict[Any, int] = {}
        """Value -> its rank, which is known once the set is full."""
        self._worst: Any = None
        self.more = False
        """There were more than it holds."""

    def add(self, value: Any) -> None:
        """Take a value in."""
        values = self._values
        if value in values:
            return
        short = bounded(value)
        if short is not value:
            self.add(short)
            return
        if len(values) < self._limit:
            values[value] = rank(value) if self.more else 0
            if self.more and values[value] > values[self._worst]:
                self._worst = value
            return
        if not self.more:
            self._fill()
        number = rank(value)
        if number < values[self._worst]:
            del values[self._worst]
            values[value] = number
            self._worst = max(values, key=values.__getitem__)

    def _fill(self) -> None:
        """Take note that something is left out from now on."""
        self.more = True
        for each in self._values:
            self._values[each] = rank(each)
        self._worst = max(self._values, key=self._values.__getitem__)

    def shorten(self, limit: int) -> None:
        """Keep at most so many from now on, if that is fewer than before."""
        if limit >= self._limit:
            return
        self._limit = limit
        if len(self._values) > limit:
            ranks = self._values if self.more else {each: rank(each) for each in self._values}
            kept = sorted(ranks, key=ranks.__getitem__)[:limit]
            self._values = dict.fromkeys(kept, 0)
            self._fill()

    def merge(self, other: Names) -> None:
        """Take in what the other one holds."""
        for value in other._values:
            self.add(value)
        if other.more and not self.more:
            # The other one is full, and so is this one by now.
            self._fill()

    def __iter__(self) -> Iterator[Any]:
        return iter(sorted(self._values))

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, value: object) -> bool:
        return value in self._values

    def dump(self) -> list[Any]:
        """Return the state as JSON."""
        return [self.more, _plain(tuple(self))]

    def load(self, state: list[Any]) -> Self:
        """Take over what `dump` gave."""
        more, values = state
        for value in _tupled(values):
            self.add(value)
        if more:
            self._fill()
        return self


class Distinct:
    """How many different values there were, as far as a limit: of each a hash is kept."""

    __slots__ = ("_limit", "_ranks", "_recent")

    def __init__(self, limit: int = MANY) -> None:
        self._limit = limit
        self._ranks = array("Q")
        """The smallest, rising."""
        self._recent: dict[Any, None] = {}
        """Values that are in it."""

    def add(self, value: Any) -> None:
        """Take a value in."""
        recent = self._recent
        if value in recent:
            return
        if len(recent) >= RECENT:
            recent.clear()
        recent[value] = None
        self._enter(rank(value) >> 1)

    def _enter(self, number: int) -> None:
        ranks = self._ranks
        at = bisect_left(ranks, number)
        if at == self._limit or (at < len(ranks) and ranks[at] == number):
            return
        if len(ranks) == self._limit:
            ranks.pop()
        ranks.insert(at, number)

    def merge(self, other: Distinct) -> None:
        """Take in what the other one counted."""
        for number in other._ranks:
            self._enter(number)

    def __len__(self) -> int:
        return len(self._ranks)

    def dump(self) -> str:
        """Return the state as JSON. It is a text, as large numbers in a state may stand for others
        that come late (`pipeline.tables.numbers`)."""
        return "".join(f"{number:016x}" for number in self._ranks)

    def load(self, state: str) -> Self:
        """Take over what `dump` gave."""
        ends = range(16, len(state) + 1, 16)
        self._ranks = array("Q", [int(state[end - 16 : end], 16) for end in ends])
        return self


# --- keys ---------------------------------------------------------------------------------------

M = TypeVar("M", bound=Measures)


class Keyed(dict[Key, M]):
    """Measures by key, for at most `limit` keys; those of all other keys are one, `others`. `[key]`
    gives the measures of a key, to be added to: at once, for the next key may drop them.

    A dict, because each exchange asks some twenty tables for keys that are nearly always there.
    """

    __slots__ = ("_dropping", "_sample", "_shared", "_unranked", "kind", "limit", "others")

    def __init__(
        self,
        kind: type[M],
        limit: int = MAX_KEYS,
        unranked: int = 0,
        sample: Callable[[Key], int] | None = None,
    ) -> None:
        """`unranked`: so many parts at the front of a key have no say in which keys are kept.
        `sample`: gives ranks in place of `rank`, of a table without `others`."""
        self.kind = kind
        self.limit = limit
        self._unranked = unranked
        self._sample = sample
        self._dropping: list[tuple[int, Key]] = []
        """A heap, the largest rank first; made when the limit is reached."""
        self.others: M | None = None
        self._shared = 0
        """Keys, as a power of two, among whom events and names are shared; 0: each has its own."""

    def __missing__(self, key: Key) -> M:
        short = bounded(key)
        if short is not key:
            return self[short]
        dropping = self._dropping
        if len(self) >= self.limit:
            if not dropping:
                dropping += [(self._place(each), each) for each in self]
                heapify(dropping)
            number = self._place(key)
            if number < dropping[0][0]:
                return self._rest()
            if number == dropping[0][0] and key < dropping[0][1]:
                return self._rest()
            _, dropped = heapreplace(dropping, (number, key))
            gone = self.pop(dropped)
            if self._sample is None:
                self._rest().merge(gone)
        made = self[key] = self.kind()
        if len(self) > SHARED_FROM:
            self._share(made)
        return made

    def _share(self, made: M) -> None:
        """Bound the events and the names of all keys together, of which one is new."""
        bits = (len(self) - 1).bit_length()
        changed: Iterable[M] = (made,)
        if bits > self._shared:
            self._shared = bits
            changed = self.values()
        for name, most in _shared_by(cast("Any", self.kind)):
            for each in changed:
                getattr(each, name).shorten(max(most >> bits, 1))

    @property
    def worst(self) -> int | None:
        """The largest rank of the keys of a sample, where some were left out: what is added to a
        key with a larger one is not kept."""
        return -self._dropping[0][0] if self._dropping else None

    def _place(self, key: Key) -> int:
        """Return the place of a key in the heap."""
        return -rank(key[self._unranked :]) if self._sample is None else -self._sample(key)

    def _rest(self) -> M:
        if self._sample is not None:
            return self.kind()
        if self.others is None:
            self.others = self.kind()
            if self._shared:
                self._share(self.others)
        return self.others

    def items(self) -> list[tuple[Key, M]]:  # type: ignore[override]
        """Return all keys but the others, in their order."""
        return sorted(super().items(), key=lambda item: _order(item[0]))

    def merge(self, other: Keyed[M]) -> None:
        """Add what the other one measured."""
        for key, value in dict.items(other):
            self[key].merge(value)
        if other.others is not None:
            self._rest().merge(other.others)

    def dump(self) -> list[Any]:
        """Return the state as JSON."""
        rest = None if self.others is None else self.others.dump()
        return [rest, [[list(key), value.dump()] for key, value in self.items()]]

    def load(self, state: list[Any]) -> Self:
        """Take over what `dump` gave."""
        rest, pairs = state
        self.others = None if rest is None else self.kind().load(rest)
        self.update((tuple(key), self.kind().load(value)) for key, value in pairs)
        if len(self) > SHARED_FROM:
            self._share(next(iter(self.values())))
        return self


@cache
def _shared_by(kind: type[Measures]) -> list[tuple[str, int]]:
    """Return the fields with events or names, and how many of these a table may have."""
    made = kind()
    limits = {Events: TABLE_EVENTS, Names: TABLE_NAMES}
    found = ((name, limits.get(type(getattr(made, name)))) for name in kind.RULES)
    return [(name, most) for name, most in found if most is not None]


def _order(key: Key) -> tuple[tuple[int, Any], ...]:
    """Return a sort key for keys that mix texts, numbers and None."""
    return tuple(
        (0, 0) if part is None else (1, part) if isinstance(part, int) else (2, part)
        for part in key
    )


# --- events -------------------------------------------------------------------------------------


class Event(NamedTuple):
    """Something that happened once."""

    time_ns: int
    id: str
    """Of the exchange."""
    part: int
    """Tells the events of one exchange apart."""
    number: int
    """Of the exchange."""
    kind: str
    about: dict[str, Any]
    """Plain values only."""


Kept: TypeAlias = tuple[Any, ...]
"""An event as it is kept where many come and most go: its first four fields, a function that makes
an `Event` of this, and whatever that wants."""

_in_order: Final = itemgetter(0, 1, 2)
"""What events are sorted by."""
_time: Final = itemgetter(0)
"""Enough for nearly all of them, in a sixth of the time."""


class Events:
    """The latest events, at most so many, in whatever order they came."""

    __slots__ = ("_dropped", "_events", "_limit", "_ordered", "_room")

    def __init__(self, limit: int = MAX_EVENTS) -> None:
        self._limit = limit
        self._room = limit + limit // 4 + 1
        """Events that are held before the oldest are dropped. Most come in their order: to sort
        them now and then takes a fifth of what a heap of them takes."""
        self._events: list[Event | Kept] = []
        """Time, id and part make each unlike all others."""
        self._ordered = True
        """None is earlier than the one before it."""
        self._dropped = 0

    @property
    def dropped(self) -> int:
        """How many older ones there were."""
        return self._dropped + max(0, len(self._events) - self._limit)

    def add(self, event: Event | Kept) -> None:
        """Take an event in."""
        events = self._events
        if events and event[0] < events[-1][0]:
            self._ordered = False
        events.append(event)
        if len(events) >= self._room:
            self._drop()

    def add_all(self, new: Sequence[Event | Kept]) -> None:
        """Take events in."""
        if not new:
            return
        events = self._events
        if self._ordered:
            times = list(map(_time, new))
            self._ordered = (not events or times[0] >= events[-1][0]) and times == sorted(times)
        events += new
        if len(events) >= self._room:
            self._drop()

    def note(self, row: Row, kind: str, about: dict[str, Any], part: int = 0) -> None:
        """Take in something that an exchange showed."""
        self.add(Event(row.time_ns, row.id, part, row.number, kind, about))

    def _drop(self) -> None:
        """Drop what is older than the latest ones."""
        events = self._events
        surplus = len(events) - self._limit
        if surplus > 0:
            if not self._ordered:
                events.sort(key=_time)
                self._ordered = True
            if events[surplus - 1][0] == events[-self._limit][0]:
                events.sort(key=_in_order)
            del events[:surplus]
            self._dropped += surplus

    def shorten(self, limit: int) -> None:
        """Keep at most so many from now on, if that is fewer than before."""
        if limit < self._limit:
            self._limit = limit
            self._room = limit + limit // 4 + 1
            self._drop()

    def merge(self, other: Events) -> None:
        """Take in the events of the other one."""
        other._drop()
        self.add_all(other._events)
        self._dropped += other._dropped

    def __iter__(self) -> Iterator[Event]:
        self._drop()
        events = sorted(self._events, key=_in_order)
        return iter([each if type(each) is Event else each[4](each) for each in events])

    def __len__(self) -> int:
        return min(len(self._events), self._limit)

    def dump(self) -> list[Any]:
        """Return the state as JSON."""
        return [self.dropped, list(map(list, self))]

    def load(self, state: list[Any]) -> Self:
        """Take over what `dump` gave."""
        self._dropped, events = state
        self._events = list(map(Event._make, events))
        self._ordered = False
        return self


# --- accumulators -------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A declared part of a `Compound`."""

    make: Callable[[int | None], Any]
    """Makes the part of an instance; gets the limit of that instance."""


def table(
    kind: type[Measures],
    limit: int = MAX_KEYS,
    unranked: int = 0,
    sample: Callable[[Key], int] | None = None,
) -> Any:
    """Declare a part of a `Compound`: measures by key, for at most `limit` keys. `unranked`: so
    many parts at the front of a key are not the same in every way of reading a capture (the number
    of a connection), and have no say in which keys are kept. `sample`: gives the rank of a key,
    where keys are many, and nobody asks for the sum of those that are left out; keys of equal rank
    are compared."""

    def made(most: int | None) -> Keyed[Any]:
        return Keyed(kind, limit if most is None else min(limit, most), unranked, sample)

    return _Part(made)


def single(kind: type[Any]) -> Any:
    """Declare a part of a `Compound` that is no table: measures, or another compound."""
    return _Part(lambda most: kind(most) if issubclass(kind, Compound) else kind())


class Compound:
    """State of several parts, which the class declares (`x: Keyed[X] = table(X)`): they merge, and
    are written down in the order of their declaration."""

    _PARTS: ClassVar[tuple[tuple[str, _Part], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._PARTS += tuple(item for item in vars(cls).items() if isinstance(item[1], _Part))

    def __init__(self, limit: int | None = None) -> None:
        """`limit`: of the keys of each table, where it is less than the table's own."""
        for name, part in self._PARTS:
            setattr(self, name, part.make(limit))

    def parts(self) -> list[Any]:
        """Return the parts, as they are declared."""
        return [getattr(self, name) for name, _ in self._PARTS]

    def merge(self, other: Self) -> None:
        """Take in what the other one has."""
        for mine, its in zip(self.parts(), other.parts(), strict=True):
            mine.merge(its)

    def dump(self) -> Any:
        """Return the state as JSON."""
        return [part.dump() for part in self.parts()]

    def load(self, state: Any) -> Self:
        """Take over what `dump` gave."""
        for part, each in zip(self.parts(), state, strict=True):
            part.load(each)
        return self
