"""Columns give back what was put in."""

from __future__ import annotations

from pathlib import Path

import pytest

from analyzer import open_capture
from analyzer.columns import Table
from analyzer.rows import row_of, to_json
from analyzer.session import Session
from captures import Spool
from tests.analyzer.test_conversation import CONVERSATION
from tests.analyzer.wire import told

SAMPLES = sorted(Path(__file__).parents[2].joinpath("captures", "samples").glob("*.pcap*"))


def test_equal_values_have_one_number() -> None:
    table: Table[str] = Table()
    assert [table.number(value) for value in ("a", "b", "a")] == [0, 1, 0]
    assert table.values == ["a", "b"]


def test_an_exchange_is_found_by_its_number() -> None:
    from analyzer.context import Context

    context = Context()
    session = Session(context, lambda file, at, size: bytes(size))
    for exchange in told(CONVERSATION, context):
        session.add(exchange)
    index = session.index_of(3)
    assert index is not None
    assert session.numbers[index] == 3
    assert session.index_of(0) is None
    assert session.index_of(10_000) is None


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_exchanges_come_back_as_they_were(path: Path) -> None:
    with open_capture([path]) as first, open_capture([path], spool=Spool()) as second:
        session = second.session()
        exchanges = list(first.exchanges())
        assert len(session) == len(exchanges) > 0
        for index, exchange in enumerate(exchanges):
            again = session.exchange(index)
            for side in ("request", "response"):
                was, now = getattr(exchange, side), getattr(again, side)
                assert (was is None) == (now is None)
                if exchange.state == "opaque" and was is not None:
                    # Of bytes that are no Kafka only a sample was held, from the first byte on.
                    assert was.frame.parts == now.frame.parts
                    continue
                assert was is None or (was.frame, was.body) == (now.frame, now.body)
            assert again.fetch_session == exchange.fetch_session
            names = first.context.names
            assert to_json(row_of(again, names)) == to_json(row_of(exchange, names))
