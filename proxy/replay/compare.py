"""Is an answer the same as the captured one? In structure and meaning; what differs between two
runs or two clusters by its nature is declared here and in the declarations (`volatile`).

Records are not compared answer by answer, for a broker may give them in other portions: per
partition, what was fetched then and what is fetched now. Sans-I/O.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from analyzer.diff import Difference, differences
from dissectors.errors import DissectError
from dissectors.layout import Layout
from dissectors.reader import Body
from dissectors.records import CONTROL, Partial, batches, open_batch

MASKED: Final[dict[str, str]] = {
    "high_watermark": "the log's end moves with whoever else writes",
    "last_stable_offset": "moves with whoever else writes",
    "log_start_offset": "moves with retention",
    "log_append_time_ms": "the broker's clock",
    "leader_id": "another cluster, other leaders",
    "leader_epoch": "counts elections",
    "controller_id": "any node of a KRaft cluster",
    "replica_nodes": "another cluster, other replicas",
    "isr_nodes": "another cluster, other replicas",
    "offline_replicas": "another cluster, other replicas",
    "eligible_leader_replicas": "another cluster, other replicas",
    "node_id": "which broker plays the part",
    "brokers": "addresses and number of the peer's nodes",
    "error_message": "words for people; the code is what counts",
    "finalized_features_epoch": "counts changes of features",
    "cluster_id": "another cluster",
    "last_known_elr": "another cluster, other replicas",
    "preferred_read_replica": "another cluster, other racks",
    "current_leader": "a hint about leaders",
    "node_endpoints": "addresses of the peer's nodes",
    "diverging_epoch": "counts elections",
    "aborted_transactions": "named by producer ids and offsets",
}
"""Field -> why it says nothing. `--strict` compares them."""

RECORDS_KEPT: Final = 1_000_000
"""Of both sides together."""
_INDEX: Final = re.compile(r"\[[^\]]*\]")


class Finding(NamedTuple):
    """A difference, as often as it came."""

    api: str
    version: int
    path: str
    """With [] for elements."""
    then: str
    now: str
    times: int
    exchange: int
    """The first one."""


@dataclass(slots=True)
class _Seen:
    count: int = 0
    exchange: int = 0


@dataclass(slots=True)
class Comparison:
    """Everything that answered otherwise."""

    strict: bool = False
    same: int = 0
    different: int = 0
    findings: dict[tuple[str, int, str, str, str], _Seen] = field(default_factory=dict)
    streams: Streams = field(default_factory=lambda: Streams())

    def compare(
        self, api: str, version: int, number: int, layout: Layout, captured: Body, live: Body
    ) -> list[Difference]:
        """Hold a live answer, in the capture's terms, against the captured one."""
        if api == "Fetch":
            self.streams.add(captured, live)
            if not self.strict:
                captured, live = _errors_only(captured), _errors_only(live)
        found = [
            each
            for each in differences(layout, captured, layout, live, strict=self.strict)
            if self.strict or not _masked(each)
        ]
        if found:
            self.different += 1
        else:
            self.same += 1
        for each in found:
            self.note(api, version, number, each.path, each.left, each.right)
        return found

    def note(self, api: str, version: int, number: int, path: str, then: Any, now: Any) -> None:
        """Count a difference."""
        key = (api, version, _INDEX.sub("[]", path), _short(then), _short(now))
        seen = self.findings.setdefault(key, _Seen(exchange=number))
        seen.count += 1

    def all(self) -> Iterator[Finding]:
        """The differences, the most frequent first; those of records last."""
        for key, seen in sorted(self.findings.items(), key=lambda each: -each[1].count):
            yield Finding(*key, seen.count, seen.exchange)
        yield from self.streams.findings()


def _masked(difference: Difference) -> bool:
    return any(part in MASKED for part in difference.left_place)


def _short(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _errors_only(body: Body) -> Body:
    """A Fetch answer without partitions that are well: which of them an answer lists depends on
    what came in meanwhile."""
    kept = []
    for topic in body["responses"]:
        parts = [{**part, "records": None} for part in topic["partitions"] if part["error_code"]]
        if parts:
            kept.append({**topic, "partitions": parts})
    return {**body, "responses": kept}


class Streams:
    """What was fetched of each partition, then and now: offset -> hash of key, value, headers."""

    def __init__(self) -> None:
        self._then: dict[tuple[Any, int], dict[int, bytes]] = {}
        self._now: dict[tuple[Any, int], dict[int, bytes]] = {}
        self._left = RECORDS_KEPT
        self.unreadable: Counter[str] = Counter()

    def add(self, captured: Body, live: Body) -> None:
        """Take the records of two answers in."""
        for streams, body in ((self._then, captured), (self._now, live)):
            for topic in body["responses"]:
                name = topic.get("topic") or bytes(topic.get("topic_id", b""))
                for part in topic["partitions"]:
                    if part["records"]:
                        place = (name, part["partition_index"])
                        self._take(streams.setdefault(place, {}), part["records"])

    def _take(self, stream: dict[int, bytes], data: bytes) -> None:
        try:
            for batch in batches(data):
                if isinstance(batch, Partial):
                    continue
                if batch.magic == 2 and batch.attributes & CONTROL:
                    continue
                opened = open_batch(data, batch)
                for record in opened.records:
                    if self._left <= 0:
                        return
                    self._left -= record.offset not in stream
                    text = repr((record.key, record.value, tuple(record.headers)))
                    stream[record.offset] = blake2b(text.encode(), digest_size=8).digest()
                if opened.error is not None:
                    self.unreadable[str(opened.error)] += 1
        except DissectError as error:
            self.unreadable[str(error)] += 1

    def findings(self) -> Iterator[Finding]:
        """One for each partition whose records are not the same."""
        for place in sorted({*self._then, *self._now}, key=str):
            then, now = self._then.get(place, {}), self._now.get(place, {})
            name = place[0] if isinstance(place[0], str) else place[0].hex()
            where = f"{name}-{place[1]}"
            other = sum(1 for offset in then.keys() & now.keys() if then[offset] != now[offset])
            missing = len(then.keys() - now.keys())
            if other:
                texts = f"{len(then)} records", f"{other} of them with other contents"
                yield Finding("Fetch", -1, f"records of {where}", *texts, 1, 0)
            if missing:
                texts = f"{len(then)} records", f"{len(then) - missing} of them fetched"
                yield Finding("Fetch", -1, f"records of {where}", *texts, 1, 0)
