"""Topics between applications: written and never read, read and never written, with names that
nearly are those of others; groups that several applications share.

A capture shows a part of what happens. Nothing is said of topics of Kafka itself, of traffic of a
few seconds, and where it is unknown which topics some requests are about.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import Final

from kafkascope.analyzer.findings.filters import one_of, quoted
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import DetectorInput, Finding, unreadable
from kafkascope.analyzer.findings.words import listed, spelled
from kafkascope.analyzer.merging.tables import OTHERS, by_key
from kafkascope.analyzer.statistics.journeys.model import Application, MapEdge, Sides
from kafkascope.analyzer.statistics.journeys.names import MIRROR
from kafkascope.analyzer.statistics.model import topic_id_in
from kafkascope.analyzer.text import plural

# `__consumer_offsets` and others of brokers; `_schemas` and `_confluent-...` of tools by the same
# custom; Streams names its own after the operator, joins by foreign keys without a name
# KTABLE-FK-JOIN-SUBSCRIPTION-... (KTableImpl of kafka-streams); MirrorMaker's end in `.internal`
# (DefaultReplicationPolicy), but for its heartbeats, which other flows may read.
_INTERNAL: Final = re.compile(
    r"_.*|.*-(?:changelog|repartition|(?i:subscription)-[\w-]+-topic)|.*\.internal|\(.*\)"
)
_HEARTBEATS: Final = re.compile(r"(?:.*[._-])?heartbeats")
_SEPARATORS: Final = str.maketrans("._", "--")


def findings(view: DetectorInput) -> Iterator[Finding]:
    """Yield the findings."""
    shown = view.base.map.map_of(view.names)
    writers, readers = shown.sides()
    topics = {name for name in {**writers, **readers} if not _INTERNAL.fullmatch(name)}
    yield from _shared_groups(shown.applications, view)
    unread = sorted(
        topic for topic in topics if topic not in readers and not _beats(topic, writers)
    )
    unwritten = sorted(topic for topic in topics if topic not in writers)
    yield from _similar_names(topics, {*unread, *unwritten}, view)
    # Whoever captures beside producers sees no consumer at all, and the other way round.
    if not (writers and readers) or not _is_whole(view):
        return
    least = limit("map.span")
    for topics_of, edges, name, text in (
        (unread, writers, "topic-unread", "written, but not read"),
        (unwritten, readers, "topic-unwritten", "read, but not written"),
    ):
        long = [topic for topic in topics_of if _lasts([e for _, e in edges[topic]], view, least)]
        if long:
            they = [edge for topic in long for _, edge in edges[topic]]
            yield view.finding(
                name,
                f"{plural(len(long), 'topic')} {'was' if len(long) == 1 else 'were'} {text} in "
                f"this capture: {listed(list(map(spelled, long)), 5)}",
                _of_topics(long),
                count=len(long),
                span=(min(e.first_ns for e in they), max(e.last_ns for e in they)),
                about={
                    "topic": [spelled(topic) for topic in long[: LIMITS.topics]],
                    "client": sorted({spelled(a.name) for t in long for a, _ in edges[t]}),
                },
            )


def _beats(topic: str, writers: Sides) -> bool:
    """Return whether a topic has MirrorMaker's own heartbeats."""
    by = {each.rule for each, _ in writers.get(topic, ())}
    return by == {MIRROR} and bool(_HEARTBEATS.fullmatch(topic))


def _is_whole(view: DetectorInput) -> bool:
    """Return whether the capture shows the topic of each request and response."""
    tables = view.base.map.writes, view.base.map.reads
    if any(table.others is not None for table in tables):
        return False
    ids = {topic_id_in(key[-1]) for table in tables for key in table} - {None}
    if any(view.names is None or view.names.get(each) is None for each in ids if each):
        return False
    return not view.gap_bytes() and not any(map(unreadable, view.lines))


def _lasts(edges: Sequence[MapEdge], view: DetectorInput, least: int) -> bool:
    """Return whether records were moved so long before the end that the other side, if it is
    there, would have shown up."""
    moved = [edge for edge in edges if edge.records]
    first = min((edge.first_ns for edge in moved), default=None)
    return first is not None and view.last_ns is not None and view.last_ns - first >= least


def _shared_groups(applications: Sequence[Application], view: DetectorInput) -> Iterator[Finding]:
    reads = by_key(
        (read.group, (each, read))
        for each in applications
        for read in each.edges
        if read.group is not None
    )
    for group, pairs in reads.items():
        names = {each.name: each for each, _ in pairs}
        # One after the other is a new release, or the next run under a random id.
        together = any(
            one is not other and mine.first_ns < its.last_ns and its.first_ns < mine.last_ns
            for (one, mine), (other, its) in combinations(pairs[: LIMITS.topics], 2)
        )
        if len(names) < 2 or not together:
            continue
        yield view.finding(
            "shared-group",
            f"Group {spelled(group)} has {len(names)} applications in this capture: "
            f"{listed(sorted(map(spelled, names)), 5)}",
            group=group,
            count=len(names),
            span=(min(e.first_ns for _, e in pairs), max(e.last_ns for _, e in pairs)),
            severity=None if len(set(map(_kind, names.values()))) > 1 else "chat",
            about={
                "client": sorted(map(spelled, names))[: LIMITS.topics],
                "topic": sorted({spelled(read.topic) for _, read in pairs})[: LIMITS.topics],
            },
        )


def _kind(application: Application) -> tuple[object, ...]:
    """Return what hosts of one application have in common, whatever their client ids are."""
    writes = tuple(sorted({edge.topic for edge in application.edges if edge.way == "writes"}))
    return application.software, application.users, writes


def _similar_names(
    topics: Collection[str], onesided: Collection[str], view: DetectorInput
) -> Iterator[Finding]:
    for one, other in similar_pairs(sorted(topics)[: LIMITS.compared_topics]):
        how = _difference(one, other)
        # A typo makes a topic that the other side does not know; two that both have writers and
        # readers are two on purpose (order, orders).
        if how == "one letter" and one not in onesided and other not in onesided:
            continue
        yield view.finding(
            "topic-names-alike",
            f"Topics {spelled(one)} and {spelled(other)} in this capture differ by {how} only",
            _of_topics((one, other)),
            count=2,
            span=(view.first_ns, view.last_ns),
            about={"topic": (spelled(one), spelled(other))},
        )


def similar_pairs(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of names that differ by case, by a separator, or by a letter that is wrong,
    missing, or in the wrong place."""
    # Names one edit apart have a form with one character less in common (SymSpell), so that each
    # is compared with its neighbours only: all pairs of a thousand names take a second.
    forms = by_key((form, name) for name in names for form in {hash(f) for f in _forms(name)})
    pairs = {pair for near in forms.values() for pair in combinations(near[: LIMITS.topics], 2)}
    yield from (pair for pair in sorted(pairs) if _difference(*pair))


def _forms(name: str) -> Iterator[str]:
    yield name.lower().translate(_SEPARATORS)
    if len(name) >= limit("map.letters"):
        yield name
        yield from (name[:at] + name[at + 1 :] for at in range(len(name)))


def _difference(one: str, other: str) -> str:
    """Return what differs in words; empty for names that are no more alike than others."""
    if one.lower() == other.lower():
        return "case"
    if one.translate(_SEPARATORS).lower() == other.translate(_SEPARATORS).lower():
        return "separators"
    if min(len(one), len(other)) < limit("map.letters"):
        return ""
    begin = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    begin = min(len(one), len(other)) if begin is None else begin
    a, b = one[begin:], other[begin:]
    if len(a) > 1 and a[:2] == b[1::-1] and a[2:] == b[2:]:
        changed = a[:2]  # in the wrong order
    elif a[1:] == b[1:]:
        changed = a[:1] + b[:1]
    elif a[1:] == b or a == b[1:]:
        changed = a[:1] if len(a) > len(b) else b[:1]
    else:
        return ""
    # Digits number topics (orders-v1, orders-v2), and so does a letter by itself (shard-a).
    around = one[max(0, begin - 1) : begin] + a[1:2]
    alone = all(not char.isalpha() for char in around)
    return "one letter" if changed.isalpha() and not alone else ""


def _of_topics(names: Collection[str]) -> str:
    shown = [quoted(name) for name in sorted(names) if name != OTHERS]
    return one_of("topic", shown[: LIMITS.topics])
