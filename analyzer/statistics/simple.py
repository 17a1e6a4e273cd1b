"""Base of the statistics that are one table of measures by key, with keys that may be left out.

A subclass says what its key is (`key_of` or its own `add`), and makes lines of keys and measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from kafkascope.analyzer.identity import labels
from kafkascope.analyzer.statistics.mergeable import MAX_KEYS, OTHERS, Key, Keyed, Measures
from kafkascope.analyzer.statistics.model import Column, checked, stated, topic_label

if TYPE_CHECKING:
    from kafkascope.analyzer.topics import TopicNames

M = TypeVar("M", bound=Measures)

CLIENT = ("client_id", "host")
"""Parts of a key that are shown as one column, `client`."""


class ByKey(Generic[M]):
    """Measures by key, in bounded memory."""

    NAME: ClassVar[str]
    VERSION: ClassVar[int] = 1
    COLUMNS: ClassVar[tuple[Column, ...]]
    KEY: ClassVar[tuple[str, ...]]
    """Names of the parts of a key."""
    UNRANKED: ClassVar[int] = 0
    """Parts at the front of a key that are not the same in every way of reading a capture: which
    keys are kept does not depend on them."""
    MEASURES: ClassVar[type[Any]]

    def __init__(self, limit: int = MAX_KEYS) -> None:
        self.limit = limit
        self.values: Keyed[M] = Keyed(self.MEASURES, limit, self.UNRANKED)

    @property
    def crowded(self) -> bool:
        """Whether there are more keys than are counted one by one."""
        return self.values.others is not None

    def merge(self, other: Self) -> None:
        """Count what the other one has counted."""
        self.values.merge(other.values)

    def dump(self) -> dict[str, Any]:
        """The state as JSON, with its version."""
        return stated(self, self.values.dump())

    @classmethod
    def load(cls, state: dict[str, Any]) -> Self:
        """The accumulator of a state; `WrongState`."""
        new = cls()
        new.values = Keyed.load(cls.MEASURES, checked(cls, state), new.limit, cls.UNRANKED)
        return new

    def grouped(
        self, by: Sequence[str], names: TopicNames | None = None
    ) -> list[tuple[dict[str, Any], M]]:
        """The measures summed up over all parts of the key that are not in `by`, which may name
        `client` for client id and host. Topics have their names."""
        items = self.values.items()
        titles: dict[tuple[Any, ...], str] = {}
        if "client" in by:
            at = [self.KEY.index(part) for part in CLIENT]
            titles = labels({(key[at[0]], key[at[1]]) for key, _ in items})  # type: ignore[misc]
        sums: dict[tuple[Any, ...], M] = {}
        for key, value in items:
            parts = dict(zip(self.KEY, key, strict=True))
            if "topic" in parts:
                parts["topic"] = topic_label(parts["topic"], names)
            if titles:
                parts["client"] = titles[(parts["client_id"], parts["host"])]
            self._into(sums, tuple(parts[part] for part in by), value)
        if self.values.others is not None:
            self._into(sums, (OTHERS,) * len(by), self.values.others)
        return [(dict(zip(by, key, strict=True)), value) for key, value in sums.items()]

    def _into(self, sums: dict[tuple[Any, ...], M], key: Key, value: M) -> None:
        found = sums.get(key)
        if found is None:
            found = sums[key] = self.MEASURES()
        found.merge(value)
