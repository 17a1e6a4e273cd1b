"""What clients may not do (close behind), and client metrics; connections that fail before the work
for lack of SASL (question 9), and SASL sessions that expired because the client did not
authenticate again (KIP-368)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from kafkascope.analyzer.findings.counting import (
    Names,
    Occurrences,
    OccurrencesWithText,
    most,
    total,
    whole,
)
from kafkascope.analyzer.findings.filters import all_of, connections_in, one_of, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import RULES, limit
from kafkascope.analyzer.findings.versions import refused_versions
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
from kafkascope.analyzer.findings.words import duration, listed, plural, size, spelled
from kafkascope.analyzer.identity import ClientKey, client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.connections import ZOOKEEPER
from kafkascope.analyzer.statistics.model import Line, topic_key
from kafkascope.dissectors.reference.codes import error_name
from kafkascope.times import SECOND

# What brokers answer to SaslHandshake on a listener without SASL.
ILLEGAL_SASL_STATE: Final = 34
BEARER: Final = "OAUTHBEARER"


class SaslFailure(OccurrencesWithText):
    """With what the broker said, and the age of a token that had expired."""

    expired_ns: int | None = most()


class Security(Counts):
    """SASL errors, connections closed at their first request."""

    sasl = SaslFailure.table(LIMITS.keys)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        if row.api == "SaslHandshake" and any(e.code in (33, 34) for e in row.errors):
            request, response = exchange.request_body or {}, exchange.response_body or {}
            words = response.get("mechanisms") or ()
            none = not words and any(e.code == ILLEGAL_SASL_STATE for e in row.errors)
            what = "no-sasl" if none else "mechanism"
            self._see(what, row, request.get("mechanism", ""), words)
        elif row.api == "SaslAuthenticate" and row.errors:
            words = [error.message or error.name for error in row.errors]
            self._see("failed", row, exchange.mechanism, words)
        elif row.api == "SaslToken" and row.state == "lost":
            self._see("token", row, exchange.mechanism, ())
        elif row.api == "SaslAuthenticate" and exchange.mechanism.upper() == BEARER:
            # RFC 7628, 3.2.2: a token is refused by a challenge, without an error, and the client
            # has to acknowledge it to get one. kafkajs sends its first request instead.
            token, challenge = exchange.request_body or {}, exchange.response_body or {}
            words = _decoded(challenge, from_client=False, field="error")
            if words:
                claims = _decoded(token, from_client=True, field="claims")
                self._see("challenge", row, exchange.mechanism, [words], _past(claims, row))

    def _see(
        self,
        what: str,
        row: Row,
        mechanism: str,
        words: Iterable[str],
        expired_ns: int | None = None,
    ) -> None:
        here = self.sasl[(what, *client_of(row), row.broker_address, mechanism)]
        here.see(row, expired_ns=expired_ns)
        for each in words:
            here.words.add(each)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        # A client that is wrong at one broker is wrong at all.
        failed = by_key(
            ((what, *who, mechanism), (str(broker), here))
            for (what, *who, broker, mechanism), here in self.sasl.items()
        )
        for (what, *who, mechanism), found in failed.items():
            if what == "challenge" and ("failed", *who, mechanism) in failed:
                continue
            challenges = failed.get(("challenge", *who, mechanism), ())
            past = max((here.expired_ns or 0 for _, here in challenges), default=0)
            client, name = view.client(*who), spelled(mechanism or "SASL")
            yield _failed(what, client, name, found, past, view)
        expired_by_client = by_key((client_key(line), line) for line in view.lines if expired(line))
        for key, lines in sorted(expired_by_client.items()):
            yield _expired(view.client(*key), lines, view)
        for (name, key, broker), lines in sorted(by_key(_closed(view)).items()):
            # kafkajs sends ApiVersions on its first connection only.
            answered = any(map(_answered, lines))
            if name or (answered and len(lines) >= limit("sasl.several")):
                yield _missing(name, view.client(*key), broker, lines, view)


def _decoded(body: Any, *, from_client: bool, field: str) -> Any:
    """Return a field of the token in a SaslAuthenticate; None where it has none."""
    from kafkascope.dissectors.embedded.sasl import decode

    found = decode(body.get("auth_bytes") or b"", BEARER, from_client=from_client)
    return None if found is None else found.body.get(field)


def _past(claims: Any, row: Row) -> int | None:
    """Return how long before its request a token had expired; None where it had not."""
    expires = claims.get("exp") if isinstance(claims, dict) else None
    if not isinstance(expires, (int, float)):
        return None
    past = row.time_ns - int(expires * SECOND)
    return past if past > 0 else None


def _failed(
    what: str,
    client: Client,
    mechanism: str,
    found: list[tuple[str, SaslFailure]],
    past_ns: int,
    view: DetectorInput,
) -> Finding:
    seen, brokers = OccurrencesWithText(), [broker for broker, _ in found]
    for _, here in found:
        seen.merge(here)
    places = list(map(quoted, brokers[: LIMITS.connections]))
    broker, name = listed(brokers), "sasl-failed"
    if what in ("mechanism", "no-sasl"):
        name, where = "sasl-mechanism", "api == SaslHandshake and failed"
        offered = listed(seen.words) or "none"
        text = f"{client} requested SASL mechanism {mechanism} from {broker}; offered: {offered}"
        if what == "no-sasl":
            text += " (the listener has no SASL)"
    elif what in ("failed", "challenge"):
        where = "api == SaslAuthenticate" + (" and failed" if what == "failed" else "")
        often = "once" if seen.count == 1 else f"{seen.count} times"
        text = f"Authentication of {client} at {broker} with {mechanism} failed {often}: "
        text += listed(seen.words, 1)
        text += f"; the token had expired {duration(past_ns)} before" if past_ns else ""
        what = "expired" if past_ns else "bearer" if mechanism.upper() == BEARER else what
    else:
        where = "lost"
        text = (
            f"{broker} closed {plural(seen.count, 'connection')} from {client} during {mechanism} "
            "authentication, as old brokers do when they reject the password"
        )
    return view.finding(
        name,
        text,
        all_of(one_of("broker", places), where),
        seen,
        client=client,
        case=what if what in RULES[name].advices else "",
        about={"broker": brokers[: LIMITS.connections], "mechanism": mechanism},
    )


def _closed(view: DetectorInput) -> Iterator[tuple[tuple[str, ClientKey, str], Line]]:
    """Yield connections that brokers closed at the first request that is work, by rule (empty where
    several are needed), client and broker."""
    lines = view.lines
    sasl = {
        line["broker_address"]
        for line in lines
        # The user is known from SASL, not from a certificate.
        if line["phase"] == "sasl" or (line["user"] and line["user"] != line["tls_client"])
    }
    served = {line["broker_address"] for line in lines if not line["user"] and _answered(line) > 1}
    refused, middle = refused_versions(view), view.base.connections.midstream()
    for line in lines:
        answered = _answered(line)
        if line["end"] not in ("broker fin", "broker rst") or line["phase"] != "work":
            continue
        if not line["requests"] or not line["unanswered"] or line["server_protocol"]:
            continue
        if line["connection"] in middle or line["protocol"] == ZOOKEEPER:
            continue  # what came before the capture may have been SASL
        if (rest := rest_before(line)) is not None and rest >= limit("reset.rest"):
            continue  # clients log in at once: a device, or the broker, dropped what was idle
        broker, key = line["broker_address"], client_key(line)
        if broker in sasl and not line["user"] and answered <= 1:
            yield ("sasl-missing", key, broker), line
        # A version that the broker does not take is closed alike. Else it answers ApiVersions, and
        # nothing else, to whoever does not say who it is.
        elif key not in refused and broker not in sasl | served and answered <= 1:
            yield ("", key, broker), line


def _answered(line: Line) -> int:
    return int(line["requests"] - line["unanswered"])


def _missing(
    name: str, client: Client, broker: str, lines: list[Line], view: DetectorInput
) -> Finding:
    what = plural(len(lines), "connection")
    text = (
        f"{broker} answered ApiVersions from {client}, closed {what} at the next request, "
        "and served no client without authentication"
    )
    if name:
        text = (
            f"{broker} closed {what} from {client} at the first request; other clients "
            "authenticate there with SASL"
        )
    return view.finding(
        "sasl-missing",
        text,
        f"{connections_in(lines, LIMITS.connections)} and lost",
        count=len(lines),
        span=(lines[0]["opened"], lines[-1]["opened"]),
        about={"client": client, "broker": broker},
    )


# --- sessions


def _expired(client: Client, lines: list[Line], view: DetectorInput) -> Finding:
    lasted = min(line["session"][1] - line["session"][0] for line in lines)
    brokers = brokers_in(lines)
    users = sorted({spelled(line["user"]) for line in lines if line["user"]})
    user = f" (user {listed(users, 2)})" if users else ""
    lost = sum(line["unanswered"] for line in lines)
    return view.finding(
        "session-expired",
        f"{listed(brokers)} closed {plural(len(lines), 'connection')} from {client}{user} "
        f"after the SASL session expired ({duration(lasted)} without re-authentication); "
        f"{plural(lost, 'request')} lost",
        all_of(connections_in(lines), "lost"),
        count=len(lines),
        span=(min(line["waiting"] for line in lines), max(line["waiting"] for line in lines)),
        about={"client": client, "user": users, "broker": brokers},
    )


def rest_before(line: Line) -> int | None:
    """Return the nanoseconds between the last response of a connection and the request that was not
    answered; None where there was no response, or no such request."""
    answered, waiting = line["answered"], line["waiting"]
    return None if answered is None or waiting is None else int(waiting - answered)


def expired(line: Line) -> bool:
    """Return whether the broker ended the connection at a request after the end of its session."""
    if line["session"] is None or not line["end"].startswith("broker"):
        return False
    return bool(line["waiting"] is not None and 0 < line["session"][1] <= line["waiting"])


def expired_at(view: DetectorInput, client: str, broker: str, time_ns: int) -> bool:
    """Return whether the SASL session of a connection, by its addresses, had expired at a time, so
    that the broker closed it instead of handling the request."""
    sessions = _sessions(view).get((client, broker), ())
    begun = [each for each in sessions if each[0] <= time_ns]
    return bool(begun) and 0 < max(begun)[1] <= time_ns


@DetectorInput.once
def _sessions(view: DetectorInput) -> dict[tuple[str, str], list[tuple[int, int]]]:
    return by_key(
        ((line["client_address"], line["broker_address"]), line["session"])
        for line in view.lines
        if line["session"] is not None
    )


DENIALS: Final = frozenset({29, 30, 31, 53, 65, 66})
TOPIC: Final = 29
GROUP: Final = 30
# CLUSTER_AUTHORIZATION_FAILED.
CLUSTER: Final = 31
# Cases of the fixes: operations that an error of this API is about, other than reads and writes.
OPERATIONS: Final = {
    (CLUSTER, "InitProducerId"): "idempotent",
    (TOPIC, "CreateTopics"): "create",
    (CLUSTER, "CreateTopics"): "create",
    (TOPIC, "DeleteTopics"): "delete",
}


class Denied(Occurrences):
    """With the users and resources."""

    users: Names = whole(Names)
    places: Names = whole(Names)


class Pushed(Occurrences):
    """Client metrics."""

    bytes: int = total()
    failed: int = total()


class Denials(Counts):
    """Authorization errors; telemetry."""

    clients = Occurrences.table(LIMITS.keys)
    denied = Denied.table(LIMITS.keys)
    """By error, API and client."""
    pushed = Pushed.table(LIMITS.keys)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        if row.api == "PushTelemetry":
            # UNKNOWN_SUBSCRIPTION_ID: the client is to get the new subscription.
            failed = int(any(error.name != "UNKNOWN_SUBSCRIPTION_ID" for error in row.errors))
            self.pushed[client_of(row)].see(row, bytes=row.request_bytes or 0, failed=failed)
            return
        codes = {error.code for error in row.errors if error.code in DENIALS}
        if codes:
            self.clients[client_of(row)].see(row)
        for code in codes:
            denied = self.denied[(code, row.api, *client_of(row))]
            denied.see(row, users=row.user or "unknown")
            for error in row.errors:
                place = topic_key(error.topic, error.topic_id) or error.group
                place = place or next(iter(row.transactional_ids), "")
                if error.code == code and place:
                    denied.places.add(place)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        denials = by_key((key[2:], (key[0], key[1], each)) for key, each in self.denied.items())
        for who, parts in denials.items():
            seen = self.clients.get(who)
            if seen is not None:
                yield _denied(view.client(*who), seen, parts, view)
        for who, pushed in self.pushed.items():
            client = view.client(*who)
            were = "was" if pushed.failed == 1 else "were"
            failed = f"; {pushed.failed} {were} refused" if pushed.failed else ""
            often = "once" if pushed.count == 1 else f"{pushed.count:,} times"
            yield view.finding(
                "telemetry",
                f"{client} pushed its metrics {often}, {size(pushed.bytes)} in total{failed}",
                "api == PushTelemetry",
                pushed,
                severity="note" if pushed.failed else None,
                client=client,
            )


def _denied(
    client: Client, seen: Occurrences, parts: list[tuple[int, str, Denied]], view: DetectorInput
) -> Finding:
    users = sorted({user for _, _, denied in parts for user in denied.users})
    refusals: list[str] = []
    named: dict[int, set[str]] = {TOPIC: set(), GROUP: set()}
    for code, api, denied in parts:
        names = view.topics(denied.places)
        places = f" for {listed(names)}" if names else ""
        requests = plural(denied.count, f"{api} request")
        refusals.append(f"{requests}{places} failed with {error_name(code)}")
        named.setdefault(code, set()).update(names)
    codes = sorted({code for code, _, _ in parts})
    # What differs from topics comes after what is said of all.
    rule = RULES["denied"]
    granted = [OPERATIONS.get((code, api), error_name(code)) for code, api, _ in parts]
    refused = "; ".join(refusals[: LIMITS.refusals])
    cases = {rule.advices.get(case, "") for case in granted}
    return view.finding(
        "denied",
        f"{client} (user {listed(users, 2)}) was denied access: {refused}",
        one_of("error", codes),
        seen,
        client=client,
        advice=" ".join(each or rule.advice for each in sorted(cases)),
        link=error_name(codes[0]),
        about={
            "error": map(error_name, codes),
            "topic": sorted(named[TOPIC]),
            "group": sorted(named[GROUP]),
        },
    )
