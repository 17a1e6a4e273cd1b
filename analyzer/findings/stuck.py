"""Readers that fetch one offset again and again without progress: groups by the delivery audit,
clients without a group by their fetches. Readers that fetch the same offsets again and again and go
on all the same: what they fetched ahead is thrown away.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

from kafkascope.analyzer.findings.codecs import EXTRA, ZSTD_FETCHES, older
from kafkascope.analyzer.findings.counting import Occurrences
from kafkascope.analyzer.findings.filters import all_of, among, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Client, DetectorInput, Finding
from kafkascope.analyzer.findings.words import duration, listed, plural, spelled
from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.merging.bounded import Event
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.delivery.ends import at
from kafkascope.analyzer.statistics.delivery.model import AuditedPartition, Reads, Stall
from kafkascope.analyzer.statistics.model import topic_label

Place: TypeAlias = tuple[str | None, int, str, str]
"""Topic, as its label, partition, client id and host."""


class StuckPartition(NamedTuple):
    """A partition that a group does not get on with."""

    place: AuditedPartition
    offset: int
    times: int
    """Fetches, or commits of the offset."""
    first_ns: int
    last_ns: int
    numbers: tuple[int, ...] = ()
    """Numbers of the fetches; empty where the same offset was committed."""
    over: bool = False


class Circle(NamedTuple):
    """How a client reads a partition again and again."""

    fetches: Sequence[Event]
    times: Counter[int]
    """How often each offset was fetched."""
    offsets: int
    """Where it went back to."""
    numbers: list[int]
    """Numbers of the exchanges that went back."""
    records: int
    again: int
    """Records that were fetched before."""
    rate: int
    """How often each record was fetched on average, rounded up."""


def findings(view: DetectorInput) -> Iterator[Finding]:
    """Yield findings from one audit of all groups, and of clients without a group."""
    for group, places in view.audited:
        commits = any(place.placed for place in places)
        stuck = [_fetched(place, view, commits=commits) or _committed(place) for place in places]
        found = [each for each in stuck if each is not None]
        if found:
            found.sort(key=lambda each: (each.over, -each.times, each.first_ns))
            yield _finding(group, found, view)
    for (topic, number, *who), reads in view.base.delivery.reads.items():
        client = view.client(*who)
        if client.key in view.groups_of:
            continue
        # Partitions were assigned by hand, and no commit shows how far it got.
        fetches = _last(reads)
        circle = circling(view).get((topic_label(topic, view.names), int(str(number)), *client.key))
        if fetches and (circle is None or len(fetches) > 2 * circle.rate):
            yield _ungrouped(client, view.topic(topic), number, reads, fetches, view)
    by_client = by_key((place[2:], (place, each)) for place, each in circling(view).items())
    for key, circles in by_client.items():
        yield _circle(view, key, circles)


def _finding(group: str, found: list[StuckPartition], view: DetectorInput) -> Finding:
    worst = found[0]
    place = worst.place
    who = [(each[0], each[2]) for each in _keys(sorted(place.readers)[: LIMITS.topics])]
    clients = [view.client(*each) for each in who]
    took = duration(worst.last_ns - worst.first_ns)
    state = "was stuck and then continued" if worst.over else "is stuck"
    fetches = [
        event
        for reader, reads in _reads_of(view).get((place.topic, place.number), ())
        if reader in place.readers
        for event in reads.events
        if event.number in worst.numbers
    ]
    text = (
        f"Group {spelled(group)} {state} at offset {worst.offset:,} of {spelled(place.topic)}-"
        f"{place.number}: {'fetched' if worst.numbers else 'committed'} {worst.times} times within "
        f"{took} by {listed(clients)}{_carried(view, fetches, who)}"
    )
    behind = (place.log_end or 0) - worst.offset
    if not worst.over and behind > 0:
        text += f"; {plural(behind, 'record')} after it"
    if len(found) > 1:
        others = listed(f"{each.place.topic}-{each.place.number}" for each in found[1:])
        text += f" (the same on {others})"
    numbers = sorted({number for each in found for number in each.numbers})[: LIMITS.entities]
    return view.finding(
        "reader-stuck",
        text,
        _fetches(numbers) if numbers else f"group == {quoted(group)}",
        count=sum(each.times for each in found),
        span=(min(each.first_ns for each in found), max(each.last_ns for each in found)),
        severity="warning" if worst.over or not worst.numbers else None,
        case="codec" if _codecs(fetches) and not worst.over else "",
        number=numbers[0] if numbers else None,
        about={**view.about_group(group, (each.place.topic for each in found)), "client": clients},
    )


def _fetches(numbers: list[int]) -> str:
    return all_of("api == Fetch", among("number", numbers[: LIMITS.entities]))


def _keys(readers: Iterable[str]) -> list[tuple[str, str, str]]:
    return [each.rpartition("@") for each in readers]


def _ungrouped(
    client: Client,
    topic: str,
    number: Any,
    reads: Reads,
    fetches: tuple[Event, ...],
    view: DetectorInput,
) -> Finding:
    """Return the finding about a client without a group that reads a partition from the same offset
    on, and no further."""
    seen = Occurrences.of(fetches)
    offset = fetches[0].about["from"]
    behind = (reads.end[1] if reads.end is not None else -1) - offset
    waits = f"; {plural(behind, 'record')} after it" if behind > 0 else ""
    span = seen.span_ns
    return view.finding(
        "reader-stuck",
        f"{client} is stuck at offset {offset:,} of {topic}-{number}: fetched {seen.count} times "
        f"within {duration(span)}, and never past it{_carried(view, fetches, {client.key})}{waits}",
        _fetches([each.number for each in fetches]),
        seen,
        case="codec" if _codecs(fetches) else "",
        about={"client": client, "topic": topic},
    )


def _fetched(
    place: AuditedPartition, view: DetectorInput, *, commits: bool
) -> StuckPartition | None:
    """Return a partition stuck by the fetches of one offset. A group that commits nothing reads all
    again after each restart: it is stuck only where its members leave as soon as they have got the
    records."""
    stalls = [
        each
        for each in place.stalls
        if (commits or _leaves(place, each, view))
        and not _evicted(place, each, view)
        # Rebalances that follow one another move a partition before anything of it is processed,
        # and librdkafka fetches again what an incremental assignment leaves with it.
        and not (each.over and each.fetches[-1][0] - each.fetches[0][0] < limit("stuck.time"))
    ]
    found = [
        circling(view).get((place.topic, place.number, each[0], each[2]))
        for each in _keys(place.readers)
    ]
    often = max((each.rate for each in found if each is not None), default=0)
    if often:
        # It goes on everywhere else: only where it reads much more often is it stuck.
        stalls = [each for each in stalls if not each.over and len(each.fetches) > 2 * often]
    if not stalls:
        return None
    stall = min(stalls, key=lambda each: (each.over, each.offset))
    times, numbers = zip(*stall.fetches, strict=True)
    return StuckPartition(place, stall.offset, len(times), times[0], times[-1], numbers, stall.over)


def _leaves(place: AuditedPartition, stall: Stall, view: DetectorInput) -> bool:
    """Return whether members were gone soon after they had got the records, again and again."""
    ends = _ends(place, stall, view)
    gone = sum(
        end is not None and end - time_ns <= limit("stuck.leaves")
        for time_ns, end in _ended_between(stall, ends)
    )
    return gone >= limit("stuck.fetches") - 1


def _evicted(place: AuditedPartition, stall: Stall, view: DetectorInput) -> bool:
    """Return whether a member was evicted before each fetch of the same records, and came back as
    if it still belonged to the group: it takes longer than its session, and is no consumer that
    fails on a record and starts again."""
    ends = _ends(place, stall, view, returned=True)
    return bool(ends) and all(end is not None for _, end in _ended_between(stall, ends))


def _ends(
    place: AuditedPartition, stall: Stall, view: DetectorInput, *, returned: bool = False
) -> list[int]:
    """Return when members with the clients of a stall were gone; `returned`: those that sent
    something with the id that they had before."""
    story = view.base.groups.story(place.group)
    return sorted(
        each.gone_ns
        for each in (story.members if story is not None else ())
        if each.gone_ns is not None
        and f"{each.client_id or ''}@{each.host}" in stall.clients
        and (each.returned or not returned)
    )


def _ended_between(stall: Stall, ends: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Yield the time of each fetch but the last, with the first end until the next fetch."""
    for (time_ns, _), (next_ns, _) in pairwise(stall.fetches):
        number = bisect_left(ends, time_ns)
        end = ends[number] if number < len(ends) else next_ns
        yield time_ns, end if end < next_ns else None


def _committed(place: AuditedPartition) -> StuckPartition | None:
    """Return a partition stuck by commits of one offset at the end, while the log grows after
    it."""
    if not place.placed or not place.ends or place.waits:
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


def _last(reads: Reads) -> tuple[Event, ...]:
    """Return fetches that brought records from the largest requested offset, where these are many,
    over some time."""
    found = tuple(each for each in reads.events if each.about["from"] == reads.asked)
    if reads.asked is None or len(found) < limit("stuck.fetches"):
        return ()
    span = max(each.time_ns for each in found) - min(each.time_ns for each in found)
    return found if span >= limit("stuck.time") else ()


@DetectorInput.once
def _reads_of(view: DetectorInput) -> dict[tuple[str | None, Any], list[tuple[str, Reads]]]:
    return by_key(
        ((topic_label(key, view.names), part), (f"{client or ''}@{host}", reads))
        for (key, part, client, host), reads in view.base.delivery.reads.items()
    )


@DetectorInput.once
def _fetch_versions(view: DetectorInput) -> dict[ClientKey, int]:
    found: dict[ClientKey, int] = defaultdict(int)
    for (client_id, host, _, _, key, version), _ in view.base.clients.values.items():
        if key == 1:  # Fetch
            who = str(client_id or ""), str(host)
            found[who] = max(int(str(version)), found[who])
    return found


def _codecs(fetches: Iterable[Event]) -> set[str]:
    """Return the codecs of fetched records for which libraries may need a package."""
    return {codec for each in fetches for codec in EXTRA.intersection(each.about.get("codecs", ()))}


def _carried(
    view: DetectorInput, fetches: Collection[Event], readers: Collection[ClientKey]
) -> str:
    """Return what readers have to understand of their records: the codec, and whether it is younger
    than they are; the schema."""
    codecs = _codecs(fetches)
    schemas: set[int] = set()
    for each in fetches:
        schemas.update({each.about["schema"]} if "schema" in each.about else ())
    text = f"; the records are compressed with {listed(sorted(codecs))}" if codecs else ""
    if "zstd" in codecs:
        known = _fetch_versions(view)
        text += older(max((known[e] for e in readers if e in known), default=ZSTD_FETCHES.low))
    if schemas:
        word = "id" if len(schemas) == 1 else "ids"
        text += f"; values carry schema {word} {listed(sorted(schemas))}"
    return text


# --- readers that go on all the same


def _circle(view: DetectorInput, key: ClientKey, found: list[tuple[Place, Circle]]) -> Finding:
    client, groups = view.client(*key), view.groups_of.get(key, ())
    circles = {f"{spelled(topic or '?')}-{part}": each for (topic, part, *_), each in found}
    where, worst = max(circles.items(), key=lambda each: each[1].again)
    records = sum(each.records for each in circles.values())
    again = sum(each.again for each in circles.values())
    rate = records / max(1, records - again)
    numbers = sorted({number for each in circles.values() for number in each.numbers})
    repeated = sum(count > 1 for each in circles.values() for count in each.times.values())
    positions = sum(len(each.times) for each in circles.values())
    at = "every offset" if repeated == positions else f"{repeated:,} of {positions:,} offsets"
    of = f" of group {listed(groups, 1)}" if groups else ""
    return view.finding(
        "fetched-repeatedly",
        f"{client}{of} fetched {again:,} of {plural(records, 'record')} of {listed(circles)} "
        f"again, at {at}: each record {rate:.1f} times, while it advanced from offset "
        f"{min(worst.times):,} to {max(worst.times):,} of {where}",
        _fetches(numbers),
        count=sum(each.offsets for each in circles.values()),
        span=(
            min(each.fetches[0].time_ns for each in circles.values()),
            max(each.fetches[-1].time_ns for each in circles.values()),
        ),
        number=numbers[0],
        about={
            "client": client,
            "group": map(spelled, groups[:1]),
            "topic": sorted({spelled(topic or "?") for (topic, *_), _ in found}),
        },
    )


@DetectorInput.once
def circling(view: DetectorInput) -> dict[Place, Circle]:
    """Return the partitions that clients read so. Members read again what was not committed before:
    a client that restarted often is none of these."""
    found: dict[Place, Circle] = {}
    members = view.members
    restarts = Counter((member.client_id or "", member.host) for member in members)
    for (topic, number, client, host), reads in view.base.delivery.reads.items():
        who = str(client or ""), str(host)
        circle = _circle_of(sorted(reads.events, key=lambda each: (each.time_ns, each.number)))
        if circle is not None and restarts[who] * 2 < circle.offsets:
            found[(topic_label(topic, view.names), int(str(number)), *who)] = circle
    return found


def _circle_of(fetches: Sequence[Event]) -> Circle | None:
    """Return how a partition was read where most of its offsets were fetched several times, and the
    reader went back to many of them; else None. One that reads all again after a restart goes back
    once."""
    times = Counter(each.about["from"] for each in fetches)
    behind = [now for before, now in pairwise(fetches) if now.about["from"] <= before.about["from"]]
    back = {each.about["from"] for each in behind}
    repeated = sum(count > 1 for count in times.values())
    if len(back) < limit("circles.offsets") or repeated * 100 < len(times) * limit("circles.share"):
        return None
    records = sum(each.about["to"] - each.about["from"] for each in fetches)
    distinct, reached = 0, -1
    for first, to in sorted((each.about["from"], each.about["to"]) for each in fetches):
        distinct += max(0, to - max(first, reached))
        reached = max(reached, to)
    again, rate = max(0, records - distinct), -(-records // max(1, distinct))
    numbers = [each.number for each in behind][: LIMITS.entities]
    return Circle(fetches, times, len(back), numbers, records, again, rate)
