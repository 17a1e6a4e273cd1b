"""Which requests are worth another try: those to a peer that is not ready yet. Sans-I/O."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Any, Final

from kafkascope.analyzer.model import Exchange
from kafkascope.dissectors.codec.reader import Body
from kafkascope.dissectors.registry import APIS, Decoded
from kafkascope.proxy.replay import split
from kafkascope.proxy.replay.compare import HEARTBEATS, Comparison
from kafkascope.proxy.replay.remap import Remap

# Errors that pass: a topic, leader or coordinator that is not there yet, a transaction that is
# still being completed or verified (19 and 20, KIP-890), a batch before this one that is being
# sent again (45), leaders that moved. Clients ask again, and so do we.
TRANSIENT: Final = frozenset({3, 5, 6, 14, 15, 16, 19, 20, 45, 51, 72, 75})
REBALANCE_IN_PROGRESS: Final = 27
# Of a member: these tell of a rebalance as soon as the coordinator has another's JoinGroup.
REPEATABLE: Final = frozenset({"Heartbeat", "OffsetCommit"})
MOVES_GROUPS: Final = frozenset({"JoinGroup", "LeaveGroup"})
# What the replay itself has changed is known to all brokers a little later.
SETTLES: Final = {api.name for api in APIS.values() if api.effect == "read"} - {
    "Fetch",
    "ApiVersions",
}
SETTLING_TRIES: Final = 8


# UNKNOWN_TOPIC_OR_PARTITION: passes where a topic is new, never where a target has fewer.
MISSING: Final = frozenset({3})


class Retries:
    """Decides which requests are retried, and for which partitions retries failed."""

    def __init__(self, comparison: Comparison, remap: Remap) -> None:
        self._comparison = comparison
        self._limits = comparison.limits
        self._remap = remap
        self._missing: dict[tuple[Any, int], None] = {}
        self._in_a_row: Counter[str] = Counter()
        """API -> how many of its exchanges in a row were retried without success."""

    def turns(self, exchange: Exchange, decoded: Decoded, body: Body) -> int:
        """Return how often to retry the exchange, after its first request, where the response shows
        that the peer is not ready (an error that passes and that the capture lacks, no assignment
        yet where the capture has one, a change that not all of its brokers know yet), and earlier
        retries of the API were not all useless."""
        if self._in_a_row[exchange.api] >= self._limits.failed_in_a_row:
            return 0
        captured = None if exchange.response is None else exchange.response.decoded
        now = split.errors(decoded.layout, body)
        if captured is None:
            return (self._limits.tries - 1) * self._may_pass(decoded, body, now, TRANSIENT)
        then = split.errors(captured.layout, captured.body)
        if now and self._may_pass(decoded, body, now, TRANSIENT.difference(then)):
            return self._limits.tries - 1
        if exchange.api in REPEATABLE and REBALANCE_IN_PROGRESS in then:
            return SETTLING_TRIES * (not now)
        remap, comparison = self._remap, self._comparison
        if exchange.api in HEARTBEATS:
            live = remap.response(decoded.layout, body)
            return (self._limits.tries - 1) * comparison.assigned.lacks(captured.body, live)
        if not remap.writes or exchange.api not in SETTLES:
            return 0
        live = remap.response(decoded.layout, body)
        found = comparison.differences(exchange.api, captured.layout, captured.body, live)
        new = comparison.is_new(exchange.api, exchange.api_version or 0, found)
        return SETTLING_TRIES * new

    def _may_pass(
        self, decoded: Decoded, body: Body, now: list[int], passing: frozenset[int]
    ) -> bool:
        """Whether there is an error that passes, and not of a partition that was waited for in
        vain."""
        count = sum(code in passing for code in now)
        if count and self._missing:
            missing = split.failed_partitions(decoded.layout, body, passing & MISSING)
            count -= sum(each in self._missing for each in missing)
        return count > 0

    def ended(self, exchange: Exchange, decoded: Decoded, body: Body, *, well: bool) -> None:
        """Note the result of a retried exchange. Missing partitions are not waited for again: a
        target with fewer than the capture would delay each request. Neither is an API without a
        settled response."""
        if well:
            self._in_a_row[exchange.api] = 0
            return
        self._in_a_row[exchange.api] += 1
        room = self._limits.missing_partitions - len(self._missing)
        missing = split.failed_partitions(decoded.layout, body, MISSING)
        self._missing.update(dict.fromkeys(islice(missing, room)))

    @property
    def remarks(self) -> list[str]:
        return [
            f"{api} was retried {count} times without success, then no longer"
            for api, count in sorted(self._in_a_row.items())
            if count >= self._limits.failed_in_a_row
        ]

    def changed(self) -> None:
        """Note that topics were created: retries that failed may succeed now."""
        self._missing.clear()
