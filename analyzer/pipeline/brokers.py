"""Facts that connections share when they are read separately: which endpoints are brokers.

Within a capture, a connection whose bytes are ambiguous is taken for Kafka when its endpoint
answered as Kafka before. A separate task cannot know that; so it reports whether knowing would have
changed anything, and the run is repeated with what all tasks have learned. Rarely needed: on the
usual ports and for connections seen from their start nothing changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.conversation.undecided import Undecided
from kafkascope.captures.model import Chunk
from kafkascope.captures.signatures import TLS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafkascope.analyzer.conversation.encrypted import Encrypted
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


class Decision(NamedTuple):
    """What a connection, or what is inside its TLS, was found to speak."""

    undecided: Undecided
    kind: Any
    inside: bool


class Watched(Conversations):
    """Conversations that record how the protocol of each connection was decided."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.decisions: list[Decision] = []
        self.unread: dict[int, Endpoint] = {}
        """By connection: the client in the row that says why its TLS cannot be read."""

    def synchronized(self, connection: Connection) -> bool:
        """Return whether chunks of a connection may be joined."""
        current = self._open.get(connection.number)
        return current is not None and current.synchronized

    def settled(self, connection: Connection) -> bool:
        """Return the same for many packets at once: also true where chunks do not matter any
        more."""
        current = self._open.get(connection.number, NOWHERE)
        return current is None or (not isinstance(current, str) and current.synchronized)

    def wants(self, connection: Connection) -> bool:
        """Return whether a connection may have a handshake of TLS that is to come."""
        current = self._open.get(connection.number, NOWHERE)
        return current is not None and not isinstance(current, Conversation)

    def _settle(self, undecided: Undecided, decision: Conversation | str) -> list[Exchange]:
        around = self._open.get(undecided.connection.number)
        inside = not isinstance(around, Conversation | Undecided | None)
        out = super()._settle(undecided, decision)
        kind = _kind(undecided, decision, [] if inside else out)
        self.decisions.append(Decision(undecided, kind, inside))
        return out

    def _decrypted(self, around: Encrypted, event: StreamEvent) -> list[Exchange]:
        out = super()._decrypted(around, event)
        for each in out:
            if each.state == "opaque" and each.reason.startswith(TLS):
                self.unread[around.connection.number] = each.client
        return out


def _kind(undecided: Undecided, decision: Conversation | str, rows: list[Exchange]) -> Any:
    if isinstance(decision, Conversation):
        return "kafka", decision.client, undecided.midstream
    if decision.startswith(TLS):
        return TLS, rows[0].client if rows else None
    return "other", [(row.reason, row.client) for row in rows]


def sensitive(watched: Watched, brokers: Brokers, context: Context) -> dict[Endpoint, int]:
    """Return the endpoints that would have changed a decision, had they been known as brokers, with
    the packet that asked for them."""
    found: dict[Endpoint, int] = {}
    for decision in watched.decisions:
        connection, kind = decision.undecided.connection, decision.kind
        if kind[0] == TLS:
            kind = TLS, watched.unread.get(connection.number)
        for endpoint in {connection.a, connection.b}:
            asked = brokers.missed.get(endpoint)
            if asked is None or endpoint in found:
                continue
            other, events = _decided_with(endpoint, decision, context)
            if other != kind:
                found[endpoint] = asked
            elif events < len(decision.undecided.events) and kind[0] != "other":
                # The same, but sooner: requests have their numbers from then on.
                found[endpoint] = min(asked, _last_packet(decision.undecided.events[:-1]))
    return found


def _last_packet(events: list[StreamEvent]) -> int:
    return max((e.pieces[-1].packet for e in events if isinstance(e, Chunk)), default=0)


def _decided_with(endpoint: Endpoint, before: Decision, context: Context) -> tuple[Any, int]:
    """Return the kind of the decision with the endpoint known as a broker, and the number of events
    that it takes."""
    undecided = before.undecided
    connection, tls = undecided.connection, undecided.connection.tls
    knowing = Context(context.decode_as)
    knowing.brokers = {endpoint}
    again = Undecided(connection, knowing)
    for count, event in enumerate(undecided.events, 1):
        decision = again.feed(event)
        if decision is None:
            continue
        # What is inside TLS has no row of its own, nor has TLS that can be read.
        rowless = before.inside or (tls is not None and (not tls.error or any(tls.decrypted)))
        rows = [] if rowless or not isinstance(decision, str) else again.row(decision)
        return _kind(again, decision, rows), count
    return None, len(undecided.events)
