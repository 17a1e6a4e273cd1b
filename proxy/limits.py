"""The limits of the proxy, of served captures and of replays. Tests hand in small ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of memory, output and waits for peers, captures and users. Times are seconds."""

    # --- frames of both sides

    # A frame that is buffered to be changed. Brokers refuse larger requests
    # (socket.request.max.bytes); a response of more than fetch.max.bytes (50 MB) has one batch.
    frame_bytes: int = 100 << 20
    # A SASL token: as brokers accept (sasl.server.max.receive.size).
    token_bytes: int = 512 << 10
    # The head of a Produce, up to its acks: client id and transactional id have 32 KB each.
    produce_head_bytes: int = 128 << 10
    # Clients have 5 to 1000 requests in flight. More means that responses do not come (a Produce
    # of an unknown version with acks=0): the oldest are forgotten.
    pending_requests: int = 65_536
    # API keys and versions that no rule affects. Kafka 4.1 has 500; a client may send any.
    quiet_heads: int = 1_000
    # Responses kept with our addresses in them: brokers repeat the same Metadata and ApiVersions.
    cached_responses: int = 256
    cached_response_bytes: int = 64 << 10

    # --- connections, listeners, memory

    # What all connections keep together; --buffer.
    buffer_bytes: int = 512 << 20
    # Memory is looked at so often while much of it is in use.
    memory_look_s: float = 0.1
    # Slabs of 1 MB that sockets are read into. When all are leased, reads are copied.
    arena_slabs: int = 48
    # Each stream that cannot send keeps up to a read: with more of them, reads become small.
    unsent_streams: int = 64
    # A peer that left is noticed so often while its socket is not read.
    gone_check_s: float = 1.0
    # Listeners that a cluster may make us open. Large clusters have some hundreds of brokers.
    nodes: int = 2_000
    # A host name (RFC 1035); a response may advertise a longer one.
    host_chars: int = 255
    # One upstream address. Clients give up after 10 to 30 s themselves
    # (socket.connection.setup.timeout.ms).
    connect_s: float = 10.0
    # The last bytes of a connection that is over; then it is cut.
    linger_s: float = 10.0
    # The PROXY protocol header of a new connection.
    header_s: float = 10.0
    # A ClientHello with its records; OpenSSL accepts 128 KB.
    client_hello_bytes: int = 256 << 10

    # --- notices, counters, control

    # Notices in a status; those that are not repeated; characters of one, for peers choose names.
    notices: int = 100
    notices_once: int = 10_000
    notice_chars: int = 2_000
    # Labels of a counter: upstreams and rules may be any number in time.
    metric_labels: int = 1_000
    # Files in a status, the newest: a proxy may run for weeks. Held frames in a state event.
    status_files: int = 1_000
    state_held: int = 1_000
    # A line of the control channel: an edited body may be large.
    control_line_bytes: int = 64 << 20
    # Elements in the answer to `expect`: by default, and at most; their bytes; different names.
    expected_listed: int = 100
    expected_listed_most: int = 10_000
    expected_bytes: int = 32 << 20
    expected_names: int = 1_000
    expected_s: float = 3600.0
    # Terms of a filter for which the nearest request is looked for; characters of a value in it.
    nearest_terms: int = 8
    value_chars: int = 80
    # Findings in the sentence of an expectation.
    shown_findings: int = 20
    # A request for metrics: scrapers send some hundred bytes at once.
    metrics_request_bytes: int = 16 << 10
    metrics_s: float = 5.0

    # --- rules

    # Heads for which a filter's result is kept, and the client id of such a head.
    matcher_heads: int = 10_000
    matcher_client_id_chars: int = 1_000
    # Sampled frames on which a filter is tried. One that needs more is accepted: a rule that never
    # fires does no harm, one that is refused by mistake does.
    filter_samples: int = 64
    # Metadata responses that stale-metadata repeats; values that are encoded by a schema.
    stale_responses: int = 1_000
    encoded_values: int = 1_000
    # A function of a script.
    script_s: float = 1.0
    # Keys, values and headers of one frame that are decoded for rules: others wait behind it, and
    # validation by JSON Schema is slow. Later records count as absent.
    rule_record_bytes: int = 16 << 20
    rule_record_s: float = 1.0
    # Schema ids requested from a registry: bytes that look like an id may be anything.
    registry_ids: int = 10_000

    # --- recording

    # Copied bytes, and events of 200 bytes, between the event loop and the recorder's thread.
    queued_bytes: int = 16 << 20
    queued_events: int = 400_000
    # The thread collects so long before it writes. Each time two threads wake up, which in cold
    # caches costs as much as recording 100 KB.
    collect_s: float = 0.05
    # Bytes that wait for the disk, and for the reader of a pipe.
    file_queue_bytes: int = 16 << 20
    pipe_queue_bytes: int = 4 << 20
    # Bulk that fills no block is written after this; longer than steady traffic takes to be a
    # batch (`collect_s`).
    settle_s: float = 0.06
    # A disk without space is tried again so often; each trial costs others a moment of the rest.
    disk_retry_s: float = 1.0
    # Chunks of 2 MB of one recording; more for small packets: how connections begin and end.
    chunks: int = 16
    reserve_chunks: int = 4
    # A frame above the brokers' limit is none; frames whose beginnings a rotated file repeats.
    recorded_frame_bytes: int = 128 << 20
    begun_frames: int = 1_000

    # --- served captures

    # Connections, as file descriptors allow (ulimit -n is 1024 by default).
    serve_connections: int = 800
    serve_request_bytes: int = 100 << 20
    # Requests and responses of all connections together.
    serve_buffer_bytes: int = 160 << 20
    # An idle connection (connections.max.idle.ms); a request that has begun, or a response.
    idle_s: float = 600.0
    frame_s: float = 60.0
    # No request waits longer, whatever its max_wait_ms.
    wait_s: float = 60.0
    # Different log lines that are counted, their characters, and how many may come at once; then
    # one a second: 20 MB a day.
    log_lines: int = 1_000
    log_chars: int = 400
    log_burst: int = 200
    # Captured brokers that get a listener, and captured records.
    served_nodes: int = 1_000
    captured_bytes: int = 256 << 20
    # Exchanges of an API, which are compared with each request; values of a request, the first
    # ones; values of all exchanges, at 250 bytes each.
    captured_exchanges: int = 256
    compared_values: int = 20_000
    captured_values: int = 400_000
    # State of clients: 1,000 members with subscriptions of 100 topics take 5 MB. A full account is
    # counted anew so often: counting takes milliseconds, a flood goes on.
    state_bytes: int = 64 << 20
    recount_s: float = 1.0
    classic_groups: int = 10_000
    # Groups whose members have epochs, of each kind.
    epoch_groups: int = 1_000
    group_members: int = 1_000
    # Member ids that were handed out and are not used yet (KIP-394).
    offered_ids: int = 1_000
    # The first members of a group have this time to join (group.initial.rebalance.delay.ms: 3 s).
    forming_s: float = 0.15
    # No rebalance waits longer, whatever the members' rebalance timeouts.
    rebalance_s: float = 300.0
    # offset.metadata.max.bytes
    offset_metadata_chars: int = 4_096
    transactional_ids: int = 10_000
    created_partitions: int = 10_000
    # Records in a response (fetch.max.bytes), and all that clients write.
    fetch_bytes: int = 50 << 20
    written_bytes: int = 192 << 20
    # max.incremental.fetch.session.cache.slots, and the memory of some 70,000 partitions.
    fetch_sessions: int = 1_000
    fetch_session_bytes: int = 32 << 20
    # group.share.partition.max.record.locks, group.share.delivery.count.limit,
    # group.share.record.lock.duration.ms, max.poll.records
    share_locks: int = 2_000
    share_deliveries: int = 5
    share_lock_s: float = 30.0
    share_records: int = 500

    # --- replays

    # Requests of one replay, at 600 bytes each with what the session keeps of them.
    steps: int = 500_000
    # Requests in flight over all connections; bytes of them and of their captured responses.
    in_flight: int = 1_000
    in_flight_bytes: int = 64 << 20
    # More than brokers send at once (fetch.max.bytes).
    response_bytes: int = 128 << 20
    # Characters of a broker's text in a sentence of ours: it may send 32 KB.
    peer_text_chars: int = 300
    # SCRAM iterations: a hostile broker may name any number.
    scram_iterations: int = 1_000_000
    # A peer that is not ready is asked so often, with these pauses; after so many exchanges of an
    # API in a row without success no longer, for each takes ten seconds.
    tries: int = 40
    pause_s: float = 0.25
    failed_in_a_row: int = 20
    # Partitions of one CreateTopics: controllers refuse more than 10,000 (since 3.7), and have to
    # respond in time. Partitions of a topic that are believed because a request names the last.
    created_at_once: int = 1_000
    named_partitions: int = 1_000
    # Coordinators, ids of a kind, partitions, members: the last ones.
    coordinators: int = 100_000
    ids: int = 200_000
    missing_partitions: int = 100_000
    shifted_partitions: int = 100_000
    assigned_members: int = 100_000
    # Different differences, elements of lists that each node has a part of, latencies of an API.
    differences: int = 20_000
    listed: int = 100_000
    latencies: int = 100_000
    # Fetched records: opened ones of both sides, bytes of batches that wait for their like,
    # batches that both sides had, partitions, reasons why some cannot be read.
    compared_records: int = 1_000_000
    waiting_batch_bytes: int = 64 << 20
    equal_batches: int = 500_000
    compared_partitions: int = 100_000
    unreadable_reasons: int = 1_000


LIMITS: Final = Limits()


def remember(known: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    """Put a value into a dictionary; beyond `most` entries the oldest one goes."""
    known[key] = value
    if len(known) > most:
        del known[next(iter(known))]
