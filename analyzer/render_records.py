"""Record batches as text: what stands below a records field in a tree."""

from __future__ import annotations

from collections.abc import Iterator

from dissectors.tree import Node


def lines_inside(node: Node) -> Iterator[str]:
    """One line per batch and record."""
    return iter(())
