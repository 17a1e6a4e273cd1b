"""Connections where one side speaks something else than Kafka: TLS, HTTP, SSH and others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.conversation.detect import is_other
from kafkascope.analyzer.conversation.undecided import HEADER_ALONE
from kafkascope.analyzer.findings.counting import OccurrencesWithText
from kafkascope.analyzer.findings.filters import all_of, among, connections_in, with_requests
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.tls_causes import failed_connections, plain_listeners
from kafkascope.analyzer.findings.view import (
    Counts,
    DetectorInput,
    Exchange,
    Finding,
    Row,
    client_key,
    ended_at,
)
from kafkascope.analyzer.findings.words import listed, plural, spelled
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.connections import KAFKA, ZOOKEEPER
from kafkascope.analyzer.statistics.model import Line
from kafkascope.captures.model import UNKNOWN_SERVER
from kafkascope.captures.signatures import HTTP, TLS

NO_REQUEST: Final = "not a Kafka request"
"""Kind of bytes without a signature."""
NAMELESS: Final = "bytes that are not a Kafka request"


class Foreign(NamedTuple):
    """A connection on which a client speaks something else."""

    number: Any
    kind: str
    broker: str
    first: tuple[int, int | None] | None
    """(time, number of its row)"""


class OtherProtocols(Counts):
    """Opaque connections, and servers that answer Kafka with something else."""

    odd = OccurrencesWithText.table(LIMITS.many_keys, unranked=1)
    """By connection."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        if row.state != "opaque" or exchange.request is None or not is_other(row.reason):
            return
        connection = exchange.connection
        kind = row.reason.partition(",")[0].partition(":")[0]
        ends = host_of(row.client_address), row.broker_address
        self.odd[(connection.number, connection.first_ns, kind)].see(row, words=ends)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        yield from self._clients(view, {line["connection"]: line for line in view.lines})
        yield from _servers(view)
        yield from _headers(view)

    # --- clients that speak something else

    def _clients(self, view: DetectorInput, lines: dict[Any, Line]) -> Iterator[Finding]:
        found: dict[tuple[str, str], list[Foreign]] = defaultdict(list)
        failed = failed_connections(view)
        end_ns = max(map(ended_at, lines.values()), default=0)
        seen = {number for (number, _, _), _ in self.odd.items()}
        for (number, _, kind), odd in self.odd.items():
            name = _rule_of(kind, lines.get(number, {}), end_ns)
            if name is not None and number not in failed:
                for host, broker in odd.words:
                    found[name, host].append(Foreign(number, kind, broker, odd.first))
        for number, line in lines.items():
            name, broker = _rule_of(line["protocol"], line, end_ns), line["broker_address"]
            # On a port that turned out to be Kafka's later than this connection came.
            if number not in seen and name is not None and broker in _brokers(view):
                at = None if line["opened"] is None else (line["opened"], None)
                host = host_of(line["client_address"])
                found[name, host].append(Foreign(number, line["protocol"], broker, at))
        for (name, host), foreign in sorted(found.items()):
            named = any(lines.get(each.number, {}).get("sni") for each in foreign)
            yield self._client(view, name, host, foreign, seen, named=named)

    def _client(
        self,
        view: DetectorInput,
        name: str,
        host: str,
        found: list[Foreign],
        rows: set[Any],
        *,
        named: bool,
    ) -> Finding:
        """`rows`: connections that have one; `named`: a ClientHello names its server."""
        numbers = [each.number for each in found]
        what = plural(len(numbers), "connection")
        brokers = sorted({each.broker for each in found})
        broker = listed(brokers)
        kinds = sorted(
            {NAMELESS if each.kind == NO_REQUEST else each.kind for each in found},
            key=lambda kind: (kind == NAMELESS, kind),
        )
        tls = name == "tls-to-plain" and not named
        unsure = tls and not plain_listeners(view).issuperset(brokers)
        unnamed = " without a server name (SNI)" if unsure else ""
        text = {
            "tls-to-plain": f"{host} sent a TLS ClientHello{unnamed} to {broker} on {what} "
            "and got no answer",
            "http-to-kafka": f"{host} sent HTTP to {broker} on {what}",
            "not-kafka": f"{host} sent {listed(kinds, LIMITS.protocols)} to {broker} on {what}",
            "served": f"{host} and {broker} exchanged {listed(kinds, LIMITS.protocols)} on {what}",
        }[name]
        times = [each.first[0] for each in found if each.first]
        with_rows = [number for number in numbers if number in rows][: LIMITS.connections]
        return view.finding(
            "not-kafka" if name == "served" else name,
            text,
            all_of("opaque", among("conn", with_rows)) if with_rows else "",
            count=len(numbers),
            span=(min(times, default=None), max(times, default=None)),
            number=next((each.first[1] for each in found if each.first and each.first[1]), None),
            case="served" if name == "served" else "no-server-name" if unsure else "",
            about={"host": host, "broker": brokers[: LIMITS.connections]},
            connects="" if with_rows else among("conn", numbers[: LIMITS.connections]),
        )


# --- servers that speak something else


def _servers(view: DetectorInput) -> Iterator[Finding]:
    spoken = [line for line in view.lines if line["server_protocol"]]
    found = by_key(
        (
            (line["server_protocol"].partition(":")[0], client_key(line), line["broker_address"]),
            line,
        )
        for line in spoken
        if line["protocol"] == KAFKA
    )
    # Of a server that greets, connections may end before their client says anything.
    greeted = by_key(
        ((host_of(line["client_address"]), line["broker_address"]), line)
        for line in spoken
        if line["protocol"] != KAFKA and not line["client_bytes"]
    )
    for (protocol, key, broker), seen in sorted(found.items()):
        seen += greeted.get((key[1], broker), [])
        client, what = view.client(*key), plural(len(seen), "connection")
        words = sorted({line["server_protocol"].partition(": ")[2] for line in seen} - {""})
        said = f" ({spelled(words[0])})" if words else ""
        name, case = "server-not-kafka", "http" if protocol.startswith(HTTP) else ""
        text = (
            f"{broker} speaks {protocol}, not Kafka: it answered requests of {client} with "
            f"{protocol}{said} on {what}"
        )
        if protocol == TLS:
            name, case = "plain-to-tls", ""
            how = f"a TLS{said.replace('(', '').replace(')', '')}" if said else "TLS"
            text = f"{broker} answered plaintext requests of {client} with {how} on {what}"
        elif protocol == UNKNOWN_SERVER:
            case = "unknown"
            text = (
                f"{broker} does not speak Kafka: it answered requests of {client} on {what} with "
                f"{seen[0]['broker_bytes']} bytes that are not a Kafka response"
            )
        where = connections_in(with_requests(seen), LIMITS.connections)
        entity = {"client": client} if key[0] or where else {}
        yield view.finding(
            name,
            text,
            all_of(where, "lost") if where else "",
            lines=seen,
            case=case,
            about={**(entity or {"host": key[1]}), "broker": broker, "host": key[1]},
            connects="" if where else connections_in(seen, LIMITS.connections),
        )


# --- headers of load balancers


def _headers(view: DetectorInput) -> Iterator[Finding]:
    """Yield brokers that close connections at a PROXY protocol header, or wait for the rest of what
    they take for a request, and accept it on no connection; brokers that accept headers, and end
    each connection that has none."""
    every = [line for line in view.lines if line["proxy_header"]]
    accepting = {line["broker_address"] for line in every if line["broker_bytes"]}
    end_ns = max(map(ended_at, every), default=0)
    refusing = by_key((line["broker_address"], line) for line in every if unanswered(line, end_ns))
    for broker, seen in sorted(refusing.items()):
        if broker in accepting:
            continue
        evidence = connections_in(with_requests(seen), LIMITS.connections)
        hosts = sorted({host_of(line["via"] or line["client_address"]) for line in seen})
        versions = " and ".join(sorted({f"v{line['proxy_header']}" for line in seen}))
        closed = all(line["end"].startswith("broker") for line in seen)
        begin = "begins" if len(seen) == 1 else "begin"
        clients = view.clients_at(line for line in seen if line["client_id"])
        yield view.finding(
            "proxy-protocol",
            f"{broker} {'closed' if closed else 'did not respond on'} "
            f"{plural(len(seen), 'connection')} from {listed(hosts)} that "
            f"{begin} with a PROXY protocol header ({versions}), which it does not accept",
            evidence,
            lines=seen,
            about={
                "client": clients[: LIMITS.connections],
                "broker": broker,
                "host": hosts[: LIMITS.connections],
            },
            connects="" if evidence else connections_in(seen, LIMITS.connections),
        )
    bare = [
        line
        for line in view.lines
        if line["broker_address"] in accepting and not line["proxy_header"] and line["requests"]
    ]
    accepting -= {line["broker_address"] for line in bare if line["broker_bytes"]}
    ended = by_key(
        ((client_key(line), line["broker_address"]), line)
        for line in bare
        if line["broker_address"] in accepting and line["end"].startswith("broker")
    )
    for (key, broker), seen in sorted(ended.items()):
        client = view.client(*key)
        yield view.finding(
            "proxy-protocol",
            f"{broker} closed {plural(len(seen), 'connection')} from {client} without a PROXY "
            "protocol header, which it requires: all connections that it answered begin with "
            "one",
            all_of(connections_in(seen, LIMITS.connections), "lost"),
            lines=seen,
            case="missing",
            about={"client": client, "broker": broker, "host": key[1]},
        )


@DetectorInput.once
def _brokers(view: DetectorInput) -> set[str]:
    """Return the addresses that Kafka was spoken with, and that answered nothing else."""
    return {
        line["broker_address"]
        for line in view.lines
        if line["protocol"] == KAFKA and not line["server_protocol"]
    }


def unanswered(line: Line, end_ns: int) -> bool:
    """Return whether the broker sent nothing after a TLS hello. A broker without TLS closes the
    connection or waits for the rest of what it takes for a request; one with TLS may be slow to
    answer. `end_ns`: the last packet of the capture."""
    closed = line.get("end", "").startswith("broker")
    waited = end_ns - (line.get("opened") or end_ns) >= limit("tls.hello")
    return not line.get("broker_bytes") and (closed or waited)


def _rule_of(kind: str, line: Line, end_ns: int) -> str | None:
    """Return the rule for a connection without Kafka, or `served` where both sides speak the same;
    None for TLS that cannot be read, which has its own detector, and for Kafka. `end_ns`: the last
    packet of the capture."""
    if kind in ("", KAFKA, ZOOKEEPER, HEADER_ALONE) or (
        line.get("proxy_header") and not line.get("broker_bytes")
    ):
        return None
    if kind.startswith(TLS):
        return "tls-to-plain" if unanswered(line, end_ns) else None
    if (line.get("server_protocol") or "").partition(":")[0] == kind:
        return "served"
    return "http-to-kafka" if kind == HTTP else "not-kafka"
