"""Which clients use API versions that a Kafka release does not have (question 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.bodies.dissection import BROKEN
from kafkascope.analyzer.findings.counting import Names, Occurrences, total, whole
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import (
    Client,
    Counts,
    DetectorInput,
    Exchange,
    Finding,
    Row,
    brokers_in,
    client_key,
)
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey, client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.clients import Usage
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.verdict import breaks_at, verdict_of
from kafkascope.dissectors.errors import UnknownApi, UnknownVersion
from kafkascope.dissectors.reference import releases
from kafkascope.times import SECOND

# Kafka 4.0 removed Fetch v0 to v3 (KIP-896).
FETCH_OF_4: Final = 4
# Kafka 4 offers Produce from v0 on, because some clients look for v0, but takes v3 and later only.
PRODUCE_OF_4: Final = 3


class Offer(NamedTuple):
    """The first and last version that a broker takes."""

    first: int
    last: int

    def takes(self, version: Any) -> bool:
        """Return whether a version lies within."""
        return version is not None and self.first <= int(version) <= self.last


class RefusedVersion(Occurrences):
    """Requests of one version."""

    connections: Names = whole(Names)
    broken: int = total()
    """Count of requests that no broker can read, whatever versions it takes."""


class VersionCounts(Counts):
    """From the statistic of clients and the verdict."""

    refused = RefusedVersion.table(LIMITS.keys)
    """By client, API, version and response: `error`, or `closed` connection."""

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        if row.state == "lost":
            how = "closed" if row.reason.endswith("by the broker") else ""
        else:
            unsupported = row.errors and any(
                e.top and e.name == "UNSUPPORTED_VERSION" for e in row.errors
            )
            how = "error" if unsupported and row.api != "ApiVersions" else ""
        if how and row.api_key is not None:
            broken = int(any(each.reason in BROKEN for each in row.undecoded))
            seen = self.refused[(*client_of(row), row.api, row.api_version, how)]
            seen.see(row, connections=row.connection, broken=broken)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for usage in view.base.clients.usages():
            yield from _breaks(usage, view)
            controllers = _controllers(usage, view)
            yield from controllers or _stopped(usage, view)
            begun = usage.identity.key in _begun_before(view)
            if usage.negotiates is False and not begun and set(usage.total.roles) != {"broker"}:
                client = view.client(*usage.identity.key)
                yield view.finding(
                    "no-api-versions",
                    f"{client} sent {plural(usage.total.count, 'request')} but never ApiVersions "
                    "(its connections were captured from the start)",
                    client=client,
                    count=usage.total.count,
                    span=(usage.total.first_ns, usage.total.last_ns),
                )
        for (*who, name, version, how), seen in self.refused.items():
            yield from _refused(view.client(*who), name, version, how, seen, view)


@DetectorInput.once
def _begun_before(view: DetectorInput) -> set[ClientKey]:
    """Return clients with connections from before the capture: kafkajs and kafka-go send
    ApiVersions on their first connection only. Of a connection without requests only the host is
    known."""
    middle = view.base.connections.midstream()
    keys = {client_key(line) for line in view.lines if line["connection"] in middle}
    known = (usage.identity.key for usage in view.base.clients.usages())
    return {key for key in known if key in keys or ("", key[1]) in keys}


def _controllers(usage: Usage, view: DetectorInput) -> list[Finding]:
    """Return the finding about a client that is stuck at the listener of a controller, which offers
    no Metadata. Tools with --bootstrap-controller send other requests."""
    if not usage.offered or "Metadata" in usage.offered or usage.works:
        return []
    client = view.client(*usage.identity.key)
    lines = view.lines_of.get(client.key, [])
    brokers = brokers_in(lines)
    # A broker looks for the active controller with its first request.
    if not all((line["life"] or 0) >= SECOND or line["end"] for line in lines):
        return []
    return [
        view.finding(
            "controller-listener",
            f"{client} got no further than ApiVersions at {listed(brokers)}, a listener of a "
            "controller: it offers no Metadata, Produce or JoinGroup",
            "api == ApiVersions",
            client=client,
            count=usage.total.count,
            span=(usage.total.first_ns, usage.total.last_ns),
            about={"broker": brokers[: LIMITS.topics]},
        )
    ]


def _stopped(usage: Usage, view: DetectorInput) -> Iterator[Finding]:
    count, api, why = usage.stopped, "ApiVersions", "a version that it lacks) or its login"
    if not count and any(each.first >= FETCH_OF_4 for each in offers_by_api(view).get("Fetch", ())):
        # Clients from before ApiVersions look up topics first, which brokers of 4.x still answer.
        count, api, why = usage.looked_up, "Metadata", "a version that it lacks)"
    if not count:
        return
    client = view.client(*usage.identity.key)
    yield view.finding(
        "likely-refused",
        f"{client} sent {api} on {plural(count, 'connection')} and nothing after it: the "
        f"broker likely refuses its next request ({why}",
        f"api == {api}",
        client=client,
        count=count,
        span=(usage.total.first_ns, usage.total.last_ns),
    )


def _breaks(usage: Usage, view: DetectorInput) -> Iterator[Finding]:
    at = view.release or breaks_at(usage)
    release = at.partition(",")[0]
    reasons = [r for r in verdict_of(usage, release).reasons if r.word == "breaks"] if at else []
    if not reasons:
        return
    client = view.client(*usage.identity.key)
    missing = {
        reason.api: [
            (version, count)
            for version, count in sorted(usage.versions.get(reason.api, {}).items())
            if not releases.has(reason.api, version, release)
        ]
        for reason in reasons
    }
    parts = [
        f"(api == {api} and version in {{{', '.join(str(version) for version, _ in found)}}})"
        for api, found in missing.items()
    ]
    any_of = " or ".join(parts)
    library = spelled(usage.identity.software) or "library unknown"
    yield view.finding(
        "breaks-on-upgrade",
        f"{client} ({library}) will not work with Kafka {at}: "
        f"{listed((r.text for r in reasons), 3, '; ')}",
        f"({any_of})" if len(parts) > 1 else any_of,
        client=client,
        count=sum(count for found in missing.values() for _, count in found),
        span=(usage.total.first_ns, usage.total.last_ns),
        severity="warning" if view.release else None,
        about={"release": release},
    )


def _refused(
    client: Client, name: str, version: Any, how: str, seen: RefusedVersion, view: DetectorInput
) -> Iterator[Finding]:
    """Yield the finding about requests of a version that got an error, or closed the connection."""
    closed = how == "closed"
    span = offered(view, *client.key, name)
    negotiated = span is not None
    if span is None and closed:
        span = _others(view, name)
    inside = span is not None and span.takes(version)
    gone = _gone(name, version)
    if closed and not inside:
        ended = _ended(view, client, name, version, seen)
        if ended is not None:
            yield ended
            return
    if closed:
        # A client without ApiVersions learns of it only by the end of the connection.
        old = not negotiated and (*client.key, name, version) not in _served(view)
        if inside or (not negotiated and not (old and gone)):
            return
        if not negotiated and view.is_broker(*client.key):
            return  # brokers agree on versions by configuration: one of them stopped
    has = f"; it supports v{span.first} to v{span.last}" if span else ""
    if not has and closed:
        first = releases.versions_of(name, gone)
        has = f" without an error, as Kafka {gone} and later do"
        if first is not None:
            has += f"; they support v{first_taken(name, first.low)} and later"
    if span and span.first == span.last:
        has = f"; it supports v{span.first}"
    if inside:
        has += ", so a feature that the request needs is disabled"
    what = "closed the connection" if closed else "answered UNSUPPORTED_VERSION"
    yield view.finding(
        "version-refused",
        f"{client} sent {plural(seen.count, f'{name} v{version} request')}; the broker {what}{has}",
        f"api == {name} and version == {version} and "
        + ("lost" if closed else "error.top == UNSUPPORTED_VERSION"),
        seen,
        client=client,
        case="disabled" if inside else "",
        about={"api": name},
    )


def _ended(
    view: DetectorInput, client: Client, api: str, version: Any, refused: RefusedVersion
) -> Finding | None:
    """Return the finding about a version at which a broker ends each connection instead of sending
    an error; None if something else may be the reason."""
    lines = [line for line in view.lines if line["connection"] in refused.connections]
    brokers = brokers_in(lines)
    middle = view.base.connections.midstream()
    if not lines or refused.broken or any(conn in middle for conn in refused.connections):
        return None
    if not all(map(_ended_at_first, lines)):
        return None
    answered = {at for broker in brokers for at in answered_versions(view).get((broker, api), ())}
    lower = [each for each in answered if each < version]
    if version in answered or not (lower or (api == "ApiVersions" and version)):
        return None
    if any(broker in rejected_at_once(view) for broker in brokers):
        return None
    if len(lines) < limit("versions.ended") and not lower:
        return None
    how = "reset" if all(line["end"] == "broker rst" for line in lines) else "closed"
    took = duration(max(line["ended"] - line["waiting"] for line in lines))
    since = first_release(api, version)
    below = f" ({api} v{version} was added in Kafka {since})" if since else ""
    return view.finding(
        "version-refused",
        f"{listed(brokers)} {how} {plural(len(lines), 'connection')} from {client} at the first "
        f"request, {api} v{version}, within {took}: it "
        f"{'' if lower else 'probably '}does not support this version"
        + (f"; it answered v{max(lower)}" if lower else ""),
        f"api == {api} and version == {version} and lost",
        refused,
        client=client,
        advice=f"Cap the client at an older version{below}: kgo.MaxVersions (franz-go), "
        "Config.Version (sarama), api_version (kafka-python), or an older library. Apache "
        "Kafka answers UNSUPPORTED_VERSION; some other brokers and proxies end the "
        "connection. If an older version ends it as well, check what listens there: brokers before "
        "0.10 know no ApiVersions, and other servers no Kafka.",
        about={"api": api, "broker": brokers[: LIMITS.topics]},
    )


def _ended_at_first(line: Line) -> bool:
    """Return whether a broker ended a connection at its first request, at once, without a byte."""
    return (
        line["end"] in ("broker rst", "broker fin")
        and not line["proxy_header"]
        and line["requests"] == line["unanswered"] == 1
        and not line["broker_bytes"]
        and line["ended"] - (line["waiting"] or 0) < limit("lost.age")
    )


@DetectorInput.once
def rejected_at_once(view: DetectorInput) -> Counter[str]:
    """Count, by broker, connections that it ended before the client sent a byte: no request was the
    reason."""
    # A broker at max.connections.per.ip accepts a connection and closes it (SocketServer logs
    # "Rejected connection"), and so does a load balancer without a backend.
    return Counter(
        line["broker_address"]
        for line in view.lines
        if line["end"] in ("broker rst", "broker fin")
        and not (line["client_bytes"] or line["broker_bytes"] or line["requests"])
        and line["handshake"] is not None
        and (line["life"] or 0) < limit("lost.age")
    )


@DetectorInput.once
def answered_versions(view: DetectorInput) -> dict[tuple[str, str], list[int]]:
    return by_key(
        ((str(key["broker"]), str(key["api"])), key["version"])
        for key, traffic in view.base.apis.grouped(("broker", "api", "version"))
        if traffic.answered and isinstance(key["version"], int)
    )


@DetectorInput.once
def _served(view: DetectorInput) -> set[tuple[Any, ...]]:
    found = view.base.apis.grouped(("client_id", "host", "api", "version"))
    return {
        (str(key["client_id"] or ""), key["host"], key["api"], key["version"])
        for key, traffic in found
        if traffic.answered or traffic.no_reply
    }


def _others(view: DetectorInput, name: Any) -> Offer | None:
    """Return the versions that brokers offer for an API, if all clients got the same offer."""
    spans = {span for (_, _, api), span in offers(view).items() if api == str(name)}
    return spans.pop() if len(spans) == 1 else None


def _gone(name: str, version: Any) -> str:
    """Return the release that removed a version of an API; empty if none did."""
    try:
        span = releases.spans(name).get(int(version))
    except (UnknownApi, TypeError, ValueError):
        return ""
    return span.removed if span is not None else ""


# --- what brokers offered


def offered(view: DetectorInput, client_id: Any, host: Any, api: Any) -> Offer | None:
    """Return the versions of an API that brokers offered to a client; None without ApiVersions in
    the capture."""
    return offers(view).get((str(client_id or ""), str(host), str(api)))


@DetectorInput.once
def offers_by_api(view: DetectorInput) -> dict[str, list[Offer]]:
    """Return the offers to all clients, by API."""
    return by_key((api, offer) for (_, _, api), offer in offers(view).items())


@DetectorInput.once
def offers(view: DetectorInput) -> dict[tuple[str, str, str], Offer]:
    """Return all offers, by client id, host and API."""
    found: dict[tuple[str, str, str], Offer] = {}
    for usage in view.base.clients.usages():
        of_4 = usage.offered.get("Fetch", (0, 0))[0] >= FETCH_OF_4
        for api, (first, last) in usage.offered.items():
            least = first_taken(api, first) if of_4 else first
            found[(*usage.identity.key, api)] = Offer(least, last)
    return found


def refused_versions(view: DetectorInput) -> set[ClientKey]:
    """Return clients (id, host) that got no response to versions that no broker offered them."""
    found: set[ClientKey] = set()
    for key, traffic in view.base.apis.grouped(("client_id", "host", "api", "version")):
        if traffic.lost:
            span = offered(view, key["client_id"], key["host"], key["api"])
            if span is not None and not span.takes(key["version"]):
                found.add((str(key["client_id"] or ""), str(key["host"])))
    return found


def first_taken(api: str, first: int) -> int:
    """Return the first version that Kafka 4 takes, if it offers `first` and later."""
    return max(first, PRODUCE_OF_4) if api == "Produce" else first


def first_release(api: str, version: Any) -> str:
    """Return the first Kafka release that has a version of an API; empty where none is known."""
    try:
        return releases.since(api, int(version))
    except (UnknownApi, UnknownVersion, TypeError, ValueError):
        return ""
