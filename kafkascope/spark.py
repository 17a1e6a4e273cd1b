"""Captures as DataFrames of Spark; see docs/spark.md."""

from kafkascope.bridges.spark.source import KafkascopeSource, register

__all__ = ["KafkascopeSource", "register"]
