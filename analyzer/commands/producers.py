"""`kafkascope producers`: producer ids, their sequences, and transactions."""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.commands.help import command, option
from kafkascope.analyzer.commands.options import input_options
from kafkascope.analyzer.commands.stats import shown
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.layout import Priority
from kafkascope.analyzer.statistics.producers.producers import Producers

PRIORITIES: Final = {
    "producer": Priority(("clients", "transactional_id", "repeats", "missing", "failed")),
    "producer-partition": Priority(("topic", "partition", "repeats", "missing", "failed")),
    "transaction": Priority(("time", "duration", "outcome"), ("text",)),
}
"""Of the tables, by name."""


@command()
@option("--partitions", "what", flag_value="lanes", help="Show sequences by partition")
@option("--transactions", "what", flag_value="transactions", help="Show transactions by time")
@input_options
def producers(options: ReadOptions, what: str | None) -> int:
    """Show producer sequences, duplicates, and transactions.

    Lists idempotent and transactional producers: batches sent, resent, or missing, and how their
    transactions ended.

    \b
      kafkascope producers prod.pcapng
      kafkascope producers prod.pcapng --transactions -Y 'txn == "orders-1"'
      kafkascope producers prod.pcapng --partitions --sort missing -n 5
    """
    found = Producers()
    match what:
        case "lanes":
            name, columns, lines = "producer-partition", Producers.LANE_COLUMNS, found.lanes
        case "transactions":
            name, columns, lines = "transaction", Producers.TRANSACTION_COLUMNS, found.transactions
        case _:
            name, columns, lines = "producer", Producers.COLUMNS, found.rows
    return shown(options, found, name, columns, lines, priority=PRIORITIES[name])
