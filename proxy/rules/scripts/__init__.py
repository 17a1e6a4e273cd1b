"""Rules that a user writes in Python: functions over passing frames, in a file that may change.

Runs what the user gave; frames pass unchanged when that fails or takes too long.
"""
