"""Captures as DataFrames of Spark: a Python Data Source, and the filters that Spark hands to it."""
