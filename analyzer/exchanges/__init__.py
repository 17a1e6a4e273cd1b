"""Exchanges as rows, records and JSON bodies; captures in, exchanges out.

Knows no filters and no sessions.
"""
