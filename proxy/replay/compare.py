"""Is an answer the same as the captured one? In structure and meaning; what differs between two
runs or two clusters by its nature is declared here and in the declarations (`volatile`).

Records are compared by partition over the whole replay (`streams`). Sans-I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from analyzer.diff import Difference, differences
from dissectors.layout import Layout
from dissectors.reader import Body
from dissectors.registry import APIS
from proxy.replay.streams import Streams

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
        if captured == live:
            self.same += 1
            return []
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
        for where, then, now in self.streams.differences():
            yield Finding("Fetch", -1, where, then, now, 1, 0)


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
