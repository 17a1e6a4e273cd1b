"""Requests over time."""

from __future__ import annotations

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.rates import Rates
from tests.kit.wire import MS, Wire, beat, heartbeat, told


def test_a_slice_of_one_exchange_counts_as_others_do() -> None:
    """Counts are numbers: a report had False where one exchange was alone in its second."""
    rates, context = Rates(1000 * MS, 10), Context()
    wire = Wire().client(heartbeat(1)).broker(beat(1))
    for exchange in told(wire.events, context):
        rates.add(ExchangeBatch.of(row_of(exchange, context.names), exchange))
    (line,) = rates.rows()
    assert [type(line[name]) for name in ("requests", "failed", "unanswered")] == [int] * 3
