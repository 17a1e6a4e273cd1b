"""Forwards frames between a client and a broker: bytes of either side in, actions out. Sans-I/O."""
