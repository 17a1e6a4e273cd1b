"""Exchanges, values, records and times as text for people. Prints nothing itself."""
