"""One Kafka connection, sans-I/O: its protocol, frames, requests with their responses.

Knows no files and no rows.
"""
