"""The part of a latency that the client asked for: long polls, rebalances of groups, and requests
queued behind those on their connection. Sans-I/O."""

from __future__ import annotations

from typing import Any, Final

from kafkascope.analyzer.bodies.fetch_sessions import FETCH, FetchSession, Ledger
from kafkascope.analyzer.bodies.limits import LIMITS, BodyLimits
from kafkascope.analyzer.bodies.log_ends import WAITS_FOR_DATA, LogEnds, is_follower
from kafkascope.analyzer.model import Spot
from kafkascope.captures.resumable import Resumable

JOIN_GROUP: Final = 11
SYNC_GROUP: Final = 14

WAITING: Final = WAITS_FOR_DATA | {JOIN_GROUP, SYNC_GROUP}
"""Keys of the APIs that wait on purpose: the length of the wait depends on their bodies."""


class Waits(Resumable):
    """The waits of one connection, updated with each response."""

    STATE = __slots__ = ("_answered_ns", "ends", "_sent_ns", "_until_ns")

    def __init__(self, ledger: Ledger | None = None, limits: BodyLimits = LIMITS) -> None:
        self.ends = LogEnds(ledger, limits)
        self._sent_ns = 0
        """When the last answered request was sent."""
        self._answered_ns = 0
        """When its response began."""
        self._until_ns = 0
        """When the last wait ended."""

    @property
    def clocks(self) -> tuple[int, int, int]:
        """When the last answered request was sent, when its response began, when the last wait
        ended."""
        return self._sent_ns, self._answered_ns, self._until_ns

    @clocks.setter
    def clocks(self, clocks: tuple[int, int, int]) -> None:
        self._sent_ns, self._answered_ns, self._until_ns = clocks

    @property
    def held(self) -> int:
        """Memory of what is known of partitions."""
        return self.ends.held

    def evict(self) -> None:
        """Forget what is known of partitions."""
        self.ends.evict()

    def response(
        self,
        key: int,
        asking: Spot,
        request: dict[str, Any] | None,
        answering: Spot,
        response: dict[str, Any] | None,
        session: FetchSession | None = None,
    ) -> int:
        """Return the nanoseconds of deliberate waiting for a response; 0 when there was none or it
        is unknown. Responses come in the order of their requests.

        A broker serves a connection in order: requests behind a long poll waited for its end, too,
        and the broker began with them when it had responded.
        """
        sent = taken = asking.first_ns
        queued = 0
        if self._sent_ns <= sent:
            if sent < self._answered_ns:
                taken = self._answered_ns
                queued = max(0, min(self._until_ns, taken, answering.last_ns) - sent)
            self._sent_ns, self._answered_ns = sent, answering.first_ns
        if key not in WAITING or request is None or response is None:
            return queued
        prompt = key in WAITS_FOR_DATA and self.ends.response(
            request, sent, response, answering.first_ns, session
        )
        own = 0
        if response.get("error_code"):
            pass
        elif key not in WAITS_FOR_DATA:
            own = max(0, answering.first_ns - max(taken, asking.last_ns))
        # With min_bytes 0 a consumer's Fetch needs no data. KRaft's voters and observers ask for 0,
        # too, but the broker makes them wait; so it does with share consumers, whatever they ask
        # for.
        elif not (
            prompt or (request["min_bytes"] <= 0 and key == FETCH and not is_follower(request))
        ):
            # The wait is over when the response begins: the rest of it takes as long as it takes.
            own = max(0, min(answering.first_ns - taken, request["max_wait_ms"] * 1_000_000))
        if own:
            self._until_ns = max(self._until_ns, taken + own)
        return queued + own
