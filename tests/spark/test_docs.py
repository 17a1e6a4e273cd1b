"""docs/spark.md: its tables are those of the code, its questions have answers in both languages."""

import re
from pathlib import Path
from typing import Any

import pytest

from docs.print_spark import TARGET, document
from kafkascope.analyzer.pipeline.tables.schemas import ON_REQUEST, TABLES
from tests.analyzer.pipeline.kit import made
from tests.kit.samples import SAMPLES

QUESTIONS = re.findall(r"```sql\n(.*?)```", TARGET.read_text(), re.DOTALL)
EMPTY = {2, 5}
"""Questions that the samples may have nothing to say about."""


def test_the_tables_are_those_of_the_code() -> None:
    assert TARGET.read_text() == document()


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tables")
    made([str(SAMPLES)], out)
    return out


def plain(rows: list[Any]) -> list[tuple[Any, ...]]:
    return sorted(
        (tuple(_plain(value) for value in row) for row in rows), key=lambda row: repr(row)
    )


def _plain(value: Any) -> Any:
    if isinstance(value, float) or type(value).__name__ == "Decimal":
        return round(float(value), 6)
    return value.timestamp() if hasattr(value, "timestamp") else value


def test_ten_questions_have_the_same_answers_in_spark_and_duckdb(spark: Any, tables: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    quack = duckdb.connect()
    for name in TABLES.keys() - set(ON_REQUEST):
        quack.execute(f"create view {name} as select * from '{tables}/{name}/*/*.parquet'")
        spark.read.parquet(str(tables / name)).createOrReplaceTempView(name)
    assert len(QUESTIONS) == 10
    for number, question in enumerate(QUESTIONS):
        theirs = plain(quack.execute(question).fetchall())
        ours = plain([tuple(row) for row in spark.sql(question).collect()])
        assert ours == theirs, question
        assert ours or number in EMPTY, question
