"""Gives batches of exchanges to many accumulators, to each only those that it counts.

Ordinary exchanges wait until there are many of the same client: see `exchange_batch`. Accumulators
do not depend on order, so that it does not matter what comes when.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafkascope.analyzer.conversation.ordinary import pair_of, reader_of_one_pair
from kafkascope.analyzer.statistics.exchange_batch import SAME, ExchangeBatch
from kafkascope.analyzer.statistics.limits import LIMITS, StatisticsLimits
from kafkascope.analyzer.statistics.model import Exchange, Row
from kafkascope.dissectors.zookeeper.types import is_zookeeper
from kafkascope.kernel.groups import PairGroup, collect, gather, key_of

if TYPE_CHECKING:
    from kafkascope.analyzer.exchanges.pairs import Item, Rows
    from kafkascope.kernel.pairs import Reader

Add: TypeAlias = Callable[[ExchangeBatch], None]

FINE: Final = frozenset({"answered", "no-reply", "event"})


def is_out_of_ordinary(row: Row) -> bool:
    """Return whether something about an exchange is out of the ordinary: most are not, and most
    detectors take no others."""
    return bool(row.errors or row.notes or row.undecoded) or row.state not in FINE


class Feed:
    """Takes exchanges for some accumulators. What they have counted is complete after `settle`.

    An accumulator names the batches it counts: `KEYS`, the APIs of which it takes all exchanges
    (None: of all, also those without an API); `ODD_KEYS`, the APIs of which it takes those that are
    odd; or `ODD`, all that are; and, by `KAFKA_ONLY`, none of ZooKeeper's but those of `KEYS`.
    `SINGLY`: the APIs whose bodies it reads, one exchange after the other; without, all of `KEYS`
    but those of `SAME`.
    """

    def __init__(self, accumulators: Iterable[Any], limits: StatisticsLimits = LIMITS) -> None:
        """An accumulator that has `fed` consists of those that it gives."""
        self._takers: list[Any] = [
            taker
            for each in accumulators
            for taker in (each.fed() if hasattr(each, "fed") else (each,))
        ]
        self._named = {
            key
            for each in self._takers
            for name in ("KEYS", "ODD_KEYS", "SINGLY")
            for key in getattr(each, name, None) or ()
        }
        """Keys of APIs that an accumulator names; to all accumulators any other API is the same."""
        self._adds: dict[tuple[int | None, bool], list[tuple[Add, bool]]] = {}
        """Who takes exchanges of an API, and whether singly, by whether they are odd."""
        self._groups: dict[Any, PairGroup] = {}
        self._rows: Rows | None = None
        """Maker of rows."""
        self._readers: dict[Any, Reader] = {}
        """Of exchanges that come as objects, by what the exchanges of a group share."""
        self._count = self._bytes = 0
        self._most, self._most_bytes = limits.waiting_exchanges, limits.waiting_bytes

    def take(self, items: list[Item], rows: Rows) -> None:
        """Give exchanges to accumulators, by now or later; ordinary ones many at a time."""
        if not self._takers:
            return
        others, size = collect(items, self._groups)
        for item in others:
            self.give(ExchangeBatch.of(*rows.both(item)))
        self._rows = rows
        self._wait(len(items) - len(others), size)

    def add(self, row: Row, exchange: Exchange) -> None:
        """Do the same with one, as it was captured."""
        if not self._takers:
            return
        pair = None
        disturbed = row.retransmissions or row.zero_window_ns or row.stalled_by
        ordinary = not disturbed and not is_out_of_ordinary(row) and exchange.logged is None
        if ordinary:
            about = (
                *(exchange.connection, row.client_address, row.software, row.user),
                *(row.rtt_ns, row.capture_point),
            )
            reader = self._readers.get(about)
            if reader is None:
                reader = self._readers[about] = reader_of_one_pair()
            pair = pair_of(exchange, reader)
        key = None if pair is None else key_of(pair)
        if pair is None or key is None:
            self.give(ExchangeBatch.of(row, exchange))
            return
        gather(pair, key, self._groups, (row, exchange))
        self._wait(1, (row.request_bytes or 0) + (row.response_bytes or 0))

    def _wait(self, count: int, size: int) -> None:
        self._count += count
        self._bytes += size
        if self._count >= self._most or self._bytes >= self._most_bytes:
            self.settle()

    def give(self, batch: ExchangeBatch) -> None:
        if batch.row.forwarded:
            return  # It is counted where the client sent it.
        key = batch.api_key
        named = key in self._named or is_zookeeper(key)
        # What takes a batch follows from these two: accumulators are not compared with each batch.
        about = key if named else None, is_out_of_ordinary(batch.row)
        adds = self._adds.get(about)
        if adds is None:
            takers = (each for each in self._takers if wants(each, about[0], odd=about[1]))
            adds = self._adds[about] = [(each.add, _singly(each, key)) for each in takers]
        for add, singly in adds:
            if singly and len(batch) > 1:
                for each in batch.singles:
                    add(each)
            else:
                add(batch)

    @property
    def waiting(self) -> int:
        return self._count

    def settle(self) -> None:
        groups, self._groups = self._groups, {}
        self._readers.clear()
        self._count = self._bytes = 0
        for key, group in groups.items():
            self.give(ExchangeBatch.of_group(group, key, self._rows))


def _singly(taker: Any, key: int | None) -> bool:
    keys = getattr(taker, "SINGLY", getattr(taker, "KEYS", None))
    return key not in SAME and key in (keys or ())


def wants(taker: Any, key: int | None, *, odd: bool) -> bool:
    keys = getattr(taker, "KEYS", None)
    if is_zookeeper(key) and getattr(taker, "KAFKA_ONLY", False):
        return keys is not None and key in keys
    if keys is None or key in keys:
        return True
    return odd and (getattr(taker, "ODD", False) or key in getattr(taker, "ODD_KEYS", ()))
