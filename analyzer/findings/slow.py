"""Excess latency beyond requested waits (question 4); times in which a broker answered no request,
found from the requests that waited meanwhile.

Times of answers are kept in slots of a twentieth of a second for each broker: little enough for
days, and the same in whatever order exchanges come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.conversation.tampering import effects_of
from kafkascope.analyzer.findings.counting import (
    Event,
    EventLog,
    Events,
    KeyedMeasures,
    Occurrences,
    total,
    whole,
)
from kafkascope.analyzer.findings.filters import all_of, among
from kafkascope.analyzer.findings.followers import MINUTE, SLOT, Slots, idle_followers, note_fetches
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import MS, limit
from kafkascope.analyzer.findings.view import Counts, DetectorInput, Exchange, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import client_of
from kafkascope.analyzer.statistics.connections import WAITING
from kafkascope.analyzer.statistics.exchange_batch import FETCH, ExchangeBatch

FETCHES: Final = frozenset({1, 78})
GROUPS: Final = frozenset({11, 14})
QUICK: Final = frozenset({0, 1, 2, 3, 8, 9, 10, 12, 18, 22, 23, 24, 25, 68, 76, 78, 79})
"""APIs that a healthy broker answers in milliseconds, beyond waits: producing, reading, committing,
looking up, heartbeats. Others change the cluster, or wait for logs of transactions to be loaded."""
# Long polls that may be under way on a connection: clients have one.
IN_FLIGHT: Final = 8
REPLICATED: Final = frozenset(
    {"Produce", "OffsetCommit", "TxnOffsetCommit", "InitProducerId", "AddPartitionsToTxn", "EndTxn"}
)
"""APIs that wait for followers: of the topic, or of the one that the coordinator writes."""
GIVEN_UP: Final = "given up"
"""The kind of the event of a request whose connection its client closed."""


class Waiting(NamedTuple):
    """A request that waited long, answered or given up."""

    who: tuple[Any, Any]
    """Client id and host."""
    event: Event
    end_ns: int


@dataclass(slots=True)
class Pause:
    """A time without any answer of one broker."""

    broker: str
    begin_ns: int
    end_ns: int
    requests: list[Waiting] = field(default_factory=list)


class Slow(KeyedMeasures):
    """Slow answers of a kind, with their latencies and connections."""

    count: int = total()
    events: Events = whole(Events)


class Slowness(Counts):
    """Latency minus requested waits."""

    slow = Slow.table(LIMITS.keys)
    """By API, client and broker."""
    # Until when a connection was not read: a broker takes up the next request when a long poll
    # is answered, and when the pause is over that it told with an answer (KIP-219); our own
    # proxy goes on when what it delayed or held is through.
    polls = EventLog.table(LIMITS.keys, unranked=1)
    answers = Slots.table(LIMITS.broker_minutes)
    given_up = Slow.table(LIMITS.event_keys)
    fetching = Slots.table(LIMITS.broker_minutes)
    """By the address of a leader, a follower's id and the minute: the slots in which a Fetch of the
    follower was under way."""

    def __init__(self) -> None:
        super().__init__()
        self._slots: dict[str, int] = {}
        """Broker -> the slot of its last answer."""

    def add(self, batch: ExchangeBatch) -> None:
        row, exchange, latency = batch.row, batch.exchange, max(batch.latencies)
        if row.latency_ns is None:
            self._give_up(row, exchange)
            return
        broker = row.broker_address
        for slot in {end_ns // SLOT for end_ns in batch.ends}:
            if self._slots.get(broker) != slot:
                # Most answers fall into the slot of the one before.
                self._slots[broker] = slot
                self.answers[(broker, slot * SLOT // MINUTE)].at(slot * SLOT)
                if len(self._slots) > LIMITS.broker_minutes:
                    self._slots.clear()
        if row.api_key == FETCH and batch.way == "replica":
            note_fetches(batch, self.fetching)
        if latency >= limit("slow.excess") or row.throttle_ms:
            self._judge(row, exchange)
        elif latency >= limit("server.time") and row.api_key in QUICK and not row.errors:
            for number, served, wait in zip(
                batch.numbers, batch.servings, batch.waits, strict=True
            ):
                if (served or 0) - wait >= limit("server.time"):
                    self._judge(batch.row_of(number), batch.exchange_of(number))

    def _judge(self, row: Row, exchange: Exchange) -> None:
        """Take note of an exchange that took long."""
        latency = row.latency_ns or 0
        touched = bool(row.notes) and bool(effects_of(row.notes))
        excess, least = max(0, latency - row.wait_ns), limit("slow.excess")
        served = excess
        if row.serving_beyond_wait_ns is not None:
            served = row.serving_beyond_wait_ns
            least = limit("server.time") if row.api_key in QUICK and not row.errors else least
        elif row.server_ns is not None and not exchange.connection.path.off:
            served = max(0, row.server_ns - row.wait_ns)
        connection = [row.connection, exchange.connection.first_ns]
        if row.api_key in FETCHES or row.throttle_ms or touched:
            throttle_ns, answered_ns = (row.throttle_ms or 0) * MS, row.time_ns + latency
            ends_ns = {answered_ns + throttle_ns}
            if throttle_ns <= latency:
                # Brokers before 2.0 hold the response itself, and what is after it.
                ends_ns.add(answered_ns)
            for end_ns in sorted(ends_ns):
                self.polls[tuple(connection)].events.note(row, "poll", {"end_ns": end_ns})
        if served < least or 2 * served < excess:
            return
        if row.api_key in GROUPS or row.throttle_ms:
            return
        if row.api_key in FETCHES and (exchange.request_body is None or row.errors):
            return
        if row.serving_ns is None and row.stalled_by == "network":
            return  # How long the broker took is unknown.
        if any(error.name == "REQUEST_TIMED_OUT" for error in row.errors):
            return  # Its answer says itself why it took so long.
        slow = self.slow[(row.api, *client_of(row), row.broker_address)]
        slow.count += 1
        about = {"latency": latency, "excess": excess, "connection": connection}
        known = {} if row.serving_ns is None else {"server": row.serving_ns}
        slow.events.note(row, "slow", about | known)

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

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        usual = {
            (key["api"], key["client_id"], key["host"], key["broker"]): times
            for key, times in view.base.latency.grouped(("api", "client_id", "host", "broker"))
        }
        polls = {key: list(each.events) for key, each in self.polls.items()}
        waiting: dict[str, list[Waiting]] = defaultdict(list)
        for (*who, broker), given_up in self.given_up.items():
            waiting[broker] += _waiting(who, given_up.events)
        own = {
            key: [event for event in slow.events if not _behind(event, polls)]
            for key, slow in self.slow.items()
        }
        for (_, *who, broker), found in own.items():
            waiting[broker] += _waiting(who, found)
        groups = _together(
            pause
            for broker, requests in sorted(waiting.items())
            for pause in _pauses(broker, requests, partial(self._slots_of, broker))
        )
        pauses = [pause for group in groups for pause in group]
        for (api, *who, broker), found in own.items():
            key, times = (api, *who, broker), usual.get((api, *who, broker))
            dropped = self.slow[key].count - len(self.slow[key].events)
            # Those of a pause follow from it, the others have a cause of their own.
            paused, others = list[Event](), list[Event]()
            for event in found:
                (paused if _in_pause(event, pauses) else others).append(event)
            numbers = sorted(event.number for event in paused)[: LIMITS.paused_requests]
            which = among("number", numbers) if paused and others else ""
            for some, more, where in (
                (others, dropped, which and f"not ({which})"),
                (paused, 0 if others else dropped, which),
            ):
                if some and times is not None and _worth(some, view.is_broker(*who)):
                    yield self._slow(view, key, times, some, len(some) + more, where)
        for group in groups:
            yield _paused(group, waiting, view)
        yield from _far(view)

    def _slow(
        self,
        view: DetectorInput,
        key: tuple[Any, ...],
        times: Any,
        found: list[Event],
        count: int,
        where: str,
    ) -> Finding:
        """Return the finding about slow answers of an API from a broker to a client. `where`: what
        selects them among those of other causes."""
        (api, *who, broker), client = key, view.client(*key[1:-1])
        served = [_served(event) for event in found if "server" in event.about]
        latencies = [event.about["latency"] for event in found]
        shortest, longest = duration(min(latencies)), duration(max(latencies))
        span = longest if shortest == longest else f"{shortest} to {longest}"
        # Long polls may take longer, and are none of these.
        least = min(event.about["excess"] for event in found)
        waits = any(event.about["excess"] < event.about["latency"] for event in found)
        beyond = f", at least {duration(least)} more than the requested wait" if waits else ""
        median = f" (median excess {duration(times.beyond_wait.percentile(0.5))})"
        there = ""
        median = median if count < times.latency.count else ""
        if len(served) == len(found):
            there = f", {duration(sorted(served)[len(served) // 2])} of it at the broker (median)"
        if api in REPLICATED:
            there += idle_followers(self.fetching, found)
        mild = count < limit("slow.count") or view.is_broker(*who)
        return view.finding(
            "slow-answers",
            f"{count:,} of {plural(times.latency.count, f'{api} request')} from {client} to "
            f"{broker} took {span}{beyond}{median}{there}",
            all_of(_filter(least, found), where),
            Occurrences.of(found),
            client=client,
            api=api,
            broker=broker,
            count=count,
            number=found[0].number,
            severity="note" if mild else None,
        )

    def _slots_of(self, broker: str, minute: int) -> int | None:
        """Return the slots of a minute with an answer; None where that is not known."""
        found = self.answers.get((broker, minute))
        if found is not None:
            return found.slots
        return None if self.answers.others is not None else 0


def _worth(found: list[Event], replica: bool) -> bool:
    """Return whether slow answers are worth a finding: one that users notice, or several of a
    client's where it is known that the broker took the time."""
    long = any(event.about["excess"] >= limit("slow.excess") for event in found)
    if long or replica:
        return long
    alone = _without_queueing(found)
    few = sum(each >= limit("server.few") for each in alone)
    return few > 1 or sum(each >= limit("server.time") for each in alone) >= limit("slow.count")


def _served(event: Event) -> int:
    """Return the server's time of an answer beyond the requested wait."""
    about = event.about
    return int(about["server"] - about["latency"] + about["excess"])


def _without_queueing(found: list[Event]) -> list[int]:
    """Return the server's times, where they are known, without those of slow answers before: a
    broker serves the requests of a connection one after the other."""
    ends_ns: dict[tuple[Any, ...], int] = {}
    served = []
    for event in sorted(found, key=lambda each: (each.time_ns, each.number)):
        end, connection = event.time_ns + event.about["latency"], tuple(event.about["connection"])
        if "server" in event.about:
            served.append(min(_served(event), end - ends_ns.get(connection, 0)))
        ends_ns[connection] = end
    return served


def _filter(excess_ns: int, found: list[Event]) -> str:
    """Return what selects slow answers."""
    servers = [event.about.get("server", -1) for event in found]
    server = f"server >= {min(servers)}ns and " if min(servers) >= 0 else ""
    return f"excess >= {excess_ns}ns and {server}error != REQUEST_TIMED_OUT"


def _paused(group: list[Pause], waiting: dict[str, list[Waiting]], view: DetectorInput) -> Finding:
    begin, end = min(each.begin_ns for each in group), max(each.end_ns for each in group)
    requests = [each for pause in group for each in pause.requests]
    brokers = [spelled(pause.broker) for pause in group]
    # Others wait at other brokers: for followers that stand still.
    hit = view.clients(
        each.who
        for each in chain.from_iterable(waiting.values())
        if each.event.time_ns < end and each.end_ns > begin
    )
    stood = duration(max(pause.end_ns - pause.begin_ns for pause in group))
    given_up = sum(each.event.kind == GIVEN_UP for each in requests)
    answered = len(requests) - given_up
    text = f"{'Broker' if len(brokers) == 1 else 'Brokers'} {listed(brokers)} stalled for {stood}"
    if answered:
        mine = listed(view.clients(each.who for each in requests))
        text += f", then answered {plural(answered, 'pending request')} from {mine}"
    if given_up:
        text += f"; {plural(given_up, 'request')} timed out meanwhile"
    return view.finding(
        "broker-paused",
        text,
        among("number", sorted(each.event.number for each in requests)[: LIMITS.paused_requests]),
        count=len(requests),
        span=(begin, end),
        number=min((each.event.time_ns, each.event.number) for each in requests)[1],
        about={"broker": brokers, "client": hit},
    )


def _far(view: DetectorInput) -> Iterator[Finding]:
    for key, times in view.base.latency.grouped(("client_id", "host", "broker")):
        trip = times.handshake.percentile(0.5)
        if trip is None or trip < limit("network.far"):
            continue
        client, broker = view.client(key["client_id"], key["host"]), str(key["broker"])
        yield view.finding(
            "network-far",
            f"TCP handshakes from {client} to {broker} take {duration(trip)} (median)",
            client=client,
            broker=broker,
            count=times.latency.count,
            span=(view.first_ns, view.last_ns),
        )


def _waiting(who: Sequence[Any], events: Iterable[Event]) -> list[Waiting]:
    return [Waiting(tuple(who), each, each.time_ns + int(each.about["latency"])) for each in events]


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


# --- pauses


def _in_pause(event: Event, pauses: Iterable[Pause]) -> bool:
    """Return whether a pause of any broker took most of an answer's excess: leaders wait for
    followers that stand still."""
    end, excess = event.time_ns + event.about["latency"], event.about["excess"]
    return any(
        2 * (min(end, pause.end_ns) - max(event.time_ns, pause.begin_ns)) > excess
        for pause in pauses
    )


def _pauses(
    broker: str, waiting: Iterable[Waiting], answers: Callable[[int], int | None]
) -> list[Pause]:
    """Return those with requests of several connections. `answers`: the slots of a minute with an
    answer; None where that is not known."""
    found: list[Pause] = []
    for each in sorted(waiting, key=lambda each: (each.event.time_ns, each.event.number)):
        for pause in found[-3:]:
            if _belongs(each, pause):
                pause.requests.append(each)
                break
        else:
            silence = _silence(each.event.time_ns, each.end_ns, answers)
            if silence is not None and silence[1] - silence[0] >= limit("slow.excess"):
                found.append(Pause(broker, *silence, [each]))
    return [
        pause
        for pause in found
        if len({tuple(each.event.about["connection"]) for each in pause.requests}) > 1
    ]


def _together(found: Iterable[Pause]) -> list[list[Pause]]:
    """Merge pauses of several brokers that ended at the same time: they are one trouble."""
    groups: list[list[Pause]] = []
    for pause in sorted(found, key=lambda pause: (pause.end_ns, pause.broker)):
        if groups and abs(groups[-1][-1].end_ns - pause.end_ns) <= limit("pause.flood"):
            groups[-1].append(pause)
        else:
            groups.append([pause])
    return groups


def _belongs(each: Waiting, pause: Pause) -> bool:
    """Return whether a request waited for the end of a pause: it was answered in the flood after
    it, or was given up before."""
    if each.event.time_ns >= pause.end_ns or each.end_ns <= pause.begin_ns:
        return False
    late = each.end_ns - pause.end_ns
    least = limit("pause.flood")
    share = (pause.end_ns - pause.begin_ns) * limit("pause.flood-share") // 100
    given_up = each.event.kind == GIVEN_UP
    return -least <= late <= max(least, share) or (given_up and late < 0)


def _silence(
    begin_ns: int, end_ns: int, answers: Callable[[int], int | None]
) -> tuple[int, int] | None:
    """Return the time from the last answer before a request gave up or was answered to the next
    one; it begins with the request at the earliest."""

    def answered(slot: int) -> bool:
        minute, place = divmod(slot, MINUTE // SLOT)
        slots = answers(minute)
        return slots is None or bool(slots >> place & 1)

    first, last = begin_ns // SLOT, end_ns // SLOT
    after = next((slot for slot in range(last, last + LIMITS.pause_slots) if answered(slot)), None)
    if after is None:
        return None
    # An answer of the same flood may stand in the slot before.
    end = after - 1 if answered(after - 1) else after
    least = max(first, end - LIMITS.pause_slots)
    before = next((slot for slot in range(end - 1, least - 1, -1) if answered(slot)), None)
    begin = begin_ns if before is None or before == first else (before + 1) * SLOT
    stop = end_ns if after == last else after * SLOT
    return begin, stop
