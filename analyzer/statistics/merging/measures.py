"""What is measured of one key: fields, each with the rule by which two values become one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, dataclass_transform

from kafkascope.analyzer.ranks import bounded

T = TypeVar("T")

_NAMING = frozenset({str, tuple})
"""Types of values in which a long name may be."""


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
    return field(default=None, metadata={"rule": MergeRule(min, as_lists, as_tuples)})


def most() -> Any:
    """Declare a field that keeps the largest value; None when there was none. Tuples are compared
    as such."""
    return field(default=None, metadata={"rule": MergeRule(max, as_lists, as_tuples)})


def whole(kind: Callable[[], Any]) -> Any:
    """Declare a field of a kind that merges by itself: a histogram, `Names`, `Events`."""
    rule = MergeRule(_merged, lambda value: value.dump(), lambda state: kind().load(state))
    return field(default_factory=kind, metadata={"rule": rule})


def as_lists(value: Any) -> Any:
    """Return a value with lists in place of tuples, as JSON has them."""
    return [as_lists(each) for each in value] if isinstance(value, tuple) else value


def as_tuples(state: Any) -> Any:
    """Return it with tuples again."""
    return tuple(as_tuples(each) for each in state) if isinstance(state, list) else state


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
