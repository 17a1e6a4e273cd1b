"""Facts that connections share when they are read separately: which endpoints are brokers.

Within a capture, a connection whose bytes are ambiguous is taken for Kafka when its endpoint
answered as Kafka before. A separate task cannot know that; so it reports whether knowing would have
changed anything, and the run is repeated with what all tasks have learned. Rarely needed: on the
usual ports and for connections seen from their start nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.conversation.undecided import Undecided

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkascope.analyzer.model import Exchange
    from kafkascope.captures.model import Connection, Endpoint, StreamEvent

ENDLESS = 1 << 62
NOWHERE = ""


class Brokers(set["Endpoint"]):
    """Replaces `Context.brokers`: endpoints that are known from some packet on."""

    def __init__(self, known: Mapping[Endpoint, int]) -> None:
        super().__init__()
        self._known = known
        self.now = 0
        """Number of the current packet."""
        self.learned: dict[Endpoint, int] = {}
        """Brokers learned by the connections of this task, with the first packet that showed it."""
        self.missed: dict[Endpoint, int] = {}
        """Endpoints that the current connections asked for in vain, with the last packet that
        asked."""

    def begin(self) -> None:
        """Begin with other connections, which do not know what the last ones learned."""
        self.clear()
        self.missed = {}

    def add(self, endpoint: Endpoint) -> None:
        """Add an endpoint that answered as Kafka."""
        super().add(endpoint)
        self.learned[endpoint] = min(self.now, self.learned.get(endpoint, self.now))

    def __contains__(self, endpoint: object) -> bool:
        if super().__contains__(endpoint):
            return True
        since = self._known.get(endpoint)  # type: ignore[call-overload]
        if since is not None and since < self.now:
            return True
        self.missed[endpoint] = self.now  # type: ignore[index]
        return False


class Watched(Conversations):
    """Conversations that record how the protocol of each connection was decided."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.decisions: list[tuple[Undecided, Any]] = []

    def synchronized(self, connection: Connection) -> bool:
        """Return whether chunks of a connection may be joined."""
        current = self._open.get(connection.number)
        return isinstance(current, Conversation) and current.synchronized

    def settled(self, connection: Connection) -> bool:
        """Return the same for many packets at once: also true where chunks do not matter any
        more."""
        current = self._open.get(connection.number, NOWHERE)
        return current is None or (isinstance(current, Conversation) and current.synchronized)

    def _settle(self, undecided: Undecided, decision: Conversation | str) -> list[Exchange]:
        out = super()._settle(undecided, decision)
        current = self._open.get(undecided.connection.number)
        self.decisions.append((undecided, _kind(undecided, current, out)))
        return out


def _kind(undecided: Undecided, decision: object, rows: list[Exchange]) -> Any:
    if isinstance(decision, Conversation):
        return "kafka", decision.client, undecided.midstream
    return "other", [(row.reason, row.client) for row in rows]


def sensitive(watched: Watched, brokers: Brokers, context: Context) -> dict[Endpoint, int]:
    """Return the endpoints that would have changed a decision, had they been known as brokers, with
    the packet that asked for them."""
    found: dict[Endpoint, int] = {}
    for undecided, kind in watched.decisions:
        connection = undecided.connection
        for endpoint in {connection.a, connection.b}:
            asked = brokers.missed.get(endpoint)
            if asked is None or endpoint in found:
                continue
            if _decided_with(endpoint, connection, undecided.events, context) != kind:
                found[endpoint] = asked
    return found


def _decided_with(
    endpoint: Endpoint, connection: Connection, events: list[StreamEvent], context: Context
) -> Any:
    """Return the decision with the endpoint known as a broker."""
    knowing = Context(context.decode_as)
    knowing.brokers = {endpoint}
    again = Undecided(connection, knowing)
    for event in events:
        decision = again.feed(event)
        if isinstance(decision, str):
            return _kind(again, None, again.row(decision))
        if decision is not None:
            return _kind(again, decision, [])
    return None
