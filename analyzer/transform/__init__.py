"""Captures and messages made into others: cut, compared, redacted, under other names."""
