"""The thresholds of all detectors, each with its reason: from here on something is worth saying.

They are chosen so that healthy traffic of healthy clients stays silent; docs/findings.md prints
them.
"""

from __future__ import annotations

from typing import Final

from kafkascope.analyzer.statistics import limits as counted
from kafkascope.analyzer.statistics.limits import SECOND, Limit

__all__ = ["LIMITS", "SECOND", "Limit", "limit"]

LIMITS: Final[dict[str, Limit]] = {
    **counted.LIMITS,
    "slow.excess": Limit(
        SECOND,
        "ns",
        "most requests take milliseconds; users notice a second more than the requested wait",
    ),
    "slow.count": Limit(3, "count", "one slow response may be a JVM pause of the broker"),
    "pause.flood": Limit(
        SECOND // 4, "ns", "pending requests are answered within this time after a stall"
    ),
    "pause.flood-share": Limit(
        10, "percent", "of the stall: after a long one more requests are pending"
    ),
    "network.far": Limit(SECOND // 50, "ns", "a TCP handshake this long goes to another site"),
    "pieces.gap": Limit(
        30_000_000,
        "ns",
        "between first and last byte of a small request: Linux delays an ACK by 40 ms",
    ),
    "pieces.least": Limit(5, "count", "fewer may be a stalled client or lost packets"),
    "pieces.share": Limit(
        50, "percent", "of the responses: Nagle's algorithm holds back nearly all of them"
    ),
    "lost.age": Limit(
        SECOND,
        "ns",
        "a client that closes sooner with a request in flight was stopped, and did not time out",
    ),
    "versions.ended": Limit(
        3,
        "count",
        "connections that end at the same first request; one or two may be a broker that stops",
    ),
    "open.age": Limit(
        30 * SECOND, "ns", "request.timeout.ms of Java clients: a client would have timed out"
    ),
    "errors.storm": Limit(
        20, "count", "a client does not recover from an error that is this frequent"
    ),
    "errors.storm-rate": Limit(1, "per second", "retries back off; storms do not"),
    "errors.storm-busy": Limit(
        10,
        "per second",
        "CONCURRENT_TRANSACTIONS: producers retry every 20 ms until the transaction completes",
    ),
    "leader.retries": Limit(
        3, "count", "one error should make a client refresh its metadata; two may be in flight"
    ),
    "leader.refresh": Limit(
        2 * SECOND, "ns", "clients refresh with a backoff of up to a second (retry.backoff.max.ms)"
    ),
    "rebalances.many": Limit(3, "count", "after it has formed, a group should hardly rebalance"),
    "rebalances.returns": Limit(
        2, "times", "that one client rejoined: a deployment restarts each client once"
    ),
    "rebalances.every": Limit(
        60 * SECOND, "ns", "on average; rarer joins and leaves do not stop a group"
    ),
    "rebalances.each": Limit(
        2,
        "times",
        "the members and one more: each joins once and leaves once in ordinary operation",
    ),
    "rebalances.back": Limit(
        30 * SECOND,
        "ns",
        "a client that exceeded max.poll.interval.ms rejoins by then; a deployment takes longer",
    ),
    "rebalances.slow": Limit(
        10 * SECOND, "ns", "members process nothing meanwhile (classic protocol, eager assignors)"
    ),
    "metadata.rate": Limit(
        1, "per second", "clients refresh every 5 minutes, and after errors with a backoff"
    ),
    "metadata.count": Limit(20, "count", "starting clients send a few"),
    "metadata.starting": Limit(
        3, "count", "each connection of a starting client may need this many; they do not count"
    ),
    "unknown-topic.count": Limit(
        5, "count", "a topic that is being created returns this error at first"
    ),
    "unknown-topic.spreading": Limit(
        5 * SECOND, "ns", "brokers learn of a new topic one after another"
    ),
    "outage.unseen": Limit(
        3,
        "count",
        "connection attempts to an address that accepts none; a port scan tries once or twice",
    ),
    "outage.unseen-span": Limit(
        5 * SECOND, "ns", "between the first and the last; a broker starts within seconds"
    ),
    "clock.ahead": Limit(
        600 * SECOND, "ns", "machines with NTP are milliseconds apart; windows allow minutes"
    ),
    "clock.alone": Limit(
        86_400 * SECOND, "ns", "without another client to compare with: no time zone is this far"
    ),
    "clock.behind": Limit(
        7 * 86_400 * SECOND, "ns", "log.retention.hours is 168: older records are deleted at once"
    ),
    "deleted.count": Limit(3, "count", "brokers that restart may not know a topic for a moment"),
    "deleted.span": Limit(
        2 * SECOND, "ns", "by then a broker has the metadata that the others have"
    ),
    "batches.least": Limit(200, "count", "with fewer batches there is no pattern"),
    "batches.busy": Limit(
        20, "count", "requests in a second; with fewer, a producer has only single records to send"
    ),
    "batches.right-after": Limit(
        4_000_000,
        "ns",
        "a producer that waits for a response sends the next request within this time",
    ),
    "batches.waiting": Limit(
        60,
        "percent",
        "of the requests of busy seconds; for healthy producers it is a third at most",
    ),
    "fetches.rate": Limit(
        50, "per second", "on one connection: a long poll is sent twice a second"
    ),
    "fetches.least": Limit(300, "count", "with fewer there is no pattern"),
    "fetches.empty": Limit(
        10, "percent", "records per fetch: with more there is something to fetch"
    ),
    "fetches.waits": Limit(
        100, "ms", "a client that allows less wants quick responses; the broker is not the cause"
    ),
    "fetches.early": Limit(
        10 * SECOND,
        "ns",
        "a broker that answers at once has followers that are behind; a restart takes less time",
    ),
    "commits.rate": Limit(
        10, "per second", "each is a write to a compacted, replicated topic; every 5 s is usual"
    ),
    "commits.least": Limit(100, "count", "with fewer there is no pattern"),
    "throttle.share": Limit(
        5, "percent", "of responses: a quota that limits the client, not one that it touches"
    ),
    "throttle.time": Limit(1_000, "ms", "a total below a second is not noticed"),
    "connections.short": Limit(
        20,
        "count",
        "health checks and tools open some; a client that needs more is created again and again",
    ),
    "connections.rate": Limit(
        30, "per minute", "each costs the broker a handshake, with TLS and SASL much more"
    ),
    "connections.span": Limit(
        30 * SECOND,
        "ns",
        "programs open many when they start; those that continue create one for each use",
    ),
    "connections.burst": Limit(100, "count", "this many are too many in a capture of any length"),
    "connections.asking": Limit(90, "percent", "of connections: only ApiVersions on them"),
    "connections.use": Limit(
        SECOND, "ns", "a connection that is made for one use is closed at once"
    ),
    "connections.while": Limit(
        5 * SECOND, "ns", "connections of a start are opened within a second or two, and stay open"
    ),
    "connections.few": Limit(
        4, "count", "requests of a connection on average: ApiVersions, Metadata and one use"
    ),
    "connections.life": Limit(10 * SECOND, "ns", "clients keep connections for minutes and hours"),
    "network.retransmissions": Limit(
        2, "percent", "of packets; healthy networks of data centers stay far below 0.1"
    ),
    "network.retransmissions-count": Limit(20, "count", "fewer are a coincidence"),
    "gaps.window": Limit(
        65_536, "bytes", "a sender has at most this much in flight without window scaling"
    ),
    "outage.before": Limit(
        10 * SECOND,
        "ns",
        "from the end of a broker's connections to the first refused connection attempt",
    ),
    "outage.short": Limit(
        15 * SECOND, "ns", "a broker restarts in seconds; users notice a longer wait"
    ),
    "sasl.several": Limit(
        3, "count", "connections that ended in the same way: one may be a coincidence"
    ),
    "drop.rest": Limit(
        2 * SECOND,
        "ns",
        "loss without inactivity before it is a lossy network, not a dropped idle connection",
    ),
    "drop.retransmissions": Limit(3, "count", "fewer may be a loss that TCP repairs"),
    "drop.span": Limit(2 * SECOND, "ns", "TCP retransmits after 0.2, 0.4, 0.8 ... s"),
    "reset.rest": Limit(
        20 * SECOND,
        "ns",
        "devices forget connections after minutes; a broker that stops resets busy ones as well",
    ),
    "reset.count": Limit(2, "count", "connections reset after a rest; one may have another reason"),
    "reset.single": Limit(
        200 * SECOND, "ns", "one connection is enough: Azure's load balancers forget after 240 s"
    ),
    "idle.rest": Limit(2 * SECOND, "ns", "connections.max.idle.ms is never set lower in practice"),
    "idle.same": Limit(SECOND // 2, "ns", "brokers check for idle connections periodically"),
    "idle.same-share": Limit(2, "percent", "of the idle time: long ones are measured less exactly"),
    "idle.default": Limit(10 * SECOND, "ns", "around connections.max.idle.ms, which is 10 minutes"),
    "idle.apart": Limit(
        SECOND,
        "ns",
        "between the first and the last: connections closed together belong to a broker that "
        "stopped, and a single one may have another reason",
    ),
    "consumer.silence": Limit(
        60 * SECOND, "ns", "a healthy consumer fetches at least every fetch.max.wait.ms"
    ),
    "lag.records": Limit(100, "count", "records of a partition; a poll takes up to 500"),
    "lag.span": Limit(5 * SECOND, "ns", "within less, a burst looks like a trend"),
    "lag.many": Limit(1_000, "count", "records count even within a shorter time"),
    "lag.time": Limit(
        3 * SECOND, "ns", "worth of reading: a consumer this far behind does not read new records"
    ),
    "lag.share": Limit(90, "percent", "of the written records are read; the rest accumulates"),
    "lag.points": Limit(4, "count", "positions over time that show a trend"),
    "lag.grown": Limit(
        2,
        "times",
        "the last third of the time compared with the first: a slowly growing lag may recover",
    ),
    "commits.none": Limit(
        60 * SECOND, "ns", "auto.commit.interval.ms is 5 s; manual commits are rarely less frequent"
    ),
    "commits.restart": Limit(SECOND // 2, "ns", "without a fetch: a restart takes longer"),
    "resets.soon": Limit(
        SECOND, "ns", "a consumer that resets its position fetches again within this time"
    ),
    "resets.polled": Limit(
        60 * SECOND, "ns", "applications rarely work this long between two polls"
    ),
    "stuck.time": Limit(
        10 * SECOND, "ns", "during which one offset is committed: two intervals of auto commit"
    ),
    "stuck.commits": Limit(3, "count", "of one offset while the log grows"),
    "stuck.leaves": Limit(
        2 * SECOND, "ns", "after a record: a consumer that fails on it does so at once, each time"
    ),
    "starved.fetches": Limit(
        3, "count", "responses without a record; a single one may be read beside the log's end"
    ),
    "starved.time": Limit(SECOND, "ns", "of these fetches; the log's end may move in between"),
    "fetchless.time": Limit(
        10 * SECOND, "ns", "a consumer fetches as soon as it knows where to start"
    ),
    "circles.offsets": Limit(
        4, "count", "that a reader went back to; a restart goes back to one offset"
    ),
    "circles.share": Limit(50, "percent", "of the offsets of its fetches were fetched again"),
    "codec.waits": Limit(
        2 * SECOND, "ns", "clients of these versions fetch more within this time, or never"
    ),
    "codec.slow": Limit(
        10 * SECOND, "ns", "others may support the codec, and take this long to process the records"
    ),
    "schemas.share": Limit(
        50,
        "percent",
        "of a topic's records with a schema: fewer may be numbers that look like schema ids",
    ),
    "share.deliveries": Limit(5, "count", "group.share.delivery.count.limit of brokers"),
    "share.again": Limit(
        10, "percent", "of the records of a share group; a few records fail now and then"
    ),
    "share.least": Limit(20, "count", "records; with fewer there is no pattern"),
    "consumer.lso": Limit(
        10 * SECOND, "ns", "transactions last milliseconds to seconds; this one is stuck or long"
    ),
    "transaction.open": Limit(60 * SECOND, "ns", "transaction.timeout.ms is 60 s by default"),
    "transaction.most": Limit(
        900 * SECOND, "ns", "transaction.max.timeout.ms: brokers do not allow more"
    ),
    "tls.at-once": Limit(
        SECOND, "ns", "proxies that wait for a whole ClientHello give up after some seconds"
    ),
    "tls.hello": Limit(
        5 * SECOND,
        "ns",
        "a ClientHello is answered within milliseconds; a busy broker takes longer",
    ),
    "skew.records": Limit(1_000, "count", "with fewer there is no distribution to judge"),
    "skew.batches": Limit(
        50,
        "count",
        "with fewer, most may be of one partition by chance: producers fill one after another",
    ),
    "skew.fuller": Limit(
        2,
        "times",
        "the size of those of other partitions: with keys, batch sizes differ as the shares do",
    ),
    "skew.times": Limit(3, "times", "the even share: one broker and consumer carry the rest"),
    "skew.partitions": Limit(3, "count", "of two partitions one often has more than the other"),
    "large.batch": Limit(
        900_000,
        "bytes",
        "message.max.bytes is 1,048,588 by default: a slightly larger one is refused",
    ),
    "partial.responses": Limit(
        2, "count", "a client that stops may close during one, and does not come back for it"
    ),
    "partial.size": Limit(100_000, "bytes", "the limits of clients are a megabyte and more"),
    "large.frame": Limit(
        100 * 1024 * 1024, "bytes", "socket.request.max.bytes: the broker closes the connection"
    ),
    "zookeeper.slow": Limit(
        SECOND, "ns", "ZooKeeper itself warns of log writes that take a second or more"
    ),
    "zookeeper.large": Limit(
        900_000, "bytes", "jute.maxbuffer is 1,048,575 by default: a slightly larger one is refused"
    ),
    "zookeeper.largest": Limit(
        1_048_575, "bytes", "jute.maxbuffer: a server closes the connection beyond it"
    ),
    "zookeeper.reconnects": Limit(
        5,
        "count",
        "a client that loses its server tries all other servers of the ensemble once",
    ),
    "zookeeper.reconnects-rate": Limit(
        2, "per minute", "a server restarts now and then; a loop continues"
    ),
    "zookeeper.settled": Limit(
        10 * SECOND, "ns", "four retries with two seconds between them, as consumers rebalance"
    ),
    "zookeeper.claims": Limit(4, "count", "rebalance.max.retries: the consumer gives up"),
    "outcome.after": Limit(
        2 * SECOND, "ns", "a client that leaves this soon after a final error left because of it"
    ),
    "outcome.still": Limit(
        2 * SECOND,
        "ns",
        "consumers fetch every half second (fetch.max.wait.ms), and send heartbeats",
    ),
    "outcome.silent": Limit(
        600 * SECOND, "ns", "connections.max.idle.ms: clients and brokers close idle connections"
    ),
}


def limit(name: str) -> int:
    """Return the value of a threshold."""
    return LIMITS[name].value
