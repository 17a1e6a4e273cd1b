"""Requests without an answer, answers that came too late (question 5), and responses that break the
order of requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kafkascope.analyzer.conversation.pending import (
    OUT_OF_ORDER,
    SKIPPED,
    overtaken_by,
    partial_response,
)
from kafkascope.analyzer.findings.counting import (
    KeyedMeasures,
    Names,
    Occurrences,
    least,
    most,
    whole,
)
from kafkascope.analyzer.findings.filters import among
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import MS, SECOND, limit
from kafkascope.analyzer.findings.versions import answered_versions, first_release, rejected_at_once
from kafkascope.analyzer.findings.view import (
    Client,
    Counts,
    DetectorInput,
    Exchange,
    Finding,
    Row,
    client_key,
)
from kafkascope.analyzer.findings.words import duration, plural, size, spelled
from kafkascope.analyzer.identity import client_key_of, client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.connections import WAITING
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import Line
from kafkascope.captures.model import Closed, Opened
from kafkascope.dissectors.registry import APIS, api_named

# The epoch with which a client closes its fetch session (KIP-227).
FINAL: Final = -1


class Lost(Occurrences):
    """Lost requests of a client, an API, and a way to end."""

    connections: Names = whole(Names)
    oldest: int | None = most()
    """Longest time from a request to the end of its connection."""
    partial: tuple[int, int] | None = most()
    """(bytes of a response that had arrived, of how many)"""


class LateResponse(Occurrences):
    """Late responses of a connection."""

    closed_ns: int | None = most()
    client: tuple[str, str] | None = most()
    api: str | None = most()
    response: tuple[int, int] | None = most()
    """(time, number of its exchange) of the last slow answer."""


class LastUnacknowledged(Occurrences):
    """Produce requests with acks=0 of a connection."""

    last: tuple[int, int, int] | None = most()
    """Time, number and bytes of the last one."""


class Muted(KeyedMeasures):
    """Throttling of a connection: since KIP-219 a broker does not read it for that long."""

    until_ns: int | None = most()


class Unanswered(Counts):
    """Lost, in flight for too long, late."""

    lost = Lost.table(LIMITS.keys)
    """By client and API."""
    open = Occurrences.table(LIMITS.keys)
    late = LateResponse.table(10_000, unranked=1)
    """By connection."""
    muted = Muted.table(LIMITS.keys)
    """By connection."""
    unacknowledged = LastUnacknowledged.table(10_000)
    """By connection."""

    def add(self, batch: ExchangeBatch) -> None:
        row, exchange = batch.row, batch.exchange
        if row.throttle_ms:
            until_ns = max(batch.ends) + row.throttle_ms * MS
            self.muted[(row.connection,)].take(until_ns=until_ns)
        if row.state == "lost" and row.api != "SaslToken" and exchange.ended_ns is not None:
            age, partial = exchange.ended_ns - row.time_ns, partial_response(row.notes)
            if row.reason.startswith(("closed by", "reset by")) and not (
                _harmless(row, age, partial is not None) or _goodbye(exchange)
            ):
                lost = self.lost[(*client_of(row), row.api, row.broker_address, row.reason)]
                lost.see(row)
                lost.connections.add(row.connection)
                lost.take(oldest=max(0, age), partial=partial)
        elif row.state == "no-reply" and row.api == "Produce":
            seen = self.unacknowledged[(row.connection,)]
            seen.see(row, last=(row.time_ns, row.number, row.request_bytes or 0))
        elif row.state == "open":
            if row.api_key not in WAITING:
                self.open[(*client_of(row), row.api, row.broker_address)].see(row)
        elif (
            row.state == "answered"
            and row.latency_ns is not None
            and row.latency_ns >= limit("lost.age")
            and row.api_key not in WAITING
        ):
            late = self.late[(row.connection, exchange.connection.first_ns)]
            late.take(
                client=client_key_of(row),
                api=row.api,
                response=(row.time_ns + row.latency_ns, row.number),
            )

    def _is_muted(self, lost: Lost) -> bool:
        """Return whether a request was sent to a broker that did not read from the connection."""
        begin_ns = lost.last_ns or 0
        ends = (self.muted.get((connection,)) for connection in lost.connections)
        return any(end is not None and (end.until_ns or 0) > begin_ns for end in ends)

    def saw(self, event: Opened | Closed) -> None:
        """Take note of when the client closed: direction 0 is the client's where the SYN was
        seen."""
        connection = event.connection
        if isinstance(event, Closed) and event.direction == 0 and connection.handshake:
            late = self.late[(connection.number, connection.first_ns)]
            late.take(closed_ns=event.time_ns)

    def _failed(self, view: DetectorInput) -> Iterator[Finding]:
        """Yield findings about requests with acks=0 at which a broker closed the connection."""
        # KafkaApis: an error of such a request has no response, so that the broker closes the
        # connection instead, for the client to get new metadata. One that stops closes others too.
        worked: dict[str, int] = {}
        for line in view.lines:
            last_ns = max(line["answered"] or 0, line["opened"] or 0)
            broker = line["broker_address"]
            worked[broker] = max(worked.get(broker, 0), last_ns if line["requests"] else 0)
        found = by_key(
            ((client_key(line), line["broker_address"]), (line, seen.last))
            for line in view.lines
            if (seen := self.unacknowledged.get((line["connection"],))) is not None
            and seen.last is not None
            and line["end"] in ("broker fin", "broker rst")
            and 0 <= line["ended"] - seen.last[0] < AT_ONCE
            and (line["answered"] or 0) <= seen.last[0]
            and worked[line["broker_address"]] > line["ended"]
        )
        for (key, broker), closed in sorted(found.items()):
            client, numbers = view.client(*key), [last[1] for _, last in closed]
            yield view.finding(
                "acks-0-failed",
                f"{spelled(broker)} closed {plural(len(closed), 'connection')} from {client} at a "
                f"Produce request with acks=0 of up to {size(max(last[2] for _, last in closed))}: "
                "the request failed, and such a request has no response",
                among("number", numbers[: LIMITS.entities]),
                count=len(closed),
                span=(min(last[0] for _, last in closed), max(last[0] for _, last in closed)),
                number=min(numbers),
                client=client,
                about={"broker": spelled(broker)},
            )

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        yield from self._failed(view)
        for (*who, api, broker, reason), lost in self.lost.items():
            client, age = view.client(*who), lost.oldest or 0
            waited = f" after up to {duration(age)}" if age >= SECOND // 10 else ""
            rejected = rejected_at_once(view)[str(broker)] if "by the broker" in str(reason) else 0
            first = _reset_at_first(client, str(broker), view) if api == API_VERSIONS else 0
            if rejected:
                waited += f"; it ended {plural(rejected, 'connection')} before any request"
            elif first == lost.count:
                waited += "; it served others of its connections"
            muted = self._is_muted(lost) and str(reason).endswith("by the client")
            if muted:
                waited += ", while the broker throttled it and did not read from it"
            got = "no response"
            if lost.partial is not None:
                got = f"at most {size(lost.partial[0])} of a response of {size(lost.partial[1])}"
            yield view.finding(
                "unanswered",
                f"{plural(lost.count, f'{api} request')} from {client} to {broker} got {got}: the"
                f" connection was {reason}{waited}",
                "lost",
                lost,
                client=client,
                api=api,
                broker=broker,
                severity="note" if view.is_broker(*who) else None,
                case=_case(
                    lost, api, reason, rejected=rejected or first == lost.count, muted=muted
                ),
            )
        for (*who, api, broker), seen in self.open.items():
            client, age = view.client(*who), (view.last_ns or 0) - (seen.first or (0, 0))[0]
            if age >= limit("open.age"):
                yield view.finding(
                    "no-answer-yet",
                    f"{plural(seen.count, f'{api} request')} from {client} to {broker} had no "
                    f"response when the capture ended, {duration(age)} after the first",
                    "open",
                    seen,
                    client=client,
                    api=api,
                    broker=broker,
                    case="controller" if _forwarded(api) else "",
                )
        for (number, _), late in self.late.items():
            if late.closed_ns is None or late.response is None or late.client is None:
                continue
            answered, exchange = late.response
            if answered > late.closed_ns:
                client = view.client(*late.client)
                yield view.finding(
                    "late-answer",
                    f"The response to {late.api} came {duration(answered - late.closed_ns)} after "
                    f"{client} had given up and closed connection {number}",
                    f"number == {exchange}",
                    Occurrences(1, (answered, exchange), answered),
                    about={"client": client, "connection": str(number)},
                )


def _case(lost: Lost, api: Any, reason: Any, *, rejected: bool | int, muted: bool) -> str:
    """Return which advice helps against requests without a response."""
    old = (lost.oldest or 0) >= limit("lost.age")
    if lost.partial is not None and old:
        return "partial"
    if rejected:
        return "rejected"
    if muted:
        return "throttled"
    waited = old and "by the client" in str(reason)
    return "controller" if waited and _forwarded(api) else ""


def _reset_at_first(client: Client, broker: str, view: DetectorInput) -> int:
    """Count the connections of a client that a broker reset at their first request, while it served
    others: it answers its versions, so that it is not the request. Brokers that limit the rate of
    new connections (KIP-612) do so when a client does not wait for as long as they delay it."""
    known = view.lines_of.get(client.key, ())
    lines = [line for line in known if line["broker_address"] == broker]
    if not any(line["requests"] > line["unanswered"] for line in lines):
        return 0
    return sum(
        line["end"] == "broker rst" and line["requests"] == line["unanswered"] == 1
        for line in lines
    )


def _forwarded(api: Any) -> bool:
    """Return whether brokers pass a request on to the controller."""
    return api in KNOWN and api_named(str(api)).server == "controller"


def _harmless(row: Row, age_ns: int, partial: bool) -> bool:
    """Return whether a lost request does no harm: a client that closes while it polls loses
    nothing; one that is stopped closes at once. `partial`: its response had begun to arrive."""
    return row.reason.endswith("by the client") and (
        (row.api_key in WAITING and not partial) or age_ns < limit("lost.age")
    )


def _goodbye(exchange: Exchange) -> bool:
    """Return whether a request only closes a fetch session, or leaves a group. Consumers send the
    first when they end, also where the broker closed the connection long before; the second follows
    a JoinGroup, if there is one, that may be held for minutes, and they close without its
    answer."""
    if exchange.api == "LeaveGroup":
        return exchange.reason.endswith("by the client")
    request = exchange.request_body or {}
    return exchange.api == "Fetch" and request.get("session_epoch") == FINAL


API_VERSIONS: Final = "ApiVersions"
KNOWN: Final = frozenset(api.name for api in APIS.values())
# max.in.flight.requests.per.connection: responses that may come before the client closes.
IN_FLIGHT: Final = 5
AT_ONCE: Final = SECOND
"""A client that waits for a response closes after request.timeout.ms."""


class Disorder(Occurrences):
    """Requests that a later one overtook."""

    example: tuple[int, int, str, str, str] | None = least()
    """The first one: its time, correlation id and API; API and correlation id of the later one."""
    responses: int | None = most()
    """That overtook a request of a connection."""
    connections: Names = whole(Names)
    numbers: Names = whole(Names)


class ResponseOrder(Counts):
    """By client and broker."""

    late = Disorder.table(LIMITS.keys)
    """By client, API and broker."""
    skipped = Disorder.table(LIMITS.keys)
    """By client, API, version and broker."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        if row.state == "answered":
            texts = [note.text for note in row.notes if note.text.startswith(OUT_OF_ORDER)]
            if texts:
                _take(self.late[(*client_of(row), row.broker_address)], row, texts[0])
        elif row.state == "lost" and row.reason.startswith(SKIPPED):
            key = (*client_of(row), row.api, row.api_version, row.broker_address)
            _take(self.skipped[key], row, row.reason)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (*who, broker), late in self.late.items():
            if view.gapped.isdisjoint(late.connections):
                yield _late(view.client(*who), broker, late, view)
        for (*who, api, version, broker), skipped in self.skipped.items():
            if not view.gapped.isdisjoint(skipped.connections):
                continue
            client = view.client(*who)
            if api != API_VERSIONS and _closed_at_once(skipped, view):
                yield _late(client, broker, skipped, view)
            else:
                yield _skipped(client, str(api), version, broker, skipped, view)


def _late(client: Client, broker: Any, late: Disorder, view: DetectorInput) -> Finding:
    assert late.example is not None
    _, own, api, later, other = late.example
    ended = [each["end"] for each in _lines_of(late, view) if each["end"].startswith("client")]
    how = "reset" if ended and all(end == "client rst" for end in ended) else "closed"
    then = f"; the client then {how} {plural(len(ended), 'connection')}" if ended else ""
    return view.finding(
        "answers-out-of-order",
        f"Broker {spelled(broker)} answered {plural(late.count, 'request')} of {client} out of "
        f"order: {later} with correlation id {other} before {own} ({api}), which was sent "
        f"first{then}",
        among("number", sorted(late.numbers)[: LIMITS.entities]),
        late,
        about={"client": client, "broker": spelled(broker)},
    )


def _skipped(
    client: Client, api: str, version: Any, broker: Any, skipped: Disorder, view: DetectorInput
) -> Finding:
    assert skipped.example is not None
    _, own, _, later, other = skipped.example
    since, known = first_release(api, version), ""
    answers = version in answered_versions(view).get((str(broker), api), ())
    if since and not answers:
        known = f"; Kafka has {api} v{version} since {since}"
    if api == API_VERSIONS:
        known = "; Kafka has ApiVersions since 0.10.0"
    return view.finding(
        "request-skipped",
        f"Broker {spelled(broker)} never answered "
        f"{plural(skipped.count, f'{api} v{version} request')} of {client}, but the later "
        f"{later} (correlation id {own}, then {other}){known}",
        "lost",
        skipped,
        client=client,
        api=api,
        broker=broker,
        case="old-broker" if api == API_VERSIONS else "answered" if answers else "",
    )


def _lines_of(disorder: Disorder, view: DetectorInput) -> list[Line]:
    return [line for line in view.lines if line["connection"] in disorder.connections]


def _closed_at_once(skipped: Disorder, view: DetectorInput) -> bool:
    """Return whether the client closed each connection as soon as a later request was answered: it
    did not wait for the earlier one."""
    lines = _lines_of(skipped, view)
    if (skipped.responses or 0) > IN_FLIGHT or not lines:
        return False
    return all(
        line["end"].startswith("client") and line["ended"] - line["waiting"] < AT_ONCE
        for line in lines
    )


def _take(disorder: Disorder, row: Row, text: str) -> None:
    """Count a request; `text`: the note or reason that names the later one."""
    later = overtaken_by(text)
    # After bytes that are no request, anything may look like a header.
    known = later is not None and {row.api, later[0]} <= KNOWN
    if later is not None and known and row.correlation_id is not None:
        example = row.time_ns, row.correlation_id, row.api, *later[:2]
        names = {"connections": row.connection, "numbers": row.number}
        disorder.see(row, example=example, responses=later[2], **names)
