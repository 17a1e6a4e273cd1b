"""Lines that know their bytes, and trees of them, which the detail pane and the bytes pane draw.
`document` makes them. No widgets here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kafkascope.tui.limits import LIMITS

TABS: Final = ("Request", "Response", "Records", "Context", "Packets")
# Elements of an array that are shown at first.
SHOWN: Final = 100
# Bytes of a line from which the lines below it are made in a thread: records may be compressed a
# thousandfold.
HEAVY: Final = 4_096


@dataclass(slots=True)
class Space:
    """Bytes that ranges refer to: a message as on the wire, or what was compressed in it."""

    name: str
    data: bytes
    """The bytes, secrets replaced by stars."""


@dataclass(slots=True, eq=False)
class Item:
    """A line of a tree."""

    label: str
    value: str = ""
    start: int = 0
    end: int = 0
    """Half-open byte range in the space; empty when the line stands for no bytes."""
    space: int = 0
    kind: str = ""
    """error or note, for the colour."""
    parts: Sequence[tuple[str, str]] = ()
    """Texts of the value with their kinds; empty where all of it is of one kind."""
    path: str = ""
    """Dotted path for filters, such as response.topics.error_code; empty if it is no field."""
    raw: Any = None
    open: bool = False
    depth: int = 0
    parent: Item | None = None
    make: Callable[[], list[Item]] | None = None
    """Makes the children when they are first wanted."""
    slow: bool = False
    """Whether `make` may have to wait for somebody, whatever the number of bytes."""
    made: list[Item] = field(default_factory=list)
    """The lines below, as far as they are made; `children` makes the rest."""

    @property
    def foldable(self) -> bool:
        """Whether there are lines below."""
        return self.make is not None or bool(self.made)

    @property
    def heavy(self) -> bool:
        """Whether the lines below may take long to make."""
        return self.make is not None and (self.slow or self.end - self.start > HEAVY)

    @property
    def children(self) -> list[Item]:
        """The lines below, which are made now if need be."""
        if self.make is not None:
            make, self.make = self.make, None
            self.adopt(make())
        return self.made

    def adopt(self, items: Iterable[Item]) -> None:
        for item in items:
            item.parent = self
            self.made.append(item)

    def text(self) -> str:
        """Return the value, or the label, for the clipboard."""
        if isinstance(self.raw, str):
            return self.raw
        if isinstance(self.raw, bytes):
            return self.raw.hex()
        return self.value or self.label


def limited(items: list[Item]) -> list[Item]:
    """Return the first lines, and one that counts the others and has them below."""
    if len(items) <= SHOWN:
        return items
    last, below = items[-1], items[len(items) - 1 - (len(items) - 1) % SHOWN :]
    # From the end, not by calls: an array may have a million elements.
    for begin in range(len(items) - len(below) - SHOWN, -1, -SHOWN):
        first, count = below[0], len(items) - begin - SHOWN
        more = Item("", f"... {count:,} more", first.start, last.end, first.space, kind="note")
        more.adopt(below)
        below = [*items[begin : begin + SHOWN], more]
    return below


class Tree:
    """Keeps the lines of a tab, and which are visible."""

    def __init__(self, roots: list[Item], spaces: list[Space], *, slow: bool = False) -> None:
        """`slow`: lines that are not made yet may be slow ones."""
        self.roots, self.spaces, self._slow = roots, spaces, slow
        self.lines: list[Item] = []
        self.refresh()

    def refresh(self) -> None:
        """List the visible lines again, after some were opened or closed."""
        lines: list[Item] = []
        stack = [(root, 0) for root in reversed(self.roots)]
        while stack:
            item, depth = stack.pop()
            item.depth = depth
            lines.append(item)
            if item.open:
                stack += [(child, depth + 1) for child in reversed(item.children)]
        self.lines = lines

    def set_open(self, item: Item, wanted: bool) -> None:
        if item.foldable and item.open != wanted:
            item.open = wanted
            self.refresh()

    def set_all(self, wanted: bool) -> None:
        """Open all lines, up to `opened_lines`, or close all."""
        stack, count = list(self.roots), 0
        while stack and count < LIMITS.opened_lines:
            item = stack.pop()
            count += 1
            if item.foldable and (wanted or item.make is None):
                item.open = wanted
                stack += item.children
        self.refresh()

    def any_heavy(self) -> bool:
        """Return whether a line that is made has something heavy below it, or may have."""
        stack = list(self.roots)
        while stack and not self._slow:
            item = stack.pop()
            if item.heavy:
                return True
            stack += item.made
        return self._slow

    def find(self, space: int, at: int) -> Item | None:
        """Return the innermost line for a byte, and open those above it; heavy ones stay closed."""
        found, items = None, self.roots
        while inner := next((i for i in items if _covers(i, space, at)), None):
            if found is not None:
                found.open = True
            found = inner
            items = inner.children if inner.foldable and not inner.heavy else []
        self.refresh()
        return found


def _covers(item: Item, space: int, at: int) -> bool:
    left = [item]
    while left:
        each = left.pop()
        if each.space == space:
            if each.start <= at < each.end:
                return True
        elif each.foldable:
            left += each.made  # expanded bytes hang below a line of the wire's
    return False
