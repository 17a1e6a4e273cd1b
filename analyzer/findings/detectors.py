"""The table of all detectors: what each is given, and what it needs to find something.

A detector is a module with a function `findings`, or with a class that counts what no statistic
does. Of most of them a capture has nothing: a module is loaded when there is something for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafkascope.analyzer.findings.limits import FindingLimits
from kafkascope.analyzer.statistics.connections import KAFKA, ZOOKEEPER
from kafkascope.analyzer.statistics.zookeeper.operations import CREATES
from kafkascope.dissectors.registry import api_named
from kafkascope.dissectors.zookeeper.types import BASE, CONNECT, MULTI, TYPES

if TYPE_CHECKING:
    from kafkascope.analyzer.findings.model import Finding
    from kafkascope.analyzer.findings.view import Counts, DetectorInput
    from kafkascope.schemas.decoding import Payloads

UNKNOWN_ZOOKEEPER: Final = BASE + (1 << 15)
"""Key of all types of ZooKeeper's requests beyond int16."""


# --- what a view has for detectors


def _always(view: DetectorInput) -> bool:
    return True


def _groups(view: DetectorInput) -> bool:
    """Return whether there are groups, or clients that read."""
    delivery = view.base.delivery
    return bool(delivery.reads or delivery.commits or view.base.groups.names())


def _transactions(view: DetectorInput) -> bool:
    """Return whether there are producers with an id, or readers that wait for a transaction."""
    found = view.audit.found if _groups(view) else ()
    producers = view.base.producers
    has_ids = bool(producers.ids or producers.transactional)
    return has_ids or any(each.wait is not None for each in found)


def _zookeeper(view: DetectorInput) -> bool:
    zookeeper = view.base.zookeeper
    return bool(zookeeper.nodes or zookeeper.changes or zookeeper.sessions)


def _applications(view: DetectorInput) -> bool:
    return bool(view.base.map.writes or view.base.map.reads)


def _tls(view: DetectorInput) -> bool:
    return any(line["resumed"] is not None for line in view.lines)


def _other_protocols(view: DetectorInput) -> bool:
    return any(
        line["protocol"] not in ("", KAFKA, ZOOKEEPER)
        or line["server_protocol"]
        or line["proxy_header"]
        for line in view.lines
    )


class Detector(NamedTuple):
    """A line of the table. It is given all exchanges of some APIs (`keys`; None: all exchanges),
    and of others those that are not as they should be, see `feed.is_out_of_ordinary`."""

    name: str
    """By which `rules.json` has its rules; also its module, unless `home` names another one."""
    counts: str = ""
    """Class of what it counts; empty: it has a function, and derives all from statistics."""
    keys: frozenset[int] | None = frozenset()
    odd_keys: frozenset[int] = frozenset()
    odd: bool = False
    """Exchanges of any API that are not as they should be."""
    kafka_only: bool = True
    """None with ZooKeeper but those of `keys`: routine errors there would be trouble with Kafka."""
    watches: bool = False
    """Also beginnings and ends of connections."""
    needs: Callable[[DetectorInput], bool] | None = None
    """Whether there is something for it besides what it counts."""
    home: str = ""
    packets: bool = False
    """It judges what only packets tell: connects, closes, bytes. Request logs are not given to
    it."""

    @property
    def module(self) -> Any:
        """Load its module."""
        return import_module(f"kafkascope.analyzer.findings.{self.home or self.name}")


class Deferred:
    """What a detector counts, made with the first exchange for it. For `feed.Feed` it is an
    accumulator."""

    def __init__(
        self, detector: Detector, payloads: Payloads | None, limits: FindingLimits
    ) -> None:
        self.detector = detector
        self.counts: Counts | None = None
        """None: it was given nothing."""
        self.KEYS = detector.keys
        self.ODD_KEYS = detector.odd_keys
        self.ODD = detector.odd
        self.KAFKA_ONLY = detector.kafka_only
        self._payloads = payloads
        self._limits = limits

    def made(self) -> Counts:
        """Return the counts, made by now."""
        if self.counts is None:
            self.counts = getattr(self.detector.module, self.detector.counts)()
            self.counts.payloads = self._payloads
            self.counts.limits = self._limits
        return self.counts

    def __getattr__(self, name: str) -> Any:
        """Return what takes in exchanges, `add` or another way: a feed gets it when it has one for
        it."""
        if name.startswith("add"):
            return getattr(self.made(), name)
        raise AttributeError(name)


def findings(
    detector: Detector, deferred: Deferred | None, view: DetectorInput
) -> Iterator[Finding]:
    """Yield the findings of a detector, whose counts are `deferred` if it has any."""
    needed = detector.needs is not None and detector.needs(view)
    if deferred is None:
        if needed:
            yield from detector.module.findings(view)
    elif needed or deferred.counts is not None:
        yield from deferred.made().findings(view)


def _keys(*names: str) -> frozenset[int]:
    return frozenset(api_named(name).key for name in names)


DATA: Final = _keys("Produce", "Fetch", "ShareFetch")
DETECTORS: Final = (
    Detector("versions", "VersionCounts", odd=True, needs=_always),
    Detector("batches", "Batches", DATA),
    Detector("codecs", "Codecs", _keys("Fetch"), _keys("Produce", "ShareFetch")),
    Detector("framing", "Framing", odd=True, kafka_only=False, packets=True),
    Detector("addresses", needs=_always, packets=True),
    Detector("outages", needs=_always, packets=True),
    Detector("connections", needs=_always, packets=True),
    Detector("other_protocols", "OtherProtocols", odd=True, needs=_other_protocols, packets=True),
    Detector("security", "Security", _keys("SaslAuthenticate"), odd=True, needs=_always),
    Detector("tls", needs=_tls, packets=True),
    Detector("denied", "Denials", _keys("PushTelemetry"), odd=True, home="security"),
    Detector("broker_times", "BrokerTimeCounts", None),
    Detector("slow", "Slowness", None),
    Detector("sending", "PiecewiseSending", None, packets=True),
    Detector("delays", "Delays", None, packets=True),
    Detector("unanswered", "Unanswered", None, watches=True, packets=True),
    Detector("order", "ResponseOrder", odd=True, home="unanswered", packets=True),
    Detector("errors", "ErrorCodes", odd=True),
    Detector(
        "leaders",
        "Leaders",
        _keys("Metadata"),
        DATA | _keys("ListOffsets", "OffsetForLeaderEpoch", "ShareAcknowledge"),
        needs=_always,
    ),
    # What clients of a topic ask.
    Detector("coordinators", "Coordinators", _keys("FindCoordinator")),
    Detector(
        "deleted",
        "Deleted",
        DATA | _keys("Metadata", "DeleteTopics"),
        _keys("ListOffsets", "OffsetCommit", "OffsetForLeaderEpoch")
        | _keys("AddPartitionsToTxn", "TxnOffsetCommit"),
        home="errors",
    ),
    Detector("sizes", "Sizes", None),
    Detector("rebalances", needs=_groups),
    Detector(
        "group_protocols",
        "GroupProtocols",
        _keys("JoinGroup", "SyncGroup", "DescribeGroups"),
        _keys("ConsumerGroupHeartbeat", "ShareGroupHeartbeat", "StreamsGroupHeartbeat")
        | _keys("OffsetCommit"),
    ),
    Detector("stuck", needs=_groups),
    Detector("starved", "Starvation", _keys("Fetch")),
    Detector("consumers", needs=_groups),
    Detector("resets", "Resets", _keys("ListOffsets"), _keys("Fetch")),
    Detector("shares", "Shares", _keys("ShareFetch", "ShareAcknowledge")),
    Detector(
        "sequences",
        "Sequences",
        odd_keys=_keys("Produce", "InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn")
        | _keys("EndTxn", "TxnOffsetCommit"),
        needs=_transactions,
    ),
    Detector("retries", "Retries", _keys("Produce")),
    Detector("batching", "Batching", _keys("Produce"), home="sending"),
    Detector("clocks", "Clocks", _keys("Produce"), home="batches"),
    Detector("skew", "Skew", _keys("Fetch"), needs=_always),
    Detector("applications", needs=_applications),
    Detector("schemas", "Schemas", DATA),
    Detector(
        "zookeeper_sessions",
        "ZooKeeperSessions",
        frozenset({BASE + CONNECT, BASE + MULTI, *(BASE + kind for kind in CREATES)}),
        kafka_only=False,
        needs=_zookeeper,
    ),
    Detector(
        "zookeeper",
        "ZooKeeperRequests",
        frozenset(each.key for each in TYPES.values()) | {UNKNOWN_ZOOKEEPER},
        odd=True,
        kafka_only=False,
    ),
    Detector("tampered", "ProxyEffects", odd=True),
)
"""In the order of `rules.json`; the last one has no rule."""
