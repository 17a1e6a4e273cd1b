"""Trees of messages: what making one leaves behind."""

from __future__ import annotations

import gc

import pytest

from kafkascope.dissectors.codec.tree import Node, annotate
from kafkascope.dissectors.errors import DissectError
from kafkascope.dissectors.registry import encode_body, layout_of

COUNT = 1_000


def kept() -> int:
    """Nodes that nobody but the garbage collector can let go of."""
    return sum(type(each) is Node for each in gc.get_objects())


@pytest.mark.parametrize("cut", [0, 10])
def test_a_tree_goes_with_its_last_reader(cut: int) -> None:
    topics = [{"name": f"t{number}"} for number in range(COUNT)]
    data = encode_body("MetadataRequest", 1, {"topics": topics})
    layout = layout_of("MetadataRequest", 1)
    gc.collect()
    gc.disable()
    try:
        before = kept()
        if cut:
            with pytest.raises(DissectError):
                annotate(layout, data[:-cut])
        else:
            tree = annotate(layout, data)
            assert kept() - before > COUNT
            del tree
        assert kept() == before
    finally:
        gc.enable()
