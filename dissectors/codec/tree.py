"""Makes trees of named nodes with byte ranges, for the detail and hex panes.

The reference Structs parse, and a `Trace` listens. The leaves tile the message: in order,
no gap, no overlap; lengths, counts, markers and tags are leaves too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from kafkascope.dissectors.codec.structs import parse
from kafkascope.dissectors.codec.wire import Trace
from kafkascope.dissectors.layout import Layout, Slot
from kafkascope.dissectors.limits import LIMITS, DissectorLimits

REST: Final = "not shown"
"""Name of the node of all elements after the limit; its value is how many there are."""


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
    """Expanded content, where the node's bytes are compressed."""
    secret: bool = False
    """Whether the node's bytes must not be shown; see `embedded.masked_tree`."""

    def leaves(self) -> Iterator[Node]:
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass(slots=True)
class Inside:
    """Expanded bytes and the nodes whose ranges are offsets in them."""

    data: bytes
    nodes: list[Node]


class _Recorder(Trace):
    """Makes nodes while a parse goes on, up to a limit."""

    def __init__(self, root: Node, nodes: int) -> None:
        self.open = [root]
        self.left = nodes
        self.passing = 0
        """Open values that get no nodes."""

    def begin(self, name: str, start: int, slot: Slot | None) -> None:
        if self.passing or (self.left <= 0 and name.startswith("[")):
            if not self.passing:
                self._rest(start)
            self.passing += 1
            return
        self.left -= 1
        node = Node(name, start, slot=slot)
        self.open[-1].children.append(node)
        self.open.append(node)

    def leaf(self, name: str, start: int, end: int, value: Any) -> None:
        # A number, bool or uuid is its own leaf.
        if not name or self.passing:
            return
        if self.left <= 0 and self.open[-1].name == "_tagged_fields":
            self._rest(start, int(name == "data"), end)
            return
        self.left -= 1
        self.open[-1].children.append(Node(name, start, end, value))

    def end(self, end: int, value: Any) -> None:
        if self.passing:
            self.passing -= 1
            if not self.passing:
                self.open[-1].children[-1].end = end
            return
        node = self.open.pop()
        node.end, node.value = end, value

    def _rest(self, start: int, count: int = 1, end: int = 0) -> None:
        """Count one more value without a node of its own."""
        around = self.open[-1].children
        if not around or around[-1].name != REST:
            around.append(Node(REST, start, value=0))
        around[-1].value += count
        around[-1].end = end


def annotate(layout: Layout, data: bytes, at: int = 0, limits: DissectorLimits = LIMITS) -> Node:
    """Return the tree of the message that begins at `at`; the root carries the message's name and
    body.

    Beyond the limit of nodes the elements of an array become one node, `REST`."""
    root = Node(layout.message.name, at)
    recorder = _Recorder(root, limits.nodes)
    try:
        root.value, root.end = parse(layout, data, at, recorder)
    finally:
        # The contexts of construct refer to themselves, and to what listens: all nodes would stay
        # until garbage is collected, which our programs do seldom.
        recorder.open.clear()
    return root
