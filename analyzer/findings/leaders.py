"""Clients that go on asking a broker that is no leader (question 7)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Log, Row, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, duration, listed, plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event, Events
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.analyzer.text import Spelled

METADATA: Final = 3
LEADER: Final = frozenset({6, 74, 75})
"""NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH."""
CODES: Final = "error in {5, 6, 74, 75}"
MOST_NAMED: Final = 100
MOST_IN_FILTER: Final = 20
"""Clients; of more, the errors alone select what happened."""


@dataclass(slots=True)
class Run:
    """Refusals of one partition by one broker without metadata in between."""

    first: Event
    last: Event
    numbers: set[int] = field(default_factory=set)
    """Of the exchanges that repeated the first one, when its answer was there."""
    refused: set[int] = field(default_factory=set)
    """All exchanges in which the partition was refused, also in shorter runs."""


class Leaders(Detector):
    """Errors about leaders next to Metadata requests."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "stale-leader",
            "warning",
            "requests repeated to a broker that is not the leader",
            "Upgrade the client library, and check proxies that rewrite addresses. A client "
            "should refresh its metadata after the first such error.",
            "NOT_LEADER_OR_FOLLOWER",
            brief="{n} request to a broker that is not the leader|{n} requests to brokers that "
            "are not the leader",
            limits=("leader.retries", "leader.refresh"),
            errors=LEADER,
        ),
        Rule(
            "leader-moved",
            "note",
            "leaders that moved while clients used them",
            "No action is needed if clients recover within 2 s: leaders move when brokers restart "
            "or partitions are reassigned.",
            "NOT_LEADER_OR_FOLLOWER",
            brief="{n} request to a former leader|{n} requests to former leaders",
            subject=("topic",),
            errors=LEADER,
        ),
    )
    KEYS = frozenset({METADATA})
    ODD_KEYS = frozenset({0, 1, 2, 23, 78, 79})

    clients: Keyed[Log] = table(Log, 300)
    """By client: what it asked, and was refused."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of metadata requests, and errors of leaders."""
        refused = [e for e in row.errors if e.code in LEADER and not e.top]
        if row.api_key != METADATA and not refused:
            return
        asking = self.clients[(row.client_id or "", host_of(row.client_address))]
        end = row.time_ns + (row.latency_ns or 0)
        if row.api_key == METADATA:
            asking.events.note(row, "metadata", {}, -1)
            return
        for part, error in enumerate(refused[:100]):
            about: dict[str, Any] = {
                "broker": row.broker_address,
                "topic": topic_key(error.topic, error.topic_id),
                "partition": error.partition,
                "end_ns": end,
            }
            asking.events.note(row, "refused", about, part)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by broker for clients that do not follow leaders, and one for all that
        do."""
        moved: dict[tuple[str, str], list[Run]] = {}
        places: list[tuple[Any, Any]] = []
        for (client_id, host), asking in self.clients.items():
            if view.is_broker(client_id, host):
                # Replicas and voters learn of leaders from the controller, not from Metadata.
                continue
            stale: dict[Any, list[tuple[tuple[Any, ...], Run]]] = {}
            for key, run in _runs(asking.events).items():
                if len(run.numbers) >= limit("leader.retries"):
                    stale.setdefault(key[0], []).append((key, run))
                else:
                    who = str(client_id or ""), str(host)
                    moved.setdefault(who, []).append(run)
                    places.append(key[1:])
            for broker, runs in stale.items():
                yield self._stale(client_id, host, broker, runs, view)
        if moved:
            yield self._moved(moved, places, view)

    def _stale(
        self,
        client_id: Any,
        host: Any,
        broker: Any,
        runs: list[tuple[tuple[Any, ...], Run]],
        view: View,
    ) -> Finding:
        who = view.client(client_id, host)
        # One request may be for many partitions.
        count = len(set().union(*(run.numbers for _, run in runs)))
        places = listed(Spelled(f"{view.topic(key[1])}-{key[2]}") for key, _ in runs)
        topics = sorted({view.topic(key[1]) for key, _ in runs})[:MOST_NAMED]
        return view.finding(
            self.rule("stale-leader"),
            f"{who} repeated {plural(count, 'request')} for {places} at {broker}, which is not the "
            "leader, without a Metadata request in between",
            all_of(view.of_client(client_id, host), f"broker == {quoted(str(broker))}", CODES),
            count=count,
            first_ns=min(run.first.time_ns for _, run in runs),
            last_ns=max(run.last.time_ns for _, run in runs),
            number=min(run.first.number for _, run in runs),
            about=[
                ("client", who),
                ("broker", str(broker)),
                *(("topic", topic) for topic in topics),
            ],
        )

    def _moved(
        self,
        moved: dict[tuple[str, str], list[Run]],
        places: list[tuple[Any, Any]],
        view: View,
    ) -> Finding:
        """Return one finding for all clients: a leader that moves, moves for all of them."""
        runs = [run for each in moved.values() for run in each]
        first = min(run.first.time_ns for run in runs)
        last = max(run.last.about["end_ns"] for run in runs)
        named = sorted({Spelled(f"{view.topic(t)}-{number}") for t, number in places})
        clients = sorted(view.client(*each) for each in moved)
        count = len(set().union(*(run.refused for run in runs)))
        within = f" within {duration(last - first)}" if count > 1 else ""
        topics = sorted({view.topic(topic) for topic, _ in places})[:MOST_NAMED]
        many = len(moved) > MOST_IN_FILTER
        mine = " or ".join(f"({view.of_client(*each)})" for each in sorted(moved))
        return view.finding(
            self.rule("leader-moved"),
            f"{plural(count, 'request')} from {listed(clients)} reached former leaders of "
            f"{listed(named)}{within} (NOT_LEADER_OR_FOLLOWER or a leader "
            "epoch error)",
            all_of(view.of_client(*next(iter(moved))), CODES)
            if len(moved) == 1
            else CODES
            if many
            else all_of(f"({mine})", CODES),
            count=count,
            first_ns=first,
            last_ns=last,
            number=min(run.first.number for run in runs),
            about=[
                *(("client", who) for who in clients[:MOST_NAMED]),
                *(("topic", topic) for topic in topics),
            ],
        )


def _runs(events: Events) -> dict[tuple[Any, ...], Run]:
    """Return the longest run for each (broker, topic, partition). What was in flight when the first
    refusal came is no repetition, nor what came before a refresh that backed off as it should."""
    found: dict[tuple[Any, ...], Run] = {}
    begun: dict[tuple[Any, ...], Run] = {}
    for event in events:
        if event.kind == "metadata":
            for key, run in begun.items():
                if event.time_ns - run.first.about["end_ns"] < limit("leader.refresh"):
                    run.numbers.clear()
                _longest(found, key, run)
            begun.clear()
            continue
        about = event.about
        key = (about["broker"], about["topic"], about["partition"])
        run = begun.setdefault(key, Run(event, event))
        if event.time_ns > run.first.about["end_ns"]:
            run.numbers.add(event.number)
        run.last = event
        run.refused.add(event.number)
    for key, run in begun.items():
        _longest(found, key, run)
    return found


def _longest(found: dict[tuple[Any, ...], Run], key: tuple[Any, ...], run: Run) -> None:
    known = found.setdefault(key, run)
    if known is run:
        return
    refused = known.refused | run.refused
    if len(run.numbers) > len(known.numbers):
        found[key] = known = run
    known.refused = refused
