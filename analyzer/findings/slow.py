"""What is slow beyond what clients asked to wait for (question 4)."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.conversation.tampering import deeds_of
from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Log, Row, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.pauses import (
    GIVEN_UP,
    MINUTE,
    SLOT,
    Answers,
    Pause,
    Waiting,
    pauses,
    together,
)
from kafkascope.analyzer.findings.view import View, all_of, among, api_is, duration, listed, plural
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.connections import WAITING
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event, Events
from kafkascope.analyzer.statistics.merging.measures import Measures, measured, total, whole
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.text import spelled

FETCHES: Final = frozenset({1, 78})
GROUPS: Final = frozenset({11, 14})
IN_FLIGHT: Final = 8
"""Long polls that may be under way on a connection: clients have one."""
MS: Final = 1_000_000
MAX_MINUTES: Final = 20_000
"""Minutes of brokers: more than a day of ten of them."""
MOST_NAMED: Final = 100
MOST_IN_FILTER: Final = 200
TIMED_OUT: Final = 7
"""REQUEST_TIMED_OUT."""


@measured
class Slow(Measures):
    """Slow answers of a kind, with their latencies and connections."""

    count: int = total()
    events: Events = whole(Events)


class Slowness(Detector):
    """Excess beyond what was asked for."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "slow-answers",
            "warning",
            "slow responses",
            "Compare APIs and brokers with `kafkascope latency INPUT --by api,broker`. Produce "
            "with acks=all waits for followers (check UnderReplicatedPartitions); other requests "
            "wait for disks, full request queues or JVM pauses of the broker.",
            "REQUEST_TIMED_OUT",
            brief="{n} slow response|{n} slow responses",
            limits=("slow.excess", "slow.count"),
        ),
        Rule(
            "broker-paused",
            "warning",
            "broker that stalled, then answered all pending requests",
            "Check the broker's garbage collection and system logs at that time: its process, its "
            "machine or the network to it stalled (a garbage collection pause, a suspended or "
            "migrated virtual machine, a hanging disk). With acks=all, leaders waiting for this "
            "follower stall as well.",
            "REQUEST_TIMED_OUT",
            brief="a broker that stalled",
            subject=("broker",),
            limits=("slow.excess", "pause.flood", "pause.flood-share"),
        ),
        Rule(
            "network-far",
            "note",
            "long network round trips",
            "Move the clients closer to the brokers, or send fewer and larger requests. Every "
            "request pays this round trip.",
            limits=("network.far",),
        ),
    )
    KEYS = None

    slow: Keyed[Slow] = table(Slow, 2_000)
    """By API, client and broker."""
    # Until when a connection was not read: a broker takes up the next request when a long poll
    # is answered, and when the pause is over that it told with an answer (KIP-219); our own
    # proxy goes on when what it delayed or held is through.
    polls: Keyed[Log] = table(Log, 2_000, unranked=1)
    answers: Keyed[Answers] = table(Answers, MAX_MINUTES)
    given_up: Keyed[Slow] = table(Slow, 300)

    def __init__(self) -> None:
        super().__init__()
        self._slots: dict[str, int] = {}
        """Broker -> the slot of its last answer."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of slow exchanges."""
        latency = row.latency_ns
        if latency is None:
            self._give_up(row, exchange)
            return
        end_ns = row.time_ns + latency
        broker, slot = row.broker_address, end_ns // SLOT
        if self._slots.get(broker) != slot:
            # Most answers fall into the slot of the one before.
            self._slots[broker] = slot
            self.answers[(broker, end_ns // MINUTE)].at(end_ns)
            if len(self._slots) > MAX_MINUTES:
                self._slots.clear()
        if latency < limit("slow.excess") and not row.throttle_ms:
            return
        touched = bool(row.notes) and bool(deeds_of(row.notes))
        excess = max(0, latency - row.wait_ns)
        connection = [row.connection, exchange.connection.first_ns]
        if row.api_key in FETCHES or row.throttle_ms or touched:
            end = {"end_ns": row.time_ns + latency + (row.throttle_ms or 0) * MS}
            self.polls[tuple(connection)].events.note(row, "poll", end)
        if excess < limit("slow.excess"):
            return
        if row.api_key in GROUPS or row.throttle_ms:
            return
        if row.api_key in FETCHES and (exchange.request_body is None or row.errors):
            return
        if any(error.code == TIMED_OUT for error in row.errors):
            return  # Its answer says itself why it took so long.
        slow = self.slow[(row.api, *client_of(row), row.broker_address)]
        slow.count += 1
        about = {"latency": latency, "excess": excess, "connection": connection}
        slow.events.note(row, "slow", about)

    def add_all(self, alike: Alike) -> None:
        """Take note of when usual exchanges were answered."""
        broker = alike.row.broker_address
        for slot in {end_ns // SLOT for end_ns in alike.ends}:
            end_ns = slot * SLOT
            self.answers[(broker, end_ns // MINUTE)].at(end_ns)

    def _give_up(self, row: Row, exchange: Exchange) -> None:
        """Take note of requests whose connection the client closed after a second and more."""
        ended_ns = exchange.ended_ns
        if row.state != "lost" or ended_ns is None or row.api_key in WAITING:
            return
        if row.reason.endswith("by the client") and ended_ns - row.time_ns >= limit("slow.excess"):
            connection = [row.connection, exchange.connection.first_ns]
            about = {"latency": ended_ns - row.time_ns, "connection": connection}
            slow = self.given_up[(*client_of(row), row.broker_address)]
            slow.count += 1
            slow.events.note(row, GIVEN_UP, about)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by API, client and broker."""
        usual = {
            (key["api"], key["client_id"], key["host"], key["broker"]): times
            for key, times in view.base.latency.grouped(("api", "client_id", "host", "broker"))
        }
        polls = {key: list(each.events) for key, each in self.polls.items()}
        waiting: dict[str, list[Waiting]] = defaultdict(list)
        for (client_id, host, broker), given_up in self.given_up.items():
            waiting[str(broker)] += _waiting((client_id, host), given_up.events)
        for (api, client_id, host, broker), slow in self.slow.items():
            times = usual.get((api, client_id, host, broker))
            events = list(slow.events)
            found = [event for event in events if not _behind(event, polls)]
            count = slow.count - (len(events) - len(found))
            waiting[str(broker)] += _waiting((client_id, host), found)
            if not found or times is None:
                continue
            who = view.client(client_id, host)
            latencies = [event.about["latency"] for event in found]
            shortest, longest = duration(min(latencies)), duration(max(latencies))
            span = longest if shortest == longest else f"{shortest} to {longest}"
            # Long polls may take longer, and are none of these.
            least = min(event.about["excess"] for event in found)
            few = count < limit("slow.count")
            waits = any(event.about["excess"] < event.about["latency"] for event in found)
            beyond = f", at least {duration(least)} more than the requested wait" if waits else ""
            median = f" (median excess {duration(times.beyond_wait.percentile(0.5))})"
            yield view.finding(
                self.rule("slow-answers"),
                f"{count:,} of {plural(times.latency.count, f'{api} request')} from {who} to "
                f"{broker} took {span}{beyond}{median if count < times.latency.count else ''}",
                all_of(
                    view.of_client(client_id, host),
                    api_is(api),
                    f"broker == {quoted(str(broker))} and excess >= {least}ns",
                ),
                count=count,
                first_ns=found[0].time_ns,
                last_ns=found[-1].time_ns,
                number=found[0].number,
                severity="note" if few or view.is_broker(client_id, host) else None,
                about=[("client", who), ("api", str(api)), ("broker", str(broker))],
            )
        yield from self._paused(waiting, view)
        yield from self._far(view)

    def _paused(self, waiting: dict[str, list[Waiting]], view: View) -> Iterator[Finding]:
        def answers(broker: str) -> Callable[[int], int | None]:
            full = self.answers.others is not None

            def of_minute(minute: int) -> int | None:
                found = self.answers.get((broker, minute))
                return found.slots if found is not None else None if full else 0

            return of_minute

        each = [
            pause
            for broker, requests in sorted(waiting.items())
            for pause in pauses(broker, requests, answers(broker))
        ]
        for group in together(each):
            yield self._pause(group, waiting, view)

    def _pause(self, group: list[Pause], waiting: dict[str, list[Waiting]], view: View) -> Finding:
        begin, end = min(each.begin_ns for each in group), max(each.end_ns for each in group)
        requests = [each for pause in group for each in pause.requests]
        brokers = [spelled(pause.broker) for pause in group]
        mine = sorted({view.client(*each.who) for each in requests})
        # Others wait at other brokers: for followers that stand still.
        hit = {
            view.client(*each.who)
            for several in waiting.values()
            for each in several
            if each.event.time_ns < end and each.end_ns > begin
        }
        stood = duration(max(pause.end_ns - pause.begin_ns for pause in group))
        first = min(requests, key=lambda each: (each.event.time_ns, each.event.number))
        numbers = sorted(each.event.number for each in requests)[:MOST_IN_FILTER]
        given_up = sum(each.event.kind == GIVEN_UP for each in requests)
        answered = len(requests) - given_up
        text = (
            f"{'Broker' if len(brokers) == 1 else 'Brokers'} {listed(brokers)} stalled for {stood}"
        )
        if answered:
            text += f", then answered {plural(answered, 'pending request')} from {listed(mine)}"
        if given_up:
            text += f"; {plural(given_up, 'request')} timed out meanwhile"
        return view.finding(
            self.rule("broker-paused"),
            text,
            among("number", numbers),
            count=len(requests),
            first_ns=begin,
            last_ns=end,
            number=first.event.number,
            about=[
                *(("broker", each) for each in brokers[:MOST_NAMED]),
                *(("client", each) for each in sorted(hit)[:MOST_NAMED]),
            ],
        )

    def _far(self, view: View) -> Iterator[Finding]:
        for key, times in view.base.latency.grouped(("client_id", "host", "broker")):
            trip = times.handshake.percentile(0.5)
            if trip is None or trip < limit("network.far"):
                continue
            who = view.client(key["client_id"], key["host"])
            yield view.finding(
                self.rule("network-far"),
                f"TCP handshakes from {who} to {key['broker']} take {duration(trip)} (median)",
                all_of(
                    view.of_client(key["client_id"], key["host"]),
                    f"broker == {quoted(str(key['broker']))}",
                ),
                count=times.latency.count,
                first_ns=view.first_ns,
                last_ns=view.last_ns,
                about=[("client", who), ("broker", str(key["broker"]))],
            )


def _waiting(who: tuple[Any, Any], events: Iterable[Event]) -> list[Waiting]:
    return [Waiting(who, each, each.time_ns + int(each.about["latency"])) for each in events]


def _behind(event: Event, polls: dict[Any, list[Event]]) -> bool:
    """Return whether a request waited for the answer to a long poll that was sent before it on the
    same connection, or for the end of a quota's pause, and for little else."""
    sent = polls.get(tuple(event.about["connection"]), ())
    end = event.time_ns + event.about["latency"]
    # Requests of one packet have one time.
    place = (event.time_ns, event.number)
    at = bisect_left(sent, place, key=lambda poll: (poll.time_ns, poll.number))
    return any(
        event.time_ns < poll.about["end_ns"] <= end
        and end - poll.about["end_ns"] < limit("slow.excess")
        for poll in sent[max(0, at - IN_FLIGHT) : at]
    )
