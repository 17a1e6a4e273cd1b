"""From the secrets of a key log to what opens records of TLS. Knows no connections and no streams.

Values and stateless code, but for the stores of secrets and of sessions; nothing reads a file.
"""
