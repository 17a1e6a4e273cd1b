"""Requests to ZooKeeper that are slow, too large, not allowed, not known, or lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import (
    Detector,
    Exchange,
    Finding,
    Row,
    Rule,
    Worded,
)
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import (
    View,
    all_of,
    api_is,
    duration,
    ensemble_at,
    listed,
    plural,
    size,
)
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, most
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.dissectors.zookeeper.types import BASE, CLOSE, CONNECT, PING, TYPES, error_name

UNIMPLEMENTED: Final = -6
DENIED: Final = frozenset({-102, -115, -124})
"""NOAUTH, AUTHFAILED, SESSIONCLOSEDREQUIRESASLAUTH."""
BROKEN: Final = frozenset({-1, -2, -3, -4, -5, -7, -12, -118, -119, -122, -125, -127})
"""Errors that are not part of how clients work with nodes."""
PREFIX: Final = 4
"""Bytes of the size in front of a frame, which the limit of the server leaves out."""
UNKNOWN: Final = BASE + (1 << 15)
"""Key of all types beyond int16."""


@measured
class ZooKeeperTrouble(Worded):
    """Requests that had the same trouble."""

    worst: int | None = most()
    """Nanoseconds, or bytes."""


class ZooKeeperRequests(Detector):
    """By host, server, API and error."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "zookeeper-slow",
            "warning",
            "slow ZooKeeper responses",
            "Give ZooKeeper's transaction log a disk of its own, and check for JVM pauses. Writes "
            "wait for the disks of a majority (its log says `fsync-ing the write ahead log ... "
            "took`). Sessions expire when responses take longer than their timeout.",
            limits=("zookeeper.slow",),
            brief="{n} slow ZooKeeper response|{n} slow ZooKeeper responses",
        ),
        Rule(
            "zookeeper-large",
            "note",
            "ZooKeeper frames close to jute.maxbuffer",
            "Raise jute.maxbuffer (1 MB by default, for requests and responses) on all servers "
            "and brokers. Many topics or partitions below one node, or a large reassignment, need "
            "it. The server closes the connection at each larger frame.",
            limits=("zookeeper.large", "zookeeper.largest"),
            brief="{n} large ZooKeeper frame|{n} large ZooKeeper frames",
        ),
        Rule(
            "zookeeper-denied",
            "warning",
            "requests that ZooKeeper denied",
            "Compare the ACL of the node (`getAcl` in zookeeper-shell) with the identity of the "
            "client. With zookeeper.set.acl=true all brokers need the same SASL or TLS identity.",
            brief="{n} request that ZooKeeper denied|{n} requests that ZooKeeper denied",
        ),
        Rule(
            "zookeeper-unknown-request",
            "warning",
            "requests that the ZooKeeper server does not support",
            "Upgrade the server, or enable the feature there (TTL nodes, reconfig): the client is "
            "newer than the server. A server closes the connection at an unknown request type, "
            "and the requests after it get no response.",
            brief="{n} request unknown to ZooKeeper|{n} requests unknown to ZooKeeper",
        ),
        Rule(
            "zookeeper-error",
            "note",
            "unexpected ZooKeeper errors",
            "Check the server's log: it could not serve the request. Routine errors (existing or "
            "missing nodes, version conflicts) are not reported.",
            brief="{n} ZooKeeper error|{n} ZooKeeper errors",
        ),
        Rule(
            "zookeeper-unanswered",
            "warning",
            "ZooKeeper requests without a response",
            "Check the log of that server at that time: a restart, a lost majority, or an expired "
            "session. The client does not know whether a write was done, and has to check.",
            brief="{n} request without response|{n} requests without response",
        ),
    )
    KEYS = frozenset(each.key for each in TYPES.values()) | {UNKNOWN}
    ODD = True
    KAFKA_ONLY = False

    found: Keyed[ZooKeeperTrouble] = table(ZooKeeperTrouble, 5_000)
    """By rule, host, server, API and error."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of what went wrong."""
        if row.zookeeper is None or row.state == "event":
            return
        code = next((error.code for error in row.errors), 0)
        if code in DENIED:
            self._see("zookeeper-denied", row, code)
        elif code == UNIMPLEMENTED:
            self._see("zookeeper-unknown-request", row, code)
        elif code in BROKEN:
            self._see("zookeeper-error", row, code)
        latency = row.latency_ns or 0
        if latency >= limit("zookeeper.slow"):
            self._see("zookeeper-slow", row, 0, latency)
        largest = max(row.request_bytes or 0, row.response_bytes or 0)
        if largest >= limit("zookeeper.large"):
            self._see("zookeeper-large", row, 0, largest)
        elif row.state == "lost" and _matters(row):
            self._see("zookeeper-unanswered", row, 0)

    def _see(self, rule: str, row: Row, code: int, worst: int = 0) -> None:
        host = host_of(row.client_address)
        trouble = self.found[(rule, host, row.broker_address, row.api, code)]
        trouble.see(row)
        trouble.take(worst=worst)
        if row.zookeeper is not None and row.zookeeper.path:
            trouble.words.add(row.zookeeper.path)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client, server and API."""
        for (name, host, server, api, code), trouble in self.found.items():
            what = plural(trouble.count, f"{api} request")
            places = f" ({listed(trouble.words)})" if len(trouble.words) else ""
            worst = trouble.worst or 0
            mine = all_of(f"client.ip == {host}", api_is(api), f"broker == {quoted(str(server))}")
            error = error_name(code)
            about = [("client", str(host)), ("broker", str(server))]
            about += ensemble_at(str(server), view)
            severity: Severity | None = None
            where = f"error == {code}"
            if name == "zookeeper-slow":
                upto = "up to " if trouble.count > 1 else ""
                text = f"{what} from {host} to {server} took {upto}{duration(worst)}{places}"
                where = f"latency >= {limit('zookeeper.slow') // 1_000_000}ms"
            elif name == "zookeeper-large":
                beyond = worst - PREFIX > limit("zookeeper.largest")
                severity = "error" if beyond else None
                text = (
                    f"{what} from {host} to {server} carried up to {size(worst)} in request or "
                    f"response{places}: {'above' if beyond else 'close to'} the default of "
                    "jute.maxbuffer"
                )
                least = limit("zookeeper.large")
                where = f"(request.bytes >= {least} or response.bytes >= {least})"
            elif name == "zookeeper-unanswered":
                text = (
                    f"{what} from {host} to {server} got no response: the server closed the "
                    f"connection{places}"
                )
                where = "lost"
            elif name == "zookeeper-unknown-request":
                text = f"{server} does not support {what} from {host}{places}: {error}"
            else:
                text = f"{what} from {host} to {server} failed with {error}{places}"
            if name in ("zookeeper-denied", "zookeeper-error", "zookeeper-unknown-request"):
                about.append(("error", error))
            yield view.finding(
                self.rule(str(name)),
                text,
                all_of(mine, where),
                trouble,
                severity=severity,
                about=[*about, ("api", str(api))],
            )


def _matters(row: Row) -> bool:
    """Return whether a request without an answer was lost by the server's doing. Who wanted to
    close has what it wanted; pings are no work; a handshake that fails is an attempt to connect."""
    kind = (row.api_key or 0) - BASE
    return kind not in (CLOSE, PING, CONNECT) and not row.reason.endswith("by the client")
