"""Topics that worked and then were no longer there (question 13)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, ShortLog
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import View, all_of, duration, listed, plural
from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import Measures, least, measured, most, whole
from kafkascope.analyzer.statistics.merging.names import Names
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_key
from kafkascope.analyzer.statistics.moved import moved
from kafkascope.analyzer.text import spelled
from kafkascope.dissectors.reference.codes import error_name

PRODUCE: Final = 0
FETCH: Final = 1
METADATA: Final = 3
DELETE_TOPICS: Final = 20
SHARE_FETCH: Final = 78
USES: Final = frozenset({PRODUCE, FETCH, 2, METADATA, 8, 23, 24, 28, SHARE_FETCH})
"""What clients of a topic ask: also ListOffsets, OffsetCommit, OffsetForLeaderEpoch,
AddPartitionsToTxn, TxnOffsetCommit."""
GONE: Final = frozenset({3, 100, 103})
"""UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID."""
MAX_TOPICS: Final = 1_000
MOST_NAMED: Final = 100
"""Clients that a finding names for those that it explains."""


@measured
class TopicLife(Measures):
    """When a topic was there, as answers tell it."""

    first_ns: int | None = least()
    last_ns: int | None = most()
    deleted: tuple[int, str] | None = least()
    """(time, client) of a DeleteTopics that was done."""
    users: Names = whole(Names)
    """(client id, host) of those who wrote to it or read from it."""

    def works(self, time_ns: int) -> None:
        """Take note that the topic was there."""
        if self.first_ns is None or time_ns < self.first_ns:
            self.first_ns = time_ns
        if self.last_ns is None or time_ns > self.last_ns:
            self.last_ns = time_ns


class Deleted(Detector):
    """When topics worked, and who was told afterwards that they are not there."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "topic-deleted",
            "error",
            "topic that was deleted while in use",
            "Create the topic again if it is needed; otherwise stop its clients. Look for "
            "DeleteTopics in the brokers' logs, and for ACLs that hide the topic. A topic of the "
            "same name is a new one: its offsets start at 0, and offsets committed for the old "
            "one are void.",
            "UNKNOWN_TOPIC_OR_PARTITION",
            brief="topic {topic} no longer exists",
            subject=("topic",),
            limits=("deleted.count", "deleted.span"),
        ),
    )
    KEYS = USES | {DELETE_TOPICS}

    lives: Keyed[TopicLife] = table(TopicLife, MAX_TOPICS)
    """By topic."""
    refused: Keyed[ShortLog] = table(ShortLog, MAX_TOPICS)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of successful requests about topics, refused ones, and deletions."""
        if row.latency_ns is None:
            return
        end_ns = row.time_ns + row.latency_ns
        who = (row.client_id or "", host_of(row.client_address))
        if row.api_key in (PRODUCE, FETCH, SHARE_FETCH):
            before: Any = ()
            for each in moved(exchange):
                # Partitions of a topic stand together.
                if not each.error and each.topic != before:
                    before = each.topic
                    life = self.lives[(before,)]
                    life.works(end_ns)
                    life.users.add(who)
        elif row.api_key in (METADATA, DELETE_TOPICS):
            self._told(row, exchange, end_ns)
        if not row.errors or row.api_key == DELETE_TOPICS:
            return
        keys = {topic_key(e.topic, e.topic_id): e.code for e in row.errors if e.code in GONE}
        for part, (key, code) in enumerate(sorted(keys.items(), key=str)):
            if key is not None:
                about = {"client": list(who), "code": code}
                self.refused[(key,)].events.note(row, "gone", about, part)

    def add_all(self, alike: Alike) -> None:
        """Take note of usual exchanges."""
        for (topic, _), parts in alike.parts.items():
            life = self.lives[(topic,)]
            life.works(min(parts.ends))
            life.works(max(parts.ends))
            life.users.add(alike.who)

    def _told(self, row: Row, exchange: Exchange, end_ns: int) -> None:
        """Take note of what Metadata and DeleteTopics say of topics."""
        asked = row.api_key == METADATA
        response = exchange.response_body or {}
        for each in response.get("topics" if asked else "responses", ()):
            key = topic_key(each["name"], each.get("topic_id"))
            if each["error_code"] or key is None:
                continue
            life = self.lives[(key,)]
            if asked:
                life.works(end_ns)
            else:
                life.take(deleted=(end_ns, row.client_id or ""))

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by topic."""
        lives: dict[str, TopicLife] = {}
        refused: dict[str, tuple[Any, ShortLog]] = {}
        for (key,), life in self.lives.items():
            lives.setdefault(view.topic(key), TopicLife()).merge(life)
        for (key,), each in self.refused.items():
            name = view.topic(key)
            _, sum_ = refused.get(name, (None, ShortLog()))
            sum_.merge(each)
            refused[name] = key, sum_
        for name, (key, refusals) in refused.items():
            if name in lives:
                yield from self._gone(name, key, lives[name], refusals, view)

    def _gone(
        self, name: str, key: Any, life: TopicLife, refusals: ShortLog, view: View
    ) -> Iterator[Finding]:
        since = life.deleted[0] if life.deleted is not None else life.last_ns
        if since is None or life.first_ns is None or life.first_ns > since:
            return
        after = [event for event in refusals.events if event.time_ns > since]
        users = {tuple(event.about["client"]) for event in after} & set(life.users)
        if not users:
            return
        first, last = after[0].time_ns, after[-1].time_ns
        few = len(after) < limit("deleted.count") or last - first < limit("deleted.span")
        if few and life.deleted is None:
            return
        clients = sorted({view.client(*event.about["client"]) for event in after})
        codes = sorted({int(event.about["code"]) for event in after})
        was = (
            f"was deleted by {spelled(life.deleted[1]) or 'a client'}"
            if life.deleted is not None
            else f"no longer exists, after {duration(since - life.first_ns)} of use"
        )
        yield view.finding(
            self.rule("topic-deleted"),
            f"Topic {name} {was}: {plural(len(after), 'request')} from {listed(clients)} failed "
            f"with {listed(map(error_name, codes))}",
            all_of(
                f"error in {{{', '.join(map(str, codes))}}}",
                view.of_topic(key),
                f"number >= {min(event.number for event in after)}",
            ),
            count=len(after),
            first_ns=first,
            last_ns=last,
            number=after[0].number,
            severity="note" if few else None,
            about=[
                ("topic", name),
                *(("client", each) for each in clients[:MOST_NAMED]),
            ],
        )
