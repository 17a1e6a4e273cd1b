"""Captures as DataFrames of Spark; see docs/spark.md."""

from kafkascope.extras import require

require("kafkascope.spark")

from kafkascope.bridges.spark.source import KafkascopeSource, register  # noqa: E402 - needs pyspark

__all__ = ["KafkascopeSource", "register"]
