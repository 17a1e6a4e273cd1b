"""Kafka's own files at rest: log segments, indexes, checkpoints, folders of partitions.

Knows no connections.
"""
