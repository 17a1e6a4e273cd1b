"""Chunks -> frames -> messages -> exchanges -> outputs. Knows nothing of screens and proxies.

`conversation.conversation.Conversation` is one connection, sans-I/O; `exchanges.offline` joins
capture files and conversations; `session.session.Session` keeps exchanges as columns.
"""
