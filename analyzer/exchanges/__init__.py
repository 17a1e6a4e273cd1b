"""Exchanges as rows, records and JSON bodies; captures in, exchanges out.

Imports neither filters nor sessions.
"""
