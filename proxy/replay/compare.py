"""Compares live responses with the captured ones, in structure and meaning. What differs between
any two runs or clusters is declared here and in the declarations (`volatile`).

Records are compared by partition over the whole replay (`streams`). Sans-I/O.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from kafkascope.analyzer.transform.diff import Difference, differences
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.layout import Layout
from kafkascope.dissectors.reference.codes import error_name
from kafkascope.dissectors.registry import APIS
from kafkascope.proxy.limits import LIMITS, Limits, remember
from kafkascope.proxy.replay.split import partitions
from kafkascope.proxy.replay.streams import Streams

# Field -> why it says nothing. `--strict` compares them.
MASKED: Final[dict[str, str]] = {
    "high_watermark": "the end of the log moves with other producers",
    "last_stable_offset": "moves with other producers",
    "log_start_offset": "moves with retention",
    "log_append_time_ms": "the broker's clock",
    "leader_id": "another cluster, other leaders",
    "leader_epoch": "counts elections",
    "controller_id": "any node of a KRaft cluster",
    "replica_nodes": "another cluster, other replicas",
    "isr_nodes": "another cluster, other replicas",
    "offline_replicas": "another cluster, other replicas",
    "eligible_leader_replicas": "another cluster, other replicas",
    "node_id": "which broker has the role",
    "brokers": "addresses and number of the peer's nodes",
    "error_message": "a message for people; only the code is compared",
    "finalized_features_epoch": "counts changes of features",
    "cluster_id": "another cluster",
    "last_known_elr": "another cluster, other replicas",
    "preferred_read_replica": "another cluster, other racks",
    "current_leader": "a hint about leaders",
    "node_endpoints": "addresses of the peer's nodes",
    "diverging_epoch": "counts elections",
    "aborted_transactions": "named by producer ids and offsets",
    "log_end_offset": "the end of the log moves with other producers",
    "end_offset": "the end of the newest epoch is the end of the log",
    "listeners": "addresses of the peer's nodes",
    "usable_bytes": "another machine",
    "total_bytes": "another machine",
    "acquired_records": "the broker chooses which records a share group acquires",
}

# Configs that say where a broker is, so they differ between any two.
PLACED: Final = frozenset(
    {
        *("listeners", "advertised.listeners", "host.name", "port", "advertised.host.name"),
        *("advertised.port", "node.id", "broker.id", "broker.rack", "log.dir", "log.dirs"),
        *("metadata.log.dir", "controller.quorum.voters", "controller.quorum.bootstrap.servers"),
        "zookeeper.connect",
    }
)
# The path of all later ones.
MORE: Final = "(other differences)"
# Arrays of which an element's name is worth a line of its own.
LABELLED: Final = frozenset({"configs", "supported_features", "finalized_features"})

# API -> what a target may have more of than the capture's cluster had.
OTHERS: Final = {
    "Metadata": "topics",
    "ListGroups": "groups",
    "ListTransactions": "transaction_states",
    "DescribeLogDirs": "results",
    "DescribeAcls": "resources",
    "DescribeClientQuotas": "entries",
    "DescribeUserScramCredentials": "results",
    "ListConfigResources": "config_resources",
}

_INDEX: Final = re.compile(r"(\w+)\[[^\]]*\]")
_CONFIG: Final = re.compile(r"configs\[([^\]]*)\]")
_LABEL: Final = re.compile(r"\[([^\]]*)\]\Z")


# Of what each node has its part -> the name of an element.
SPREAD: Final = {"ListGroups": "group_id", "ListTransactions": "transactional_id"}
STREAMS: Final = frozenset({"Fetch", "ShareFetch"})
HEARTBEATS: Final = frozenset(
    {"ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat"}
)


class ReplayDifference(NamedTuple):
    """A difference, and how often it occurred."""

    api: str
    version: int
    path: str
    """With [] for elements."""
    then: str
    now: str
    times: int
    exchange: int
    """The first one."""
    why: str
    """What is known of such a difference; may be empty."""


@dataclass(slots=True)
class Comparison:
    """Collects the differences of all responses."""

    strict: bool = False
    same: int = 0
    different: int = 0
    findings: dict[tuple[str, int, str, str, str], list[int]] = field(default_factory=dict)
    """How often each occurred, and in which exchange first."""
    streams: Streams = field(init=False)
    shared: Streams = field(init=False)
    """What share groups got."""
    assigned: Assigned = field(init=False)
    limits: Limits = LIMITS
    topic_name: Callable[[bytes], str | None] = lambda topic_id: None
    spread: bool = False
    """The capture's cluster has several nodes: lists of what each of them has are put together."""
    unlisted: int = 0
    """Elements of such lists that are not compared: there are too many."""
    _lists: dict[str, tuple[Layout, dict[str, Body], dict[str, Body]]] = field(default_factory=dict)
    _shifts: dict[tuple[str | bytes, int], int] = field(default_factory=dict)
    """Partition -> how much further on the target's log is than the captured one."""

    def __post_init__(self) -> None:
        self.streams, self.shared = (Streams(self.topic_name, self.limits) for _ in range(2))
        self.assigned = Assigned(self.limits.assigned_members)

    def compare(
        self, api: str, version: int, number: int, layout: Layout, captured: Body, live: Body
    ) -> list[Difference]:
        """Compare a live response, in the capture's terms, with the captured one, and count
        differences."""
        found = self.differences(api, layout, captured, live)
        if api == "Produce":
            for place, shift in _shifts(layout, captured, live):
                if len(self._shifts) < self.limits.shifted_partitions or place in self._shifts:
                    self._shifts[place] = shift
        if api in STREAMS:
            (self.streams if api == "Fetch" else self.shared).add(layout, captured, live)
        if self.spread and api in SPREAD:
            known = self._lists.setdefault(api, (layout, {}, {}))
            for elements, body in zip(known[1:], (captured, live), strict=True):
                for each in body[OTHERS[api]]:
                    if len(elements) < self.limits.listed or each[SPREAD[api]] in elements:
                        elements[each[SPREAD[api]]] = each
                    else:
                        self.unlisted += 1
        self.different += bool(found)
        self.same += not found
        for each in found:
            self.note(api, version, number, *_sides(each))
        return found

    def differences(self, api: str, layout: Layout, captured: Body, live: Body) -> list[Difference]:
        """The differences of a response; nothing is counted."""
        if not self.strict:
            if api in STREAMS:
                captured, live = _errors_only(captured), _errors_only(live)
            elif api in HEARTBEATS:
                captured, live = self.assigned.completed(captured, live)
        if self.spread and api in SPREAD:
            captured, live = ({**body, OTHERS[api]: []} for body in (captured, live))
        found: list[Difference] = []
        if api == "Produce" and not self.strict:
            found, live = self._shifted(layout, captured, live)
        if captured == live:
            return found
        if api == "ApiVersions":
            found = _versions(captured, live)
            captured, live = ({**body, "api_keys": []} for body in (captured, live))
        return found + [
            each
            for each in differences(layout, captured, layout, live, strict=self.strict)
            if self.strict or not _masked(api, each)
        ]

    def _shifted(self, layout: Layout, captured: Body, live: Body) -> tuple[list[Difference], Body]:
        """A Produce response as if the target's logs were where the captured ones are, as far as
        they stay as far apart as they were; and how far, where that was not known."""
        moved = {
            place: shift
            for place, shift in _shifts(layout, captured, live)
            if shift and self._shifts.get(place, shift) == shift
        }
        if not moved:
            return [], live
        live, found = deepcopy(live), []
        for topic, number, part in partitions(layout, live):
            place = topic, number
            if place in moved:
                now = part["base_offset"]
                part["base_offset"] = now - moved[place]
                if place not in self._shifts:
                    name = topic if isinstance(topic, str) else self.topic_name(topic)
                    where = f"offsets of {name or topic.hex()}-{number}"  # type: ignore[union-attr]
                    found.append(Difference(where, "changed", part["base_offset"], now))
        return found, live

    def is_new(self, api: str, version: int, found: list[Difference]) -> bool:
        """Return whether one of these has not occurred before; false once too many are
        kept."""
        return len(self.findings) < self.limits.differences and any(
            _key(api, version, *_sides(each)) not in self.findings for each in found
        )

    def note(self, api: str, version: int, number: int, path: str, then: Any, now: Any) -> None:
        key = _key(api, version, path, then, now)
        if key not in self.findings and len(self.findings) >= self.limits.differences:
            key = (api, version, MORE, "-", "-")
        self.findings.setdefault(key, [0, number])[0] += 1

    @property
    def remarks(self) -> list[str]:
        sentences = []
        if any(path == MORE for _, _, path, *_ in self.findings):
            sentences.append(f"differences beyond {self.limits.differences:,} are only counted")
        if self.unlisted:
            sentences.append(f"{self.unlisted:,} groups or transactions of lists were not compared")
        for streams in (self.streams, self.shared):
            if streams.left_out:
                sentences.append(
                    f"{streams.left_out:,} fetched records or batches were not compared: too "
                    "many arrived in different portions"
                )
        return sentences

    def _put_together(self) -> None:
        for api, (layout, *sides) in self._lists.items():
            bodies = ({OTHERS[api]: list(side.values())} for side in sides)
            slots = tuple(slot for slot in layout.body.slots if slot.name == OTHERS[api])
            part = Layout(
                layout.message, layout.version, replace(layout.body, slots=slots, tags=())
            )
            for each in differences(part, next(bodies), part, next(bodies), strict=self.strict):
                if self.strict or not _masked(api, each):
                    self.note(api, layout.version, 0, *_sides(each))
        self._lists.clear()

    def all(self) -> Iterator[ReplayDifference]:
        self._put_together()
        for key, (times, first) in sorted(self.findings.items(), key=lambda each: -each[1][0]):
            api, _, *texts = key
            yield ReplayDifference(*key, times, first, explanation(api, *texts))
        for api, streams in (("Fetch", self.streams), ("ShareFetch", self.shared)):
            for where, then, now in streams.differences():
                yield ReplayDifference(api, -1, where, then, now, 1, 0, "")


def _shifts(
    layout: Layout, captured: Body, live: Body
) -> Iterator[tuple[tuple[str | bytes, int], int]]:
    """Yield the partitions of two Produce responses, with how much further on the live log is."""
    then, now = (
        {
            (topic, number): part["base_offset"]
            for topic, number, part in partitions(layout, body)
            if part["base_offset"] >= 0
        }
        for body in (captured, live)
    )
    for place in then.keys() & now.keys():
        yield place, now[place] - then[place]


def _key(api: str, version: int, path: str, then: Any, now: Any) -> tuple[str, int, str, str, str]:
    return (api, version, _INDEX.sub(_unlabelled, path), _short(then), _short(now))


def _masked(api: str, difference: Difference) -> bool:
    place = difference.left_place
    if difference.endpoint or any(part in MASKED for part in place):
        return True
    if api == "DescribeLogDirs" and "topics" in place:
        return True  # which folder gets a partition is a broker's own choice
    if "configs" in place and PLACED.intersection(_CONFIG.findall(difference.path)):
        return True
    if api == "Metadata" and difference.kind != "changed" and "[__" in difference.path:
        return True  # internal topics come with their first use
    return difference.kind == "right only" and OTHERS.get(api) == place[0]


def _versions(captured: Body, live: Body) -> list[Difference]:
    """The differences in served versions: a line for each API, not for each number."""
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


def _unlabelled(match: re.Match[str]) -> str:
    """An element without its name, or with it where that says more."""
    return match[0] if match[1] in LABELLED else f"{match[1]}[]"


def _sides(difference: Difference) -> tuple[str, Any, Any]:
    """Path, then and now of a difference; of an element that one side lacks its name is enough."""
    if difference.path.endswith("error_code"):
        return difference.path, error_name(difference.left), error_name(difference.right)
    label = _LABEL.search(difference.path)
    if difference.kind == "changed" or label is None:
        return difference.path, difference.left, difference.right
    name = label[1]
    path = _LABEL.sub("[]", difference.path)
    return path, *((name, None) if difference.kind == "left only" else (None, name))


def _short(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _errors_only(body: Body) -> Body:
    """A Fetch response with failed partitions only: which others a response lists depends on what
    came in meanwhile."""
    topics = []
    for topic in body["responses"]:
        parts = [{**part, "records": None} for part in topic["partitions"] if part["error_code"]]
        if parts:
            topics.append({**topic, "partitions": parts})
    return {**body, "responses": topics}


class Assigned:
    """What members of groups have been assigned by heartbeats. A coordinator sends an assignment
    once, when it has worked it out: in the response to one heartbeat or to another."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._live: dict[tuple[str, str], Any] = {}

    def completed(self, captured: Body, live: Body) -> tuple[Body, Body]:
        """Both responses with what the member has, where the captured one has an assignment."""
        member = captured.get("member_id") or live.get("member_id") or ""
        tells = [name for name in ASSIGNMENTS if name in captured]
        for name in tells:
            if live.get(name) is not None:
                remember(self._live, (member, name), live[name], self._limit)
        then, now = dict(captured), dict(live)
        for name in tells:
            if captured[name] is None:
                then[name] = now[name] = None
            else:
                now[name] = self._live.get((member, name))
        return then, now

    def lacks(self, captured: Body, live: Body) -> bool:
        """Whether the captured response assigns something and the live member has nothing yet, or
        something else."""
        if captured.get("error_code") or live.get("error_code"):
            return False
        member = captured.get("member_id") or live.get("member_id") or ""
        return any(
            captured.get(name) is not None
            and live.get(name) is None
            and self._live.get((member, name)) != captured[name]
            for name in ASSIGNMENTS
        )


ASSIGNMENTS: Final = ("assignment", "active_tasks", "standby_tasks", "warmup_tasks")


# Why another release, or another cluster, responds so. First match counts; what nothing here
# explains is worth a look.
OTHER_RELEASE: Final = "another release: clients choose their versions from this"
NOT_SERVED: Final = (
    "the target does not support this version of the API, so clients that need it cannot connect"
)
CLOSED: Final = "brokers close the connection of a client with an unsupported version"
SETTINGS: Final = "settings and their defaults differ between releases and clusters"
FEATURES: Final = "features and their levels differ between releases"
NEVER_ANSWERED: Final = (
    "the captured broker supported an older ApiVersions than the client (KIP-511)"
)
OTHER_LOG: Final = "the log of the target started at another offset, and the difference is constant"
NOT_READY: Final = "the response differs where the captured broker was not ready"


# APIs (none: all), patterns of the path and of "then -> now", and the reason.
KNOWN: Final = (
    ("ApiVersions", "versions of ", "", OTHER_RELEASE),
    ("ApiVersions", "(supported|finalized)_features", "", FEATURES),
    ("ApiVersions", "version of the response", "", NEVER_ANSWERED),
    ("", r"version\Z", "", NOT_SERVED),
    ("", r"answer\Z", "closed the connection", CLOSED),
    ("CreateTopics DescribeConfigs", r".*\.configs\[", "", SETTINGS),
    ("Produce", "offsets of ", "", OTHER_LOG),
    ("", r"(.*\.)?error_code\Z", "(COORDINATOR|NOT_COORDINATOR)", NOT_READY),
)


def explanation(api: str, path: str, then: str, now: str) -> str:
    """The reason of a difference; empty when it is not known."""
    for apis, paths, values, why in KNOWN:
        if apis and api not in apis.split():
            continue
        if re.match(paths, path) and re.search(values, f"{then} -> {now}"):
            return why
    return ""
