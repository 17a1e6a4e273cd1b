"""Gives exchanges to many accumulators: each only what it wants, and usual ones many at a time.

Most exchanges are a Produce or Fetch that is answered soon and without an error. Those of one
connection differ in times, sizes and what they moved, and in nothing else: they wait in a column
for each of these, and accumulators sum up columns (`add_all`). All other exchanges are given one
by one (`add`). Accumulators do not depend on order, so that it does not matter what comes when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.identity import host_of
from kafkascope.analyzer.statistics.model import Exchange, Row
from kafkascope.analyzer.statistics.moved import (
    FETCH,
    PRODUCE,
    Parts,
    Place,
    lone_part,
    parts_of,
    replica_id,
)
from kafkascope.dissectors.records.batches import Batch
from kafkascope.dissectors.zookeeper.types import is_zookeeper

if TYPE_CHECKING:
    from kafkascope.captures.model import Connection

FINE: Final = frozenset({"answered", "no-reply", "event"})
SOON: Final = 1_000_000_000
"""A usual exchange takes less: whatever takes longer may be worth a word."""
MOST_WAITING: Final = 4_096
MOST_BYTES: Final = 4 << 20
"""Of the messages of exchanges that wait, whose records are kept as long."""
WHOLE: Final = 3
"""From this version on, a Fetch brings at least one batch if there is any (KIP-74)."""
FEW: Final = 2
"""So few accumulators are done with an exchange before it could wait."""

Add: TypeAlias = Callable[["Row", "Exchange"], None]
AddAll: TypeAlias = Callable[["Alike"], None]
AddLone: TypeAlias = Callable[["Row", "Exchange", str, Place, Batch], None]
"""Row and exchange, way, place, batch."""


def is_odd(row: Row) -> bool:
    """Return whether something about an exchange is out of the ordinary: most are not, and most
    detectors want no others."""
    return bool(row.errors or row.notes or row.undecoded) or row.state not in FINE


class Alike:
    """Usual exchanges of one connection that are alike: what is the same of all, and columns of
    what differs, each in the order in which exchanges came."""

    __slots__ = (
        *("answered", "asked", "batches", "begins", "broker", "codecs", "connection", "ends"),
        *("from_a", "ids", "kept", "latencies", "numbers", "parts", "records", "row", "servers"),
        *("unmoved", "waits", "way", "who"),
    )
    numbers: Sequence[int]
    ids: Sequence[str]
    begins: Sequence[int]
    ends: Sequence[int]
    latencies: Sequence[int]
    waits: Sequence[int]
    servers: Sequence[int]
    asked: Sequence[int]
    """Bytes of requests, and of responses."""
    answered: Sequence[int]
    records: Sequence[int | None]
    batches: Sequence[int | None]
    codecs: Sequence[tuple[str, ...]]

    def __init__(self, row: Row, exchange: Exchange, kept: dict[str, Any]) -> None:
        self.row = row
        """The first one: only what is the same of all is asked of it."""
        self.connection: Connection = exchange.connection
        self.from_a = exchange.broker == exchange.connection.b
        """Whether the client is the connection's `a`."""
        self.broker = exchange.broker
        self.who = row.client_id or "", host_of(row.client_address)
        self.kept = kept
        """Fields of the requests that are the same in all: see `SAME`."""
        self.way = "produce" if row.api_key == PRODUCE else "fetch"
        if kept.get("replica_id", -1) >= 0:
            self.way = "replica"
        self.parts: dict[Place, Parts] = {}
        """By topic and partition."""
        self.unmoved: dict[Place, list[tuple[int, int, int]]] = {}
        """What a Fetch asked for and no answer was about: time, time of the answer, offset."""

    def settle(self, rows: list[tuple[Any, ...]]) -> None:
        """Make the columns."""
        (
            self.numbers,
            self.ids,
            self.begins,
            self.ends,
            self.latencies,
            self.waits,
            self.servers,
            self.asked,
            self.answered,
            self.records,
            self.batches,
            self.codecs,
        ) = zip(*rows, strict=True)
        for parts in self.parts.values():
            parts.settle()


SAME: Final = {
    PRODUCE: ("transactional_id",),
    FETCH: ("replica_id", "max_wait_ms", "isolation_level", "rack_id"),
}
"""Fields of requests that accumulators ask for, and that are the same in those of one client."""


class Feed:
    """Takes exchanges for some accumulators. What they have counted is complete after `settle`.

    An accumulator says what it wants: `KEYS`, the APIs of which it wants all exchanges (None: of
    all, also those without an API); `ODD_KEYS`, the APIs of which it wants those that are odd; or
    `ODD`, all that are; and, by `KAFKA_ONLY`, none of ZooKeeper's but those of `KEYS`. Where it has
    `add_all`, it gets usual exchanges by that. One without may have `add_lone`, which is told of
    usual exchanges about one batch what they are about, and one may have `add_old`.
    """

    def __init__(self, accumulators: Iterable[Any]) -> None:
        """An accumulator that has `fed` consists of those that it gives."""
        takers = [
            taker
            for each in accumulators
            for taker in (each.fed() if hasattr(each, "fed") else (each,))
        ]
        self._takers: list[Any] = takers
        self._named = {
            key
            for each in takers
            for keys in (getattr(each, "KEYS", None), getattr(each, "ODD_KEYS", ()))
            for key in keys or ()
        }
        """Keys of APIs that somebody names; all others are alike."""
        self._adds: dict[tuple[int | None, bool], list[Add]] = {}
        self._beside: dict[int, list[Add]] = {}
        """By API: what usual exchanges are given to one by one."""
        self._lone: dict[int, list[AddLone]] = {}
        """The same of exchanges about one batch."""
        self._alls: dict[int, list[AddAll]] = {}
        bodies = any(getattr(each, "NEEDS", "bodies") == "bodies" for each in takers)
        for key in (PRODUCE, FETCH) if len(takers) > FEW and bodies else ():
            wanting = [each for each in takers if wants(each, key, odd=False)]
            beside = [each for each in wanting if not hasattr(each, "add_all")]
            self._beside[key] = [each.add for each in beside]
            self._lone[key] = [getattr(each, "add_lone", _whatever(each.add)) for each in beside]
            self._alls[key] = [each.add_all for each in wanting if hasattr(each, "add_all")]
        self._old: list[Add] = [each.add_old for each in takers if hasattr(each, "add_old")]
        """What wants usual Fetches of versions before 3 that did not bring one batch."""
        self._waiting: dict[tuple[Any, ...], tuple[Alike, list[tuple[Any, ...]]]] = {}
        self._count = self._bytes = 0

    def add(self, row: Row, exchange: Exchange) -> None:
        """Give an exchange to those who want it, by now or later."""
        key = row.api_key
        if key in self._alls:
            latency = row.latency_ns
            if (
                latency is not None
                and 0 <= latency < SOON
                and row.state == "answered"
                and not (row.errors or row.notes or row.undecoded or row.throttle_ms)
                and row.acks != 0
                and self._waits(row, exchange, latency)
            ):
                return
        named = key in self._named or is_zookeeper(key)
        about = key if named else None, is_odd(row)
        adds = self._adds.get(about)
        if adds is None:
            adds = [each.add for each in self._takers if wants(each, about[0], odd=about[1])]
            self._adds[about] = adds
        for add in adds:
            add(row, exchange)

    @property
    def waiting(self) -> int:
        """Return how many exchanges wait."""
        return self._count

    def _waits(self, row: Row, exchange: Exchange, latency: int) -> bool:
        """Let a usual exchange wait; return whether it is one."""
        asked, response = exchange.request_body, exchange.response_body
        if asked is None or response is None or response.get("node_endpoints"):
            return False
        connection, begin, number, id_ = exchange.connection, row.time_ns, row.number, row.id
        key: Any = row.api_key
        same: tuple[Any, ...]
        told = asked.get
        if key == PRODUCE:
            same = (told("transactional_id"),)
        else:
            same = replica_id(asked), told("max_wait_ms"), told("isolation_level"), told("rack_id")
        about = (
            id(connection),
            key,
            row.client_address,
            row.api_version,
            row.client_id,
            row.software,
            row.user,
            row.producer_ids != (),
            *same,
        )
        known = self._waiting.get(about)
        if known is None:
            alike = Alike(row, exchange, dict(zip(SAME[key], same, strict=True)))
            known = self._waiting[about] = alike, []
        alike, rows = known
        end = begin + latency
        asked_bytes, answered_bytes = row.request_bytes or 0, row.response_bytes or 0
        rows.append(
            (
                number,
                id_,
                begin,
                end,
                latency,
                row.wait_ns,
                row.server_ns,
                asked_bytes,
                answered_bytes,
                row.records,
                row.batches,
                row.codecs,
            )
        )
        lone = lone_part(key, asked, response)
        if lone is not None:
            place, rest, batch = lone
            parts = alike.parts.get(place)
            if parts is None:
                parts = alike.parts[place] = Parts()
            parts.rows.append((begin, end, number, id_, 0, *rest))
            parts.found.append(batch)
            # Of magic 2, which says how many there are.
            parts.counts.append(max(0, batch.record_count or 0))
            for add_lone in self._lone[key]:
                add_lone(row, exchange, alike.way, place, batch)
        else:
            self._take(alike, row, exchange)
        self._count += 1
        self._bytes += asked_bytes + answered_bytes
        if self._count >= MOST_WAITING or self._bytes >= MOST_BYTES:
            self.settle()
        return True

    def _take(self, alike: Alike, row: Row, exchange: Exchange) -> None:
        """Take in what a usual exchange moved of any number of partitions."""
        found, unmoved = parts_of(row, exchange)
        for part in found:
            place = part.moved[1:3]
            if place not in alike.parts:
                alike.parts[place] = Parts()
            alike.parts[place].take(part)
        for place, offset in unmoved.items():
            asked = row.time_ns, row.time_ns + (row.latency_ns or 0), offset
            alike.unmoved.setdefault(place, []).append(asked)
        for add in self._beside[row.api_key or PRODUCE]:
            add(row, exchange)
        if alike.way == "fetch" and row.api_version is not None and row.api_version < WHOLE:
            for add in self._old:
                add(row, exchange)

    def settle(self) -> None:
        """Give what waits to those who want it."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        self._count = self._bytes = 0
        for alike, rows in waiting.values():
            alike.settle(rows)
            key: Any = alike.row.api_key
            for add_all in self._alls[key]:
                add_all(alike)


def _whatever(add: Add) -> AddLone:
    """Return what adds an exchange, whatever it is about."""
    return lambda row, exchange, *_: add(row, exchange)


def wants(taker: Any, key: int | None, *, odd: bool) -> bool:
    """Return whether an accumulator wants the exchanges of an API."""
    keys = getattr(taker, "KEYS", None)
    if is_zookeeper(key) and getattr(taker, "KAFKA_ONLY", False):
        return keys is not None and key in keys
    if keys is None or key in keys:
        return True
    return odd and (getattr(taker, "ODD", False) or key in getattr(taker, "ODD_KEYS", ()))
