"""TLS that cannot be read, and what is inside of TLS where that is not Kafka."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.other_protocols import unanswered
from kafkascope.analyzer.findings.tls import failed_connections
from kafkascope.analyzer.findings.view import View, among, ended_at, listed, plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.model import Severity
from kafkascope.analyzer.statistics.model import Line
from kafkascope.analyzer.text import spelled

MOST_NAMED: Final = 50
"""Connections, hosts and brokers of a finding."""
REASONS: Final = {
    "no-key-log": (
        "no key log was given",
        "Pass a key log: `kafkascope check INPUT --keylog keys.log` (`kafkascope tls-keys` shows "
        "how to obtain one for each kind of client). Or connect the client through `kafkascope "
        "proxy`.",
    ),
    "no-secret": (
        "the key log has no secret for {}",
        "Search the key logs of all clients and brokers for these client randoms (`kafkascope "
        "connections INPUT --json`, tls_note), and pass each of them (--keylog, several times). "
        "`kafkascope tls-keys check keys.log INPUT` counts the connections that a key log "
        "decrypts.",
    ),
    "no-handshake": (
        "the capture starts after the handshake",
        "Start the capture before the clients. For TLS 1.3 pass a key log anyway (--keylog): its "
        "secrets are tried without the handshake.",
    ),
    "bad-secret": (
        "the secrets of the key log do not match",
        "Check where the key log comes from: lines that were truncated or edited, or lines of "
        "other traffic (`kafkascope tls-keys check keys.log INPUT`).",
    ),
    "unsupported": (
        "unsupported TLS version or cipher suite",
        "Let one side offer only TLS 1.2 or 1.3 with AES or ChaCha20, or capture through "
        "`kafkascope proxy`.",
    ),
    "damaged": (
        "bytes are missing or corrupt",
        "Capture whole packets (tcpdump -s 0) with a larger buffer (-B 65536). What is intact was "
        "decrypted.",
    ),
}
"""Why TLS cannot be read (`captures.model.TlsError`) -> the reason in words, and what helps."""


class Encryption(Detector):
    """From the statistic of connections."""

    TOUCHABLE = False
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "tls-opaque",
            "chat",
            "TLS connections that cannot be decrypted",
            REASONS["no-key-log"][1],
            brief="{n} undecrypted TLS connection|{n} undecrypted TLS connections",
            subject=("broker",),
        ),
        Rule(
            "tls-inside",
            "note",
            "TLS connections that carry another protocol than Kafka",
            "If the broker is a Kafka broker, identify the sender: a health check, a browser, a "
            "client of another service. Otherwise no action is needed.",
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield one finding about all that cannot be read, and one for each pair of hosts with
        another protocol inside."""
        lines = [line for line in view.lines() if line["resumed"] is not None]
        yield from self._closed(view, lines)
        inside: dict[tuple[str, str, str], list[Line]] = defaultdict(list)
        for line in lines:
            if line["inside"]:
                host, broker = host_of(line["client_address"]), line["broker_address"]
                inside[(line["inside"], host, broker)].append(line)
        for (what, host, broker), found in sorted(inside.items()):
            count = plural(len(found), "connection")
            verb = "carries" if len(found) == 1 else "carry"
            yield _finding(
                view,
                self.rule("tls-inside"),
                f"{count} from {host} to {broker} {verb} {what} inside TLS",
                found,
            )

    def _closed(self, view: View, lines: list[Line]) -> Iterator[Finding]:
        failed = failed_connections(view)
        end_ns = max(map(ended_at, view.lines()), default=0)
        found = [
            line
            for line in lines
            if line["tls_error"]
            and line["connection"] not in failed
            and not unanswered(line, end_ns)
        ]
        if not found:
            return
        reasons = Counter(line["tls_error"] for line in found).most_common()
        parts = [
            REASONS[reason][0].format("it" if count == 1 else "them")
            + (f" ({count})" if len(reasons) > 1 else "")
            for reason, count in reasons
        ]
        hosts = sorted({host_of(line["client_address"]) for line in found})
        brokers = sorted({line["broker_address"] for line in found})
        some = " completely" if all(line["phase"] != "opaque" for line in found) else ""
        yield _finding(
            view,
            self.rule("tls-opaque"),
            f"{plural(len(found), 'TLS connection')} from {listed(hosts)} to {listed(brokers)} "
            f"cannot be decrypted{some}: {'; '.join(parts)}",
            found,
            " ".join(REASONS[reason][1] for reason, _ in reasons[:2]),
            "note" if _is_missed(found, view) else None,
        )


def _is_missed(found: list[Line], view: View) -> bool:
    """Return whether somebody wants to read what cannot be read: who gave a key log, of brokers, or
    of all that there is."""
    if all(line["tls_error"] == "no-key-log" for line in found):
        return False
    works = {line["broker_address"] for line in view.lines() if line["phase"] == "work"}
    return not works or any(line["requests"] or line["broker_address"] in works for line in found)


def _finding(
    view: View,
    rule: Rule,
    text: str,
    lines: list[Line],
    advice: str = "",
    severity: Severity | None = None,
) -> Finding:
    opened = [line["opened"] for line in lines if line["opened"] is not None]
    hosts = sorted({host_of(line["client_address"]) for line in lines})
    brokers = sorted({line["broker_address"] for line in lines})
    rows = [line["connection"] for line in lines if line["requests"]][:MOST_NAMED]
    return view.finding(
        rule,
        text,
        among("conn", rows),
        count=len(lines),
        first_ns=min(opened, default=None),
        last_ns=max(opened, default=None),
        severity=severity,
        advice=advice,
        connects=among("conn", [line["connection"] for line in lines][:MOST_NAMED]),
        about=[
            *(("host", host) for host in hosts[:MOST_NAMED]),
            *(("broker", spelled(broker)) for broker in brokers[:MOST_NAMED]),
        ],
    )
