"""Readers that ask for one offset again and again and get no further: groups by the delivery audit,
clients without a group by their fetches."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import pairwise
from typing import Any, ClassVar, Final, NamedTuple

from kafkascope.analyzer.filter.lexer import quoted
from kafkascope.analyzer.findings.circles import circling
from kafkascope.analyzer.findings.codecs import EXTRA, FETCH, ZSTD_FETCHES, older
from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import (
    View,
    about_group,
    all_of,
    among,
    duration,
    listed,
    once,
    places_of,
    plural,
)
from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.statistics.delivery.delivery import Reads
from kafkascope.analyzer.statistics.delivery.ends import at
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition, Stall
from kafkascope.analyzer.statistics.merging.events import Event
from kafkascope.analyzer.statistics.model import topic_label
from kafkascope.analyzer.text import spelled

MOST_CLIENTS: Final = 20


class StuckPartition(NamedTuple):
    """A partition that a group does not get on with."""

    place: AuditedPartition
    offset: int
    times: int
    """Fetches, or commits of the offset."""
    first_ns: int
    last_ns: int
    numbers: tuple[int, ...] = ()
    """Of the fetches; empty where the same offset was committed."""
    over: bool = False


class Readers(Detector):
    """By group."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "reader-stuck",
            "error",
            "reader that is stuck at one offset",
            "Look at the record there (`kafkascope records INPUT`) and at the log of the "
            "application: one that fails on a record and restarts gets the same record again. "
            "Catch the error, send the record to a dead-letter topic and commit past it.",
            brief="{client} is stuck",
            limits=("stuck.fetches", "stuck.leaves", "stuck.commits", "stuck.time"),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings from one audit of all groups."""
        for group, places in places_of(view):
            commits = any(place.placed for place in places)
            found = [
                stuck
                for place in places
                for stuck in (_fetched(place, view, commits=commits) or _committed(place),)
                if stuck is not None
            ]
            if found:
                found.sort(key=lambda each: (each.over, -each.times, each.first_ns))
                yield self._finding(group, found, view)
        for each in repeated(view):
            yield self._alone(each, view)

    def _finding(self, group: str, found: list[StuckPartition], view: View) -> Finding:
        worst = found[0]
        place = worst.place
        who = [each.rpartition("@") for each in sorted(place.readers)[:MOST_CLIENTS]]
        clients = [view.client(client_id, host) for client_id, _, host in who]
        took = duration(worst.last_ns - worst.first_ns)
        where = f"offset {worst.offset:,} of {spelled(place.topic)}-{place.number}"
        state = "was stuck and then continued" if worst.over else "is stuck"
        did = "fetched" if worst.numbers else "committed"
        text = (
            f"Group {spelled(group)} {state} at {where}: {did} {worst.times} times within {took} "
            f"by {listed(clients)}"
        )
        text += carried(
            view,
            fetched_by(view, place.topic, place.number, place.readers, set(worst.numbers)),
            {(client_id, host) for client_id, _, host in who},
        )
        behind = (place.log_end or 0) - worst.offset
        if not worst.over and behind > 0:
            text += f"; {plural(behind, 'record')} behind it"
        if len(found) > 1:
            others = listed(f"{each.place.topic}-{each.place.number}" for each in found[1:])
            text += f" (the same on {others})"
        numbers = sorted({number for each in found for number in each.numbers})[:100]
        evidence = all_of("api == Fetch", among("number", numbers))
        return view.finding(
            self.rule("reader-stuck"),
            text,
            evidence if numbers else f"group == {quoted(group)}",
            count=sum(each.times for each in found),
            first_ns=min(each.first_ns for each in found),
            last_ns=max(each.last_ns for each in found),
            severity="warning" if worst.over or not worst.numbers else None,
            number=numbers[0] if numbers else None,
            about=[
                *about_group(group, (each.place.topic for each in found)),
                *(("client", client) for client in clients),
            ],
        )

    def _alone(self, found: Repeated, view: View) -> Finding:
        """Return the finding about a client without a group."""
        client, topic = view.client(*found.client), view.topic(found.topic)
        times = [each.time_ns for each in found.fetches]
        numbers = [each.number for each in found.fetches]
        behind = found.end - found.offset
        waits = f"; {plural(behind, 'record')} behind it" if behind > 0 else ""
        return view.finding(
            self.rule("reader-stuck"),
            f"{client} is stuck at offset {found.offset:,} of {topic}-{found.number}: fetched "
            f"{len(times)} times within {duration(max(times) - min(times))}, and never past it"
            f"{carried(view, found.fetches, {found.client})}{waits}",
            all_of("api == Fetch", among("number", numbers[:100])),
            count=len(times),
            first_ns=min(times),
            last_ns=max(times),
            number=min(numbers),
            about=[("client", client), ("topic", topic)],
        )


def _fetched(place: AuditedPartition, view: View, *, commits: bool) -> StuckPartition | None:
    """Return a partition that stands still by the fetches of one offset. A group that commits
    nothing reads all again after each restart: it is stuck only where its members leave as soon as
    they have got the records."""
    stalls = [each for each in place.stalls if commits or _leaves(place, each, view)]
    often = _often(view, place)
    if often:
        # It goes on everywhere else: only where it reads much more often is it stuck.
        stalls = [each for each in stalls if not each.over and len(each.fetches) > 2 * often]
    if not stalls:
        return None
    stall = min(stalls, key=lambda each: (each.over, each.offset))
    times = [time_ns for time_ns, _ in stall.fetches]
    numbers = tuple(number for _, number in stall.fetches)
    return StuckPartition(place, stall.offset, len(times), times[0], times[-1], numbers, stall.over)


def _often(view: View, place: AuditedPartition) -> int:
    """Return how often readers of a partition fetch each of its offsets as a rule; 0: once."""
    circles = circling(view)
    who = [each.rpartition("@") for each in place.readers]
    found = [circles.get((place.topic, place.number, each[0], each[2])) for each in who]
    return max((each.rate for each in found if each is not None), default=0)


def _leaves(place: AuditedPartition, stall: Stall, view: View) -> bool:
    """Return whether members were gone soon after they had got the records, again and again."""
    story = view.base.groups.story(place.group)
    if story is None:
        return False
    ends = sorted(
        each.gone_ns
        for each in story.members
        if each.gone_ns is not None and f"{each.client_id or ''}@{each.host}" in stall.clients
    )
    gone = 0
    for (time_ns, _), (next_ns, _) in pairwise(stall.fetches):
        number = bisect_left(ends, time_ns)
        end = ends[number] if number < len(ends) else next_ns
        gone += end < next_ns and end - time_ns <= limit("stuck.leaves")
    return gone >= limit("stuck.fetches") - 1


def _committed(place: AuditedPartition) -> StuckPartition | None:
    """Return a partition that stands still by commits of one offset at the end, while the log grows
    behind it."""
    if not place.placed or not place.ends or place.waits_since_ns is not None:
        return None
    offset = place.placed[-1][1]
    behind = next((time_ns for time_ns, end in place.ends if end > offset), None)
    if behind is None:
        return None
    times: list[int] = []
    for time_ns, each in reversed(place.placed):
        if each != offset or time_ns < behind:
            break
        times.append(time_ns)
    if len(times) < limit("stuck.commits") or times[0] - times[-1] < limit("stuck.time"):
        return None
    grown = (at(place.ends, times[0]) or 0) > (at(place.ends, times[-1]) or 0)
    return StuckPartition(place, offset, len(times), times[-1], times[0]) if grown else None


class Repeated(NamedTuple):
    """A partition that a client reads from the same offset on, and no further."""

    client: tuple[str, str]
    """Client id and host."""
    topic: str | None
    """Its name, or its id as a key."""
    number: int
    offset: int
    fetches: tuple[Event, ...]
    end: int
    """Of the log, as it was told last."""


def repeated(view: View) -> Iterator[Repeated]:
    """Yield repeated reads of clients that are in no group: partitions were assigned by hand, and
    no commit tells how far they got."""
    members = {(client, host) for (_, client, host), _ in view.base.delivery.belongs.items()}
    for (topic, number, client, host), reads in view.base.delivery.reads.items():
        if (client, host) in members:
            continue
        found = _last(reads)
        who = str(client or ""), str(host)
        circle = circling(view).get((topic_label(topic, view.names), int(str(number)), *who))
        if found and (circle is None or len(found) > 2 * circle.rate):
            end = reads.end[1] if reads.end is not None else -1
            offset = found[0].about["from"]
            name = None if topic is None else str(topic)
            yield Repeated(who, name, number, offset, found, end)


def _last(reads: Reads) -> tuple[Event, ...]:
    """Return fetches that brought records from the largest offset that was asked for, where these
    are many, over some time."""
    if reads.asked is None:
        return ()
    found = tuple(each for each in reads.events if each.about["from"] == reads.asked)
    if len(found) < limit("stuck.fetches"):
        return ()
    span = max(each.time_ns for each in found) - min(each.time_ns for each in found)
    return found if span >= limit("stuck.time") else ()


def fetched_by(
    view: View, topic: str, number: int, readers: Collection[str], numbers: Collection[int]
) -> list[Event]:
    """Return the fetches of a partition by readers (`id@host`) that are among some exchanges."""
    return [
        event
        for reader, reads in _reads_of(view).get((topic, number), ())
        if reader in readers
        for event in reads.events
        if event.number in numbers
    ]


@once
def _reads_of(view: View) -> dict[tuple[str | None, Any], list[tuple[str, Reads]]]:
    """Map each partition to its readers."""
    found: dict[tuple[str | None, Any], list[tuple[str, Reads]]] = defaultdict(list)
    for (key, part, client, host), reads in view.base.delivery.reads.items():
        found[topic_label(key, view.names), part].append((f"{client or ''}@{host}", reads))
    return found


@once
def _fetch_versions(view: View) -> dict[ClientKey, int]:
    """Map each client to the latest version of its Fetches."""
    found: dict[ClientKey, int] = {}
    for (client_id, host, _, _, key, version), _ in view.base.clients.values.items():
        if key == FETCH:
            who = str(client_id or ""), str(host)
            found[who] = max(int(str(version)), found.get(who, 0))
    return found


def carried(view: View, fetches: Iterable[Event], readers: Collection[ClientKey]) -> str:
    """Return what readers have to understand of their records: the codec, and whether it is younger
    than they are; the schema."""
    codecs: set[str] = set()
    schemas: set[int] = set()
    for each in fetches:
        codecs.update(EXTRA.intersection(each.about.get("codecs", ())))
        if "schema" in each.about:
            schemas.add(each.about["schema"])
    text = f"; the records are compressed with {listed(sorted(codecs))}" if codecs else ""
    if "zstd" in codecs:
        known = _fetch_versions(view)
        sent = [known[each] for each in readers if each in known]
        text += older(max(sent, default=ZSTD_FETCHES.low))
    if schemas:
        word = "id" if len(schemas) == 1 else "ids"
        text += f"; values carry schema {word} {listed(sorted(schemas))}"
    return text
