"""Findings about exchanges that our own proxy touched say so, instead of blaming the broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any, ClassVar, Final

from kafkascope.analyzer.conversation.tampering import deeds_of
from kafkascope.analyzer.exchanges.rows import Row, RowError, blank
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Rule
from kafkascope.analyzer.findings.model import RANK
from kafkascope.analyzer.findings.view import View
from kafkascope.analyzer.ranks import bounded
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event, Events
from kafkascope.analyzer.statistics.merging.measures import Measures, measured, whole
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.text import spelled

MOST_NAMED: Final = 3
UNANSWERED: Final = frozenset({"lost", "open"})
STOPPING: Final = frozenset(
    {"black-hole", "half-close", "hold", "delay", "throttle", "truncate", "reset", "close"}
)
"""Actions behind which nothing on a connection is answered, when what they act on is not."""
ADVICE: Final = (
    "No action is needed on the broker: rules of the proxy that recorded this traffic caused it. "
    "Remove the rules and record again."
)
_LEFT_OUT: Final = frozenset({"errors", "topic_ids", "undecoded", "notes", "frames"})
_PLAIN: Final = tuple(each.name for each in fields(Row) if each.name not in _LEFT_OUT)
_plain_of: Final = attrgetter(*_PLAIN)


@measured
class Touched(Measures):
    """Exchanges that rules touched, with enough of their rows for the filters of findings."""

    events: Events = whole(Events)


class Tampered(Detector):
    """Tells nothing itself: see `owner`."""

    RULES: ClassVar[tuple[Rule, ...]] = ()
    ODD = True

    touched: Keyed[Touched] = table(Touched, 1)
    """One key: all of them."""
    left: Keyed[Touched] = table(Touched, 1)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of exchanges with such a note, or without an answer; few are so."""
        deeds = deeds_of(row.notes) if row.notes else []
        if not deeds and row.state not in UNANSWERED:
            return
        place = [row.connection, exchange.connection.first_ns]
        about = {"deeds": deeds, "row": _packed(row), "connection": place}
        (self.touched if deeds else self.left)[("",)].events.note(row, row.state, about)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield nothing: see `owner`."""
        return iter(())

    def owner(self) -> Callable[[Finding], Finding]:
        """Gives findings back; those whose evidence rules of the proxy touched say so."""
        touched = self.touched.get(("",))
        if touched is None:
            return lambda finding: finding
        events = [(event, event.about["deeds"]) for event in touched.events]
        left = self.left.get(("",))
        if left is not None:
            events += _behind(list(touched.events), list(left.events))
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
    if not finding.filter:
        return finding
    from kafkascope.analyzer.filter.backends.exchange import compile_filter

    wanted = compile_filter(finding.filter)
    hits = [deeds for row, deeds in evidence if wanted(row)]
    if not hits:
        return finding
    deeds = Counter(deed for each in hits for deed in each)
    named = ", ".join(spelled(deed) for deed, _ in deeds.most_common(MOST_NAMED))
    named += ", ..." if len(deeds) > MOST_NAMED else ""
    if len(hits) < finding.count:
        text = f"; {len(hits):,} of these injected by proxy rules ({named})"
        return replace(finding, text=finding.text + text)
    text = f"; injected by proxy rules ({named}), not caused by the broker"
    severity = "note" if RANK[finding.severity] < RANK["note"] else finding.severity
    return replace(finding, text=finding.text + text, severity=severity, advice=ADVICE)


def _packed(row: Row) -> dict[str, Any]:
    """Return what filters of findings may ask of a row, as plain values."""
    packed: dict[str, Any] = {}
    for name, value in zip(_PLAIN, _plain_of(row), strict=True):
        if value is not None and value != "" and value != ():
            value = bounded(value)
            packed[name] = list(value) if isinstance(value, tuple) else value
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


__all__ = ["Tampered"]
