"""Settings of the process are made, and taken back."""

from __future__ import annotations

import gc

from kafkascope.tui.showing import GC_THRESHOLD, rare_collections


def test_few_looks_for_cycles_while_the_screen_is_there() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    with rare_collections():
        assert gc.get_threshold()[0] == GC_THRESHOLD
        assert gc.get_freeze_count() > frozen
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
