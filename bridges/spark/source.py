"""A Python Data Source for Spark: captures as DataFrames, `spark.read.format("kafkascope")`.

Each file is a partition, and makes the rows that `kafkascope spark` makes of that file alone. Spark
finds the source by the package `pyspark_kafkascope`; `register` is for sessions that do not look.
Workers need this package, pyarrow, and the captures under the same names.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kafkascope.bridges.spark.options import NAME, File, FileReader, SourceOptions, rows_of

if TYPE_CHECKING:
    import pyarrow as pa


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
        self._options = SourceOptions({name.lower(): value for name, value in options.items()})

    def schema(self) -> StructType:
        """Return the columns, those of docs/spark.md."""
        return from_arrow_schema(self._options.schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads files."""
        if self._options.pushdown:
            from kafkascope.bridges.spark.pushdown import PushingReader

            return PushingReader(self._options)
        return FileReader(self._options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what follows a folder."""
        return _StreamReader(self._options)


class _StreamReader(DataSourceStreamReader):
    """Reads the captures that come into a folder, each once: in the order in which they were
    written last."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before all files."""
        return {"changed_ns": 0, "name": ""}

    def latestOffset(self) -> dict[str, Any]:
        """Return the place of the last file that is whole."""
        last = max(self._settled(), default=(0, ""))
        return {"changed_ns": last[0], "name": last[1]}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the files after one offset, up to another."""
        low, high = (start["changed_ns"], start["name"]), (end["changed_ns"], end["name"])
        return [File(name) for changed, name in self._settled() if low < (changed, name) <= high]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file."""
        assert isinstance(partition, File)
        yield from rows_of(partition.name, self._options)

    def _settled(self) -> list[tuple[int, str]]:
        """Return (last change, name) of the files that are not written to any more, in order."""
        from kafkascope.captures.errors import NotACapture

        before = time.time_ns() - int(self._options.settle * 1e9)
        try:
            names = self._options.files()
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
