"""Limits of the data that connections of a session can make us hold or believe.

A `Context` carries the limits of its session; tests give it small ones.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkascope.analyzer.bodies.limits import LIMITS as BODY_LIMITS
from kafkascope.analyzer.bodies.limits import BodyLimits
from kafkascope.analyzer.topics import LIMITS as TOPIC_LIMITS
from kafkascope.analyzer.topics import TopicLimits


class ConversationLimits(NamedTuple):
    """Names that end in no unit are counts."""

    # A named tuple, as `schemas.limits`: a frozen dataclass costs milliseconds at start.

    # --- requests without a response

    # Of one connection. Clients keep 5 to 1000 in flight (max.in.flight.requests.per.connection);
    # more means that the responses are not in the capture.
    requests: int = 100_000
    # Memory of the requests of one connection: a capture of one direction must not fill it.
    request_bytes: int = 64 << 20
    # Memory of all connections, which may be thousands: requests, frames that are not whole,
    # undecided connections, fetch sessions and ends of logs.
    waiting_bytes: int = 128 << 20
    # Raw SASL tokens; each answers the one before it.
    tokens: int = 1_000
    # Responses whose requests reassembly has not delivered yet.
    early_responses: int = 256

    # --- is it Kafka?

    # A frame. Brokers take 100 MB by default (socket.request.max.bytes); a response to a Fetch may
    # exceed that by a message (KIP-74).
    frame_bytes: int = 512 << 20
    # A client id that a test of content believes; the protocol allows 32,767 bytes.
    client_id_bytes: int = 1_024
    # A SASL token: as brokers accept (sasl.server.max.receive.size).
    token_bytes: int = 512 << 10
    # The correlation id of a malformed first request: clients begin at 0 or 1. The first words of
    # PostgreSQL look like a Metadata request but for it ("user" is 1970496882).
    first_correlation_id: int = 1 << 20
    # What is held of a connection until its protocol is known; beyond it, it is not Kafka. Each
    # packet is an event.
    undecided_bytes: int = 1 << 20
    undecided_events: int = 2_000
    # Different descriptions of connections that are not Kafka's: some name a size, and hostile ones
    # many.
    protocols: int = 1_000
    # Brokers, and ZooKeeper's servers, that are remembered: far more than a cluster has.
    # Connections to others are judged by their own bytes alone.
    endpoints: int = 100_000
    # Connections that ended, of which late copies of packets are still recognized.
    ended_connections: int = 10_000
    # Connections with TLS that are remembered, to report whether they are Kafka's.
    encrypted_connections: int = 1_000
    # Connections that wait for their secrets: memory of all, beyond which those go that wait for
    # the longest time, and the time of one. Programs write secrets during the handshake.
    encrypted_bytes: int = 64 << 20
    secret_wait_s: float = 30.0

    # --- what bodies say

    bodies: BodyLimits = BODY_LIMITS
    topics: TopicLimits = TOPIC_LIMITS

    # --- request logs

    # Connections whose state is held: a log has no line for a close, so the last used ones stay.
    # One that is forgotten lacks its library, and the partitions of its fetch sessions.
    logged_connections: int = 20_000
    # Partitions of a connection whose offsets are remembered, to learn what a Fetch returned.
    read_partitions: int = 10_000
    # Forwarded requests that wait for the line of the broker that forwarded them. That line comes
    # when the broker has answered its client.
    forwarded_requests: int = 4_096

    # --- ZooKeeper

    # The password of a session that is resumed: servers give 16 bytes.
    password_bytes: int = 64
    # A frame after a gap: servers take 1 MB (jute.maxbuffer).
    zookeeper_frame_bytes: int = 64 << 20

    # --- HTTP, of schema registries

    # Start line and headers: servers take 8 kB as a rule. A start line where one is searched for.
    http_head_bytes: int = 64 << 10
    http_line_bytes: int = 16 << 10
    # A body that is kept, as sent and as unpacked; registries take schemas of 1 MB by default.
    http_body_bytes: int = 16 << 20
    # Size and extensions of a chunk, a line of a trailer.
    http_chunk_line_bytes: int = 1_024
    # Requests without a response: no client pipelines more.
    http_requests: int = 256


LIMITS: Final = ConversationLimits()
