"""Is an answer the same as the captured one? In structure and meaning; what differs between two
runs or two clusters by its nature is declared here and in the declarations (`volatile`).

Records are not compared answer by answer, for a broker may give them in other portions: per
partition, what was fetched then and what is fetched now. Sans-I/O.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from analyzer.diff import Difference, differences
from dissectors.errors import DissectError
from dissectors.layout import Layout
from dissectors.reader import Body
from dissectors.records import CONTROL, Partial, batches, open_batch
from dissectors.registry import APIS

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

OTHERS: Final = {
    "Metadata": "topics",
    "ListGroups": "groups",
    "ListTransactions": "transaction_states",
    "DescribeLogDirs": "results",
}
"""API -> what a target may have more of than the capture's cluster had."""

RECORDS_KEPT: Final = 1_000_000
"""Of both sides together."""
_INDEX: Final = re.compile(r"\[[^\]]*\]")
_LABEL: Final = re.compile(r"\[([^\]]*)\]\Z")


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
    streams: Streams = field(init=False)
    topic_name: Callable[[bytes], str | None] = lambda topic_id: None

    def __post_init__(self) -> None:
        self.streams = Streams(self.topic_name)

    def compare(
        self, api: str, version: int, number: int, layout: Layout, captured: Body, live: Body
    ) -> list[Difference]:
        """Hold a live answer, in the capture's terms, against the captured one."""
        if api == "Fetch":
            self.streams.add(captured, live)
            if not self.strict:
                captured, live = _errors_only(captured), _errors_only(live)
        versions = _versions(captured, live) if api == "ApiVersions" else []
        if versions or api == "ApiVersions":
            captured, live = ({**body, "api_keys": []} for body in (captured, live))
        found = versions + [
            each
            for each in differences(layout, captured, layout, live, strict=self.strict)
            if self.strict or not _masked(api, each)
        ]
        if found:
            self.different += 1
        else:
            self.same += 1
        for each in found:
            path, then, now = _told(each)
            self.note(api, version, number, path, then, now)
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


def _masked(api: str, difference: Difference) -> bool:
    if difference.endpoint or any(part in MASKED for part in difference.left_place):
        return True
    return difference.kind == "right only" and OTHERS.get(api) == difference.left_place[0]


def _versions(captured: Body, live: Body) -> list[Difference]:
    """Which versions are served: a line for each API, not for each number."""
    then, now = (
        {
            each["api_key"]: f"{each['min_version']}-{each['max_version']}"
            for each in body["api_keys"]
        }
        for body in (captured, live)
    )
    found = []
    for key in sorted({*then, *now}):
        if then.get(key) != now.get(key):
            name = APIS[key].name if key in APIS else f"Api {key}"
            found.append(Difference(f"versions of {name}", "changed", then.get(key), now.get(key)))
    return found


def _told(difference: Difference) -> tuple[str, Any, Any]:
    """Path, then, now; of an element that one side lacks its name is enough."""
    label = _LABEL.search(difference.path)
    if difference.kind == "changed" or label is None:
        return difference.path, difference.left, difference.right
    name = label[1]
    return difference.path, *((name, None) if difference.kind == "left only" else (None, name))


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

    def __init__(self, topic_name: Callable[[bytes], str | None]) -> None:
        self._topic_name = topic_name
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
            name = place[0]
            if not isinstance(name, str):
                name = self._topic_name(name) or name.hex()
            where = f"{name}-{place[1]}"
            other = sum(1 for offset in then.keys() & now.keys() if then[offset] != now[offset])
            missing = len(then.keys() - now.keys())
            if other:
                texts = f"{len(then)} records", f"{other} of them with other contents"
                yield Finding("Fetch", -1, f"records of {where}", *texts, 1, 0)
            if missing:
                texts = f"{len(then)} records", f"{len(then) - missing} of them fetched"
                yield Finding("Fetch", -1, f"records of {where}", *texts, 1, 0)
