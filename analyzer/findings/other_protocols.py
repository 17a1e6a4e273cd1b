"""Connections where one side speaks something else than Kafka: TLS, HTTP, SSH and others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final, NamedTuple

from kafkascope.analyzer.conversation.detect import is_other
from kafkascope.analyzer.conversation.undecided import HEADER_ALONE
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Worded
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.tls import failed_connections, plain_listeners
from kafkascope.analyzer.findings.view import View, all_of, among, ended_at, listed, once, plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.connections import KAFKA, ZOOKEEPER
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled
from kafkascope.captures.model import UNKNOWN_SERVER
from kafkascope.captures.signatures import HTTP, TLS

MOST_NAMED: Final = 50
"""Connections, and brokers of a finding."""
MOST_KINDS: Final = 8
NO_REQUEST: Final = "not a Kafka request"
"""Kind of bytes without a signature."""
NAMELESS: Final = "bytes that are not a Kafka request"
OF_HTTP: Final = (
    "Set bootstrap.servers (or advertised.listeners, if a broker advertised this address) to the "
    "host and port of a Kafka listener. If the address is right, an HTTP load balancer, ingress or "
    "proxy is in front of the broker: configure a TCP (layer 4) listener there."
)
NO_SERVER_NAME: Final = (
    "Use the port of the SSL or SASL_SSL listener, or set security.protocol=PLAINTEXT "
    "(SASL_PLAINTEXT) if this one is plaintext. If a router forwards by server name (SNI), connect "
    "to a host name in place of an address (bootstrap.servers, advertised.listeners)."
)
OF_UNKNOWN: Final = (
    "Identify the server at this address: its first bytes match no known protocol. Set "
    "bootstrap.servers (or advertised.listeners, if a broker advertised this address) to the host "
    "and port of a Kafka listener."
)
MISSING: Final = (
    "Connect through the load balancer that sends the header, or turn the PROXY protocol on there "
    "(HAProxy: send-proxy-v2; nginx: proxy_protocol on; AWS NLB: proxy_protocol_v2.enabled=true)."
)
SERVED: Final = (
    "No action is needed if this server is not a Kafka broker. Otherwise set bootstrap.servers and "
    "advertised.listeners to the host and port of a Kafka listener."
)


class Foreign(NamedTuple):
    """A connection on which a client speaks something else."""

    number: Any
    kind: str
    broker: str
    first: tuple[int, int | None] | None
    """(time, number of its row)"""


class OtherProtocols(Detector):
    """Opaque connections, and servers that answer Kafka with something else."""

    TOUCHABLE = False
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "tls-to-plain",
            "error",
            "TLS sent to a plaintext listener",
            "Use the port of the SSL or SASL_SSL listener, or set security.protocol=PLAINTEXT "
            "(SASL_PLAINTEXT) for this one.",
            limits=("tls.hello",),
        ),
        Rule(
            "plain-to-tls",
            "error",
            "plaintext sent to a TLS listener",
            "Set security.protocol=SSL (or SASL_SSL), or use the port of a plaintext listener.",
        ),
        Rule(
            "server-not-kafka",
            "error",
            "server that does not speak Kafka",
            "Set bootstrap.servers (or advertised.listeners, if a broker advertised this address) "
            "to the host and port of a Kafka listener: another server listens at this address.",
        ),
        Rule(
            "http-to-kafka",
            "error",
            "HTTP sent to a Kafka port",
            "Point the health check, browser or scraper to another port. A broker reads the first "
            'four bytes as a length ("GET " is 1195725856) and closes the connection.',
        ),
        Rule(
            "not-kafka",
            "note",
            "another protocol on a Kafka port",
            "Identify the sender: a scanner, a health check, a client of another service.",
            brief="{n} connection with another protocol|{n} connections with another protocol",
        ),
        Rule(
            "proxy-protocol",
            "error",
            "broker that does not accept a PROXY protocol header",
            "Configure the load balancer without the PROXY protocol (HAProxy: remove "
            "send-proxy and send-proxy-v2; nginx: proxy_protocol off; AWS NLB: "
            "proxy_protocol_v2.enabled=false). "
            "Apache Kafka reads the header as the size of a request and closes the connection.",
            limits=("tls.hello",),
        ),
    )
    ODD = True

    odd: Keyed[Worded] = table(Worded, 5_000, unranked=1)
    """By connection."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of connections without Kafka in them."""
        if row.state != "opaque" or exchange.request is None or not is_other(row.reason):
            return
        connection = exchange.connection
        kind = row.reason.partition(",")[0].partition(":")[0]
        odd = self.odd[(connection.number, connection.first_ns, kind)]
        odd.see(row)
        odd.words.add((host_of(row.client_address), row.broker_address))

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client and broker."""
        lines = {line["connection"]: line for line in view.lines()}
        yield from self._clients(view, lines)
        yield from self._servers(view, lines.values())
        yield from self._headers(view, lines.values())

    # --- clients that speak something else

    def _clients(self, view: View, lines: dict[Any, Line]) -> Iterator[Finding]:
        found: dict[tuple[str, str], list[Foreign]] = defaultdict(list)
        failed = failed_connections(view)
        end_ns = max((ended_at(line) for line in lines.values()), default=0)
        seen: set[Any] = set()
        for (number, _, kind), odd in self.odd.items():
            seen.add(number)
            line = lines.get(number, {})
            name = _rule_of(str(kind), line, end_ns)
            if name is None or number in failed:
                continue
            for host, broker in odd.words:
                found[name, host].append(Foreign(number, str(kind), broker, odd.first))
        for number, line in lines.items():
            name = _rule_of(line["protocol"], line, end_ns)
            # On a port that turned out to be Kafka's later than this connection came.
            if number not in seen and name is not None and line["broker_address"] in _brokers(view):
                host, first = host_of(line["client_address"]), line["opened"]
                at = None if first is None else (first, None)
                here = Foreign(number, line["protocol"], line["broker_address"], at)
                found[name, host].append(here)
        for (name, host), foreign in sorted(found.items()):
            unnamed = name == "tls-to-plain" and not any(
                lines.get(each.number, {}).get("sni") for each in foreign
            )
            yield self._client(view, name, host, foreign, seen, unnamed=unnamed)

    def _client(
        self,
        view: View,
        name: str,
        host: str,
        found: list[Foreign],
        rows: set[Any],
        *,
        unnamed: bool,
    ) -> Finding:
        """`rows`: connections that have one; `unnamed`: no ClientHello names its server."""
        numbers = [each.number for each in found]
        what = plural(len(numbers), "connection")
        brokers = sorted({each.broker for each in found})
        broker = listed(brokers)
        kinds = sorted(
            {NAMELESS if each.kind == NO_REQUEST else each.kind for each in found},
            key=lambda kind: (kind == NAMELESS, kind),
        )
        plain = plain_listeners(view)
        unsure = unnamed and not all(each in plain for each in brokers)
        unnamed_text = " without a server name (SNI)" if unsure else ""
        advice = {"served": SERVED, "tls-to-plain": NO_SERVER_NAME if unsure else ""}
        text = {
            "tls-to-plain": f"{host} sent a TLS ClientHello{unnamed_text} to {broker} on {what} "
            "and got no answer",
            "http-to-kafka": f"{host} sent HTTP to {broker} on {what}",
            "not-kafka": f"{host} sent {listed(kinds, MOST_KINDS)} to {broker} on {what}",
            "served": f"{host} and {broker} exchanged {listed(kinds, MOST_KINDS)} on {what}",
        }[name]
        times = [each.first[0] for each in found if each.first]
        told = [number for number in numbers if number in rows][:MOST_NAMED]
        row = next((each.first[1] for each in found if each.first and each.first[1]), None)
        return view.finding(
            self.rule("not-kafka" if name == "served" else name),
            text,
            all_of("opaque", among("conn", told)) if told else "",
            count=len(numbers),
            first_ns=min(times, default=None),
            last_ns=max(times, default=None),
            number=row,
            advice=advice.get(name, ""),
            about=[("host", host), *(("broker", each) for each in brokers[:MOST_NAMED])],
            connects="" if told else among("conn", numbers[:MOST_NAMED]),
        )

    # --- servers that speak something else

    def _servers(self, view: View, lines: Iterable[Line]) -> Iterator[Finding]:
        found: dict[tuple[str, str, str, str], list[Line]] = defaultdict(list)
        greeted: dict[str, list[Line]] = defaultdict(list)
        for line in lines:
            spoken, broker = line["server_protocol"], line["broker_address"]
            if not spoken:
                continue
            host = host_of(line["client_address"])
            if line["protocol"] == KAFKA:
                who = line["client_id"] or "", host
                found[(spoken.partition(":")[0], *who, broker)].append(line)
            elif not line["client_bytes"]:
                greeted[broker].append(line)
        for (protocol, client, host, broker), seen in sorted(found.items()):
            # Of a server that greets, connections may end before their client says anything.
            seen += [line for line in greeted[broker] if host_of(line["client_address"]) == host]
            yield self._server(view, protocol, (client, host, broker), seen)

    def _server(
        self, view: View, protocol: str, who: tuple[str, str, str], seen: list[Line]
    ) -> Finding:
        client_id, host, broker = who
        client = view.client(client_id, host)
        what = plural(len(seen), "connection")
        words = sorted({line["server_protocol"].partition(": ")[2] for line in seen} - {""})
        said = f" ({spelled(words[0])})" if words else ""
        name, advice = "server-not-kafka", OF_HTTP if protocol.startswith(HTTP) else ""
        text = (
            f"{broker} speaks {protocol}, not Kafka: it answered requests of {client} with "
            f"{protocol}{said} on {what}"
        )
        if protocol == TLS:
            name = "plain-to-tls"
            how = f"a TLS{said.replace('(', '').replace(')', '')}" if said else "TLS"
            text = f"{broker} answered plaintext requests of {client} with {how} on {what}"
        elif protocol == UNKNOWN_SERVER:
            advice = OF_UNKNOWN
            text = (
                f"{broker} does not speak Kafka: it answered requests of {client} on {what} with "
                f"{seen[0]['broker_bytes']} bytes that are not a Kafka response"
            )
        numbers = [line["connection"] for line in seen if line["requests"]][:MOST_NAMED]
        opened = [line["opened"] for line in seen if line["opened"] is not None]
        entity = ("client", client) if client_id or numbers else ("host", host)
        return view.finding(
            self.rule(name),
            text,
            all_of(among("conn", numbers), "lost") if numbers else "",
            count=len(seen),
            first_ns=min(opened, default=None),
            last_ns=max(opened, default=None),
            advice=advice,
            about=[
                entity,
                ("broker", broker),
                *([("host", host)] if entity[0] == "client" else []),
            ],
            connects=""
            if numbers
            else among("conn", [line["connection"] for line in seen][:MOST_NAMED]),
        )

    # --- headers of load balancers

    def _headers(self, view: View, lines: Iterable[Line]) -> Iterator[Finding]:
        """Yield brokers that close connections at a PROXY protocol header, or wait for the rest of
        what they take for a request, and accept it on no connection."""
        found: dict[str, list[Line]] = defaultdict(list)
        accepting: set[str] = set()
        lines = list(lines)
        every = [line for line in lines if line["proxy_header"]]
        end_ns = max(map(ended_at, every), default=0)
        for line in every:
            if line["broker_bytes"]:
                accepting.add(line["broker_address"])
            elif unanswered(line, end_ns):
                found[line["broker_address"]].append(line)
        yield from self._missing(view, lines, accepting)
        for broker, seen in sorted(found.items()):
            if broker in accepting:
                continue
            numbers = [line["connection"] for line in seen]
            told = [line["connection"] for line in seen if line["requests"]][:MOST_NAMED]
            hosts = sorted({host_of(line["via"] or line["client_address"]) for line in seen})
            versions = " and ".join(sorted({f"v{line['proxy_header']}" for line in seen}))
            closed = sum(line["end"].startswith("broker") for line in seen)
            did = "closed" if closed == len(seen) else "did not respond on"
            begin = "begins" if len(seen) == 1 else "begin"
            clients = {
                view.client(line["client_id"], host_of(line["client_address"]))
                for line in seen
                if line["client_id"]
            }
            opened = [line["opened"] for line in seen if line["opened"] is not None]
            yield view.finding(
                self.rule("proxy-protocol"),
                f"{broker} {did} {plural(len(seen), 'connection')} from {listed(hosts)} that "
                f"{begin} with a PROXY protocol header ({versions}), which it does not accept",
                among("conn", told),
                count=len(seen),
                first_ns=min(opened, default=None),
                last_ns=max(opened, default=None),
                about=[
                    *(("client", client) for client in sorted(clients)[:MOST_NAMED]),
                    ("broker", broker),
                    *(("host", host) for host in hosts[:MOST_NAMED]),
                ],
                connects="" if told else among("conn", numbers[:MOST_NAMED]),
            )

    def _missing(self, view: View, lines: list[Line], accepting: set[str]) -> Iterator[Finding]:
        """Yield brokers that accept headers, and end each connection that has none."""
        found: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
        for line in lines if accepting else ():
            broker = line["broker_address"]
            if broker not in accepting or line["proxy_header"] or not line["requests"]:
                continue
            if line["broker_bytes"]:
                accepting = accepting - {broker}
            elif line["end"].startswith("broker"):
                who = line["client_id"] or "", host_of(line["client_address"])
                found[(*who, broker)].append(line)
        for (client_id, host, broker), seen in sorted(found.items()):
            if broker not in accepting:
                continue
            named, numbers = view.client(client_id, host), [line["connection"] for line in seen]
            opened = [line["opened"] for line in seen if line["opened"] is not None]
            yield view.finding(
                self.rule("proxy-protocol"),
                f"{broker} closed {plural(len(seen), 'connection')} from {named} without a PROXY "
                "protocol header, which it requires: all connections that it answered begin with "
                "one",
                all_of(among("conn", numbers[:MOST_NAMED]), "lost"),
                count=len(seen),
                first_ns=min(opened, default=None),
                last_ns=max(opened, default=None),
                advice=MISSING,
                about=[("client", named), ("broker", broker), ("host", host)],
            )


@once
def _brokers(view: View) -> set[str]:
    """Return the addresses that Kafka was spoken with, and that answered nothing else."""
    return {
        line["broker_address"]
        for line in view.lines()
        if line["protocol"] == KAFKA and not line["server_protocol"]
    }


def unanswered(line: Line, end_ns: int) -> bool:
    """Return whether the broker said nothing to a TLS hello. A broker without TLS closes the
    connection or waits for the rest of what it takes for a request; one with TLS may be slow to
    answer. `end_ns`: the last packet of the capture."""
    closed = line.get("end", "").startswith("broker")
    waited = end_ns - (line.get("opened") or end_ns) >= limit("tls.hello")
    return not line.get("broker_bytes") and (closed or waited)


def _rule_of(kind: str, line: Line, end_ns: int) -> str | None:
    """Return the rule for a connection without Kafka, or `served` where both sides speak the same;
    None for TLS that cannot be read, which another detector tells, and for Kafka. `end_ns`: the
    last packet of the capture."""
    if kind in ("", KAFKA, ZOOKEEPER, HEADER_ALONE) or (
        line.get("proxy_header") and not line.get("broker_bytes")
    ):
        return None
    if kind.startswith(TLS):
        return "tls-to-plain" if unanswered(line, end_ns) else None
    if (line.get("server_protocol") or "").partition(":")[0] == kind:
        return "served"
    return "http-to-kafka" if kind == HTTP else "not-kafka"
