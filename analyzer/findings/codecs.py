"""Clients that cannot read the codec of what they are sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Final, NamedTuple

from kafkascope.analyzer.findings.detector import Detector, Exchange, Finding, Row, Rule, Seen
from kafkascope.analyzer.findings.limits import limit
from kafkascope.analyzer.findings.view import (
    View,
    all_of,
    among,
    audit_of,
    duration,
    listed,
    plural,
)
from kafkascope.analyzer.identity import ClientKey, client_of
from kafkascope.analyzer.statistics.delivery.delivery import Reads
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.events import Event
from kafkascope.analyzer.statistics.merging.measures import measured, most
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import topic_key, topic_label
from kafkascope.dissectors.schema import Versions

FETCH: Final = 1
ZSTD_FETCHES: Final = Versions.parse("10+")
"""KIP-110: brokers refuse it to older ones, while the topic's compression.type says zstd."""
UNSUPPORTED: Final = 76
"""UNSUPPORTED_COMPRESSION_TYPE."""
EXTRA: Final = frozenset({"snappy", "lz4", "zstd"})
"""Codecs that some libraries know only with another package; gzip is in all."""
KAFKAJS: Final = "RoundRobinAssigner"
"""What kafkajs calls its assignor: it knows only gzip by itself, and a consumer that meets another
codec leaves its group at once."""
LAST_SHARED: Final = 4
"""Later versions of Fetch before 10 are of clients that do not know zstd; some that stay with this
one or an older one do (kafka-python, aiokafka)."""


class MemberLife(NamedTuple):
    """A member of a group."""

    first_ns: int
    gone_ns: int
    left: bool
    bare: bool
    """Of a library that knows only gzip without other packages."""


@measured
class Old(Seen):
    """Fetches that carried zstd in a version before it."""

    version: int | None = most()


class Unread(NamedTuple):
    """Records of a partition that a client was sent, and behind which it never went on."""

    topic: str
    codec: str
    fetches: tuple[Event, ...]
    after_ns: int
    """So long it was in its group afterwards."""


class Codecs(Detector):
    """By client."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "batch-codec",
            "error",
            "client that cannot decompress its records",
            "Upgrade the consumer, install the codec, or set compression.type of the topic. zstd "
            "needs Fetch v10 (clients since 2.1); libraries such as kafkajs and kafka-python need "
            "an extra package for snappy, lz4 and zstd.",
            "UNSUPPORTED_COMPRESSION_TYPE",
            limits=("codec.waits", "codec.slow", "stuck.leaves"),
        ),
    )
    KEYS = frozenset({FETCH})
    ODD_KEYS = frozenset({0, 78})

    refused: Keyed[Seen] = table(Seen, 1_000)
    """By API, topic and client."""
    old: Keyed[Old] = table(Old, 1_000)
    """zstd for versions before it."""

    def add(self, row: Row, exchange: Exchange) -> None:
        """Take note of errors, and versions with codecs."""
        if row.errors and any(error.code == UNSUPPORTED for error in row.errors):
            self.refused[(row.api, one_topic(row), *client_of(row))].see(row)
        version = row.api_version
        old = row.api_key == FETCH and version is not None and version not in ZSTD_FETCHES
        if old and "zstd" in row.codecs:
            seen = self.old[client_of(row)]
            seen.see(row)
            seen.take(version=version)

    def add_all(self, alike: Alike) -> None:
        """Take note of usual exchanges."""
        version = alike.row.api_version
        if version is None or version in ZSTD_FETCHES:
            return
        for time_ns, number, codecs in zip(alike.begins, alike.numbers, alike.codecs, strict=True):
            if "zstd" in codecs:
                seen = self.old[client_of(alike.row)]
                seen.see_at(time_ns, number)
                seen.take(version=version)

    def told(self, view: View) -> Iterator[Finding]:
        """Yield findings by client: refused, not read, read by an old version."""
        rule = self.rule("batch-codec")
        for (api, topic, client_id, host), seen in self.refused.items():
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            of = f" of topic {view.topic(topic)}" if topic else ""
            what = plural(seen.count, f"{api} exchange")
            yield view.finding(
                rule,
                f"{what}{of} with {who} failed with UNSUPPORTED_COMPRESSION_TYPE",
                all_of(mine, f"api == {api} and error == {UNSUPPORTED}"),
                seen,
                about=[("client", who), *([("topic", view.topic(topic))] if topic else ())],
            )
        old = {(str(key[0] or ""), str(key[1])): seen for key, seen in self.old.items()}
        unread = unread_of(view, old)
        for (client_id, host), found in sorted(unread.items()):
            yield self._unread(client_id, host, found, (client_id, host) in old, view)
        for (client_id, host), seen in self.old.items():
            if (str(client_id or ""), str(host)) in unread:
                continue
            who, mine = view.client(client_id, host), view.of_client(client_id, host)
            what = plural(seen.count, "Fetch exchange")
            yield view.finding(
                rule,
                f"{what} with {who} before v{ZSTD_FETCHES.low} carried zstd batches, which such "
                "clients may not support",
                all_of(mine, f"api == Fetch and version < {ZSTD_FETCHES.low} and codec == zstd"),
                seen,
                severity="note",
                about=[("client", who)],
            )

    def _unread(
        self, client_id: str, host: str, found: list[Unread], old: bool, view: View
    ) -> Finding:
        who = view.client(client_id, host)
        fetches = [event for each in found for event in each.fetches]
        codecs = sorted({each.codec for each in found})
        topics = sorted({view.topic(each.topic) for each in found})
        old = old and "zstd" in codecs
        after = duration(min(each.after_ns for each in found))
        then = f"no progress for {after}" if old else f"it left its group {after} later"
        if len({event.number for event in fetches}) > 1:
            then = f"it fetched them {len({event.number for event in fetches})} times"
        why = older(ZSTD_FETCHES.low - 1) if old else ""
        return view.finding(
            self.rule("batch-codec"),
            f"{who} received batches of {listed(topics)} compressed with {', '.join(codecs)} and "
            f"never read past them: {then}{why}",
            all_of("api == Fetch", among("number", [event.number for event in fetches][:100])),
            count=len({event.number for event in fetches}),
            first_ns=min(event.time_ns for event in fetches),
            last_ns=max(event.time_ns for event in fetches),
            number=min(event.number for event in fetches),
            severity=None if old else "warning",
            about=[("client", who), *(("topic", topic) for topic in topics)],
        )


def unread_of(view: View, old: Mapping[ClientKey, Old]) -> dict[ClientKey, list[Unread]]:
    """Return clients that never went on behind records in a codec, wherever they got some, though
    there was time for it. `old`: those that got zstd in versions of Fetch before it."""
    commits: dict[tuple[str, str, int], int] = {}
    for place in audit_of(view).found:
        most = max((offset for _, offset in place.placed), default=-1)
        for reader in place.readers:
            key = reader, place.topic, place.number
            commits[key] = max(commits.get(key, -1), most)
    lives = _lives(view)
    able: set[tuple[str, str, str]] = set()
    found: dict[ClientKey, list[Unread]] = {}
    for (topic, number, client, host), reads in view.base.delivery.reads.items():
        who = str(client or ""), str(host)
        named = topic_label(topic, view.names) or "?"
        committed = commits.get((f"{who[0]}@{who[1]}", named, number), -1)
        for codec, fetches in _by_codec(reads).items():
            if max(committed, reads.asked or -1) > min(each.about["from"] for each in fetches):
                able.add((*who, codec))
                continue
            version = old[who].version if codec == "zstd" and who in old else None
            left_ns = _judged(lives.get(who, ()), fetches, version)
            if left_ns is not None:
                unread = Unread(str(topic), codec, tuple(fetches), left_ns)
                found.setdefault(who, []).append(unread)
    kept = {
        who: [each for each in unread if (*who, each.codec) not in able]
        for who, unread in found.items()
    }
    return {who: unread for who, unread in kept.items() if unread}


def _by_codec(reads: Reads) -> dict[str, list[Event]]:
    """Group the fetches that brought records by codec, for codecs that a library may lack."""
    found: dict[str, list[Event]] = {}
    for event in reads.events:
        for codec in EXTRA.intersection(event.about.get("codecs", ())):
            found.setdefault(codec, []).append(event)
    return found


def _lives(view: View) -> dict[ClientKey, list[MemberLife]]:
    """Return the lives of group members, by client."""
    found: dict[ClientKey, list[MemberLife]] = {}
    plans = view.base.delivery.plans.items()
    bare = {str(group) for (group, _), plan in plans if plan.assignor == KAFKAJS}
    for story in view.stories():
        for each in story.members:
            if each.first_ns is not None and each.gone_ns is not None:
                who, left = (each.client_id or "", each.host), each.state == "left"
                life = MemberLife(each.first_ns, each.gone_ns, left, story.group in bare)
                found.setdefault(who, []).append(life)
    return found


def _judged(lives: Iterable[MemberLife], fetches: list[Event], version: int | None) -> int | None:
    """Return for how long a member was there after it had got the records; None where nothing
    follows from its silence. `version`: of a Fetch that is older than zstd."""
    got: list[int] = [event.about["end_ns"] for event in fetches]
    here = [each for each in lives if each.first_ns <= got[-1] <= each.gone_ns]
    for each in here:
        after = each.gone_ns - got[-1]
        if version is not None:
            waits = "codec.waits" if version > LAST_SHARED else "codec.slow"
            again = sum(time_ns < each.first_ns for time_ns in got)
            if after >= limit(waits) or (again and each.left):
                return after
        elif each.bare and each.left and after <= limit("stuck.leaves"):
            return after
    return None


def older(version: int) -> str:
    """Return what follows for zstd from the latest version of Fetch that a reader sends."""
    first = ZSTD_FETCHES.low
    return (
        f"; its Fetch is older than v{first}, the first that supports zstd"
        if version < first
        else ""
    )


def one_topic(row: Row) -> str:
    """Return what stands for the topic where there is just one: its name may come later."""
    if len(row.topics) != 1 or len(row.topic_ids) > 1:
        return ""
    return topic_key(row.topics[0], next(iter(row.topic_ids), None)) or ""
