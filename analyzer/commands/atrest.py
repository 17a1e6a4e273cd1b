"""The list of Kafka's own files: batches of logs, entries of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from kafkascope.analyzer.commands.output import FixedTable, Output
from kafkascope.analyzer.reading.log_files import BatchChoice, say_verdict
from kafkascope.analyzer.reading.options import ReadOptions
from kafkascope.analyzer.render.listing import FixedColumn
from kafkascope.errors import INTERRUPTED
from kafkascope.times import iso_ms

if TYPE_CHECKING:
    from kafkascope.analyzer.logdir.model import LogBatch, RecoveryVerdict
    from kafkascope.analyzer.logdir.opening import AtRest

COLUMNS: Final = (
    FixedColumn("number", 6, True),
    FixedColumn("position", 10, True),
    FixedColumn("offsets", 17, True),
    FixedColumn("records", 7, True),
    FixedColumn("size", 8, True),
    FixedColumn("magic", 5, True),
    FixedColumn("codec", 6),
    FixedColumn("time", 24),
    FixedColumn("producer", 14),
    FixedColumn("remarks", 0),
)
PRIORITY: Final = ("offsets", "records", "remarks", "size", "time", "codec", "producer", "position")


def refuse_capture_options(options: ReadOptions, *, choosing: bool = False) -> None:
    """`choosing`: whether -Y, --from and --to have a meaning here."""
    given = {
        "-Y": bool(options.filter_text) and not choosing,
        "--from": options.begin is not None and not choosing,
        "--to": options.end is not None and not choosing,
        "-T fields": bool(options.fields),
        "--columns": bool(options.columns),
        "--sort": options.sort is not None,
    }
    names = [name for name, there in given.items() if there]
    if names:
        raise click.UsageError(
            f"{names[0]} is for captures, not for Kafka's own files: leave it out"
        )


# --- ls


def list_files(files: Iterable[AtRest], options: ReadOptions) -> int:
    """Batches of logs, entries of other files; the verdict on stderr, or as an object in JSON."""
    refuse_capture_options(options, choosing=True)
    from kafkascope.analyzer.logdir.model import LogBatch, RecoveryVerdict
    from kafkascope.analyzer.reading.at_rest import payloads_at_rest

    files = list(files)
    payloads = payloads_at_rest(options, files) if options.filter_text.strip() else None
    choice = BatchChoice(options, files, payloads)
    limit = options.top if options.top is not None else options.count
    verdicts: list[RecoveryVerdict] = []
    json, shown = options.form in ("json", "jsonl"), 0
    with Output(options) as output:
        table, header = FixedTable(COLUMNS, PRIORITY, output, options), None
        try:
            for each in (found for file in files for found in _listed(file, choice)):
                if isinstance(each, RecoveryVerdict):
                    verdicts.append(each)
                else:
                    shown += 1
                if isinstance(each, LogBatch) and options.form == "table":
                    cells = _cells(each)
                    table.row(cells, "!" if cells[-1].startswith("!") else "")
                else:
                    value = each if isinstance(each, dict) else each.to_json()
                    if json:
                        output.element(value)
                    elif not isinstance(each, RecoveryVerdict):
                        names = [name for name in value if name != "schema"]
                        if header != names:
                            header = names
                            output.cells(names)
                        output.cells(
                            ["" if value[name] is None else str(value[name]) for name in names]
                        )
                if shown == limit:
                    break
            output.end()
            table.end()
        except KeyboardInterrupt:
            return INTERRUPTED
        return max((say_verdict(verdict, options) for verdict in verdicts), default=0)


def _listed(
    file: AtRest, choice: BatchChoice
) -> Iterator[LogBatch | RecoveryVerdict | dict[str, Any]]:
    from kafkascope.analyzer.logdir.model import RecoveryVerdict

    if file.holds_batches:
        for each in file.walk():
            # A batch is a tuple too: a named one.
            if isinstance(each, RecoveryVerdict):
                yield each
            elif choice.batch(*each, file.place):
                yield each[0]
    else:
        small = file.small()
        yield from small.entries
        yield small.verdict


def _cells(batch: LogBatch) -> list[str]:
    producer = ""
    if batch.producer_id >= 0:
        producer = f"{batch.producer_id}/{batch.producer_epoch}"
        if batch.base_sequence >= 0:
            producer += f" seq {batch.base_sequence}"
    words = [
        batch.problem,
        "would be cut" if batch.lost else "",
        "transactional" if batch.transactional else "",
        "control" if batch.control else "",
        "delete horizon" if batch.delete_horizon else "",
        "log append time" if batch.log_append_time else "",
        f"epoch {batch.leader_epoch}" if batch.leader_epoch > 0 else "",
    ]
    offsets = str(batch.base_offset)
    if batch.last_offset != batch.base_offset:
        offsets += f"-{batch.last_offset}"
    return [
        str(batch.number),
        str(batch.position),
        offsets,
        "?" if batch.records is None else str(batch.records),
        str(batch.size),
        str(batch.magic),
        batch.codec,
        iso_ms(batch.max_timestamp) or "-",
        producer,
        ("! " if batch.problem or batch.lost else "") + ", ".join(filter(None, words)),
    ]
