"""Decides about frames: filters, triggers, verdicts and faults. Knows no connections."""
