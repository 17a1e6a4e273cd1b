"""Findings about exchanges that our own proxy changed name it, and do not blame the broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, Final

from kafkascope.analyzer.conversation.tampering import effects_of
from kafkascope.analyzer.exchanges.rows import Row, RowError, blank
from kafkascope.analyzer.findings.counting import Event, EventLog
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.model import RANK
from kafkascope.analyzer.findings.view import Counts, Exchange, Finding
from kafkascope.analyzer.findings.words import spelled
from kafkascope.analyzer.ranks import bounded

UNANSWERED: Final = frozenset({"lost", "open"})
STOPPING: Final = frozenset(
    {"black-hole", "half-close", "hold", "delay", "throttle", "truncate", "reset", "close"}
)
"""Actions after which nothing on a connection is answered, when what they act on is not."""
ADVICE: Final = (
    "No action is needed on the broker: rules of the proxy that recorded this traffic caused it. "
    "Remove the rules and record again."
)
_LEFT_OUT: Final = frozenset({"errors", "topic_ids", "undecoded", "notes", "frames"})
_PLAIN: Final = tuple(each.name for each in fields(Row) if each.name not in _LEFT_OUT)
_plain_of: Final = attrgetter(*_PLAIN)


class ProxyEffects(Counts):
    """Has no findings: see `attribute_to_proxy`."""

    touched = EventLog.table(1)
    """Exchanges that rules touched, with enough of their rows for the filters of findings. One key:
    all of them."""
    left = EventLog.table(1)

    def add_exchange(self, row: Row, exchange: Exchange) -> None:
        """Take note of exchanges with such a note, or without an answer; few are so."""
        deeds = effects_of(row.notes) if row.notes else []
        if not deeds and row.state not in UNANSWERED:
            return
        place = [row.connection, exchange.connection.first_ns]
        about = {"deeds": deeds, "row": _packed(row), "connection": place}
        (self.touched if deeds else self.left)[("",)].events.note(row, row.state, about)

    def attribute_to_proxy(self) -> Callable[[Finding], Finding]:
        """Gives findings back, with a note on proxy rules in their evidence."""
        tables = self.touched, self.left
        touched, left = (list(each.get(("",), EventLog()).events) for each in tables)
        events = [(event, event.about["deeds"]) for event in touched] + _behind(touched, left)
        evidence = [(_row(event.about["row"]), deeds) for event, deeds in events]
        return lambda finding: _owned(finding, evidence)


def _behind(touched: list[Event], left: list[Event]) -> list[tuple[Event, list[str]]]:
    """Return requests without an answer on connections that a rule had stopped before."""
    stopped: dict[tuple[int, int], tuple[int, list[str]]] = {}
    for event in touched:
        deeds = [deed for deed in event.about["deeds"] if deed.split()[0] in STOPPING]
        if deeds and event.kind in UNANSWERED:
            stopped.setdefault(tuple(event.about["connection"]), (event.time_ns, deeds))
    found = []
    for event in left:
        since_ns, deeds = stopped.get(tuple(event.about["connection"]), (None, []))
        if since_ns is not None and since_ns <= event.time_ns:
            found.append((event, deeds))
    return found


def _owned(finding: Finding, evidence: list[tuple[Row, list[str]]]) -> Finding:
    if not finding.filter or not evidence:
        return finding
    from kafkascope.analyzer.filter.backends.exchange import compile_filter

    wanted = compile_filter(finding.filter)
    hits = [deeds for row, deeds in evidence if wanted(row)]
    if not hits:
        return finding
    deeds = Counter(deed for each in hits for deed in each)
    named = ", ".join(spelled(deed) for deed, _ in deeds.most_common(LIMITS.faults))
    named += ", ..." if len(deeds) > LIMITS.faults else ""
    if len(hits) < finding.count:
        text = f"; {len(hits):,} of these injected by proxy rules ({named})"
        return replace(finding, text=finding.text + text)
    text = f"; injected by proxy rules ({named}), not caused by the broker"
    severity = "note" if RANK[finding.severity] < RANK["note"] else finding.severity
    return replace(finding, text=finding.text + text, severity=severity, advice=ADVICE)


def _packed(row: Row) -> dict[str, Any]:
    """Return the fields of a row for filters of findings, as plain values."""
    values = {name: bounded(value) for name, value in zip(_PLAIN, _plain_of(row), strict=True)}
    packed: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in values.items()
        if value is not None and value != "" and value != ()
    }
    packed["errors"] = [[each.code, each.name, each.top] for each in row.errors]
    packed["topic_ids"] = [each.hex() for each in row.topic_ids]
    return packed


def _row(packed: dict[str, Any]) -> Row:
    values = {
        name: tuple(value) if isinstance(value, list) else value for name, value in packed.items()
    }
    values["errors"] = tuple(RowError(*each) for each in packed.get("errors", ()))
    values["topic_ids"] = tuple(bytes.fromhex(each) for each in packed.get("topic_ids", ()))
    return blank(**values)
