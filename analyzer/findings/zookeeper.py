"""Requests to ZooKeeper that are slow, too large, not allowed, not known, or lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafkascope.analyzer.findings.counting import OccurrencesWithText, most
from kafkascope.analyzer.findings.filters import all_of, api_is, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural, size
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.model import Severity
from kafkascope.dissectors.zookeeper.types import BASE, CLOSE, CONNECT, PING, error_name

UNIMPLEMENTED: Final = -6
DENIED: Final = frozenset({-102, -115, -124})
"""NOAUTH, AUTHFAILED, SESSIONCLOSEDREQUIRESASLAUTH."""
BROKEN: Final = frozenset({-1, -2, -3, -4, -5, -7, -12, -118, -119, -122, -125, -127})
"""Errors that are not part of how clients work with nodes."""
# Bytes of the size in front of a frame, which the limit of the server leaves out.
PREFIX: Final = 4


class ZooKeeperTrouble(OccurrencesWithText):
    """Requests that had the same trouble."""

    worst: int | None = most()
    """Nanoseconds, or bytes."""


class ZooKeeperRequests(Counts):
    """By host, server, API and error."""

    found = ZooKeeperTrouble.table(LIMITS.many_keys)
    """By rule, host, server, API and error."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
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
        trouble.see(row, worst=worst)
        if row.zookeeper is not None and row.zookeeper.path:
            trouble.words.add(row.zookeeper.path)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (name, host, server, api, code), trouble in self.found.items():
            what = plural(trouble.count, f"{api} request")
            places = f" ({listed(trouble.words)})" if len(trouble.words) else ""
            worst = trouble.worst or 0
            mine = all_of(f"client.ip == {host}", api_is(api), f"broker == {quoted(str(server))}")
            error = error_name(code)
            about = {"client": str(host), "broker": str(server), **view.ensemble_at(str(server))}
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
                about["error"] = error
            yield view.finding(
                str(name),
                text,
                all_of(mine, where),
                trouble,
                severity=severity,
                about={**about, "api": str(api)},
            )


def _matters(row: Row) -> bool:
    """Return whether a request without an answer was lost by the server's doing. A client that
    closes needs no answer; pings are no work; a handshake that fails is an attempt to connect."""
    kind = (row.api_key or 0) - BASE
    return kind not in (CLOSE, PING, CONNECT) and not row.reason.endswith("by the client")
