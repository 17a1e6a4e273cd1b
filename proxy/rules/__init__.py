"""Who decides about frames: filters, triggers, verdicts, faults.

Knows no connections.
"""
