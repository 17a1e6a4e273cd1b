"""Options of the source, and the matching rows of a file, read in tasks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkascope.errors import Error

if TYPE_CHECKING:
    import pyarrow as pa

    from kafkascope.analyzer.pipeline.tables.collect import TableOptions

NAME: Final = "kafkascope"
OPTIONS: Final = frozenset(
    {
        *("path", "table", "filter", "columns", "full", "decode_as", "both_legs", "keylog"),
        *("settle", "pushdown"),
    }
)
# A file that did not change for so long is whole, for streams.
SETTLE_S: Final = 10.0
# Of an Arrow batch.
ROWS: Final = 4096


class BadOption(Error):
    """An option of the source that it does not have, or with a value that means nothing."""


class SourceOptions:
    """Parsed options."""

    def __init__(self, options: dict[str, str]) -> None:
        if unknown := sorted(options.keys() - OPTIONS):
            raise BadOption(f"{NAME} has no option {unknown[0]!r}; known: {sorted(OPTIONS)}")
        self.path = options.get("path", "")
        self.table = options.get("table", "exchanges")
        self.filter = options.get("filter", "")
        self.columns = [each.strip() for each in options.get("columns", "").split(",") if each]
        self.full = _flag(options, "full")
        self.both_legs = _flag(options, "both_legs")
        self.pushdown = _flag(options, "pushdown")
        self.keylog = options.get("keylog", "")
        try:
            self.ports = tuple(map(int, filter(None, options.get("decode_as", "").split(","))))
            self.settle = float(options.get("settle", SETTLE_S))
        except ValueError as error:
            raise BadOption(f"decode_as must be ports, settle seconds: {error}") from None

    def schema(self) -> pa.Schema:
        """Return the requested columns of the table."""
        import pyarrow as pa

        from kafkascope.analyzer.filter.bind import IN_TASKS, demand
        from kafkascope.analyzer.filter.language import bind
        from kafkascope.analyzer.pipeline.tables.logs import LOG_TABLES, chosen_by
        from kafkascope.analyzer.pipeline.tables.schemas import TABLES

        found = TABLES.get(self.table)
        if found is None:
            raise BadOption(f"unknown table {self.table!r}; tables: {', '.join(TABLES)}")
        if self.logs() and self.table not in LOG_TABLES:
            raise BadOption(
                f"{self.path} contains Kafka's own files, which have the tables "
                f"{', '.join(LOG_TABLES)}"
            )
        if self.logs():
            chosen_by(self.filter)  # Refuses what these files lack.
        elif (bound := bind(self.filter)) is not None:
            demand(bound, self.filter, IN_TASKS, "{} is not known to tasks", "")
        whole = found.schema
        if missing := [name for name in self.columns if name not in whole.names]:
            known = ", ".join(whole.names)
            raise BadOption(f"{self.table} has no column {missing[0]!r}; there are {known}")
        return pa.schema([whole.field(name) for name in self.columns]) if self.columns else whole

    def tables(self) -> TableOptions:
        """Return the table options of the pipeline."""
        from kafkascope.analyzer.pipeline.tables.collect import TableOptions

        return TableOptions(
            self.ports,
            self.both_legs,
            self.full,
            records=self.table == "records",
            frames=self.table == "frames",
            segments=self.table == "segments",
            filter=self.filter,
        )

    def files(self) -> list[str]:
        """Return the captures below the path: a file, a folder, a glob, or a URI."""
        from kafkascope.analyzer.pipeline.places import listed

        if not self.path:
            raise BadOption("load() needs a PATH of captures")
        return self.logs() or listed([self.path])

    def logs(self) -> list[str]:
        """Return the log segments below the path; nothing where there are captures."""
        from kafkascope.analyzer.pipeline.tables.logs import logs_in, segments_of

        return segments_of(logs_in([self.path])) if self.path else []


def _flag(options: dict[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise BadOption(f"{name} must be true or false, not {text!r}")
    return text == "true"


def rows_of(name: str, options: SourceOptions, condition: Any = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table that the pipeline makes of one file, those that meet an expression
    of Arrow."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    from kafkascope.analyzer.pipeline.runner import run
    from kafkascope.analyzer.pipeline.store import Store
    from kafkascope.analyzer.pipeline.tables.logs import chosen_by, log_rows, logs_in
    from kafkascope.captures.inputs.keylogs import read_key_logs

    schema = options.schema()
    if logs := logs_in([name]):
        for file in logs:
            for _, batch in log_rows(file, {options.table}, chosen_by(options.filter)):
                table = pa.Table.from_batches([batch])
                if condition is not None:
                    table = table.filter(condition)
                for part in table.select(schema.names).to_batches(max_chunksize=ROWS):
                    yield pa.RecordBatch.from_arrays(part.columns, schema=schema)
        return
    with tempfile.TemporaryDirectory(prefix="kafkascope-") as folder:
        keys = read_key_logs([options.keylog] if options.keylog else [])
        result = run([name], folder, options.tables(), keys=keys)
        files = Store(folder).files(options.table, result.manifest["batch_id"])
        if not files:
            return
        scanner = ds.dataset(list(map(str, files)), format="parquet").scanner(
            columns=schema.names, filter=condition, batch_size=ROWS, use_threads=False
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)


class File(InputPartition):
    """One capture."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class FileReader(DataSourceReader):
    """Reads captures, each in a task of its own."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._condition: Any = None
        """An expression of Arrow that rows have to meet."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each file."""
        return [File(name) for name in self._options.files()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        assert isinstance(partition, File)
        yield from rows_of(partition.name, self._options, self._condition)
