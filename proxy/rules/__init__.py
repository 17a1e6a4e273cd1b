"""Decides about frames: filters, triggers, verdicts and faults. Knows no connections.

Knows no connections.
"""
