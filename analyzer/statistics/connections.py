"""One line per connection: client, duration, how it ended, its traffic, network quality.

Also takes the beginnings and ends of connections (`saw`), for those without any exchange.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import lru_cache
from typing import Any, Final

from kafkascope.analyzer.conversation.detect import is_other
from kafkascope.analyzer.exchanges.rows import SOURCES
from kafkascope.analyzer.identity import host_of, user_of
from kafkascope.analyzer.merging.measures import Measures, least, most, total
from kafkascope.analyzer.merging.tables import Key, Keyed, by_key, table
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import (
    Column,
    Line,
    TopicNames,
    columns,
    filled,
    middle,
    per_second,
)
from kafkascope.analyzer.statistics.simple import ByKey
from kafkascope.analyzer.statistics.thresholds import limit
from kafkascope.captures.model import Certificate, Closed, Connection, Opened, Tls
from kafkascope.times import MS

SASL: Final = frozenset({17, 36})
AUTHENTICATE: Final = 36
API_VERSIONS: Final = 18
IDLE: Final = SASL | {API_VERSIONS}
"""APIs that are no work yet."""
WAITING: Final = frozenset({1, 78, 11, 14})
"""A connection may end while such a request waits, and nothing is lost: Fetch, ShareFetch,
JoinGroup, SyncGroup."""


KAFKA: Final = "kafka"
ZOOKEEPER: Final = "zookeeper"
NAMELESS: Final = ("no", "bytes")
"""How sentences of detection begin that name no protocol."""
OF_PACKETS: Final = ("client_bytes", "broker_bytes", "retransmissions", "out_of_order", "gap_bytes")
"""Columns that are unknown without packets."""
FAILED: Final = ("refused", "no answer")
"""Phases of connects that never came to a connection."""
ENDS: Final = {"fin": "closed", "rst": "reset", "reuse": "forgotten", "idle": "forgotten"}
"""How a connection ended -> its state; forgotten: neither side closed it."""


class Wire(Measures):
    """Measures of one connection. The counters of TCP only grow, so the largest is the newest."""

    requests: int = total()
    unanswered: int = total()
    stranded: int = total()
    """Requests without response that are no long polls."""
    failed: int = total()
    sasl: int = total()
    work: int = total()
    """Requests that are neither ApiVersions nor SASL."""
    opaque: int = total()
    zookeeper: int = total()
    other: str | None = most()
    """Protocol of an opaque one, from detection."""
    server: str | None = most()
    """What the broker's first bytes are where they are no Kafka: `Connection.server`."""
    via: str | None = most()
    """Address of the load balancer in between, by its PROXY protocol header."""
    proxy_header: int | None = most()
    ends: tuple[str, str] | None = most()
    """Addresses of client and broker, from exchanges."""
    sides: tuple[str, str] | None = most()
    """`a` and `b` of the connection."""
    client_id: str | None = most()
    software: str | None = most()
    user: str | None = most()
    session: tuple[int, int] | None = most()
    """(time of the latest authentication, when its session expires; 0: never), KIP-368."""
    opened_ns: int | None = least()
    last_ns: int | None = most()
    until_ns: int | None = most()
    """End of the capture, of one that was open then."""
    active_ns: int | None = most()
    """Last byte of a message."""
    answered_ns: int | None = most()
    """Last byte of a response."""
    waiting_ns: int | None = least()
    """First request that got no response."""
    side: int | None = most()
    """1 when the client is `Connection.b`."""
    tls: tuple[str, int, int] | None = most()
    """Result of its TLS handshake: outcome, direction of the side that ended it, alert; -1 where
    there is none."""
    sealed: tuple[Any, ...] | None = most()
    """What is known of its TLS: bytes that were decrypted, which only grow, and `SEALED`."""
    handshake: int | None = most()
    """1 when the SYN was seen."""
    handshake_ns: int | None = most()
    bytes_a: int | None = most()
    bytes_b: int | None = most()
    retransmissions: int | None = most()
    out_of_order: int | None = most()
    gap_bytes: int | None = most()
    closed: tuple[int, int, str] | None = least()
    """(time, minus the direction's rank, how): the first end."""
    packet: int | None = least()
    translated: tuple[str, str] | None = most()
    """`a` and `b` before or after address translation, or of a proxy's leg, where both were
    captured."""


class Connections(ByKey[Wire]):
    """Connections by their number in the capture."""

    NAME = "connections"
    VERSION = 12
    KEY = ("connection", "opened", "a")
    COLUMNS = columns(
        "connection client_address broker_address (translated_client) (translated_broker) (via) "
        "client_id software (user) opened (packet) life state phase (protocol) (server_protocol) "
        "requests unanswered failed client_bytes broker_bytes handshake (tls) (tls_error) "
        "(tls_note) (sni) (alpn) (tls_client) (tls_certificate) (resumed) (inside) (tls_offered) "
        "(tls_suites) (tls_early) (tls_alerts) (tls_updates) (tls_sent) (tls_received) "
        "retransmissions (out_of_order) gap_bytes (answered) (waiting) (idle) end"
    )

    CLIENT_COLUMNS = columns(
        "client_id client_address connections open per_minute life requests per_connection unused "
        "unanswered retransmissions resets"
    )

    values: Keyed[Wire] = table(Wire, unranked=1)

    def __init__(self) -> None:
        super().__init__()
        self._live: dict[Key, Connection] = {}
        """Connections that may still count on: their numbers are read when needed."""
        self._unused: dict[int, Connection] = {}
        """By number, those that were silent since they were opened: as many as are open at once. Of
        floods there are very many, each to be looked up once."""

    def add(self, batch: ExchangeBatch) -> None:
        row, exchange, count = batch.row, batch.exchange, len(batch)
        wire, end = self._wire(exchange.connection), max(batch.ends)
        ends = row.client_address, row.broker_address
        client_id, software = row.client_id or None, row.software or None
        known = wire.ends, wire.client_id, wire.software, wire.user
        if known != (ends, client_id, software, row.user or None):
            wire.take(ends=ends, client_id=client_id, software=software, user=user_of(row) or None)
        if row.request_bytes is not None or row.source == SOURCES[1]:
            wire.requests += count
        wire.take(active_ns=end, answered_ns=end if row.state == "answered" else None)
        wire.side = exchange.client_end
        if row.state in ("open", "lost"):
            wire.unanswered += 1
            wire.stranded += row.api_key not in WAITING
            wire.take(waiting_ns=row.time_ns)
        wire.failed += bool(row.errors)
        wire.opaque += row.state == "opaque"
        wire.zookeeper += row.zookeeper is not None
        wire.sasl += row.api_key in SASL or row.api == "SaslToken"
        if row.api_key == AUTHENTICATE:
            response = exchange.response_body
            if response is not None and not response["error_code"]:
                # The broker counts from a moment between request and response.
                lifetime = response.get("session_lifetime_ms") or 0
                expires = row.time_ns + lifetime * MS if lifetime > 0 else 0
                wire.take(session=(row.time_ns, expires))
        if row.api_key is not None and row.api_key not in IDLE:
            wire.work += count

    def saw(self, event: Opened | Closed) -> None:
        connection = event.connection
        if isinstance(event, Opened):
            self._unused[connection.number] = connection
            return
        over = event.direction is None and not event.used
        wire = self.values[_key(connection)] if over else self._wire(connection)
        if event.how == "end":
            wire.until_ns = max(wire.until_ns or 0, event.time_ns)
        else:
            side = -1 if event.direction is None else event.direction
            wire.take(closed=(event.time_ns, side, event.how))
        if over and self._unused.pop(connection.number, None) is not None:
            _take(wire, connection)
        elif over:
            self._wire(connection)

    def _wire(self, connection: Connection) -> Wire:
        key = _key(connection)
        if key not in self._live:
            if len(self._live) >= self.values.limit:
                self._settle()
            self._live[key] = connection
            self._unused.pop(connection.number, None)
        return self.values[key]

    def _settle(self, *, forget: bool = True) -> None:
        """Take over the counters of the connections as they are by now."""
        for live in (self._unused, self._live):
            for connection in live.values():
                _take(self.values[_key(connection)], connection)
            if forget:
                live.clear()

    def merge(self, other: Connections) -> None:
        other._settle()
        self._settle()
        super().merge(other)

    def dump(self) -> dict[str, Any]:
        self._settle()
        return super().dump()

    def rows(self, names: TopicNames | None = None) -> list[Line]:
        """Return one line per connection in the order of the capture; those beyond the limit are
        one line without a number."""
        self._settle(forget=False)
        found = self.grouped(self.KEY)
        end_ns = max((max(wire.last_ns or 0, wire.until_ns or 0) for _, wire in found), default=0)
        brokers = {wire.sides[1] for _, wire in found if wire.sides and wire.handshake}
        brokers |= {wire.ends[1] for _, wire in found if wire.ends}
        lines = [_line(key["connection"], wire, end_ns, brokers) for key, wire in found]
        servers = {line["broker_address"] for line in lines if line["protocol"] == ZOOKEEPER}
        for line in lines:
            silent = not line["protocol"] and line["phase"] != "opaque"
            if silent and line["broker_address"] in servers:
                line["protocol"] = ZOOKEEPER
        return lines

    def midstream(self) -> set[Any]:
        self._settle(forget=False)
        return {key[0] for key, wire in self.values.items() if wire.handshake == 0}

    def by_client(
        self, names: TopicNames | None = None, lines: Iterable[Line] | None = None
    ) -> list[Line]:
        """Return one line per client (its address where it has no id), most connections first; of
        all connections, or of some `lines` of `rows`."""
        lines = self.rows(names) if lines is None else lines
        found = by_key((client_of(line), line) for line in lines)
        summed = [_client_line(here) for _, here in sorted(found.items())]
        return sorted(summed, key=lambda line: -line["connections"])


def client_of(line: Line) -> str:
    """Return the client of a line by connection or by client: its id, or its host where it has
    none."""
    address = line["client_address"]
    return str(line["client_id"] or (host_of(address) if "connection" in line else address))


def _client_line(lines: list[Line]) -> Line:
    opened = [line["opened"] for line in lines if line["opened"] is not None]
    lives = [line["life"] for line in lines if line["life"] is not None]
    rate = per_second(len(opened) - 1, min(opened, default=None), max(opened, default=None))
    requests = sum(line["requests"] for line in lines)
    return {
        "client_id": lines[0]["client_id"] or None,
        "client_address": ", ".join(sorted({host_of(line["client_address"]) for line in lines})),
        "connections": len(lines),
        "open": sum(line["state"] == "open" for line in lines),
        "per_minute": None if rate is None else 60 * rate,
        "life": middle(lives) if lives else None,
        "requests": requests,
        "per_connection": requests / len(lines),
        "unused": sum(line["phase"] != "work" for line in lines),
        "unanswered": sum(line["unanswered"] for line in lines),
        "retransmissions": sum(line["retransmissions"] or 0 for line in lines),
        "resets": sum("rst" in line["end"] for line in lines),
    }


_address = lru_cache(4096)(str)
"""Text of an endpoint."""


def _key(connection: Connection) -> Key:
    """Return the key of a connection: numbers begin anew in every capture."""
    return connection.number, connection.first_ns, _address(connection.a)


def _take(wire: Wire, connection: Connection) -> None:
    translated, result = connection.translated, connection.tls and connection.tls.result
    ended_by = [
        -1 if each is None else each for each in (result and (result.side, result.alert)) or ()
    ]
    wire.take(
        opened_ns=connection.first_ns,
        last_ns=connection.last_ns or None,
        sides=(_address(connection.ends()[0]), _address(connection.b)),
        handshake=int(connection.handshake),
        handshake_ns=connection.handshake_ns,
        bytes_a=connection.bytes[0],
        bytes_b=connection.bytes[1],
        retransmissions=sum(connection.retransmissions),
        out_of_order=sum(connection.out_of_order),
        gap_bytes=sum(connection.gap_bytes),
        sealed=None if connection.tls is None else _sealed(connection.tls),
        tls=result and (result.outcome, *ended_by),
        packet=connection.first_packet or None,
        translated=translated and (_address(translated[0]), _address(translated[1])),
        other=_other(connection.other) or None,
        server=connection.server or None,
        via=connection.via or None,
        proxy_header=connection.proxy_header[0] or None,
    )


def connection_columns(lines: Iterable[Line]) -> tuple[Column, ...]:
    """Return the columns of a table for people: with the protocol where one is not Kafka's; where
    TLS cannot be read, with its version and suite, and last, as it is a sentence, why."""
    lines = list(lines)
    shown = {"protocol"} if any(line["protocol"] not in ("", KAFKA) for line in lines) else set()
    if any(line["translated_broker"] for line in lines):
        shown |= {"translated_client", "translated_broker"}
    columns = [
        column._replace(wide=column.wide and column.name not in shown)
        for column in Connections.COLUMNS
    ]
    if not any(line["tls_note"] for line in lines):
        return tuple(columns)
    behind = "tls", "tls_note"
    by_name = {column.name: column for column in columns}
    return (
        *(column for column in columns if column.name not in behind),
        *(by_name[name]._replace(wide=False) for name in behind),
    )


SEALED: Final = {
    "tls": "name",
    "tls_error": "error",
    "tls_note": "note",
    "sni": "server_name",
    "alpn": "protocol",
    "tls_client": "client",
    "resumed": "resumed",
    "inside": "inside",
    "tls_offered": "offered",
    "tls_suites": "suites",
    "tls_early": "early_data",
    "tls_alerts": "alerts",
    "tls_updates": "updates",
    "tls_decrypted": "decrypted",
    "certificate": "certificate",
    "client_certificate": "client_certificate",
    "tls_requested": "requested",
    "tls_unauthenticated": "unauthenticated",
    "tls_presented": "presented",
    "cipher_suites": "cipher_suites",
    "tls_answer": "answer",
}
"""Keys of a line about TLS, in the order of `Wire.sealed`, and the attributes of `Tls`."""


def _sealed(tls: Tls) -> tuple[Any, ...]:
    found = (getattr(tls, name) for name in SEALED.values())
    return sum(tls.decrypted), *(() if each is None else each for each in found)


def _sealed_line(wire: Wire) -> Line:
    """Return the part of a line about TLS; None everywhere without it."""
    times = (None,) * len(SEALED) if wire.sealed is None else wire.sealed[1:]
    found = {key: value or None for key, value in zip(SEALED, times, strict=True)}
    decrypted = found.pop("tls_decrypted") or (None, None)
    found["tls_certificate"] = None
    found["tls_sent"], found["tls_received"] = decrypted[::-1] if wire.side else decrypted
    if wire.sealed is not None:
        from kafkascope.captures.tls.begin import ALERTS

        found |= {"resumed": bool(found["resumed"]), "tls_early": bool(found["tls_early"])}
        found |= {"tls_offered": list(found["tls_offered"] or ())}
        found |= {"tls_updates": found["tls_updates"] or 0}
        if found["certificate"]:
            from kafkascope.captures.tls.certificates import described

            certificate = Certificate(*found["certificate"])
            found |= {"certificate": certificate, "tls_certificate": described(certificate)}
        if found["client_certificate"]:
            found["client_certificate"] = Certificate(*found["client_certificate"])
        found["tls_alerts"] = [
            f"{_side(wire, side)}: {ALERTS.get(number, f'alert {number}')}"
            for side, number in found["tls_alerts"] or ()
        ]
    return found


def _line(number: Any, wire: Wire, end_ns: int, brokers: Set[str]) -> Line:
    """Return the line of a connection. `end_ns`: the last packet of the capture; `brokers`:
    addresses that others connected to."""
    client, broker = wire.ends or wire.sides or ("", "")
    others = wire.translated or (None, None)
    if wire.translated and wire.sides and wire.sides[0] != client:
        others = others[::-1]
    opened, last = wire.opened_ns, wire.last_ns
    ours = (wire.bytes_a, wire.bytes_b)
    if wire.ends is None and not wire.handshake and client in brokers and broker not in brokers:
        # Neither a SYN nor an exchange says who connected.
        client, broker, ours = broker, client, ours[::-1]
    sent, received = ours[::-1] if wire.side else ours
    ended_ns, _, how = wire.closed or (None, 0, None)
    idle = None if ended_ns is None or wire.active_ns is None else ended_ns - wire.active_ns
    phase = _phase(wire, how, end_ns)
    tls = _sealed_line(wire)
    # Empty where it is silent or unknown.
    protocol = KAFKA if wire.requests > wire.opaque else wire.other or ""
    line = {
        "connection": number,
        "client_address": client,
        "broker_address": broker,
        "translated_client": others[0],
        "translated_broker": others[1],
        "proxy_header": wire.proxy_header,
        "user": wire.user or (None if wire.sasl else tls["tls_client"]),
        "session": wire.session,
        "opened": opened,
        "life": None if opened is None or last is None else max(0, last - opened),
        "state": state_of(phase, how),
        "phase": phase,
        "protocol": ZOOKEEPER if wire.zookeeper else protocol,
        "server_protocol": _server(wire),
        "stranded": wire.stranded,
        "greeted": wire.requests > wire.work,
        "client_bytes": sent,
        "broker_bytes": received,
        "handshake": wire.handshake_ns,
        **tls,
        "tls_result": wire.tls,
        "tls_side": _side(wire, wire.tls[1]) if wire.tls is not None else "",
        "answered": wire.answered_ns,
        "waiting": wire.waiting_ns,
        "ended": ended_ns,
        "idle": None if idle is None else max(0, idle),
        "end": _end(wire),
    }
    counted = wire.bytes_a, wire.bytes_b, wire.retransmissions, wire.out_of_order, wire.gap_bytes
    if wire.requests and not any(counted):
        line |= dict.fromkeys(OF_PACKETS)  # its requests are those of a request log
    return filled(Connections.COLUMNS, wire, **line)


def state_of(phase: str, closed: str | None) -> str:
    """Return what became of a connection that came so far and first ended so: refused and
    unreachable are connects that never came to a connection."""
    if phase in FAILED:
        return "refused" if phase == "refused" else "unreachable"
    return ENDS.get(closed, closed) if closed is not None else "open"


def silent_phase(
    *, handshake: bool, handshake_ns: int | None, closed: str | None, waited_ns: int
) -> str:
    """Return how far a connection without a byte came. `waited_ns`: from its first packet to the
    end of the capture."""
    # Only who is connected sends a FIN: the capture lacks the answer to its SYN.
    if not handshake or handshake_ns is not None or closed == "fin":
        return "connected"
    if closed == "rst":
        return "refused"
    return "no answer" if waited_ns >= limit("connects.answer") else "connecting"


def _phase(wire: Wire, closed: str | None, end_ns: int) -> str:
    if wire.work:
        return "work"
    if wire.sasl:
        return "sasl"
    if wire.requests > wire.opaque:
        return "versions"
    if wire.opaque or wire.bytes_a or wire.bytes_b:
        return "opaque"
    return silent_phase(
        handshake=bool(wire.handshake),
        handshake_ns=wire.handshake_ns,
        closed=closed,
        waited_ns=end_ns - (wire.opened_ns or 0),
    )


def _other(reason: str) -> str:
    """Return what an opaque connection is, shortly: `ZooKeeper's four-letter word ruok`; empty for
    bytes of Kafka that could not be read."""
    known = is_other(reason) and not reason.startswith(NAMELESS)
    return reason.partition(",")[0] if known else ""


def _server(wire: Wire) -> str | None:
    """Return what the broker speaks in place of what its client does; None where it answered, or
    where that is not known. For TLS see `tls_answer`."""
    if wire.answered_ns is not None or wire.zookeeper or wire.sealed is not None:
        return None
    return wire.server


def _end(wire: Wire) -> str:
    if wire.closed is None:
        return ""
    _, side, how = wire.closed
    if side < 0 or how not in ("fin", "rst"):
        return how
    return f"{_side(wire, side)} {how}"


def _side(wire: Wire, direction: int) -> str:
    if direction < 0:
        return ""
    return "client" if direction == (wire.side or 0) else "broker"
