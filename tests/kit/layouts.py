"""Structs of layouts, and leaves of trees."""

from typing import Any

from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.layout import StructWire


def struct_of(struct: StructWire, name: str) -> Any:
    """Return what an array of structs holds."""
    return next(slot.wire for slot in struct.slots if slot.name == name).element


def assert_tiles(root: Node, end: int, start: int = 0) -> None:
    """Check that leaves follow each other without a gap, up to the end."""
    for leaf in root.leaves():
        assert leaf.start == start
        start = leaf.end
    assert start == end
