"""How much went through: requests, bytes, records, what was not answered, what was throttled."""

from __future__ import annotations

from typing import ClassVar, Final

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.feed import Alike
from kafkascope.analyzer.statistics.merging.compounds import table
from kafkascope.analyzer.statistics.merging.measures import (
    Measures,
    least,
    measured,
    most,
    stretch,
    total,
)
from kafkascope.analyzer.statistics.merging.tables import Keyed
from kafkascope.analyzer.statistics.model import (
    Column,
    Exchange,
    Line,
    Row,
    per_second,
    share,
)
from kafkascope.analyzer.statistics.simple import Breakdown


@measured
class Traffic(Measures):
    """Sums over exchanges."""

    count: int = total()
    answered: int = total()
    no_reply: int = total()
    open: int = total()
    lost: int = total()
    unpaired: int = total()
    """Orphans, opaque bytes, and what nobody asked for: watch events."""
    failed: int = total()
    """With an error code."""
    undecoded: int = total()
    request_bytes: int = total()
    response_bytes: int = total()
    records: int = total()
    throttled: int = total()
    throttle_ms: int = total()
    first_ns: int | None = least()
    last_ns: int | None = most()


STATES: Final = {
    "answered": "answered",
    "no-reply": "no_reply",
    "open": "open",
    "lost": "lost",
    "orphan": "unpaired",
    "opaque": "unpaired",
    "event": "unpaired",
}


class Throughput(Breakdown[Traffic]):
    """Traffic by API, version, client and broker."""

    NAME = "apis"
    USUAL = ("api",)
    KEY = ("api", "version", "client_id", "host", "broker")
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("requests", "count"),
        Column("per_second", "rate"),
        Column("answered", "count", wide=True),
        Column("no_reply", "count", wide=True),
        Column("open", "count", wide=True),
        Column("lost", "count"),
        Column("unpaired", "count", wide=True),
        Column("failed", "count"),
        Column("undecoded", "count", wide=True),
        Column("request_bytes", "size"),
        Column("response_bytes", "size"),
        Column("records", "count"),
        Column("throttled", "count"),
        Column("throttled_share", "share", wide=True),
        Column("throttle", "duration"),
        Column("first", "time", wide=True),
        Column("last", "time", wide=True),
    )

    values: Keyed[Traffic] = table(Traffic)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Count an exchange."""
        client = host_of(row.client_address)
        traffic = self.values[(row.api, row.api_version, row.client_id, client, row.broker_address)]
        traffic.count += 1
        state = STATES[row.state]
        setattr(traffic, state, getattr(traffic, state) + 1)
        traffic.failed += bool(row.errors)
        traffic.undecoded += bool(row.undecoded)
        traffic.request_bytes += row.request_bytes or 0
        traffic.response_bytes += row.response_bytes or 0
        traffic.records += row.records or 0
        if row.throttle_ms:
            traffic.throttled += 1
            traffic.throttle_ms += row.throttle_ms
        stretch(traffic, row.time_ns)

    def add_all(self, alike: Alike) -> None:
        """Count usual exchanges."""
        row, client = alike.row, alike.who[1]
        traffic = self.values[(row.api, row.api_version, row.client_id, client, row.broker_address)]
        traffic.count += len(alike.begins)
        traffic.answered += len(alike.begins)
        traffic.request_bytes += sum(alike.asked)
        traffic.response_bytes += sum(alike.answered)
        traffic.records += sum(filter(None, alike.records))
        stretch(traffic, min(alike.begins))
        stretch(traffic, max(alike.begins))

    def weight(self, traffic: Traffic) -> int:
        """Return how many there were."""
        return traffic.count

    def line(self, key: Line, traffic: Traffic) -> Line:
        """Return the line of a key."""
        first, last = traffic.first_ns, traffic.last_ns
        return {
            **key,
            "requests": traffic.count,
            "per_second": per_second(traffic.count, first, last),
            "answered": traffic.answered,
            "no_reply": traffic.no_reply,
            "open": traffic.open,
            "lost": traffic.lost,
            "unpaired": traffic.unpaired,
            "failed": traffic.failed,
            "undecoded": traffic.undecoded,
            "request_bytes": traffic.request_bytes,
            "response_bytes": traffic.response_bytes,
            "records": traffic.records,
            "throttled": traffic.throttled,
            "throttled_share": share(traffic.throttled, traffic.answered),
            "throttle": traffic.throttle_ms * 1_000_000,
            "first": first,
            "last": last,
        }
