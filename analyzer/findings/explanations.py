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
        "a client that cannot reach a node asks for metadata again and gives up its requests",
        after_ns=PATIENT,
    ),
    Explanation(
        ("address-private",),
        ("address-unreachable", "address-unanswered"),
        ("broker",),
        "a private address leads nowhere from outside, or to another machine there",
        after_ns=PATIENT,
    ),
    Explanation(
        ("address-unresolved",),
        AGAIN,
        ("client",),
        "a client that has nowhere to go asks again, and gives up what it wanted to send",
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
        "the broker closes the connection at a version that it does not have; the client sends "
        "the same again",
        after_ns=PATIENT,
    ),
    Explanation(
        ("plain-to-tls", "tls-to-plain", "http-to-kafka", "not-kafka"),
        ("tls-opaque", *AGAIN),
        ("broker", "client"),
        "a connection that begins in another protocol is closed, and the client tries again",
    ),
    Explanation(
        ("tls-failed",),
        ("tls-opaque", "apiversions-loop", "connection-churn"),
        ("host",),
        "a client that cannot finish the handshake tries again",
    ),
    Explanation(
        ("sasl-missing", "sasl-mechanism", "sasl-failed"),
        ("batch-twice", "error-broken", "error-storm", "error-seen", *AGAIN),
        ("client",),
        "who is not let in loses the connection, and tries again",
    ),
    Explanation(
        ("session-expired",),
        ("batch-twice", "sequence-repeated", "error-seen", "error-storm", *AGAIN),
        ("client",),
        "the broker closes the connection of an expired session; the client connects anew and "
        "sends the request again",
    ),
    Explanation(
        ("request-too-large",),
        ("large-batches", "batch-twice", *AGAIN),
        ("client",),
        "the broker closes the connection as soon as it has read the size; the client sends the "
        "request again",
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
        "requests of a broker that goes are lost, its partitions and groups move to others, and "
        "clients look for it",
        before_ns=60 * SECOND,
        after_ns=PATIENT,
    ),
    Explanation(
        ("broker-down",),
        (*GROUP, "rebalance-poll"),
        ("group",),
        "a group whose coordinator or members lose their broker forms again",
    ),
    Explanation(
        ("broker-down",),
        ("broker-paused",),
        ("client",),
        "leaders wait for followers that are down before they answer",
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
        "requests to a broker that stands still time out and are sent again, also at leaders that "
        "wait for it as a follower",
        before_ns=5 * SECOND,
    ),
    Explanation(
        ("broker-paused",),
        ("leader-moved",),
        ("client",),
        "a broker that stands still for too long loses its partitions to others",
        after_ns=2 * SECOND,
    ),
    Explanation(
        ("broker-paused",),
        (*GROUP, "rebalance-poll"),
        ("client",),
        "heartbeats to a broker that stands still are not heard, or not answered",
    ),
    Explanation(
        ("silent-drop",),
        ("network-loss", "batch-twice", "slow-answers", *AGAIN),
        ("client",),
        "requests on a dead connection are sent again by TCP until the client gives up",
        after_ns=PATIENT,
    ),
    Explanation(
        ("idle-close",),
        ("unanswered", "batch-twice", "sequence-repeated"),
        ("client", "broker"),
        "a request that is sent while the broker closes is lost",
    ),
    Explanation(
        ("disk-failed",),
        ("batch-twice", "error-broken", "error-seen", "error-storm", "leader-moved", *AGAIN),
        ("client",),
        "partitions on a disk that is out of use have no leader: clients ask, and send again",
        before_ns=ALL,
        after_ns=PATIENT,
    ),
    Explanation(
        ("topic-deleted",),
        ("unknown-topic", "error-broken", "error-storm", "error-seen"),
        ("topic",),
        "who uses a topic that is gone asks for it, and tries again",
    ),
    Explanation(
        ("denied", "unknown-topic"),
        ("error-storm", "error-seen"),
        ("client",),
        "what is refused is asked again, with metadata in between",
    ),
    Explanation(
        ("batch-damaged", "batch-codec"),
        ("reader-stuck", "redelivered", "commits-lost", "lag"),
        ("topic",),
        "a client that cannot read a batch comes back to it",
        after_ns=PATIENT,
    ),
    Explanation(
        ("batch-damaged", "batch-codec"),
        AGAIN,
        ("client",),
        "a client that cannot read a batch starts again",
        after_ns=PATIENT,
    ),
    Explanation(
        ("schema-misfit", "schema-unknown", "schema-mixed", "schema-of-key"),
        ("reader-stuck", "redelivered", "commits-lost", "lag"),
        ("topic",),
        "a reader that fails on a record comes back to it",
        after_ns=PATIENT,
    ),
    Explanation(
        ("reader-stuck",),
        ("commits-lost", "consumer-silent", "lag", *GROUP),
        ("group",),
        "a member that fails on a record leaves, starts again and gets the same records",
        before_ns=POLL,
        after_ns=PATIENT,
    ),
    Explanation(
        ("reader-stuck",),
        AGAIN,
        ("client",),
        "a member that fails on a record connects again with each start",
    ),
    Explanation(
        ("retention-overtook", "offset-out-of-range"),
        ("commit-back", "redelivered", "lag"),
        ("group", "topic"),
        "a reader whose offset is gone goes on elsewhere; what it lost, it was behind by",
        before_ns=POLL,
    ),
    Explanation(
        ("commits-lost",),
        ("redelivered",),
        ("group",),
        "what is not committed is read again after a restart",
        after_ns=PATIENT,
    ),
    Explanation(
        ("clock-skew",),
        ("error-storm", "error-seen"),
        ("client", "topic"),
        "a broker refuses records whose timestamps are out of bounds",
        before_ns=ALL,
    ),
    Explanation(
        ("denied", "topic-deleted", "unknown-topic"),
        ("lookup-storm",),
        ("client",),
        "what is refused is asked again, with metadata in between; a storm is told from the first "
        "lookup of its client on",
        before_ns=ALL,
    ),
    Explanation(
        ("rebalance-poll",),
        ("consumer-silent",),
        ("group",),
        "the member stood still before it had to leave",
        before_ns=POLL,
    ),
    Explanation(
        ("rebalance-poll",),
        ("reader-stuck", "lag", *GROUP),
        ("group",),
        "a member whose application does not poll leaves its group; the others take over, and "
        "what it had not committed is read again",
    ),
    Explanation(
        ("owned-twice",),
        ("redelivered", "commit-back"),
        ("group",),
        "two members read and commit the same partition, each for itself",
        after_ns=PATIENT,
    ),
    Explanation(
        ("rebalance-expired", "rebalance-restarts", "static-conflict"),
        ("redelivered", "lag", "rebalance-storm", "rebalance-slow"),
        ("group",),
        "a member that is gone without a word makes the group rebalance, and what it had not "
        "committed is read again",
    ),
    Explanation(
        ("two-applications",),
        ("owned-by-none", "idle-members", *GROUP),
        ("group",),
        "the leader knows the topics of its own application only, and each start of one makes the "
        "other rebalance",
    ),
    Explanation(
        ("owned-by-none",),
        ("idle-members",),
        ("group",),
        "who would have got these partitions has none",
    ),
    Explanation(
        ("rebalance-storm",),
        ("lag", "rebalance-slow", "redelivered"),
        ("group",),
        "each rebalance stops the group, and records that were not committed are read again",
    ),
    Explanation(
        ("transaction-hangs",),
        ("transaction-blocks",),
        ("txn",),
        "what is behind an open transaction is held back from read_committed readers",
        after_ns=PATIENT,
    ),
    Explanation(
        ("producer-fenced", "producer-unknown"),
        ("transaction-aborted",),
        ("txn",),
        "the coordinator aborts the open transaction of a producer that is fenced or forgotten",
        before_ns=60 * SECOND,
    ),
    Explanation(
        ("breaks-on-upgrade",),
        ("batch-old-format", "no-api-versions"),
        ("client",),
        "a client of old versions sends records in the old format, and may not know ApiVersions",
        before_ns=ALL,
        after_ns=ALL,
    ),
    Explanation(
        ("producer-unknown", "producer-fenced"),
        ("transaction-aborted", "error-seen", "error-storm"),
        ("client",),
        "a producer whose id is not accepted any more cannot end its transaction",
        after_ns=PATIENT,
    ),
    Explanation(
        ("sequence-refused",),
        ("sequence-gap", "sequence-repeated", "transaction-aborted", "error-seen", "error-storm"),
        ("client",),
        "a producer whose batch was refused sends it again, and fails",
    ),
    Explanation(
        ("version-refused",),
        ("undecodable", "unknown-api"),
        ("client", "api"),
        "a version that brokers do not take is sent in a layout of its own, or of no release",
    ),
    Explanation(
        ("undecodable", "unknown-api"),
        ("unanswered", "no-answer-yet"),
        ("client", "broker", "api"),
        "a broker closes the connection at a request that it does not know, or cannot read",
    ),
    Explanation(
        ("broker-down",),
        ("zookeeper-unanswered", "zookeeper-reconnects", "zookeeper-expired"),
        ("broker",),
        "clients of a ZooKeeper that stops lose its answers, and sessions that find no other "
        "server in time",
        after_ns=PATIENT,
    ),
    Explanation(
        ("broker-down",),
        ("zookeeper-unanswered", "zookeeper-reconnects"),
        ("ensemble",),
        "an ensemble that lost its leader ends all connections, and takes none until the next",
        after_ns=PATIENT,
    ),
    Explanation(
        ("broker-down",),
        ("zookeeper-expired",),
        ("node",),
        "a broker that stopped has no word for ZooKeeper any more",
        after_ns=PATIENT,
    ),
    Explanation(
        ("zookeeper-slow", "zookeeper-large"),
        ("zookeeper-expired", "zookeeper-reconnects", "zookeeper-unanswered"),
        ("client", "broker"),
        "a client whose pings are not answered in time, or whose frame is too large, loses its "
        "connection",
        after_ns=PATIENT,
    ),
    Explanation(
        ("zookeeper-unknown-request",),
        ("zookeeper-unanswered", "zookeeper-reconnects"),
        ("client", "broker"),
        "a server closes the connection at a type that it does not know",
    ),
    Explanation(
        ("undecodable",),
        ("zookeeper-error",),
        ("broker", "api"),
        "the server cannot read such a request either",
    ),
    Explanation(
        ("zookeeper-expired",),
        ("zookeeper-registered-twice",),
        ("node",),
        "the node of a session that died is there until its timeout has passed",
        before_ns=PATIENT,
    ),
    Explanation(
        ("zookeeper-claims", "zookeeper-misassigned"),
        ("zookeeper-unowned",),
        ("group",),
        "who claims partitions in vain gives up, and who computes another assignment leaves some",
        after_ns=PATIENT,
    ),
)
"""A test holds that no rule explains itself through others."""
