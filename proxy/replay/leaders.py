"""Which node of the peer leads a partition, and which partitions got another one. Sans-I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

Topic: TypeAlias = str | bytes
"""By name, or by the peer's id."""
Partition: TypeAlias = tuple[Topic, int]

UNKNOWN: Final = -1


class Leaders:
    """The leaders of partitions, and the order in which they were told."""

    def __init__(self) -> None:
        self._nodes: dict[Partition, tuple[int, int]] = {}
        """Partition -> (node, number of the change), by that number."""
        self.changes = 0
        """How often a partition got a leader that it did not have."""

    def tell(self, partition: Partition, node: int) -> None:
        """Note what the peer told."""
        if self.of(*partition) != node:
            self.changes += 1
            self._nodes.pop(partition, None)
            self._nodes[partition] = (node, self.changes)

    def of(self, topic: Topic, number: int) -> int:
        """The leader of a partition; `UNKNOWN` when none was told."""
        return self._nodes.get((topic, number), (UNKNOWN, 0))[0]

    def changed(self, since: int) -> Iterator[Partition]:
        """Yield the partitions that changed after so many `changes`, the last first."""
        for partition, (_, change) in reversed(self._nodes.items()):
            if change <= since:
                return
            yield partition
