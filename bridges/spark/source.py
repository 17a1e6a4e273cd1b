"""A Python Data Source for Spark: captures as DataFrames, `spark.read.format("kafkascope")`.

Each file is a partition, and makes the rows that `kafkascope spark` makes of that file alone. Spark
finds the source by the package `pyspark_kafkascope`; `register` is for sessions that do not look.
Workers need this package, pyarrow, and the captures under the same names.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from kafkascope.errors import Error

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from kafkascope.analyzer.pipeline.tables.collect import TableOptions

NAME: Final = "kafkascope"
OPTIONS: Final = frozenset(
    {
        *("path", "table", "filter", "columns", "full", "decode_as", "both_legs", "keylog"),
        *("settle", "pushdown"),
    }
)
SETTLE_S: Final = 10.0
"""A file that did not change for so long is whole, for streams."""
ROWS: Final = 4096
"""Of an Arrow batch."""


class BadOption(Error):
    """An option of the source that it does not have, or with a value that means nothing."""


def register(spark: SparkSession) -> None:
    """Let a session know the source, where it does not find it by itself."""
    spark.dataSource.register(KafkascopeSource)


class KafkascopeSource(DataSource):
    """The source: `table`, `filter`, `columns` and what else `OPTIONS` names."""

    @classmethod
    def name(cls) -> str:
        """Return the word for `format`."""
        return NAME

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._wanted = Wanted({name.lower(): value for name, value in options.items()})

    def schema(self) -> StructType:
        """Return the columns, those of docs/spark.md."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._wanted.schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads files."""
        if self._wanted.pushdown:
            from kafkascope.bridges.spark.pushdown import PushingReader

            return PushingReader(self._wanted)
        return FileReader(self._wanted)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what follows a folder."""
        return _StreamReader(self._wanted)


class Wanted:
    """What the options say."""

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
            raise BadOption(f"decode_as are ports, settle is seconds: {error}") from None

    def schema(self) -> pa.Schema:
        """Return the columns of the table that were asked for."""
        import pyarrow as pa

        from kafkascope.analyzer.filter.language import bind
        from kafkascope.analyzer.filter.places import IN_TASKS, demand
        from kafkascope.analyzer.pipeline.tables.schemas import TABLES

        found = TABLES.get(self.table)
        if found is None:
            raise BadOption(f"there is no table {self.table!r}; there are {', '.join(TABLES)}")
        if (bound := bind(self.filter)) is not None:
            demand(bound, self.filter, IN_TASKS, "{} is not known to tasks", "")
        whole = found.schema
        if missing := [name for name in self.columns if name not in whole.names]:
            known = ", ".join(whole.names)
            raise BadOption(f"{self.table} has no column {missing[0]!r}; there are {known}")
        return pa.schema([whole.field(name) for name in self.columns]) if self.columns else whole

    def tables(self) -> TableOptions:
        """Return what the pipeline is asked for."""
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
            raise BadOption("load(PATH): which captures?")
        return listed([self.path])


def _flag(options: dict[str, str], name: str) -> bool:
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise BadOption(f"{name} is true or false, not {text!r}")
    return text == "true"


class File(InputPartition):
    """One capture."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class FileReader(DataSourceReader):
    """Reads captures, each in a task of its own."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._condition: Any = None
        """An expression of Arrow that rows have to meet."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each file."""
        return [File(name) for name in self._wanted.files()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        assert isinstance(partition, File)
        yield from rows_of(partition.name, self._wanted, self._condition)


class _StreamReader(DataSourceStreamReader):
    """Reads the captures that come into a folder, each once: in the order in which they were
    written last."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before all files."""
        return {"changed_ns": 0, "name": ""}

    def latestOffset(self) -> dict[str, Any]:
        """Return the place of the last file that is whole."""
        last = max(self._settled(), default=(0, ""))
        return {"changed_ns": last[0], "name": last[1]}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the files behind one offset, up to another."""
        low, high = (start["changed_ns"], start["name"]), (end["changed_ns"], end["name"])
        return [File(name) for changed, name in self._settled() if low < (changed, name) <= high]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        assert isinstance(partition, File)
        yield from rows_of(partition.name, self._wanted)

    def _settled(self) -> list[tuple[int, str]]:
        """Return (last change, name) of the files that are not written to any more, in order."""
        from kafkascope.captures.errors import NotACapture

        before = time.time_ns() - int(self._wanted.settle * 1e9)
        try:
            names = self._wanted.files()
        except NotACapture:
            return []  # None has come yet.
        found = []
        for name in names:
            try:
                changed = Path(name).stat().st_mtime_ns
            except OSError:
                continue  # It was deleted meanwhile, or is no local file.
            if changed <= before:
                found.append((changed, name))
        return sorted(found)


def rows_of(name: str, wanted: Wanted, condition: Any = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table that the pipeline makes of one file, those that meet an expression
    of Arrow."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    from kafkascope.analyzer.pipeline.runner import run
    from kafkascope.analyzer.pipeline.store import Store
    from kafkascope.captures.inputs.keylogs import read_key_logs

    schema = wanted.schema()
    with tempfile.TemporaryDirectory(prefix="kafkascope-") as folder:
        keys = read_key_logs([wanted.keylog] if wanted.keylog else [])
        result = run([name], folder, wanted.tables(), keys=keys)
        files = Store(folder).files(wanted.table, result.manifest["batch_id"])
        if not files:
            return
        scanner = ds.dataset(list(map(str, files)), format="parquet").scanner(
            columns=schema.names, filter=condition, batch_size=ROWS, use_threads=False
        )
        for batch in scanner.to_batches():
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
