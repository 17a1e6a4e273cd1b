"""Which rule may explain which: one line each, with the condition and the reason."""

from __future__ import annotations

from typing import Final, NamedTuple

SECOND: Final = 1_000_000_000
SOON: Final = 30 * SECOND
"""Clients and groups feel a trouble for that long after it is over: request.timeout.ms."""
ALL: Final = 1_000_000 * SECOND
"""For effects that add up from the beginning of a capture."""
PATIENT: Final = 120 * SECOND
"""delivery.timeout.ms: a producer's batches fail that long after their trouble began."""
POLL: Final = 600 * SECOND
"""Twice the usual max.poll.interval.ms: a pause begins so long before the member has to leave."""


class Explanation(NamedTuple):
    """A line of the table."""

    causes: tuple[str, ...]
    effects: tuple[str, ...]
    same: tuple[str, ...]
    """Kinds of entities (`client`, `broker`, `group` ...): of each, both findings name at least
    one alike."""
    why: str
    before_ns: int = SECOND
    """The effect may begin so long before the cause: a request is sent before its connection is
    lost, and is told with the time at which it was sent."""
    after_ns: int = SOON
    """The effect begins at most so long after the cause's last sign."""


LOST: Final = ("unanswered", "no-answer-yet", "late-answer")
AGAIN: Final = (
    "apiversions-loop",
    "connection-churn",
    "lookup-storm",
    *LOST,
)
"""What a client does that cannot work: it asks, connects and tries again."""
GROUP: Final = (
    "rebalance-expired",
    "rebalance-storm",
    "rebalance-restarts",
    "rebalance-slow",
    "redelivered",
)

EXPLANATIONS: Final[tuple[Explanation, ...]] = (
    Explanation(
        (
            "address-unreachable",
            "address-unanswered",
            "address-loopback",
            "address-private",
            "address-unspecified",
        ),
        ("address-unresolved", *AGAIN),
        ("client",),
        "a client that cannot reach a broker refreshes its metadata and times out its requests",
        after_ns=PATIENT,
    ),
    Explanation(
        ("address-private",),
        ("address-unreachable", "address-unanswered"),
        ("broker",),
        "a private address is unreachable from outside, or belongs to another machine there",
        after_ns=PATIENT,
    ),
    Explanation(
        ("address-unresolved",),
        AGAIN,
        ("client",),
        "a client without a reachable broker refreshes its metadata and times out its requests",
        after_ns=PATIENT,
    ),
    Explanation(
        ("version-refused",),
        (
            "batch-old-format",
            "batch-twice",
            "breaks-on-upgrade",
            "error-broken",
            "error-seen",
            "error-storm",
            "no-api-versions",
            *AGAIN,
        ),
        ("client",),
        "the broker closes the connection at an unsupported version, and the client retries",
        after_ns=PATIENT,
    ),
    Explanation(
        ("answers-out-of-order", "request-skipped"),
        ("batch-twice", "sequence-repeated", *AGAIN),
        ("client",),
        "a client that gets the response of another request closes the connection, and retries",
    ),
    Explanation(
        ("plain-to-tls", "tls-to-plain", "http-to-kafka", "not-kafka"),
        ("tls-opaque", *AGAIN),
        ("broker", "client"),
        "the broker closes a connection that starts with another protocol, and the client retries",
    ),
    Explanation(
        ("proxy-protocol",),
        ("tls-opaque", *AGAIN),
        ("client",),
        "a broker closes a connection that begins with a PROXY protocol header, and the client "
        "retries",
    ),
    Explanation(
        ("server-not-kafka",),
        ("not-kafka", "tls-opaque", *AGAIN),
        ("client",),
        "a client closes a connection to a server that is no Kafka broker, and retries",
    ),
    Explanation(
        ("tls-failed",),
        ("tls-opaque", "apiversions-loop", "connection-churn"),
        ("host",),
        "a client whose handshake fails retries",
    ),
    Explanation(
        ("sasl-missing", "sasl-mechanism", "sasl-failed"),
        ("batch-twice", "error-broken", "error-storm", "error-seen", *AGAIN),
        ("client",),
        "the broker closes the connection of a client that fails to authenticate, and it retries",
    ),
    Explanation(
        ("session-expired",),
        ("batch-twice", "sequence-repeated", "error-seen", "error-storm", *AGAIN),
        ("client",),
        "the broker closes the connection of an expired session; the client reconnects and retries",
    ),
    Explanation(
        ("request-too-large", "response-too-large"),
        ("large-batches", "batch-twice", *AGAIN),
        ("client",),
        "the receiver of a size above its limit closes the connection, and the client retries",
        after_ns=PATIENT,
    ),
    Explanation(
        ("broker-down",),
        (
            "address-unreachable",
            "address-unanswered",
            "batch-twice",
            "eager-fetches",
            "error-broken",
            "error-seen",
            "error-storm",
            "leader-moved",
            "stale-leader",
            "sequence-repeated",
            "slow-answers",
            "transaction-aborted",
            *AGAIN,
        ),
        ("client",),
        "requests to a stopping broker are lost, its partitions and groups move, and clients "
        "reconnect",
        before_ns=60 * SECOND,
        after_ns=PATIENT,
    ),
    Explanation(
        ("broker-down",),
        (*GROUP, "rebalance-poll"),
        ("group",),
        "a group whose coordinator or members lose their broker rebalances",
    ),
    Explanation(
        ("broker-down",),
        ("broker-paused",),
        ("client",),
        "with acks=all, leaders wait for followers that are down",
        after_ns=PATIENT,
    ),
    Explanation(
        ("broker-paused",),
        (
            "batch-twice",
            "error-broken",
            "error-seen",
            "error-storm",
            "sequence-repeated",
            "slow-answers",
            "transaction-aborted",
            *AGAIN,
        ),
        ("client",),
        "requests to a stalled broker, and to leaders that wait for it as a follower, time out "
        "and are retried",
        before_ns=5 * SECOND,
    ),
    Explanation(
        ("broker-paused",),
        ("leader-moved",),
        ("client",),
        "a broker that stalls for too long loses the leadership of its partitions",
        after_ns=2 * SECOND,
    ),
    Explanation(
        ("broker-paused",),
        (*GROUP, "rebalance-poll"),
        ("client",),
        "a stalled coordinator does not process heartbeats",
    ),
    Explanation(
        ("silent-drop",),
        ("network-loss", "batch-twice", "slow-answers", *AGAIN),
        ("client",),
        "TCP retransmits requests on a dead connection until the client times out",
        after_ns=PATIENT,
    ),
    Explanation(
        ("idle-close",),
        ("unanswered", "batch-twice", "sequence-repeated"),
        ("client", "broker"),
        "a request sent while the broker closes the connection is lost",
    ),
    Explanation(
        ("disk-failed",),
        ("batch-twice", "error-broken", "error-seen", "error-storm", "leader-moved", *AGAIN),
        ("client",),
        "partitions of an offline log directory have no leader, and clients retry",
        before_ns=ALL,
        after_ns=PATIENT,
    ),
    Explanation(
        ("topic-deleted",),
        ("unknown-topic", "error-broken", "error-storm", "error-seen"),
        ("topic",),
        "clients of a deleted topic look it up, and retry",
    ),
    Explanation(
        ("denied", "unknown-topic"),
        ("error-storm", "error-seen"),
        ("client",),
        "a client retries refused requests, with metadata lookups in between",
    ),
    Explanation(
        ("batch-damaged", "batch-codec"),
        ("reader-stuck", "redelivered", "commits-lost", "lag"),
        ("topic",),
        "a client that cannot read a batch fetches it again",
        after_ns=PATIENT,
    ),
    Explanation(
        ("batch-damaged", "batch-codec"),
        AGAIN,
        ("client",),
        "a client that cannot read a batch restarts",
        after_ns=PATIENT,
    ),
    Explanation(
        ("schema-misfit", "schema-unknown", "schema-mixed", "schema-of-key"),
        ("reader-stuck", "redelivered", "commits-lost", "lag"),
        ("topic",),
        "a consumer that fails on a record fetches it again",
        after_ns=PATIENT,
    ),
    Explanation(
        ("fetch-too-small",),
        ("reader-stuck", "lag", "commits-lost", "consumer-silent", "redelivered"),
        ("group",),
        "a reader that gets no records stays behind",
        before_ns=POLL,
        after_ns=PATIENT,
    ),
    Explanation(
        ("fetch-too-small",),
        ("eager-fetches", *AGAIN),
        ("client",),
        "a reader that gets no records fetches again at once",
        after_ns=PATIENT,
    ),
    Explanation(
        ("fetches-nothing",),
        ("lag", "commits-lost", "consumer-silent", "rebalance-poll"),
        ("group",),
        "a member that does not fetch leaves its partitions unread",
        before_ns=POLL,
        after_ns=POLL,
    ),
    Explanation(
        ("fetched-repeatedly",),
        ("redelivered", "commit-back", "lag"),
        ("group",),
        "a client that discards what it fetched ahead fetches it again",
        before_ns=POLL,
        after_ns=PATIENT,
    ),
    Explanation(
        ("reader-stuck",),
        ("commits-lost", "consumer-silent", "lag", *GROUP),
        ("group",),
        "a member that fails on a record leaves, restarts and gets the same records",
        before_ns=POLL,
        after_ns=PATIENT,
    ),
    Explanation(
        ("reader-stuck",),
        AGAIN,
        ("client",),
        "a member that fails on a record reconnects at each restart",
    ),
    Explanation(
        ("retention-overtook", "offset-out-of-range"),
        ("commit-back", "redelivered", "lag"),
        ("group", "topic"),
        "a consumer whose offset was deleted continues elsewhere; the lost records were its lag",
        before_ns=POLL,
    ),
    Explanation(
        ("commits-lost",),
        ("redelivered",),
        ("group",),
        "records that were not committed are read again after a restart",
        after_ns=PATIENT,
    ),
    Explanation(
        ("clock-skew",),
        ("error-storm", "error-seen"),
        ("client", "topic"),
        "a broker refuses records with timestamps out of range",
        before_ns=ALL,
    ),
    Explanation(
        ("denied", "topic-deleted", "unknown-topic"),
        ("lookup-storm",),
        ("client",),
        "a client retries refused requests, with lookups in between; a storm starts at its first "
        "lookup",
        before_ns=ALL,
    ),
    Explanation(
        ("rebalance-poll",),
        ("consumer-silent",),
        ("group",),
        "the member stopped polling before it left",
        before_ns=POLL,
    ),
    Explanation(
        ("rebalance-poll",),
        ("reader-stuck", "lag", *GROUP),
        ("group",),
        "a member that does not poll leaves; others take over, and read uncommitted records again",
    ),
    Explanation(
        ("owned-twice",),
        ("redelivered", "commit-back"),
        ("group",),
        "two members read and commit the same partition independently",
        after_ns=PATIENT,
    ),
    Explanation(
        ("rebalance-expired", "rebalance-restarts", "static-conflict"),
        ("redelivered", "lag", "rebalance-storm", "rebalance-slow"),
        ("group",),
        "a member that disappears makes the group rebalance, and uncommitted records are read "
        "again",
    ),
    Explanation(
        ("two-applications",),
        ("owned-by-none", "idle-members", *GROUP),
        ("group",),
        "the group leader assigns only topics that it knows, and each start of one application "
        "makes the other rebalance",
    ),
    Explanation(
        ("owned-by-none",),
        ("idle-members",),
        ("group",),
        "the members that should own these partitions own none",
    ),
    Explanation(
        ("rebalance-storm",),
        ("lag", "rebalance-slow", "redelivered"),
        ("group",),
        "each rebalance stops the group, and uncommitted records are read again",
    ),
    Explanation(
        ("transaction-hangs",),
        ("transaction-blocks",),
        ("txn",),
        "read_committed consumers get no records past an open transaction",
        after_ns=PATIENT,
    ),
    Explanation(
        ("producer-fenced", "producer-unknown"),
        ("transaction-aborted",),
        ("txn",),
        "the coordinator aborts the open transaction of a fenced or expired producer",
        before_ns=60 * SECOND,
    ),
    Explanation(
        ("breaks-on-upgrade",),
        ("batch-old-format", "no-api-versions"),
        ("client",),
        "an old client sends records in the old format, and may not support ApiVersions",
        before_ns=ALL,
        after_ns=ALL,
    ),
    Explanation(
        ("producer-unknown", "producer-fenced"),
        ("transaction-aborted", "error-seen", "error-storm"),
        ("client",),
        "a producer with an expired or fenced id cannot end its transaction",
        after_ns=PATIENT,
    ),
    Explanation(
        ("sequence-refused",),
        ("sequence-gap", "sequence-repeated", "transaction-aborted", "error-seen", "error-storm"),
        ("client",),
        "a producer retries a refused batch, and fails",
    ),
    Explanation(
        ("version-refused",),
        ("undecodable", "unknown-api"),
        ("client", "api"),
        "an unsupported version may have a layout that no release has",
    ),
    Explanation(
        ("undecodable", "unknown-api", "other-layout"),
        ("unanswered", "no-answer-yet"),
        ("client", "broker", "api"),
        "a broker closes the connection at a request that it cannot parse",
    ),
    Explanation(
        ("batch-format",),
        ("reader-stuck", "error-broken", "error-seen", "connection-churn"),
        ("client",),
        "a client cannot read, or a broker refuses, records in a format of another version",
    ),
    Explanation(
        ("records-null",),
        ("reader-stuck", "eager-fetches", "connection-churn"),
        ("client",),
        "a client that drops each response reads the same offset again",
    ),
    Explanation(
        ("group-unreadable",),
        (*GROUP, "rebalance-poll", "consumer-silent", "owned-by-none", "idle-members", "lag"),
        ("group",),
        "members that cannot read their assignment leave, and join again",
        after_ns=POLL,
    ),
    Explanation(
        ("framing-lost",),
        (
            *("batch-damaged", "error-broken", "error-seen", "undecodable", "surplus"),
            *("connection-churn", "request-header", *LOST, "batch-twice", "sequence-gap"),
            *("request-too-large", "request-skipped", "answers-out-of-order"),
        ),
        ("client",),
        "a broker reads bytes of the next requests as part of a request, and closes the connection",
    ),
    Explanation(
        ("request-header", "other-layout"),
        ("connection-churn", "apiversions-loop", "lookup-storm"),
        ("client",),
        "a client whose requests or responses cannot be read connects again",
    ),
    Explanation(
        ("broker-down",),
        ("zookeeper-unanswered", "zookeeper-reconnects", "zookeeper-expired"),
        ("broker",),
        "when a ZooKeeper server stops, its clients lose responses, and sessions that find no "
        "other server expire",
        after_ns=PATIENT,
    ),
    Explanation(
        ("broker-down",),
        ("zookeeper-unanswered", "zookeeper-reconnects"),
        ("ensemble",),
        "an ensemble without a leader closes all connections and accepts none until the election",
        after_ns=PATIENT,
    ),
    Explanation(
        ("broker-down",),
        ("zookeeper-expired",),
        ("node",),
        "a stopped broker sends ZooKeeper no more pings",
        after_ns=PATIENT,
    ),
    Explanation(
        ("zookeeper-slow", "zookeeper-large"),
        ("zookeeper-expired", "zookeeper-reconnects", "zookeeper-unanswered"),
        ("client", "broker"),
        "a client loses its connection when pings are answered late or a frame is too large",
        after_ns=PATIENT,
    ),
    Explanation(
        ("zookeeper-unknown-request",),
        ("zookeeper-unanswered", "zookeeper-reconnects"),
        ("client", "broker"),
        "a server closes the connection at an unknown request type",
    ),
    Explanation(
        ("undecodable",),
        ("zookeeper-error",),
        ("broker", "api"),
        "the server cannot parse such a request either",
    ),
    Explanation(
        ("zookeeper-expired",),
        ("zookeeper-registered-twice",),
        ("node",),
        "the node of a dead session exists until its timeout has passed",
        before_ns=PATIENT,
    ),
    Explanation(
        ("zookeeper-claims", "zookeeper-misassigned"),
        ("zookeeper-unowned",),
        ("group",),
        "a consumer that fails to claim partitions gives up, and different assignments leave some "
        "unowned",
        after_ns=PATIENT,
    ),
)
"""A test holds that no rule explains itself through others."""
