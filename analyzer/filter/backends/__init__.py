"""Evaluators of bound filters: over one exchange, whole columns, connections, log files."""
