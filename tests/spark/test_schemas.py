"""Workers decode keys and values by schemas that the driver sends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkascope.analyzer.exchanges.seen_schemas import schemas_in
from kafkascope.analyzer.payloads.known import KnownSchemas
from kafkascope.analyzer.spark.engine import Spark
from tests.analyzer.pipeline.test_schemas import records, run, table
from tests.analyzer.schema_samples import capture, folder


def test_schemas_of_a_folder(spark: Any, tmp_path: Path) -> None:
    path, schemas = capture("bad-schemas"), folder("bad-schemas")
    run(path, tmp_path / "out", KnownSchemas(schemas), Spark(spark, 3))
    assert table(tmp_path / "out") == records(path, KnownSchemas(schemas))


def test_schemas_of_the_capture_itself(spark: Any, tmp_path: Path) -> None:
    path = capture("protobuf-json-schemas-topic")

    def known() -> KnownSchemas:
        return KnownSchemas(complete=lambda: schemas_in([path]))

    run(path, tmp_path / "out", known(), Spark(spark, 3))
    found = table(tmp_path / "out")
    assert found == records(path, known())
    assert any(row[8] for row in found)
