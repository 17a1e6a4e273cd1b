"""Tables with the keys and values that schemas decode."""

import json
from pathlib import Path
from typing import Any

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.records import record_lines
from kafkascope.analyzer.pipeline import runner
from kafkascope.analyzer.pipeline.tables.collect import TableOptions
from kafkascope.schemas.decoding import Payloads
from kafkascope.schemas.known import KnownSchemas
from tests.analyzer.pipeline.kit import rows_of

PLACE = ("source", "topic", "partition", "offset")
DECODED = [f"{side}_{what}" for side in ("key", "value") for what in ("schema", "decoded", "error")]


def table(out: Path) -> list[Any]:
    """Topic, place and decoded members of all records."""
    found = [
        [row[name] for name in PLACE] + [row[name] and json.loads(row[name]) for name in DECODED]
        for row in rows_of(out, "records")
    ]
    return sorted(found, key=repr)


def records(path: Path, known: KnownSchemas) -> list[Any]:
    """The same as `records --json` tells it."""
    payloads, lines = Payloads(known), []
    with open_capture([path]) as read:
        for exchange in read.exchanges():
            for several in record_lines(exchange, read.context.names, [], payloads):
                lines += map(json.loads, several.splitlines())
    return sorted(([line.get(name) for name in (*PLACE, *DECODED)] for line in lines), key=repr)


def run(path: Path, out: Path, known: KnownSchemas | None, engine: Any = None) -> Any:
    return runner.run(
        [str(path)],
        out,
        TableOptions(records=True),
        engine=engine or runner.PLAIN,
        split_bytes=20_000,
        schemas=known,
        used="replace",
    )
