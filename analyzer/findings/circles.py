"""Readers that fetch the same offsets again and again and go on all the same: what they fetched
ahead is thrown away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final, NamedTuple, TypeAlias

from kafkascope.analyzer.findings.detector import Detector, Finding, Rule
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, among, listed, once
from kafkascope.analyzer.identity import ClientKey
from kafkascope.analyzer.statistics.merging.events import Event
from kafkascope.analyzer.statistics.model import topic_label
from kafkascope.analyzer.text import plural, spelled

MAX_NUMBERS: Final = 100
"""Exchanges that a filter names."""

Place: TypeAlias = tuple[str | None, int, str, str]
"""Topic, as its label, partition, client id and host."""


class Circle(NamedTuple):
    """How a client reads a partition."""

    records: int
    again: int
    """Records that were fetched before."""
    offsets: int
    """Where it went back to."""
    repeated: int
    """Offsets of fetches that were fetched several times, of `positions`."""
    positions: int
    rate: int
    """How often each record was fetched on average, rounded up."""
    first: int
    last: int
    """Offsets of the first and the last fetch."""
    begin_ns: int
    end_ns: int
    numbers: tuple[int, ...]
    """Of the exchanges that went back."""


class Circles(Detector):
    """By client."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "fetched-repeatedly",
            "warning",
            "records fetched several times at every offset",
            "Find what discards the records that the client fetched ahead: a seek or pause of "
            "partitions at each poll (KAFKA-7548: Java clients before 2.4 drop the prefetched "
            "records of paused partitions), or a fetch size far above what each poll takes. Pause "
            "less often, upgrade the client, or lower max.partition.fetch.bytes.",
            brief="{client} fetched records again",
            limits=("circles.offsets", "circles.share"),
        ),
    )

    def told(self, view: View) -> Iterator[Finding]:
        """Yield one finding for each client."""
        clients: dict[ClientKey, dict[str, Circle]] = {}
        topics: dict[ClientKey, set[str]] = {}
        for (topic, number, client_id, host), circle in circling(view).items():
            mine = clients.setdefault((client_id, host), {})
            mine[f"{spelled(topic or '?')}-{number}"] = circle
            topics.setdefault((client_id, host), set()).add(spelled(topic or "?"))
        for key, circles in clients.items():
            yield self._finding(view, key, circles, sorted(topics[key]))

    def _finding(
        self, view: View, client: ClientKey, circles: dict[str, Circle], topics: list[str]
    ) -> Finding:
        who = view.client(*client)
        groups = sorted(
            str(group)
            for (group, *member), _ in view.base.delivery.belongs.items()
            if tuple(member) == client
        )
        where, worst = max(circles.items(), key=lambda each: each[1].again)
        records = sum(each.records for each in circles.values())
        again = sum(each.again for each in circles.values())
        rate = records / max(1, records - again)
        numbers = sorted({number for each in circles.values() for number in each.numbers})
        repeated = sum(each.repeated for each in circles.values())
        positions = sum(each.positions for each in circles.values())
        at = "every offset" if repeated == positions else f"{repeated:,} of {positions:,} offsets"
        of = f" of group {listed(groups, 1)}" if groups else ""
        return view.finding(
            self.rule("fetched-repeatedly"),
            f"{who}{of} fetched {again:,} of {plural(records, 'record')} of {listed(circles)} "
            f"again, at {at}: each record {rate:.1f} times, while it advanced from offset "
            f"{worst.first:,} to {worst.last:,} of {where}",
            all_of("api == Fetch", among("number", numbers[:MAX_NUMBERS])),
            count=sum(each.offsets for each in circles.values()),
            first_ns=min(each.begin_ns for each in circles.values()),
            last_ns=max(each.end_ns for each in circles.values()),
            number=numbers[0],
            about=[
                ("client", who),
                *(("group", spelled(group)) for group in groups[:1]),
                *(("topic", topic) for topic in topics[:MAX_NUMBERS]),
            ],
        )


@once
def circling(view: View) -> dict[Place, Circle]:
    """Return the partitions that clients read so."""
    found: dict[Place, Circle] = {}
    restarts = _restarts(view)
    for (topic, number, client, host), reads in view.base.delivery.reads.items():
        who = str(client or ""), str(host)
        circle = circle_of(sorted(reads.events, key=lambda each: (each.time_ns, each.number)))
        if circle is not None and restarts[who] * 2 < circle.offsets:
            found[(topic_label(topic, view.names), int(str(number)), *who)] = circle
    return found


def circle_of(fetches: Sequence[Event]) -> Circle | None:
    """Return how a partition was read where most of its offsets were fetched several times, and the
    reader went back to many of them; else None. One that reads all again after a restart goes back
    once."""
    times: Counter[int] = Counter()
    back: set[int] = set()
    numbers: list[int] = []
    records = 0
    before: int | None = None
    for event in fetches:
        first = event.about["from"]
        times[first] += 1
        records += event.about["to"] - first
        if before is not None and first <= before:
            back.add(first)
            numbers.append(event.number)
        before = first
    repeated = sum(count > 1 for count in times.values())
    if len(back) < limit("circles.offsets") or repeated * 100 < len(times) * limit("circles.share"):
        return None
    distinct = _covered((each.about["from"], each.about["to"]) for each in fetches)
    return Circle(
        records,
        max(0, records - distinct),
        len(back),
        repeated,
        len(times),
        -(-records // max(1, distinct)),
        min(times),
        max(times),
        fetches[0].time_ns,
        fetches[-1].time_ns,
        tuple(numbers[:MAX_NUMBERS]),
    )


def _covered(spans: Iterator[tuple[int, int]]) -> int:
    """Return how many offsets lie in any of the spans."""
    count, reached = 0, -1
    for first, to in sorted(spans):
        begin = max(first, reached)
        if to > begin:
            count += to - begin
            reached = to
    return count


def _restarts(view: View) -> Counter[ClientKey]:
    """Return how many members each client was: it reads again what was not committed before."""
    return Counter(
        (member.client_id or "", member.host)
        for story in view.stories()
        for member in story.members
    )
