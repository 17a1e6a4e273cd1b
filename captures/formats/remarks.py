"""Comments of packets in our own recordings, by where the packets stand. State without I/O.

Only packets of interfaces whose comment says that we wrote them are read: other programs have
comments for people, and may put options at every packet. A comment may end with its subject, in
brackets, where that is something else than its packet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from kafkascope.captures.limits import LIMITS, CaptureLimits

OURS: Final = "kafkascope: "
"""First words of the comments of our interfaces."""


class Remark(NamedTuple):
    """A comment and its packet."""

    start: int
    """Offset of the packet's record in the (uncompressed) file."""
    end: int
    """Offset after that record."""
    text: str
    about: str
    """Its subject, which stood in brackets."""


def remark(start: int, end: int, comment: str) -> Remark:
    """Take a comment apart into text and subject."""
    text, bracket, about = comment[: LIMITS.comment_chars].rpartition(" [")
    if not bracket or not about.endswith("]"):
        return Remark(start, end, comment[: LIMITS.comment_chars], "")
    return Remark(start, end, text, about[:-1])


class Remarks:
    """Comments of all files of an input, as far as they were read."""

    def __init__(
        self, files: Iterable[tuple[int, list[Remark]]] = (), limits: CaptureLimits = LIMITS
    ) -> None:
        self._most: Final = limits.comments
        self.files: dict[int, list[Remark]] = {}
        """Comments by the number of their file."""
        self._about: dict[str, list[tuple[int, Remark]]] = {}
        for file, found in files:
            self.add(file, 0, found)

    def __bool__(self) -> bool:
        return bool(self.files)

    def add(self, file: int, base: int, found: Iterable[Remark]) -> None:
        """Add comments of a file, whose offsets count from `base`."""
        mine = self.files.setdefault(file, [])
        for each in found:
            start = base + each.start
            if mine and start <= mine[-1].start:
                continue  # after damage bytes may be walked again
            one = each._replace(start=start, end=base + each.end)
            mine.append(one)
            if one.about:
                self._about.setdefault(one.about, []).append((file, one))
        if len(mine) > self._most:
            del mine[: -self._most // 2]
            self._about.clear()
            for number, some in self.files.items():
                for one in some:
                    if one.about:
                        self._about.setdefault(one.about, []).append((number, one))

    def of_file(self, file: int) -> list[Remark]:
        return self.files.get(file, [])

    def at(self, file: int, at: int) -> str:
        """Return the comment of the packet that holds a byte; empty without one."""
        mine = self.files.get(file)
        if not mine:
            return ""
        found = mine[bisect_right(mine, at, key=lambda found: found.start) - 1]
        return found.text if found.start <= at < found.end and not found.about else ""

    def about(self, whom: str, file: int, at: int) -> str:
        """Return the first comment with a subject after a byte; empty without one."""
        for number, found in self._about.get(whom, ()):
            if (number, found.start) > (file, at):
                return found.text
        return ""
