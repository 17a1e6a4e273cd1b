"""Which clients use API versions that a Kafka release does not have (question 1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.bodies.dissection import BROKEN
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.offers import (
    Offer,
    first_release,
    first_taken,
    offered,
    offers,
)
from kafkascope.analyzer.findings.view import View, all_of, duration, listed, once, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.clients import Usage
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import measured, total, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.statistics.verdict import breaks_at, verdict_of
from kafkascope.analyzer.text import spelled
from kafkascope.dissectors.errors import UnknownApi
from kafkascope.dissectors.reference import releases

API_VERSIONS: Final = 18
UNSUPPORTED: Final = 35
MOST_BROKERS: Final = 20


@measured
class RefusedVersion(Seen):
    """Requests of one version."""

    connections: Names = whole(Names)
    broken: int = total()
    """Those that no broker can read, whatever versions it takes."""


class Versions(Detector):
    """From the statistic of clients and the verdict."""

    TOUCHABLE = False
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "breaks-on-upgrade",
            "note",
            "API versions that a newer Kafka release removed",
            "Upgrade the client library before the brokers, or raise the Kafka version that it is "
            "configured for (sarama: Config.Version; kafka-python: api_version). `kafkascope "
            "clients --for RELEASE` lists all reasons; with `check --for RELEASE` this is a "
            "warning.",
            brief="{client} breaks on upgrade",
        ),
        Rule(
            "version-refused",
            "error",
            "request version that a broker refused",
            "Use a client library that supports the versions of this broker, or enable version "
            "negotiation (ApiVersions). The client is too new or too old for the broker.",
            "UNSUPPORTED_VERSION",
            limits=("versions.ended", "lost.age"),
        ),
        Rule(
            "no-api-versions",
            "note",
            "client without version negotiation",
            "Upgrade the library, or enable version negotiation (api.version.request in "
            "librdkafka). A client with fixed versions breaks when brokers remove them.",
            brief="{client} never sends ApiVersions",
        ),
    )

    ODD = True

    refused: Keyed[RefusedVersion] = table(RefusedVersion, 2_000)
    """By client, API and version."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of versions that were answered with the error, or with the end of the
        connection."""
        if row.state == "lost":
            how = "closed" if row.reason.endswith("by the broker") else ""
        else:
            unsupported = row.errors and any(e.top and e.code == UNSUPPORTED for e in row.errors)
            how = "told" if unsupported and row.api_key != API_VERSIONS else ""
        if how and row.api_key is not None:
            refused = self.refused[(*client_of(row), row.api, row.api_version, how)]
            refused.see(row)
            refused.connections.add(row.connection)
            refused.broken += any(each.reason in BROKEN for each in row.undecoded)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield one finding per client and rule."""
        for usage in view.base.clients.usages():
            yield from self._breaks(usage, view)
            yield from self._silent(usage, view)
        yield from self._refused(view)

    def _breaks(self, usage: Usage, view: View) -> Iterator[Finding]:
        at = view.release or breaks_at(usage)
        if not at:
            return
        release = at.partition(",")[0]
        reasons = [r for r in verdict_of(usage, release).reasons if r.word == "breaks"]
        if not reasons:
            return
        who, where = _who(usage, view)
        parts = []
        for reason in reasons:
            missing = [
                version
                for version in sorted(usage.versions.get(reason.api, ()))
                if not releases.has(reason.api, version, release)
            ]
            numbers = ", ".join(map(str, missing))
            parts.append(f"(api == {reason.api} and version in {{{numbers}}})")
        count = sum(
            number
            for reason in reasons
            for version, number in usage.versions.get(reason.api, {}).items()
            if not releases.has(reason.api, version, release)
        )
        library = spelled(usage.identity.software) or "library unknown"
        text = (
            f"{who} ({library}) will not work with Kafka {at}: "
            f"{listed((r.text for r in reasons), 3, '; ')}"
        )
        any_of = " or ".join(parts)
        yield view.finding(
            self.rule("breaks-on-upgrade"),
            text,
            all_of(where, f"({any_of})" if len(parts) > 1 else any_of),
            count=count,
            first_ns=usage.total.first_ns,
            last_ns=usage.total.last_ns,
            severity="warning" if view.release else None,
            about=[("client", who), ("release", release)],
        )

    def _refused(self, view: View) -> Iterator[Finding]:
        served = _served(view)
        for (client_id, host, name, version, how), seen in self.refused.items():
            span = offered(view, client_id, host, name)
            asked = span is not None
            if span is None and how == "closed":
                span = _others(view, name)
            inside = span is not None and span.takes(version)
            gone = _gone(str(name), version)
            if how == "closed" and not inside:
                ended = self._ended(view, (client_id, host), str(name), version, seen)
                if ended is not None:
                    yield ended
                    continue
            if how == "closed":
                # A client that does not ask is told by the end of the connection alone.
                old = not asked and (str(client_id or ""), host, name, version) not in served
                if inside or (not asked and not (old and gone)):
                    continue
                if not asked and view.is_broker(client_id, host):
                    continue  # brokers agree on versions by their configuration; one of them stops
            who = view.client(client_id, host)
            has = f"; it supports v{span.first} to v{span.last}" if span else ""
            if not has and how == "closed":
                first = releases.versions_of(str(name), gone)
                has = f" without an error, as Kafka {gone} and later do"
                if first is not None:
                    has += f"; they support v{first_taken(str(name), first.low)} and later"
            if inside:
                has += ", so a feature that the request needs is disabled"
            what = "closed the connection" if how == "closed" else "answered UNSUPPORTED_VERSION"
            yield view.finding(
                self.rule("version-refused"),
                f"{who} sent {plural(seen.count, f'{name} v{version} request')}; the broker "
                f"{what}{has}",
                all_of(
                    view.of_client(client_id, host),
                    f"api == {name} and version == {version}",
                    "lost" if how == "closed" else "error.top == UNSUPPORTED_VERSION",
                ),
                seen,
                about=[("client", who), ("api", str(name))],
            )

    def _ended(
        self, view: View, client: tuple[Any, Any], api: str, version: Any, refused: RefusedVersion
    ) -> Finding | None:
        """Return the finding about a version at which a broker ends each connection, in place of
        an error; None where something else may be the reason."""
        lines = [line for line in view.lines() if line["connection"] in refused.connections]
        ended = [line for line in lines if _ended_at_first(line)]
        brokers = {line["broker_address"] for line in ended}
        middle = view.base.connections.midstream()
        if (
            not ended
            or refused.broken
            or len(ended) < len(lines)
            or any(conn in middle for conn in refused.connections)
        ):
            return None
        answered = {at for broker in brokers for at in _answers(view).get((broker, api), ())}
        lower = any(each < version for each in answered)
        if version in answered or not (lower or (api == "ApiVersions" and version)):
            return None
        if len(ended) < limit("versions.ended") and not lower:
            return None
        who, broker = view.client(*client), listed(sorted(brokers))
        how = "reset" if all(line["end"] == "broker rst" for line in ended) else "closed"
        took = duration(max(line["ended"] - line["waiting"] for line in ended))
        text = (
            f"{broker} {how} {plural(len(ended), 'connection')} from {who} at the first request, "
            f"{api} v{version}, within {took}: it does not support this version"
        )
        if lower:
            text += f"; it answered v{max(each for each in answered if each < version)}"
        since = first_release(api, version)
        below = f" ({api} v{version} was added in Kafka {since})" if since else ""
        return view.finding(
            self.rule("version-refused"),
            text,
            all_of(view.of_client(*client), f"api == {api} and version == {version}", "lost"),
            refused,
            advice=f"Cap the client at an older version{below}: kgo.MaxVersions (franz-go), "
            "Config.Version (sarama), api_version (kafka-python), or an older library. Apache "
            "Kafka answers UNSUPPORTED_VERSION; some other brokers and proxies end the "
            "connection. If an older version ends it as well, check what listens there.",
            about=[
                ("client", who),
                ("api", api),
                *(("broker", spelled(each)) for each in sorted(brokers)[:MOST_BROKERS]),
            ],
        )

    def _silent(self, usage: Usage, view: View) -> Iterator[Finding]:
        if usage.negotiates is not False or set(usage.total.roles) == {"broker"}:
            return
        who, where = _who(usage, view)
        yield view.finding(
            self.rule("no-api-versions"),
            f"{who} sent {plural(usage.total.count, 'request')} but never ApiVersions (its "
            "connections were captured from the start)",
            where,
            count=usage.total.count,
            first_ns=usage.total.first_ns,
            last_ns=usage.total.last_ns,
            about=[("client", who)],
        )


def _ended_at_first(line: Line) -> bool:
    """Return whether a broker ended a connection at its first request, at once and without a
    byte."""
    return (
        line["end"] in ("broker rst", "broker fin")
        and not line["proxy_header"]
        and line["requests"] == line["unanswered"] == 1
        and not line["broker_bytes"]
        and line["ended"] - (line["waiting"] or 0) < limit("lost.age")
    )


@once
def _answers(view: View) -> dict[tuple[str, str], set[int]]:
    """Map (broker, API) to the versions that the broker answered."""
    found: dict[tuple[str, str], set[int]] = {}
    for key, traffic in view.base.apis.grouped(("broker", "api", "version")):
        if traffic.answered and isinstance(key["version"], int):
            found.setdefault((str(key["broker"]), str(key["api"])), set()).add(key["version"])
    return found


def _served(view: View) -> set[tuple[Any, ...]]:
    """Return (client id, host, API, version) that a broker answered."""
    found = view.base.apis.grouped(("client_id", "host", "api", "version"))
    return {
        (str(key["client_id"] or ""), key["host"], key["api"], key["version"])
        for key, traffic in found
        if traffic.answered or traffic.no_reply
    }


def _others(view: View, name: Any) -> Offer | None:
    """Return what the brokers of the capture offer for an API, when all clients were told the
    same."""
    spans = {span for (_, _, api), span in offers(view).items() if api == str(name)}
    return spans.pop() if len(spans) == 1 else None


def _gone(name: str, version: Any) -> str:
    """Return the release that dropped a version of an API; empty when all newer ones have it."""
    try:
        span = releases.spans(name).get(int(version))
    except (UnknownApi, TypeError, ValueError):
        return ""
    return span.removed if span is not None else ""


def _who(usage: Usage, view: View) -> tuple[str, str]:
    identity = usage.identity
    where = view.of_client(identity.client_id, identity.host)
    return view.client(identity.client_id, identity.host), where
