"""All connections of a session: events in, exchanges out.

Decides for each connection whether it is Kafka and who its client is, then leaves it to a
`Conversation`. Connections that speak something else are counted; only where Kafka was to be
expected do they get a row (opaque) with a sentence. HTTP goes on where the context has a consumer
for it. Sans-I/O.
"""

from __future__ import annotations

from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Final, Self

from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.conversation.undecided import Undecided, loaded
from kafkascope.analyzer.conversation.waiting import BEYOND, END, LONG, Waiters
from kafkascope.captures.model import BEHIND_ALL, Chunk, Closed, StreamEvent
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.signatures import HEAD, TLS, words_amid, words_of

if TYPE_CHECKING:
    from collections.abc import Container

    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.conversation.encrypted import Encrypted
    from kafkascope.analyzer.conversation.http.exchanges import HttpConversation
    from kafkascope.analyzer.model import Exchange, Origin
    from kafkascope.kernel.pairs import Pair

REMEMBERED: Final = 10_000
"""Connections that are over, of which late packets are still to be recognized."""


class Conversations(Resumable):
    """Feed it every event of every connection, in order."""

    STATE = ("_over", "_enough")

    def __init__(self, context: Context) -> None:
        self.context = context
        self._open: dict[int, Conversation | Undecided | Encrypted | HttpConversation | None] = {}
        """By connection number; None for those that are over or that nobody wants."""
        self._over: deque[int] = deque()
        self._enough = context.limits.waiting_bytes
        """What may wait until it is counted anew."""
        self._waiting = Waiters()
        """Connections whose secrets may still come."""
        self._sealed: type[Encrypted] | None = None
        """Loaded when there is TLS."""

    def dump(self) -> Dump:
        """Return the state of all connections. That of HTTP is not kept: it is read in one go."""
        connections = [
            [number, type(each).__name__, each.dump()]
            if isinstance(each, Resumable)
            else [number, "", None]
            for number, each in self._open.items()
        ]
        return {**super().dump(), "connections": connections}

    def forget_over(self, tracked: Container[int]) -> None:
        """Forget that connections are over, but for those that reassembly tracks: no packet of
        others comes late."""
        self._open = {
            number: each
            for number, each in self._open.items()
            if each is not None or number in tracked
        }
        self._over = deque(number for number in self._over if number in self._open)

    def load(self, state: Dump) -> Self:
        for number, kind, each in state["connections"]:
            self._open[number] = self._loaded(kind, each)
        return super().load(state)

    def _loaded(self, kind: str, state: Dump) -> Conversation | Undecided | Encrypted | None:
        if not state:
            return None
        if kind in (Conversation.__name__, Undecided.__name__):
            return loaded(kind, state, self.context)
        from kafkascope.analyzer.conversation.encrypted import Encrypted

        self._sealed = Encrypted
        return Encrypted(state["connection"], self.context, None).load(state)

    def feed(self, event: StreamEvent) -> list[Exchange]:
        """Return the exchanges that this event completes."""
        number = event.connection.number
        current = self._open.get(number)
        if type(current) is Conversation:
            exchanges = current.feed(event)
            context = self.context
            if type(event) is Chunk:
                # As if all of it stayed: what does is counted when it matters.
                context.waiting += len(event.data)
            elif type(event) is Closed:
                self._forget(number, event)
            if context.waiting > self._enough:
                exchanges += self._relieved()
            return exchanges
        sealed = self._sealed
        if sealed is not None and type(current) is sealed and type(event) is Chunk:
            inside = current.straight(event)
            if inside is not None:
                self.context.waiting += len(event.data)
                if self.context.waiting > self._enough:
                    inside += self._relieved()
                return inside
        if type(event) is Chunk and not event.offset:
            self._greets(event)
        if current is None and number not in self._open:
            current = self._open[number] = Undecided(event.connection, self.context)
        out: list[Exchange] = []
        if isinstance(current, Undecided):
            out = self._decide(current, event)
        elif current is not None and not isinstance(current, Conversation):
            if isinstance(current, Resumable):
                out = self._decrypted(current, event)
            else:
                current.feed(event)
                self.context.waiting += len(event.data) if type(event) is Chunk else 0
        if isinstance(event, Closed):
            self._forget(number, event)
        if self.context.waiting > self._enough:
            out += self._relieved()
        return out

    def caught_up(self) -> list[Exchange | Pair]:
        """Return the exchanges that the kernel has read since, of connections whose bytes it gets
        before they become events."""
        sink = self.context.sink
        pairs, sink.pairs = sink.pairs, []
        out: list[Exchange | Pair] = list(pairs)
        odd, sink.odd = sink.odd, []
        for each in odd:
            current = self._open.get(each.host.connection.number)
            if isinstance(current, Conversation):
                out += current.leave()
        self.context.waiting += sink.fed
        sink.fed = 0
        if self.context.waiting > self._enough:
            out += self._relieved()
        return out

    @property
    def held(self) -> int:
        """Memory of what waits for more bytes, on all connections."""
        return sum(each.held for each in self._holders())

    def __len__(self) -> int:
        return len(self._open)

    def unsettled(self) -> tuple[int, list[Origin]]:
        """Return the first packet in which an exchange may be found to begin yet, or `BEHIND_ALL`,
        and the origins of those that have begun and are not told."""
        first = BEHIND_ALL
        begun: list[Origin] = []
        for each in self._open.values():
            if type(each) is Conversation:
                first = min(first, each.unsettled(begun))
            elif isinstance(each, Undecided):
                first = min(first, each.first_packet)
            elif isinstance(each, Resumable):
                first = min(first, each.unsettled(begun))
        return first, begun

    def _holders(self) -> list[Conversation | Undecided | Encrypted | HttpConversation]:
        return [each for each in self._open.values() if each is not None]

    def _relieved(self) -> list[Exchange]:
        """Give up the state of the connections that were silent for the longest time, when all that
        is held takes too much memory: first what costs no exchange. Return the exchanges that this
        completes."""
        held = self._holders()
        total, most = self.held, self.context.limits.waiting_bytes
        out: list[Exchange] = []
        inside: Conversation | Undecided | HttpConversation | None
        if total > most:
            held.sort(key=lambda each: each.connection.last_ns)
            for each in held:
                total -= _forgotten(each)
                if total <= most // 2:
                    break
        if total > most:
            for each in held:
                total -= each.held
                if isinstance(each, Conversation | Undecided) or not isinstance(each, Resumable):
                    inside = each
                elif each.stream.waiting is not None:
                    out += self._abandoned(each.connection.number, BEYOND)
                    inside = None
                else:
                    inside = each.inside
                    each.relieve()
                if isinstance(inside, Undecided):
                    out += self._settle(inside, inside.give_up())
                elif inside is not None:
                    out += inside.relieve()
                left = self._open.get(each.connection.number)
                total += 0 if left is None or isinstance(left, Undecided) else left.held
                if total <= most // 2:
                    break
        self.context.waiting = total
        # So that all are looked at once in many megabytes.
        self._enough = max(most, total + most // 4)
        return out

    def _forget(self, number: int, event: Closed) -> None:
        """Let go of a connection that is over; late copies of its packets find None for a while."""
        current = self._open.get(number)
        if number in self._waiting:
            return
        if event.direction is None:
            self._open.pop(number, None)
        elif current is None or current.over:
            self._open[number] = None
            self._over.append(number)
            if len(self._over) > REMEMBERED:
                self._open.pop(self._over.popleft(), None)

    def _greets(self, chunk: Chunk) -> None:
        """Note what a server speaks, by its first bytes on a connection that is not known to be
        Kafka's."""
        connection = chunk.connection
        if connection.server:
            return
        if connection.handshake:
            if chunk.direction:
                connection.server = words_of(chunk.data[:HEAD], "server")
        elif self.context.is_broker((connection.a, connection.b)[chunk.direction]):
            connection.server = words_amid(chunk.data[:HEAD], "server")

    def _decide(self, undecided: Undecided, event: StreamEvent) -> list[Exchange]:
        before = undecided.held
        decision = undecided.feed(event)
        if decision is None:
            self.context.waiting += undecided.held - before
            return []
        return self._settle(undecided, decision)

    def _settle(self, undecided: Undecided, decision: Conversation | str) -> list[Exchange]:
        """Go on with what a connection, or what is inside its TLS, was found to speak."""
        connection = undecided.connection
        number = connection.number
        around = self._open.get(number)
        if isinstance(around, Resumable) and not isinstance(around, Conversation | Undecided):
            if isinstance(decision, str):
                around.describe(decision)
                around.inside = self._http_in(undecided)
                return []
            around.inside = decision
        elif isinstance(decision, str):
            if decision.startswith(TLS):
                undecided.reason = decision
                return self._encrypted(undecided)
            self.context.not_kafka(decision, connection)
            connection.other = decision
            self._open[number] = self._http_in(undecided)
            return undecided.row(decision)
        else:
            self._open[number] = decision
        out: list[Exchange] = []
        for held in undecided.events:
            out += decision.feed(held)
        self.context.waiting += decision.held
        return out

    def _http_in(self, undecided: Undecided) -> HttpConversation | None:
        """Go on with a connection that is not Kafka's, if it is HTTP and there is a consumer."""
        consumer = self.context.http
        if consumer is None:
            return None
        from kafkascope.analyzer.conversation.http.exchanges import HttpConversation, client_in

        client = client_in(undecided.events)
        if client is None:
            return None
        midstream = undecided.midstream
        found = HttpConversation(undecided.connection, consumer, client, midstream=midstream)
        for held in undecided.events:
            found.feed(held)
        self.context.waiting += found.held
        return found

    def _encrypted(self, undecided: Undecided) -> list[Exchange]:
        from kafkascope.analyzer.conversation.encrypted import Encrypted
        from kafkascope.captures.tls.begin import client_of

        number = undecided.connection.number
        self._sealed = Encrypted
        client = client_of(undecided.events)
        around = self._open[number] = Encrypted(undecided.connection, self.context, client)
        around.begin(undecided)
        out: list[Exchange] = []
        for held in undecided.events:
            if self._open[number] is around:
                out += self._decrypted(around, held)
        around.trim()
        return out

    def _decrypted(self, around: Encrypted, event: StreamEvent) -> list[Exchange]:
        if around.stream.waiting is not None:
            around.later.append(event)
            self._waiting.add(around.connection.number, event)
            return self._within_bounds()
        out = self._taken(around, around.feed(event))
        if type(event) is Chunk:
            self.context.waiting += len(event.data)
        out += self._judged(around)
        if around.stream.waiting is not None:
            stream = around.stream
            self._waiting.begin(around.connection.number, stream.held, stream.midstream)
            out += self._within_bounds()
        return out

    def _taken(self, around: Encrypted, events: list[StreamEvent]) -> list[Exchange]:
        out: list[Exchange] = []
        for plain in events:
            inside = around.inside
            if inside is None and around.fresh and not isinstance(plain, Closed):
                around.fresh = False
                inside = around.inside = Undecided(around.connection, self.context)
            if isinstance(inside, Undecided):
                out += self._decide(inside, plain)
            elif inside is not None:
                out += inside.feed(plain)
        return out

    def _judged(self, around: Encrypted) -> list[Exchange]:
        """Tell why TLS cannot be read, once that is certain."""
        out = around.unreadable() if around.outer is not None else []
        if around.stream.over and not around.over:
            self._open[around.connection.number] = None
        return out

    # --- what waits for secrets

    def look_again(self, seconds: float) -> list[Exchange]:
        """Go on with the connections whose secrets the key log has by now, and give up those that
        waited for too long. `seconds`: of a clock that never goes back; call often."""
        out: list[Exchange] = []
        log = self.context.keys.log
        if log is not None:
            for number in self._waiting.worth_a_look(log.changes, seconds):
                out += self._resumed(number)
        for number in self._waiting.overdue(seconds):
            out += self._abandoned(number, LONG)
        return out

    def _resumed(self, number: int) -> list[Exchange]:
        """Go on with a connection, as far as its secrets are there."""
        around = self._waiter(number)
        out = self._taken(around, around.stream.go_on())
        out += self._judged(around)
        if around.stream.waiting is None:
            self._waiting.end(number)
            later, around.later = around.later, []
            for event in later:
                out += self.feed(event)
        return out

    def _abandoned(self, number: int, waited: str) -> list[Exchange]:
        """Take a connection as it is, without waiting."""
        self._waiter(number).stream.give_up(waited)
        return self._resumed(number)

    def _waiter(self, number: int) -> Encrypted:
        around = self._open[number]
        assert isinstance(around, Resumable)
        assert not isinstance(around, Conversation | Undecided)
        return around

    def _within_bounds(self) -> list[Exchange]:
        """Give up those that wait for the longest time, where all of them take too much memory."""
        out: list[Exchange] = []
        for number in self._waiting.beyond():
            out += self._abandoned(number, BEYOND)
        return out

    def finish(self) -> list[Exchange]:
        """End all conversations; requests in flight become open exchanges."""
        out: list[Exchange] = []
        for number in self._waiting.numbers():
            out += self._abandoned(number, END)
        for current in list(self._open.values()):
            if current is not None:
                out += self.feed(
                    Closed(current.connection, None, "end", current.connection.last_ns)
                )
        self._open.clear()
        return sorted(out, key=attrgetter("origin"))


def _forgotten(each: Conversation | Undecided | Encrypted | HttpConversation) -> int:
    """Let a connection forget what costs no exchange; return the memory that it took."""
    if isinstance(each, Conversation):
        return each.forget()
    if isinstance(each, Undecided) or not isinstance(each, Resumable):
        return 0
    return each.inside.forget() if isinstance(each.inside, Conversation) else 0
