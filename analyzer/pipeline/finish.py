"""The last step of both engines: small tables, sums, states of statistics with their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafkascope.analyzer.pipeline.job import Job, capture_rows, damage_rows, split_rows
from kafkascope.analyzer.pipeline.tables import schemas
from kafkascope.analyzer.pipeline.tables.arrow import record_batch
from kafkascope.analyzer.pipeline.tables.buffers import RowBuffer
from kafkascope.analyzer.pipeline.tables.facts import dumped
from kafkascope.analyzer.pipeline.tables.numbers import ranked
from kafkascope.analyzer.statistics.clients import Clients
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.verdict import breaks_at, verdict_of
from kafkascope.dissectors.reference.releases import RELEASES
from kafkascope.dissectors.values import Uuid

if TYPE_CHECKING:
    from kafkascope.analyzer.pipeline.tables.facts import TableFacts
    from kafkascope.analyzer.pipeline.tables.schemas import Table
    from kafkascope.analyzer.statistics.model import Line

# Rows per batch.
ROWS: Final = 16_384
SUMS = {"count": "sum", "sum_ns": "sum", "max_ns": "max", "failed": "sum"}
CELL_KEYS = [each.name for each in schemas.LATENCY.columns if each.name not in SUMS]


def summed(rows: pa.Table) -> pa.Table:
    found = rows.group_by(CELL_KEYS, use_threads=False).aggregate(list(SUMS.items()))
    names = [f"{name}_{how}" for name, how in SUMS.items()]
    found = found.select([*CELL_KEYS, *names]).rename_columns([*CELL_KEYS, *SUMS])
    return found.cast(schemas.LATENCY.schema)


def fixed_tables(
    job: Job, facts: TableFacts, rank: Callable[[int], int]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield rows of the tables, or parts of them, that one process makes, by the table's name; with
    ranks for places."""
    known, names = facts.statistics, facts.names()
    nodes = (line for line in known["cluster"].rows(names) if line["node"] is not None)
    journeys = known["journeys"].rows(names)
    made: list[tuple[Table, Iterable[tuple[Any, ...]]]] = [
        (schemas.CAPTURES, capture_rows(job)),
        (schemas.SPLITS, split_rows(job)),
        (schemas.TOPICS, ((str(Uuid(id_)), name) for id_, name in sorted(facts.topics.items()))),
        (schemas.NODES, _lines(schemas.NODES, nodes)),
        (schemas.REBALANCES, _rebalances(facts, rank)),
        (schemas.VERDICTS, _verdicts(facts)),
        (schemas.JOURNEYS, _lines(schemas.JOURNEYS, journeys)),
        (schemas.DIAGNOSTICS, damage_rows(job)),
    ]
    for table, rows in made:
        buffer, some = RowBuffer(table.schema), False
        for row in rows:  # ten thousand clients have a third of a million verdicts
            buffer.add(row)
            if buffer.full(ROWS):
                yield table.name, buffer.batch()
                some = True
        if len(buffer) or not some:  # an empty table has a batch, too
            yield table.name, buffer.batch()


def _lines(table: Table, lines: Iterable[Line]) -> Iterator[tuple[Any, ...]]:
    names = [column.name for column in table.columns]
    return (tuple(line[name] for name in names) for line in lines)


def _rebalances(facts: TableFacts, rank: Callable[[int], int]) -> Iterator[tuple[Any, ...]]:
    groups = facts.statistics["groups"]
    assert isinstance(groups, Groups)
    for name in groups.names():
        for line in groups.rebalances(name):
            begin_ns = line["time"]
            yield (
                *(line["group"], begin_ns // 1000, begin_ns, line["generation"], line["cause"]),
                *(line["duration"], line["members"], line["last_member"]),
                *(rank(line["number"]), line["text"]),
            )


def _verdicts(facts: TableFacts) -> Iterator[tuple[Any, ...]]:
    clients = facts.statistics["clients"]
    assert isinstance(clients, Clients)
    for usage in clients.usages():
        who = usage.identity
        about = (who.client_id, who.host, who.software or None, who.user or None)
        breaks = breaks_at(usage) or None
        for release in RELEASES:
            verdict = verdict_of(usage, release)
            yield *about, release, verdict.word, breaks, [each.text for each in verdict.reasons]


def statistics_rows(facts: TableFacts, rank: Callable[[int], int]) -> Iterator[pa.RecordBatch]:
    """Yield the states of statistics, one at a time, with ranks for places; `facts` has none
    afterwards."""
    for name, version, state in facts.states():
        text = dumped(ranked(state, rank))
        del state
        yield record_batch([(name, version, text)], schemas.STATISTICS.schema)
