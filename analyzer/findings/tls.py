"""TLS handshakes that failed: by their alerts, or by their shape; TLS that cannot be read, and what
is inside of TLS where that is not Kafka."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafkascope.analyzer.findings.filters import all_of, connections_in, with_requests
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.other_protocols import unanswered
from kafkascope.analyzer.findings.rules import RULES, limit
from kafkascope.analyzer.findings.tls_causes import (
    Failure,
    How,
    cause_of,
    failed_connections,
    failure,
    handshakes,
    is_tls,
)
from kafkascope.analyzer.findings.view import DetectorInput, Finding, brokers_in, ended_at, hosts_in
from kafkascope.analyzer.findings.words import listed, plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.model import Line
from kafkascope.captures.tls.begin import ALERTS

REASONS: Final = {
    "no-key-log": "no key log was given",
    "no-secret": "the key log has no secret for {}",
    "no-handshake": "the capture starts after the handshake",
    "bad-secret": "the secrets of the key log do not match",
    "unsupported": "unsupported TLS version or cipher suite",
    "damaged": "bytes are missing or corrupt",
}
"""Why TLS cannot be read (`captures.model.TlsError`) -> the reason in words; the rule has a fix for
each."""


def findings(view: DetectorInput) -> Iterator[Finding]:
    """Yield findings by how handshakes ended (one wrong certificate is one trouble of many clients
    and brokers), one about all that cannot be read, and one for each pair of hosts with another
    protocol inside."""
    yield from _failed(view)
    lines = [line for line in view.lines if is_tls(line)]
    failed = failed_connections(view)
    end_ns = max(map(ended_at, view.lines), default=0)
    opaque = [
        line
        for line in lines
        if line["tls_error"] and line["connection"] not in failed and not unanswered(line, end_ns)
    ]
    if opaque:
        yield _opaque(view, opaque)
    inside = by_key(((line["inside"], *_ends(line)), line) for line in lines if line["inside"])
    for (what, host, broker), found in sorted(inside.items()):
        verb = "carries" if len(found) == 1 else "carry"
        text = f"{plural(len(found), 'connection')} from {host} to {broker} {verb} {what}"
        yield _finding(view, "tls-inside", f"{text} inside TLS", found)


def _ends(line: Line) -> tuple[str, str]:
    return host_of(line["client_address"]), line["broker_address"]


def _failed(view: DetectorInput) -> Iterator[Finding]:
    ended = [(failure(line), line) for line in handshakes(view)]
    done = [line for how, line in ended if how is None and line["tls_result"] is not None]
    worked = by_key((_ends(line), line) for line in done)
    chosen = by_key((line["broker_address"], line["tls"]) for line in done)
    found: dict[tuple[How, bool, Failure], list[Line]] = defaultdict(list)
    for how, line in ended:
        others = worked.get(_ends(line))
        # Who closes an odd one in the middle gave up, or looked for a port; unless those that
        # worked between the same hosts had a server name (SNI), and this one has none.
        silent = how is not None and how[0] in ("closed", "ended") and others
        if how is None or (silent and (line["sni"] or not all(each["sni"] for each in silent))):
            continue
        cause = cause_of(how, line, set(chosen.get(line["broker_address"], ())))
        found[(how, others is not None, cause)].append(line)
    for (how, also_worked, cause), lines in sorted(found.items()):
        who, did = _how(how, lines)
        yield _finding(
            view,
            "tls-failed",
            f"{plural(len(lines), 'TLS handshake')} from {listed(hosts_in(lines))} to "
            f"{listed(brokers_in(lines))} failed: {who} {did}{cause[0]}",
            lines,
            "opaque" if all(line["phase"] == "opaque" for line in lines) else "",
            severity="warning" if also_worked else None,
            case=cause[1],
        )


def _finding(
    view: DetectorInput,
    rule: str,
    text: str,
    lines: Sequence[Line],
    state: str = "",
    **more: Any,
) -> Finding:
    """Return a finding about connections with TLS; `state`: the filter for their exchanges."""
    rows = connections_in(with_requests(lines), LIMITS.connections)
    return view.finding(
        rule,
        text,
        all_of(state, rows) if rows else "",
        lines=lines,
        connects=connections_in(lines, LIMITS.connections),
        about={
            "host": hosts_in(lines)[: LIMITS.connections],
            "broker": brokers_in(lines)[: LIMITS.connections],
        },
        **more,
    )


def _how(how: How, lines: list[Line]) -> tuple[str, str]:
    outcome, side, alert = how
    who = "the client" if side == "client" else "the broker"
    if outcome == "alert":
        name = ALERTS.get(alert, f"alert {alert}").replace("_", " ")
        return who, f"sent the alert {name} ({alert})"
    if outcome == "rejected":
        return who, "sent an encrypted alert at once (a key log shows which)"
    if outcome == "answered":
        what = lines[0]["tls_answer"]
        spoke = "bytes that are not TLS" if what == "unknown" else what
        return who, f"answered the ClientHello with {spoke}"
    if outcome == "ended":
        reset = all(line["end"].endswith("rst") for line in lines)
        late = any((line["life"] or 0) >= limit("tls.at-once") for line in lines)
        when = "without a response to" if late else "right after"
        return who, f"{'reset' if reset else 'closed'} the connection {when} the ClientHello"
    return who, "closed the connection during the handshake"


def _opaque(view: DetectorInput, found: list[Line]) -> Finding:
    reasons = Counter(line["tls_error"] for line in found).most_common()
    parts = [
        REASONS[reason].format("it" if count == 1 else "them")
        + (f" ({count})" if len(reasons) > 1 else "")
        for reason, count in reasons
    ]
    some = " completely" if all(line["phase"] != "opaque" for line in found) else ""
    return _finding(
        view,
        "tls-opaque",
        f"{plural(len(found), 'TLS connection')} from {listed(hosts_in(found))} to "
        f"{listed(brokers_in(found))} cannot be decrypted{some}: {'; '.join(parts)}",
        found,
        advice=" ".join(RULES["tls-opaque"].advices[reason] for reason, _ in reasons[:2]),
        severity="note" if _is_missed(found, view) else None,
    )


def _is_missed(found: list[Line], view: DetectorInput) -> bool:
    """Return whether unreadable TLS matters: there is a key log, and its broker is known, or no
    connection is readable."""
    if all(line["tls_error"] == "no-key-log" for line in found):
        return False
    works = {line["broker_address"] for line in view.lines if line["phase"] == "work"}
    return not works or any(line["requests"] or line["broker_address"] in works for line in found)
