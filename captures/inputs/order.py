"""The order in which packets of several files are read: runs of consecutive ones of a file.

Files that hold the same traffic are read in step, and what two of them hold only once: see
`captures.merge`, which makes the order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# Count of a run that goes on to the end of its file.
REST: Final = 1 << 62


class Run(NamedTuple):
    """Packets that follow each other in a file."""

    file: int
    first: int
    """Index of the first one within the file, from 0."""
    size: int
    number: int
    """Number of the first one in the order, from 1."""


class Shared(NamedTuple):
    """Overlap and clock offset of a file that holds packets of another one."""

    file: int
    of: int
    """The file whose clock is followed."""
    both: int
    """Packets that another file holds as well."""
    own: int
    """Packets that no other file holds."""
    ahead_ns: int
    """By how much its clock is ahead of the other one's."""


@dataclass(slots=True)
class Order:
    """Runs in their order, and what to add to the times of each file."""

    shifts: list[int]
    """Nanoseconds, by file."""
    shared: list[Shared] = field(default_factory=list)
    lasts: dict[int, int] = field(default_factory=dict)
    """Latest time of the packets that are read, by file, for files that hold those of others."""
    files: array[int] = field(default_factory=lambda: array("i"))
    firsts: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))

    def add(self, file: int, first: int, count: int = REST) -> None:
        """Append packets; those that follow the last ones make its run longer."""
        if self.files and self.files[-1] == file and self.firsts[-1] + self.counts[-1] == first:
            self.counts[-1] = min(self.counts[-1] + count, REST)
            return
        self.files.append(file)
        self.firsts.append(first)
        self.counts.append(count)

    def cut(self, length: int) -> None:
        del self.files[length:], self.firsts[length:], self.counts[length:]

    def runs(self, sizes: list[int] | None = None) -> Iterator[Run]:
        """Yield the runs. After one that goes on to the end of its file, numbers are right only
        with the `sizes` of all files, in packets."""
        number = 1
        for file, first, count in zip(self.files, self.firsts, self.counts, strict=True):
            if count == REST and sizes is not None:
                count = max(sizes[file] - first, 0)
            yield Run(file, first, count, number)
            number += count

    def pieces(self, sizes: list[int]) -> list[list[tuple[int, int, int]]]:
        """Return the runs by file: index of the first packet within the file, how many, number of
        the first. `sizes`: packets of each file."""
        found: list[list[tuple[int, int, int]]] = [[] for _ in sizes]
        for run in self.runs(sizes):
            if run.size:
                found[run.file].append((run.first, run.size, run.number))
        return found
