"""Error codes that no other detector explains: storms, and those that mean broken things
(question 6)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kafkascope.analyzer.exchanges.expected import CODES
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, api_is, duration, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import per_second, topic_key
from kafkascope.dissectors.reference.codes import ERRORS, error_name

ELSEWHERE: Final = frozenset(
    {1, 5, 6, 10, 18, 29, 30, 31, 33, 34, 35, 45, 46, 47, 49}
    | {53, 56, 58, 59, 65, 66, 74, 75, 76, 89, 90}
)
"""Codes that detectors of their own tell about."""
HANDLED: Final = frozenset(
    {3, 14, 15, 16, 22, 25, 27, 36, 51, 69, 70, 71, 79, 82, 94, 100, 103, 110, 117, 122, 123}
)
"""Codes that healthy clients meet now and then and deal with: only storms of them count."""
BUSY: Final = frozenset({51})
"""CONCURRENT_TRANSACTIONS: brokers complete a transaction after they answered EndTxn, and producers
ask every 20 ms meanwhile (the KIP-98 design); one that never completes makes that a storm."""
BROKEN: Final = frozenset({-1, 2, 7, 19, 20, 21, 23, 24, 26, 41, 42, 43, 60, 63, 67, 87, 112})
"""Codes that healthy clusters and clients do not give, or meet."""
AMONG_BROKERS: Final = frozenset({41})
"""NOT_CONTROLLER."""
API_VERSIONS: Final = 18
METADATA: Final = 3
NO_TOPIC: Final = frozenset({3, 17})
"""Of Metadata, told by the lookups."""


class ErrorCodes(Detector):
    """By code, API, client and topic."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "error-storm",
            "warning",
            "errors repeated at a high rate",
            "Run `kafkascope error CODE` for the usual causes. The client repeats a request that "
            "cannot succeed.",
            brief="{n} error response|{n} error responses",
            limits=("errors.storm", "errors.storm-rate", "errors.storm-busy"),
            errors=CODES,
        ),
        Rule(
            "error-broken",
            "warning",
            "unexpected errors",
            "Check the broker's log at these times. `kafkascope error CODE` lists the usual "
            "causes.",
            brief="{n} error response|{n} error responses",
            errors=CODES,
        ),
        Rule(
            "error-seen",
            "note",
            "other errors",
            "Run `kafkascope error CODE` for the usual causes.",
            brief="{n} error response|{n} error responses",
            errors=CODES,
        ),
    )
    ODD = True

    seen: Keyed[Seen] = table(Seen, 5_000)
    """By code, API, client and topic."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of each code of an answer once for each topic."""
        if not row.errors or row.api_key == API_VERSIONS:
            return
        for code, topic in {(e.code, topic_key(e.topic, e.topic_id)) for e in row.errors}:
            if code not in ELSEWHERE and not (row.api_key == METADATA and code in NO_TOPIC):
                self.seen[(code, row.api, *client_of(row), topic)].see(row)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield one finding per code, API, client and topic."""
        for (code, api, client_id, host, topic), seen in self.seen.items():
            first = seen.first[0] if seen.first else None
            rate = per_second(seen.count, first, seen.last_ns) or 0
            least = limit("errors.storm-busy" if code in BUSY else "errors.storm-rate")
            storm = seen.count >= limit("errors.storm") and rate >= least
            if code in HANDLED and not storm:
                continue
            name = "error-storm" if storm else "error-broken" if code in BROKEN else "error-seen"
            # Controllers move and epochs go stale while a cluster lives; brokers try again.
            daily = not storm and (code not in BROKEN or code in AMONG_BROKERS)
            if daily and view.is_broker(client_id, host):
                continue
            who = view.client(client_id, host)
            error = error_name(code)
            span = (seen.last_ns or 0) - (first or 0)
            about = f" for topic {view.topic(topic)}" if topic else ""
            often = f" within {duration(span)} ({rate:.0f} per second)" if storm else ""
            retry = ERRORS[code].retriable if code in ERRORS else False
            again = "; the error is not retriable" if storm and not retry else ""
            from kafkascope.dissectors.reference.help import help_of

            help_ = help_of(code)
            why = f"Check the usual causes: {'; '.join(help_.causes)}. {help_.meaning}"
            yield view.finding(
                self.rule(name),
                f"{plural(seen.count, f'{api} response')} to {who}{about} returned "
                f"{error}{often}{again}",
                all_of(
                    view.of_client(client_id, host),
                    api_is(api),
                    f"error == {code}",
                    view.of_topic(topic),
                ),
                seen,
                severity="error" if storm and code in BROKEN else None,
                advice=why if help_.causes else "",
                link=error,
                about=[
                    ("client", who),
                    ("error", error),
                    *([("topic", view.topic(topic))] if topic else []),
                ],
            )
