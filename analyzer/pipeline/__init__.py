"""Captures in bulk: files of any number and size into Parquet tables and states of statistics.

The functions here do not depend on Spark; `plain` runs them in one process, `analyzer.spark` on a
cluster. Both write the same rows.
"""
