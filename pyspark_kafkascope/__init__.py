"""Lets Spark find the format `kafkascope`: it looks into each package whose name begins so."""

from kafkascope.bridges.spark.source import KafkascopeSource as DefaultSource

__all__ = ["DefaultSource"]
