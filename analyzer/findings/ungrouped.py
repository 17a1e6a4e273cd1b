"""Readers without a group that ask for one offset again and again; and what may keep any reader
from getting past an offset."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from kafkascope.analyzer.findings.codecs import EXTRA
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, listed
from kafkascope.analyzer.statistics.delivery.delivery import Reads
from kafkascope.analyzer.statistics.mergeable import Event
from kafkascope.analyzer.statistics.model import topic_label


@dataclass(frozen=True, slots=True)
class Repeated:
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
        if found:
            end = reads.end[1] if reads.end is not None else -1
            who = str(client or ""), str(host)
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
        for (key, part, client, host), reads in view.base.delivery.reads.items()
        if part == number
        and f"{client or ''}@{host}" in readers
        and topic_label(key, view.names) == topic
        for event in reads.events
        if event.number in numbers
    ]


def carried(fetches: Iterable[Event]) -> str:
    """Return what a reader has to understand of their records: the codec, the schema."""
    codecs: set[str] = set()
    schemas: set[int] = set()
    for each in fetches:
        codecs.update(EXTRA.intersection(each.about.get("codecs", ())))
        if "schema" in each.about:
            schemas.add(each.about["schema"])
    text = f"; the records are compressed with {listed(sorted(codecs))}" if codecs else ""
    if schemas:
        word = "id" if len(schemas) == 1 else "ids"
        text += f"; values carry schema {word} {listed(sorted(schemas))}"
    return text
