"""Clients that cannot read the codec of what they are sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from kafkascope.analyzer.findings.counting import Event, Occurrences, most
from kafkascope.analyzer.findings.filters import all_of, among
from kafkascope.analyzer.findings.limits import LIMITS
from kafkascope.analyzer.findings.rules import limit
from kafkascope.analyzer.findings.view import Client, Counts, DetectorInput, Finding, Row
from kafkascope.analyzer.findings.words import duration, listed, plural
from kafkascope.analyzer.identity import ClientKey, client_of
from kafkascope.analyzer.merging.tables import by_key
from kafkascope.analyzer.statistics.delivery.model import Reads
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.model import topic_key, topic_label
from kafkascope.dissectors.reference.codes import error_name
from kafkascope.dissectors.values import Versions

# KIP-110: brokers refuse it to older ones, while the topic's compression.type says zstd.
ZSTD: Final = {"Fetch": Versions.parse("10+"), "Produce": Versions.parse("7+")}
ZSTD_FETCHES: Final = ZSTD["Fetch"]
# UNSUPPORTED_COMPRESSION_TYPE.
UNSUPPORTED: Final = 76
EXTRA: Final = frozenset({"snappy", "lz4", "zstd"})
"""Codecs that some libraries know only with another package; gzip is in all."""
KAFKAJS: Final = "RoundRobinAssigner"
"""Name of kafkajs's assignor: it has only gzip by itself, and a consumer that meets another codec
leaves its group at once."""
# Later versions of Fetch before 10 are of clients that do not know zstd; some that stay with this
# one or an older one do (kafka-python, aiokafka).
LAST_SHARED: Final = 4


class MemberLife(NamedTuple):
    """A member of a group."""

    first_ns: int
    gone_ns: int
    left: bool
    bare: bool
    """The client's library has only gzip by itself."""


class Old(Occurrences):
    """Fetches that carried zstd in a version before it."""

    version: int | None = most()


class Unread(NamedTuple):
    """Records of a partition that a client was sent, and after which it never went on."""

    topic: str
    codec: str
    fetches: tuple[Event, ...]
    after_ns: int
    """So long it was in its group afterwards."""


class Codecs(Counts):
    """By client."""

    refused = Occurrences.table(LIMITS.few_keys)
    """By API, error, whether zstd came before its version, topic and client."""
    old = Old.table(LIMITS.few_keys)
    """zstd for versions before it."""

    def add(self, batch: ExchangeBatch) -> None:
        row = batch.row
        version = row.api_version
        old = row.api in ZSTD and version is not None and version not in ZSTD[row.api]
        early = old and row.api == "Produce" and any("zstd" in each for each in batch.codecs)
        codes = {error.code for error in row.errors}
        if UNSUPPORTED in codes or (early and codes):
            # Brokers before 2.1 know no zstd, and no error for it.
            code = UNSUPPORTED if UNSUPPORTED in codes else min(codes)
            self.refused[(row.api, code, early, one_topic(row), *client_of(row))].see(row)
        if row.api != "Fetch" or not old:
            return
        for time_ns, number, codecs in zip(batch.begins, batch.numbers, batch.codecs, strict=True):
            if "zstd" in codecs:
                seen = self.old[client_of(row)]
                seen.see_at(time_ns, number)
                seen.take(version=version)

    def findings(self, view: DetectorInput) -> Iterator[Finding]:
        for (api, code, early, topic, *who), seen in self.refused.items():
            client, error = view.client(*who), error_name(int(str(code)))
            of = f" of topic {view.topic(topic)}" if topic else ""
            why = f": zstd before {api} v{ZSTD[str(api)].low}" if early else ""
            yield view.finding(
                "batch-codec",
                f"{plural(seen.count, f'{api} exchange')}{of} with {client} failed with "
                f"{error}{why}",
                f"api == {api} and error == {code}",
                seen,
                client=client,
                case="producer" if api == "Produce" else "",
                about={"topic": view.topic(topic) if topic else (), "error": error},
            )
        old = {view.client(*who).key: seen for who, seen in self.old.items()}
        unread = unread_of(view, old)
        for key, found in sorted(unread.items()):
            yield _unread(view.client(*key), found, key in old, view)
        for key, seen in old.items():
            if key not in unread:
                client, first = view.client(*key), ZSTD_FETCHES.low
                yield view.finding(
                    "batch-codec",
                    f"{plural(seen.count, 'Fetch exchange')} with {client} before v{first} carried "
                    "zstd batches, which such clients may not support",
                    f"api == Fetch and version < {first} and codec == zstd",
                    seen,
                    client=client,
                    severity="note",
                )


def _unread(client: Client, found: list[Unread], old: bool, view: DetectorInput) -> Finding:
    fetches = [event for each in found for event in each.fetches]
    numbers = [event.number for event in fetches]
    codecs = sorted({each.codec for each in found})
    topics = view.topics(each.topic for each in found)
    old = old and "zstd" in codecs
    after, times = duration(min(each.after_ns for each in found)), len(set(numbers))
    soon = min(each.after_ns for each in found) <= limit("stuck.leaves")
    then = f"it left its group {after} later" if soon else f"no progress for {after}"
    if times > 1:
        then = f"it fetched them {times} times"
    return view.finding(
        "batch-codec",
        f"{client} received batches of {listed(topics)} compressed with {', '.join(codecs)} and "
        f"never read past them: {then}{older(ZSTD_FETCHES.low - 1) if old else ''}",
        all_of("api == Fetch", among("number", numbers[: LIMITS.entities])),
        Occurrences.of(fetches),
        count=times,
        severity=None if old else "warning",
        about={"client": client, "topic": topics},
    )


def unread_of(view: DetectorInput, old: Mapping[ClientKey, Old]) -> dict[ClientKey, list[Unread]]:
    """Return clients that never went on after records in a codec, wherever they got some, though
    there was time for it. `old`: those that got zstd in versions of Fetch before it."""
    commits: dict[tuple[str, str, int], int] = {}
    for place in view.audit.found:
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
            polls = view.base.delivery.polls.get(who)
            last_ns = 0 if polls is None else polls.last_ns or 0
            left_ns = _judged(lives.get(who, ()), fetches, version, last_ns)
            if left_ns is not None:
                unread = Unread(str(topic), codec, tuple(fetches), left_ns)
                found.setdefault(who, []).append(unread)
    kept = {
        who: [each for each in unread if (*who, each.codec) not in able]
        for who, unread in found.items()
    }
    return {who: unread for who, unread in kept.items() if unread}


def _by_codec(reads: Reads) -> dict[str, list[Event]]:
    return by_key(
        (codec, event)
        for event in reads.events
        for codec in EXTRA.intersection(event.about.get("codecs", ()))
    )


def _lives(view: DetectorInput) -> dict[ClientKey, list[MemberLife]]:
    plans = view.base.delivery.plans.items()
    bare = {str(group) for (group, _), plan in plans if plan.assignor == KAFKAJS}
    return by_key(
        (
            (each.client_id or "", each.host),
            MemberLife(each.first_ns, each.gone_ns, each.state == "left", story.group in bare),
        )
        for story in view.stories
        for each in story.members
        if each.first_ns is not None and each.gone_ns is not None
    )


def _judged(
    lives: Iterable[MemberLife], fetches: list[Event], version: int | None, last_ns: int
) -> int | None:
    """Return for how long a member was there after it had got the records; None where nothing
    follows from its silence. `version`: of a Fetch that is older than zstd. `last_ns`: end of the
    client's last Fetch; kafkajs waits for its long polls at other brokers before it leaves."""
    got: list[int] = [event.about["end_ns"] for event in fetches]
    here = [each for each in lives if each.first_ns <= got[-1] <= each.gone_ns]
    for each in here:
        after = each.gone_ns - got[-1]
        fails = each.bare if version is None else version > LAST_SHARED
        idle = each.gone_ns - max(got[-1], last_ns)
        if fails and each.left and idle <= limit("stuck.leaves"):
            return after
        if version is not None:
            waits = "codec.waits" if version > LAST_SHARED else "codec.slow"
            again = sum(time_ns < each.first_ns for time_ns in got)
            if after >= limit(waits) or (again and each.left):
                return after
    return None


def older(version: int) -> str:
    """Return what follows for zstd from the latest version of Fetch that a reader sends."""
    first = ZSTD_FETCHES.low
    newer = f"; its Fetch is older than v{first}, the first that supports zstd"
    return newer if version < first else ""


def one_topic(row: Row) -> str:
    """Return the key of the topic where there is just one: its name may come later."""
    if len(row.topics) != 1 or len(row.topic_ids) > 1:
        return ""
    return topic_key(row.topics[0], next(iter(row.topic_ids), None)) or ""
