"""Reads captures in tasks of Spark, one file in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafkascope.bridges.spark.wanted import Wanted, rows_of

if TYPE_CHECKING:
    import pyarrow as pa


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
