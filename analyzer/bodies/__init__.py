"""What the bodies of messages say, by connection: facts, waits, sessions.

Knows neither bytes of streams nor rows.
"""
