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
        SECOND, "ns", "most requests take milliseconds; a second beyond what was asked is felt"
    ),
    "slow.count": Limit(3, "count", "one slow answer may be a pause of the broker's JVM"),
    "pause.flood": Limit(
        SECOND // 4, "ns", "what had waited for a broker is answered within this behind its pause"
    ),
    "pause.flood-share": Limit(
        10, "percent", "of the pause: after a long one more has to be answered"
    ),
    "network.far": Limit(SECOND // 50, "ns", "a TCP handshake of so long leads to another site"),
    "lost.age": Limit(
        SECOND, "ns", "who closes sooner with a request in flight was stopped, and did not give up"
    ),
    "open.age": Limit(
        30 * SECOND, "ns", "request.timeout.ms of Java clients: a client would give up by now"
    ),
    "errors.storm": Limit(20, "count", "an error that comes so often is not being recovered from"),
    "errors.storm-rate": Limit(1, "per second", "retries back off; storms do not"),
    "errors.storm-busy": Limit(
        10, "per second", "CONCURRENT_TRANSACTIONS: producers ask every 20 ms, then it is over"
    ),
    "leader.retries": Limit(
        3, "count", "one error should make a client ask for metadata; two may be in flight"
    ),
    "leader.refresh": Limit(
        2 * SECOND, "ns", "clients refresh with a backoff of up to a second (retry.backoff.max.ms)"
    ),
    "rebalances.many": Limit(3, "count", "apart from its forming, a group should hardly rebalance"),
    "rebalances.returns": Limit(
        2, "times", "that one client came back: a deployment restarts each once"
    ),
    "rebalances.every": Limit(
        60 * SECOND, "ns", "on average; members that come and go more rarely do not stop a group"
    ),
    "rebalances.each": Limit(
        2, "times", "the members and one more: each comes once and goes once on any day"
    ),
    "rebalances.back": Limit(
        30 * SECOND, "ns", "a client that did not poll is back by then; a deployment takes longer"
    ),
    "rebalances.slow": Limit(
        10 * SECOND, "ns", "members stand still meanwhile (classic protocol, eager assignors)"
    ),
    "metadata.rate": Limit(
        1, "per second", "clients refresh every 5 minutes, and after errors with a backoff"
    ),
    "metadata.count": Limit(20, "count", "starting clients ask a few times"),
    "metadata.starting": Limit(
        3, "count", "each connection of a starting client may need so many; they do not count"
    ),
    "unknown-topic.count": Limit(5, "count", "a topic that is being created answers so at first"),
    "unknown-topic.spreading": Limit(
        5 * SECOND, "ns", "brokers hear of a new topic one after the other"
    ),
    "outage.unseen": Limit(
        3, "count", "connects to an address that took none; a scan of ports tries once or twice"
    ),
    "outage.unseen-span": Limit(
        5 * SECOND, "ns", "between the first and the last; a broker starts within seconds"
    ),
    "clock.ahead": Limit(
        600 * SECOND, "ns", "machines with NTP are milliseconds apart; windows allow minutes"
    ),
    "deleted.count": Limit(3, "count", "brokers that restart may not know a topic for a moment"),
    "deleted.span": Limit(2 * SECOND, "ns", "by then a broker has learnt what the others know"),
    "batches.least": Limit(200, "count", "fewer batches say nothing about a habit"),
    "batches.busy": Limit(
        20, "count", "requests in a second; below, single records are all that there is to send"
    ),
    "batches.right-after": Limit(
        4_000_000, "ns", "who waits for a response sends the next request so soon after it"
    ),
    "batches.waiting": Limit(
        60, "percent", "of the requests of busy seconds; of healthy producers it is a third at most"
    ),
    "fetches.rate": Limit(50, "per second", "on one connection: a long poll asks twice a second"),
    "fetches.least": Limit(300, "count", "fewer say nothing about a habit"),
    "fetches.empty": Limit(
        10, "percent", "records for each fetch: with more of them there is something to fetch"
    ),
    "fetches.waits": Limit(
        100, "ms", "who allows less wants quick answers: then it is not the broker that hurries"
    ),
    "fetches.early": Limit(
        10 * SECOND,
        "ns",
        "a broker that answers at once has followers that are behind: they restart within less",
    ),
    "commits.rate": Limit(
        10, "per second", "each is a write to a compacted, replicated topic; every 5 s is usual"
    ),
    "commits.least": Limit(100, "count", "fewer say nothing about a habit"),
    "throttle.share": Limit(5, "percent", "of answers: a quota that binds, not one that is met"),
    "throttle.time": Limit(1_000, "ms", "below a second in all nobody notices"),
    "connections.short": Limit(
        20, "count", "health checks and tools open some; a client that needs so many starts anew"
    ),
    "connections.rate": Limit(
        30, "per minute", "each costs the broker a handshake, with TLS and SASL much more"
    ),
    "connections.span": Limit(
        30 * SECOND,
        "ns",
        "programs open many when they start; those that go on make one for each use",
    ),
    "connections.burst": Limit(100, "count", "so many are too many however short the capture is"),
    "connections.asking": Limit(90, "percent", "of connections: nothing but ApiVersions on them"),
    "connections.use": Limit(SECOND, "ns", "a connection that is made for one use is gone at once"),
    "connections.while": Limit(
        5 * SECOND, "ns", "those of a start come within a second or two, and stay"
    ),
    "connections.few": Limit(
        4, "count", "requests of a connection on average: ApiVersions, Metadata and one use"
    ),
    "connections.life": Limit(10 * SECOND, "ns", "clients keep connections for minutes and hours"),
    "network.retransmissions": Limit(
        2, "percent", "of packets; healthy networks of data centers stay far below 0.1"
    ),
    "network.retransmissions-count": Limit(20, "count", "fewer are an accident"),
    "gaps.window": Limit(
        65_536, "bytes", "so much a sender has under way without window scaling, and usually less"
    ),
    "outage.before": Limit(
        10 * SECOND, "ns", "from the end of a broker's connections to the first refused connect"
    ),
    "outage.short": Limit(
        15 * SECOND, "ns", "a broker restarts in seconds; clients that wait longer are felt"
    ),
    "sasl.several": Limit(3, "count", "connections that ended alike: one may be an accident"),
    "drop.rest": Limit(
        2 * SECOND,
        "ns",
        "what is sent at once and lost is a lossy network, not a forgotten idle one",
    ),
    "drop.retransmissions": Limit(3, "count", "fewer may be a loss that is mended"),
    "drop.span": Limit(2 * SECOND, "ns", "TCP sends again after 0.2, 0.4, 0.8 ... s"),
    "idle.rest": Limit(2 * SECOND, "ns", "nobody sets connections.max.idle.ms lower"),
    "idle.same": Limit(SECOND // 2, "ns", "brokers look for idle connections now and then"),
    "idle.same-share": Limit(2, "percent", "of the rest: long ones are measured less exactly"),
    "idle.default": Limit(10 * SECOND, "ns", "around connections.max.idle.ms, which is 10 minutes"),
    "idle.apart": Limit(
        SECOND,
        "ns",
        "between the first and the last: those closed together were of a broker that "
        "stopped, and a single one may have had another reason",
    ),
    "consumer.silence": Limit(
        60 * SECOND, "ns", "a consumer fetches at least every fetch.max.wait.ms while it is well"
    ),
    "lag.records": Limit(100, "count", "records of a partition; a poll takes up to 500"),
    "lag.span": Limit(5 * SECOND, "ns", "within less, a burst looks like a trend"),
    "lag.many": Limit(1_000, "count", "records are told even within a shorter time"),
    "lag.time": Limit(
        3 * SECOND, "ns", "of reading wait: who is that far behind does not read what is new"
    ),
    "lag.share": Limit(90, "percent", "of what is written is read; the rest piles up"),
    "lag.points": Limit(4, "count", "positions over time that show a trend"),
    "lag.grown": Limit(
        2, "times", "the last third of the time next to the first: a lag that grows slowly may pass"
    ),
    "commits.none": Limit(
        60 * SECOND, "ns", "auto.commit.interval.ms is 5 s; those who commit by hand rarely exceed"
    ),
    "commits.restart": Limit(
        SECOND // 2, "ns", "without a fetch: a program that starts again needs longer"
    ),
    "resets.soon": Limit(SECOND, "ns", "who resets its position reads on within this"),
    "resets.polled": Limit(
        60 * SECOND, "ns", "one whose application works so long between two polls is rare"
    ),
    "stuck.time": Limit(
        10 * SECOND, "ns", "over which one offset is committed: two intervals of auto commit"
    ),
    "stuck.commits": Limit(3, "count", "of one offset while the log grows behind it"),
    "stuck.leaves": Limit(
        2 * SECOND, "ns", "after a record: who fails on it does so at once, again and again"
    ),
    "codec.waits": Limit(
        2 * SECOND, "ns", "clients of these versions ask for more before this, or never"
    ),
    "codec.slow": Limit(
        10 * SECOND, "ns", "others may know the codec, and take so long with what they got"
    ),
    "schemas.share": Limit(
        50, "percent", "of a topic's records with a schema: fewer may be numbers that look like ids"
    ),
    "share.deliveries": Limit(5, "count", "group.share.delivery.count.limit of brokers"),
    "share.again": Limit(
        10, "percent", "of what a share group gets; a few records fail now and then"
    ),
    "share.least": Limit(20, "count", "records; fewer say nothing about a habit"),
    "consumer.lso": Limit(
        10 * SECOND, "ns", "transactions last milliseconds to seconds; this one is stuck or long"
    ),
    "transaction.open": Limit(60 * SECOND, "ns", "transaction.timeout.ms is 60 s by default"),
    "transaction.most": Limit(
        900 * SECOND, "ns", "transaction.max.timeout.ms: brokers do not let producers ask for more"
    ),
    "tls.hello": Limit(
        5 * SECOND, "ns", "a hello is answered within milliseconds; a busy broker takes longer"
    ),
    "skew.records": Limit(1_000, "count", "fewer say nothing about a distribution"),
    "skew.batches": Limit(
        50,
        "count",
        "of fewer, most may be of one partition by chance: producers fill one after the other",
    ),
    "skew.fuller": Limit(
        2, "times", "those of other partitions: with keys, batches of one time differ like shares"
    ),
    "skew.times": Limit(3, "times", "the even share: one broker and consumer carry the rest"),
    "skew.partitions": Limit(3, "count", "of two partitions one has often more than the other"),
    "large.batch": Limit(
        900_000, "bytes", "message.max.bytes is 1,048,588 by default: the next one may be refused"
    ),
    "large.frame": Limit(
        100 * 1024 * 1024, "bytes", "socket.request.max.bytes: the broker closes the connection"
    ),
    "zookeeper.slow": Limit(
        SECOND, "ns", "ZooKeeper itself warns of writes to its log of a second and more"
    ),
    "zookeeper.large": Limit(
        900_000, "bytes", "jute.maxbuffer is 1,048,575 by default: the next one may be too large"
    ),
    "zookeeper.largest": Limit(
        1_048_575, "bytes", "jute.maxbuffer: a server closes the connection beyond it"
    ),
    "zookeeper.reconnects": Limit(
        5,
        "count",
        "a client that loses its server tries all others of an ensemble once",
    ),
    "zookeeper.reconnects-rate": Limit(
        2, "per minute", "now and then a server restarts; a loop goes on"
    ),
    "zookeeper.settled": Limit(
        10 * SECOND, "ns", "four retries with two seconds between them, as consumers rebalance"
    ),
    "zookeeper.claims": Limit(4, "count", "rebalance.max.retries: the consumer gives up"),
    "outcome.after": Limit(
        2 * SECOND, "ns", "who leaves this soon after an error that is no retry left because of it"
    ),
    "outcome.still": Limit(
        2 * SECOND, "ns", "consumers fetch each half a second (fetch.max.wait.ms), and heartbeat"
    ),
    "outcome.silent": Limit(
        600 * SECOND, "ns", "connections.max.idle.ms: clients and brokers close idle connections"
    ),
}


def limit(name: str) -> int:
    """Return the value of a threshold."""
    return LIMITS[name].value
