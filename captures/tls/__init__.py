"""TLS: what is seen of it without keys, and its plaintext with a key log. Knows nothing of Kafka.

stream = TlsStream(connection, client, KeySources(log))
stream.feed(event)                  # each Chunk, Gap and Closed -> those of the plaintext
connection.tls                      # how its handshake went, and why it cannot be read

Most captures have no TLS: importing this, or `sources`, loads none of the others. How secrets of
a key log become what opens records: `keys`.
"""
