"""Measures of one key: fields, each with the rule that merges two values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, field
from operator import add, methodcaller, or_
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

from kafkascope.analyzer.merging.limits import LIMITS
from kafkascope.analyzer.ranks import bounded

_NAMING = frozenset({str, tuple})
"""Types of values in which a long name may be."""


class MergeRule(NamedTuple):
    """How two values of a measure, of which none is None, become one, and how one is written
    down."""

    combine: Callable[[Any, Any], Any]
    dump: Callable[[Any], Any] | None = None
    """None: as it is; so `load`."""
    load: Callable[[Any, Any], Any] | None = None
    """Returns the value of a state; gets what a new field holds, too."""


def _declared(rule: MergeRule, **default: Any) -> Any:
    return field(**default, metadata={"rule": rule})


def _merged(mine: Any, other: Any) -> Any:
    mine.merge(other)
    return mine


def total() -> Any:
    """Declare a field that adds up."""
    return _declared(MergeRule(add), default=0)


def counts() -> Any:
    """Declare a field of counts by number."""
    return _declared(MergeRule(_added, as_lists, _restored), default_factory=dict)


def kept(make: Callable[[], Any]) -> Any:
    """Declare a field of a class with a `merge` of its own: a number, a list or a dict."""
    return _declared(MergeRule(_merged, as_lists, _restored), default_factory=make)


def _restored(mine: Any, state: Any) -> Any:
    return type(mine)(as_tuples(state))


def _added(mine: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    for key, value in other.items():
        mine[key] = mine.get(key, 0) + value
    return mine


def bits() -> Any:
    """Declare a field that keeps all bits that are set in any value. It is written as text: a
    number of so many bits is none of JSON."""
    return _declared(MergeRule(or_, lambda value: f"{value:x}", lambda _, s: int(s, 16)), default=0)


def least() -> Any:
    """Declare a field that keeps the smallest value; None when there was none."""
    return _declared(MergeRule(min, as_lists, lambda _, s: as_tuples(s)), default=None)


def most() -> Any:
    """Declare a field that keeps the largest value; None when there was none. Tuples are compared
    as such."""
    return _declared(MergeRule(max, as_lists, lambda _, s: as_tuples(s)), default=None)


def smallest(limit: int = LIMITS.names) -> Any:
    """Declare a field of tuples, of which it keeps the smallest, at most so many."""

    def combine(mine: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(sorted({*mine, *other})[:limit])

    return _declared(MergeRule(combine, as_lists, lambda _, s: as_tuples(s)), default=())


def whole(kind: Callable[[], Any]) -> Any:
    """Declare a field of a kind that merges by itself: measures, `Names`, `Events`, a table."""
    rule = MergeRule(_merged, methodcaller("dump"), lambda value, state: value.load(state))
    return _declared(rule, default_factory=kind)


def as_lists(value: Any) -> Any:
    """Return a value with lists in place of tuples, as JSON has them; of a dict its items."""
    if isinstance(value, dict):
        return as_lists(sorted(value.items()))
    return [as_lists(each) for each in value] if isinstance(value, tuple | list) else value


def as_tuples(state: Any) -> Any:
    return tuple(as_tuples(each) for each in state) if isinstance(state, list) else state


@dataclass_transform(field_specifiers=(field,))
class _Declared(type):
    """Makes classes with slots for their fields. `dataclass` writes and compiles functions: a fifth
    of a millisecond of every start, for each of some seventy classes."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        own = {each: what for each, what in namespace.items() if isinstance(what, Field)}
        rest = {each: what for each, what in namespace.items() if each not in own}
        slots = *rest.get("__slots__", ()), *own
        made: Any = super().__new__(cls, name, bases, {**rest, "__slots__": slots})
        made.RULES = {**made.RULES, **{each: what.metadata["rule"] for each, what in own.items()}}
        for each, what in own.items():
            if what.default is MISSING:
                made.MAKES = (*made.MAKES, (each, what.default_factory))
            else:
                made.DEFAULTS = (*made.DEFAULTS, (each, what.default))
        return made


class Measures(metaclass=_Declared):
    """Fields that merge, and are written down, by the rules with which they are declared."""

    RULES: ClassVar[dict[str, MergeRule]] = {}
    """Merge rules of the fields, in their order."""
    DEFAULTS: ClassVar[tuple[tuple[str, Any], ...]] = ()
    MAKES: ClassVar[tuple[tuple[str, Callable[[], Any]], ...]] = ()
    """Initial value of each field."""

    def __init__(self, *values: Any, **named: Any) -> None:
        for name, value in self.DEFAULTS:
            setattr(self, name, value)
        for name, make in self.MAKES:
            setattr(self, name, make())
        if values or named:
            for name, value in (*zip(self.RULES, values, strict=False), *named.items()):
                setattr(self, name, value)

    def __repr__(self) -> str:
        values = (f"{name}={getattr(self, name)!r}" for name in self.RULES)
        return f"{type(self).__name__}({', '.join(values)})"

    def merge(self, other: Self) -> None:
        self._combine({name: getattr(other, name) for name in self.RULES})

    def take(self, **values: Any) -> None:
        """Combine fields with values, each by its rule: a `least` keeps the smaller one, and so on;
        of long texts what `bounded` keeps. What is measured of every exchange is written out
        instead."""
        self._combine(
            {
                name: bounded(value) if value.__class__ in _NAMING else value
                for name, value in values.items()
            }
        )

    def _combine(self, values: dict[str, Any]) -> None:
        rules = self.RULES
        for name, value in values.items():
            if value is not None:
                mine = getattr(self, name)
                setattr(self, name, value if mine is None else rules[name].combine(mine, value))

    def dump(self) -> Any:
        """Return the state as JSON: the values, in the order of the fields."""
        return [
            getattr(self, name) if rule.dump is None else rule.dump(getattr(self, name))
            for name, rule in self.RULES.items()
        ]

    def load(self, state: Any) -> Self:
        """Take over what `dump` gave, where nothing was counted yet."""
        for (name, rule), value in zip(self.RULES.items(), state, strict=True):
            setattr(self, name, rule.load(getattr(self, name), value) if rule.load else value)
        return self


def stretch(measures: Any, first_ns: int, last_ns: int | None = None) -> None:
    """Let `first_ns` and `last_ns` of measures reach a time, or two."""
    if measures.first_ns is None or first_ns < measures.first_ns:
        measures.first_ns = first_ns
    if last_ns is None:
        last_ns = first_ns
    if measures.last_ns is None or last_ns > measures.last_ns:
        measures.last_ns = last_ns


def largest(
    known: tuple[int, int] | None, values: Sequence[int], numbers: Iterable[int]
) -> tuple[int, int]:
    """Return the largest of some values with minus the number of its first exchange, or what was
    known, whatever is larger."""
    top = max(values)
    if known is not None and top < known[0]:
        return known
    pairs = zip(values, numbers, strict=True)
    here = top, max([-number for value, number in pairs if value == top])
    return here if known is None else max(known, here)
