"""Trees of named nodes whose secrets are asterisks, for screens and for `show`."""

from __future__ import annotations

from typing import Any

from kafkascope.dissectors.codec.tree import REST, Node, annotate
from kafkascope.dissectors.embedded.masking import has_secrets, masked
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.limits import LIMITS, DissectorLimits


def masked_tree(layout: Layout, data: bytes, at: int = 0, limits: DissectorLimits = LIMITS) -> Node:
    """Return the tree of the message that begins at `at`, with asterisks in place of secrets. Nodes
    whose bytes are secret are marked, and so are those of elements that have no nodes."""
    root = annotate(layout, data, at, limits)
    if has_secrets(layout):
        root.value = masked(layout, root.value)
        _mask(root, root.value)
    return root


def _mask(parent: Node, around: Any) -> None:
    """`around`: the struct or array whose parts the children are, without secrets."""
    for node in parent.children:
        if node.slot is not None or node.name.startswith("["):
            value = around[int(node.name[1:-1]) if node.slot is None else node.slot.name]
            if isinstance(value, str | bytes) and value != node.value:
                node.secret = True
                for part in node.children:
                    if part.name not in ("length", "marker"):
                        part.secret, part.value = True, value
            node.value = value
            _mask(node, value)
        elif node.name == REST:
            node.secret = True
        else:
            _mask(node, around)
