"""The machine between a client and a broker, sans-I/O: bytes of either side in, actions out."""
