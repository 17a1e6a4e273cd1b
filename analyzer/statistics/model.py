"""What a statistic is: an accumulator of exchanges that merges, and the columns of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import (
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
)

from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.headings import heading
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.statistics.merging.compounds import Compound
from kafkascope.analyzer.statistics.merging.tables import OTHERS
from kafkascope.analyzer.topics import TopicNames, short_id

Kind: TypeAlias = Literal[
    "text", "count", "size", "duration", "time", "share", "rate", "flag", "list"
]
"""Of a column: what its values are. Durations and times are integer nanoseconds, sizes bytes,
shares 0 to 1; a list holds texts or numbers. Every value may be None: not known, or nothing."""


class Column(NamedTuple):
    """A column of a table of statistics."""

    name: str
    """Its name in JSON and in the library, where a duration has its unit in JSON."""
    kind: Kind = "text"
    wide: bool = False
    """Left out of tables for people, unless it is asked for."""
    by: str = ""
    """The value of a line that it is sorted by, where that is not its own."""

    @property
    def title(self) -> str:
        """The heading for people, derived from the name."""
        return heading(self.name)


def shown(columns: Iterable[Column], name: str) -> tuple[Column, ...]:
    """Return columns with one of them in tables for people, too."""
    return tuple(each._replace(wide=False) if each.name == name else each for each in columns)


Line: TypeAlias = dict[str, Any]
"""One row of a statistic: column name -> value."""


class Statistic(Protocol):
    """An accumulator. `merge` commutes; `load(dump())` is the same again."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int]
    """Of the state that `dump` gives."""
    COLUMNS: ClassVar[tuple[Column, ...]]

    def add(self, row: Row, exchange: Exchange) -> None:
        """Count an exchange."""

    def merge(self, other: Self) -> None:
        """Count what the other one has counted."""

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return the table, the most important first. `names` tells topics that had only an id."""

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON, with its version."""

    def load(self, state: dict[str, Any]) -> Self:
        """Take over what `dump` gave; `WrongState`."""


class WrongState(ValueError):
    """A state that this statistic did not write."""


class Accumulator(Compound):
    """Base of the statistics whose state is in declared parts, a table first."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int] = 1
    COLUMNS: ClassVar[tuple[Column, ...]]
    NEEDS: ClassVar[Literal["heads", "rows", "bodies"]] = "bodies"
    """What it counts: columns that headers and times tell, and the wait; rows; or also what bodies
    of messages say."""
    KEYS: ClassVar[frozenset[int] | None] = None
    """APIs of which it wants exchanges; None for all: see `feed`."""
    ODD: ClassVar[bool] = False
    """Whether it wants all exchanges that are not as they should be."""

    @property
    def limit(self) -> int:
        """Keys that are counted one by one."""
        return int(self.parts()[0].limit)

    @property
    def crowded(self) -> bool:
        """Whether there are more keys than are counted one by one."""
        return self.parts()[0].others is not None

    def dump(self) -> dict[str, Any]:
        """Return the state as JSON, with its version."""
        return stated(self, super().dump())

    def load(self, state: dict[str, Any]) -> Self:
        """Take over what `dump` gave; `WrongState`."""
        return super().load(checked(self, state))


def checked(statistic: Any, state: dict[str, Any]) -> Any:
    """Return the state that `stated` wrapped; `WrongState`."""
    found = state.get("statistic"), state.get("version")
    if found != (statistic.NAME, statistic.VERSION):
        raise WrongState(f"a state of {found[0]} {found[1]} is none of {statistic.NAME}")
    return state["state"]


def stated(statistic: Any, state: Any) -> dict[str, Any]:
    """Wrap a state with its name and version."""
    return {"statistic": statistic.NAME, "version": statistic.VERSION, "state": state}


# --- subjects -----------------------------------------------------------------------------------

ID_MARK: Final = "\0"
"""Begins a topic id in a key; no topic's name has it, but for names that somebody made up."""


def topic_key(topic: str | None, topic_id: bytes | None) -> str | None:
    """Return what stands for a topic in a key: its id where there is one, for names may come
    late."""
    if topic_id is not None and any(topic_id):
        return ID_MARK + topic_id.hex()
    return topic or None


def topic_id_in(key: Any) -> bytes | None:
    """Return the id in a key of `topic_key`; None where a name is the key."""
    if not isinstance(key, str) or not key.startswith(ID_MARK):
        return None
    try:
        topic_id = bytes.fromhex(key[1:])
    except ValueError:
        return None
    return topic_id if len(topic_id) == 16 else None


def topic_label(key: Any, names: TopicNames | None) -> Any:
    """Return the name of a topic, or the first 8 characters of its id and `?`."""
    topic_id = topic_id_in(key)
    if topic_id is None:
        return key
    return (names.get(topic_id) if names is not None else None) or short_id(topic_id)


def share(part: int, whole: int) -> float | None:
    """Return the share that a part is of a whole."""
    return part / whole if whole else None


def per_second(count: int, first_ns: int | None, last_ns: int | None) -> float | None:
    """Return a rate over the time between the first and the last; None when that is no time."""
    if first_ns is None or last_ns is None or last_ns <= first_ns:
        return None
    return count * 1e9 / (last_ns - first_ns)


def middle(values: Sequence[int]) -> int:
    """Return the median in whole units. The `statistics` of Python brings fractions and random
    numbers with it, which is more than a small capture takes."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) // 2


__all__ = [
    "OTHERS",
    "Accumulator",
    "Column",
    "Exchange",
    "Kind",
    "Line",
    "Row",
    "Statistic",
    "TopicNames",
    "WrongState",
    "checked",
    "middle",
    "per_second",
    "share",
    "shown",
    "stated",
    "topic_id_in",
    "topic_key",
    "topic_label",
]
