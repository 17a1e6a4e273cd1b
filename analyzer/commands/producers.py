"""`kafkascope producers`: producer ids, their sequences, and transactions."""

from __future__ import annotations

import click

from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.stats import shown
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.statistics.producers.producers import Producers


@click.command()
@click.option("--partitions", "what", flag_value="lanes", help="Sequences by partition.")
@click.option("--transactions", "what", flag_value="transactions", help="Transactions by time.")
@input_options
def producers(options: ReadOptions, what: str | None) -> int:
    """Idempotent and transactional producers: what they sent, sent again, or left out; how their
    transactions ended.

    \b
      kafkascope producers prod.pcapng
      kafkascope producers prod.pcapng --transactions -Y 'txn == "orders-1"'
      kafkascope producers prod.pcapng --partitions --sort missing -n 5
    """
    found = Producers()
    if what == "lanes":
        return shown(options, found, "producer-partition", Producers.LANE_COLUMNS, found.lanes)
    if what == "transactions":
        columns = Producers.TRANSACTION_COLUMNS
        return shown(options, found, "transaction", columns, found.transactions)
    return shown(options, found, "producer", Producers.COLUMNS, found.rows)
