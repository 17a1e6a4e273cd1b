"""State and facts from the bodies of messages, by connection: facts, waits, sessions.

Knows neither bytes of streams nor rows.
"""
