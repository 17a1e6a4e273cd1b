"""Bytes -> a tree of named nodes with byte ranges: what the detail and hex panes show.

The same Structs as the reference, with somebody listening. The leaves tile the message: in order,
no gap, no overlap;
lengths, counts, markers and tags are leaves too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from dissectors.layout import Layout, Slot
from dissectors.structs import parse


@dataclass(slots=True)
class Node:
    """A named value and the half-open byte range that it came from."""

    name: str
    start: int
    end: int = 0
    value: Any = None
    slot: Slot | None = None
    """The field of the layout; None for elements, lengths, counts and tags."""
    children: list[Node] = field(default_factory=list)
    inside: Inside | None = None
    """What the node's bytes expand to, where they are compressed."""

    def leaves(self) -> Iterator[Node]:
        """The nodes without children, in order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(slots=True)
class Inside:
    """Expanded bytes and the nodes whose ranges are offsets in them."""

    data: bytes
    nodes: list[Node]


class _Recorder:
    def __init__(self, root: Node) -> None:
        self.open = [root]

    def begin(self, name: str, start: int, slot: Slot | None) -> None:
        node = Node(name, start, slot=slot)
        self.open[-1].children.append(node)
        self.open.append(node)

    def leaf(self, name: str, start: int, end: int, value: Any) -> None:
        # A number, bool or uuid is its own leaf.
        if name:
            self.open[-1].children.append(Node(name, start, end, value))

    def end(self, end: int, value: Any) -> None:
        node = self.open.pop()
        node.end, node.value = end, value


def annotate(layout: Layout, data: bytes, at: int = 0) -> Node:
    """The tree of the message that begins at `at`; the root carries the message's name and body."""
    root = Node(layout.message.name, at)
    root.value, root.end = parse(layout, data, at, _Recorder(root))
    return root
