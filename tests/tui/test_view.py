"""A view has the rows that its filter wants, in order, however little time it gets at once."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import pytest

from analyzer import open_capture
from analyzer.filter import compile_filter
from captures import Spool
from tui.store import Store
from tui.view import View

SAMPLE = Path(__file__).parents[2] / "captures" / "samples" / "aiokafka.pcap"


@pytest.mark.parametrize(
    "text",
    ["", "api == Fetch", "request.max_wait_ms > 100", '"ok"', "number > 20 or record.value"],
)
@pytest.mark.parametrize("rows", [7, 100_000])
def test_the_rows_are_those_of_the_filter(text: str, rows: int) -> None:
    with (
        open_capture([SAMPLE], spool=Spool()) as capture,
        patch("tui.view.PIECE", rows, create=True),
    ):
        store = Store(capture.source.read, capture.context)
        view = View(store, text)
        single = compile_filter(text)
        wanted = []
        for index, exchange in enumerate(capture.exchanges()):
            store.add(exchange)
            if single(store.session.row(index), exchange):
                wanted.append(index)
            if index % 50 == 0:
                view.advance(0)
        while view.behind:
            view.advance(0)
            assert view.scanned <= 1
        assert [view[place] for place in range(len(view))] == wanted
        assert view.scanned == 1
        assert not view.behind
