"""TLS as far as it shows without keys: record headers and alerts. Knows nothing of Kafka.

handshake = Handshake(connection, client=0)
handshake.feed(event)               # each Chunk, Gap and Closed of the connection
handshake.result                    # how it went; None as long as that is not known
"""

from kafkascope.captures.tls.handshake import ALERTS, Handshake

__all__ = ["ALERTS", "Handshake"]
