"""All connections of a session: events in, exchanges out.

A connection begins as `Undecided`, until its bytes show what it speaks. Kafka and ZooKeeper become
a `Conversation`, TLS an `Encrypted`, whose plaintext begins as `Undecided` again, and HTTP an
`HttpConversation` where the context has a consumer for it. All other connections are counted; they
get a row (opaque) only where Kafka is expected. Sans-I/O.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Self

from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.conversation.undecided import Undecided, loaded
from kafkascope.analyzer.conversation.waiting import BEYOND, END, LONG, Waiters
from kafkascope.captures.model import BEHIND_ALL, Chunk, Closed, StreamEvent
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.signatures import HEAD, TLS, words_amid, words_of

if TYPE_CHECKING:
    from collections.abc import Container

    from typing_extensions import TypeIs

    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.conversation.encrypted import Encrypted
    from kafkascope.analyzer.conversation.http.exchanges import HttpConversation
    from kafkascope.analyzer.conversation.ordinary import Completed
    from kafkascope.analyzer.model import Origin


class Conversations(Resumable):
    """Feed it every event of every connection, in order."""

    STATE = ("_ended", "_recount_at")

    def __init__(self, context: Context) -> None:
        self.context = context
        self._open: dict[int, Conversation | Undecided | Encrypted | HttpConversation | None] = {}
        """By connection number; None for those that ended, or that have no consumer."""
        self._ended: deque[int] = deque()
        self._recount_at = context.limits.waiting_bytes
        """Value of `Context.buffered_bytes` at which the memory is counted."""
        self._awaiting_secrets = Waiters()
        """Connections whose secrets may still come."""
        self._encrypted_class: type[Encrypted] | None = None
        """The class, once there is TLS: other captures do not load its room."""

    def dump(self) -> Dump:
        """Return the state of all connections, without HTTP: schemas are read in one pass."""
        connections = [
            [number, type(current).__name__, current.dump()]
            if isinstance(current, Resumable)
            else [number, "", None]
            for number, current in self._open.items()
        ]
        return {**super().dump(), "connections": connections}

    def forget_ended(self, tracked: Container[int]) -> None:
        """Forget ended connections that reassembly does not track: no late packet can come."""
        self._open = {
            number: current
            for number, current in self._open.items()
            if current is not None or number in tracked
        }
        self._ended = deque(number for number in self._ended if number in self._open)

    def load(self, state: Dump) -> Self:
        for number, kind, connection in state["connections"]:
            self._open[number] = self._loaded(kind, connection)
        return super().load(state)

    def _loaded(self, kind: str, state: Dump) -> Conversation | Undecided | Encrypted | None:
        if not state:
            return None
        if kind in (Conversation.__name__, Undecided.__name__):
            return loaded(kind, state, self.context)
        from kafkascope.analyzer.conversation.encrypted import Encrypted

        self._encrypted_class = Encrypted
        return Encrypted(state["connection"], self.context, None).load(state)

    def feed(self, event: StreamEvent) -> list[Completed]:
        """Return the exchanges that this event completes."""
        number = event.connection.number
        current = self._open.get(number)
        if type(current) is Conversation:
            exchanges = current.feed(event)
            context = self.context
            if type(event) is Chunk:
                # As if all bytes stayed in memory: see `Context.buffered_bytes`.
                context.buffered_bytes += len(event.data)
            elif type(event) is Closed:
                self._forget_ended(number, event)
            if context.buffered_bytes > self._recount_at:
                exchanges += self._evict_silent()
            return exchanges
        encrypted = self._encrypted_class
        if encrypted is not None and type(current) is encrypted and type(event) is Chunk:
            decrypted = current.decrypt_fast(event)
            if decrypted is not None:
                self.context.buffered_bytes += len(event.data)
                if self.context.buffered_bytes > self._recount_at:
                    decrypted += self._evict_silent()
                return decrypted
        if type(event) is Chunk and not event.offset:
            self._note_greeting(event)
        if current is None and number not in self._open:
            current = self._open[number] = Undecided(event.connection, self.context)
        out: list[Completed] = []
        if isinstance(current, Undecided):
            out = self._decide(current, event)
        elif current is not None and not isinstance(current, Conversation):
            if _is_encrypted(current):
                out = self._feed_tls(current, event)
            else:
                current.feed(event)
                self.context.buffered_bytes += len(event.data) if type(event) is Chunk else 0
        if isinstance(event, Closed):
            self._forget_ended(number, event)
        if self.context.buffered_bytes > self._recount_at:
            out += self._evict_silent()
        return out

    def kernel_exchanges(self) -> list[Completed]:
        """Return the exchanges that the kernel completed since the last call, on connections whose
        bytes it gets before they become events. Of connections where it met something that it does
        not read, the general conversation takes over."""
        sink = self.context.sink
        pairs, sink.pairs = sink.pairs, []
        out: list[Completed] = list(pairs)
        unread, sink.odd = sink.odd, []
        for reader in unread:
            current = self._open.get(reader.host.connection.number)
            conversation = current.inside if _is_encrypted(current) else current
            if isinstance(conversation, Conversation):
                out += conversation.leave_kernel()
        self.context.buffered_bytes += sink.fed
        sink.fed = 0
        if self.context.buffered_bytes > self._recount_at:
            out += self._evict_silent()
        return out

    @property
    def held(self) -> int:
        """Bytes of memory that all connections take."""
        return sum(current.held for current in self._with_memory())

    def __len__(self) -> int:
        return len(self._open)

    def unsettled(self) -> tuple[int, list[Origin]]:
        """Return the watermark and the origins of incomplete exchanges of all connections: see
        `Conversation.unsettled`."""
        first = BEHIND_ALL
        begun: list[Origin] = []
        for current in self._open.values():
            if isinstance(current, Conversation) or _is_encrypted(current):
                first = min(first, current.unsettled(begun))
            elif isinstance(current, Undecided):
                first = min(first, current.first_packet)
        return first, begun

    def _with_memory(self) -> list[Conversation | Undecided | Encrypted | HttpConversation]:
        return [current for current in self._open.values() if current is not None]

    def _evict_silent(self) -> list[Completed]:
        """Count the memory; where it exceeds the limit, evict the state of the connections that
        were silent for the longest time, until half of the limit is free. Return the exchanges
        that this completes."""
        # Twice over the connections: dropping caches loses no exchange, eviction does.
        connections = self._with_memory()
        total, most = self.held, self.context.limits.waiting_bytes
        out: list[Completed] = []
        inside: Conversation | Undecided | HttpConversation | None
        if total > most:
            connections.sort(key=lambda current: current.connection.last_ns)
            for current in connections:
                total -= _drop_cache(current)
                if total <= most // 2:
                    break
        if total > most:
            for current in connections:
                total -= current.held
                if not _is_encrypted(current):
                    inside = current
                elif current.stream.waiting is not None:
                    out += self._stop_waiting(current.connection.number, BEYOND)
                    inside = None
                else:
                    inside = current.inside
                    current.evict()
                if isinstance(inside, Undecided):
                    out += self._continue_with(inside, inside.give_up())
                elif inside is not None:
                    out += inside.evict()
                rest = self._open.get(current.connection.number)
                total += 0 if rest is None or isinstance(rest, Undecided) else rest.held
                if total <= most // 2:
                    break
        self.context.buffered_bytes = total
        # Not at the next byte again: all connections are counted once in a quarter of the limit.
        self._recount_at = max(most, total + most // 4)
        return out

    def _forget_ended(self, number: int, event: Closed) -> None:
        """Drop a connection that ended. Late copies of its packets find None for a while: without
        it they would begin a connection of their own."""
        current = self._open.get(number)
        if number in self._awaiting_secrets:
            return
        if event.direction is None:
            self._open.pop(number, None)
        elif current is None or current.over:
            self._open[number] = None
            self._ended.append(number)
            if len(self._ended) > self.context.limits.ended_connections:
                self._open.pop(self._ended.popleft(), None)

    def _note_greeting(self, chunk: Chunk) -> None:
        """Note the protocol of a server by its first bytes, in case that the connection turns out
        not to be Kafka's."""
        connection = chunk.connection
        if connection.server:
            return
        if connection.handshake:
            if chunk.direction:
                connection.server = words_of(chunk.data[:HEAD], "server")
        elif self.context.is_broker((connection.a, connection.b)[chunk.direction]):
            connection.server = words_amid(chunk.data[:HEAD], "server")

    def _decide(self, undecided: Undecided, event: StreamEvent) -> list[Completed]:
        before = undecided.held
        decision = undecided.feed(event)
        if decision is None:
            self.context.buffered_bytes += undecided.held - before
            return []
        return self._continue_with(undecided, decision)

    def _continue_with(self, undecided: Undecided, decision: Conversation | str) -> list[Completed]:
        """Continue a connection, or the plaintext of its TLS, by what it was found to speak: feed
        the events that were held to a conversation. A text as decision names another protocol."""
        connection = undecided.connection
        number = connection.number
        encrypted = self._open.get(number)
        if _is_encrypted(encrypted):
            if isinstance(decision, str):
                encrypted.describe(decision)
                encrypted.inside = self._http_in(undecided)
                return []
            encrypted.inside, decision.opener = decision, encrypted.stream
        elif isinstance(decision, str):
            if decision.startswith(TLS):
                undecided.reason = decision
                return self._begin_tls(undecided)
            self.context.not_kafka(decision, connection)
            connection.other = decision
            self._open[number] = self._http_in(undecided)
            return [*undecided.row(decision)]
        else:
            self._open[number] = decision
        out: list[Completed] = []
        for held in undecided.events:
            out += decision.feed(held)
        self.context.buffered_bytes += decision.held
        return out

    def _http_in(self, undecided: Undecided) -> HttpConversation | None:
        """Return a conversation of HTTP, fed with the events that were held; None where it is not
        HTTP, or there is no consumer."""
        consumer = self.context.http
        if consumer is None:
            return None
        from kafkascope.analyzer.conversation.http.exchanges import HttpConversation, client_in

        client = client_in(undecided.events)
        if client is None:
            return None
        midstream = undecided.midstream
        conversation = HttpConversation(undecided.connection, consumer, client, midstream=midstream)
        for held in undecided.events:
            conversation.feed(held)
        self.context.buffered_bytes += conversation.held
        return conversation

    def _begin_tls(self, undecided: Undecided) -> list[Completed]:
        from kafkascope.analyzer.conversation.encrypted import Encrypted
        from kafkascope.captures.tls.begin import client_of

        number = undecided.connection.number
        self._encrypted_class = Encrypted
        client = client_of(undecided.events)
        encrypted = self._open[number] = Encrypted(undecided.connection, self.context, client)
        encrypted.begin(undecided)
        out: list[Completed] = []
        for held in undecided.events:
            if self._open[number] is encrypted:
                out += self._feed_tls(encrypted, held)
        encrypted.trim()
        return out

    def _feed_tls(self, encrypted: Encrypted, event: StreamEvent) -> list[Completed]:
        if encrypted.stream.waiting is not None:
            encrypted.later.append(event)
            self._awaiting_secrets.add(encrypted.connection.number, event)
            return self._enforce_limit()
        out = self._feed_plaintext(encrypted, encrypted.feed(event))
        if type(event) is Chunk:
            self.context.buffered_bytes += len(event.data)
        out += self._report_unreadable(encrypted)
        if encrypted.stream.waiting is not None:
            stream = encrypted.stream
            self._awaiting_secrets.begin(encrypted.connection.number, stream.held, stream.midstream)
            out += self._enforce_limit()
        return out

    def _feed_plaintext(self, encrypted: Encrypted, events: list[StreamEvent]) -> list[Completed]:
        out: list[Completed] = []
        for plain in events:
            inside = encrypted.inside
            if inside is None and encrypted.fresh and not isinstance(plain, Closed):
                encrypted.fresh = False
                inside = encrypted.inside = Undecided(encrypted.connection, self.context)
            if isinstance(inside, Undecided):
                out += self._decide(inside, plain)
            elif inside is not None:
                out += inside.feed(plain)
        return out

    def _report_unreadable(self, encrypted: Encrypted) -> list[Completed]:
        """Return the row that says why TLS cannot be decrypted, once that is certain."""
        out = encrypted.unreadable() if encrypted.outer is not None else []
        if encrypted.stream.over and not encrypted.over:
            self._open[encrypted.connection.number] = None
        return out

    # --- connections that wait for secrets
    #
    # Programs write a secret to the key log during the handshake, and packets may arrive before
    # that line. Such a connection stops at its first record without a secret (`TlsStream.waiting`);
    # its later events are held (`Encrypted.later`), so that nothing is decided twice.

    def retry_secrets(self, seconds: float) -> list[Completed]:
        """Continue the connections whose secrets the key log has by now, and those that waited too
        long without. `seconds`: of a monotonic clock; to be called often."""
        out: list[Completed] = []
        log = self.context.keys.log
        if log is not None:
            for number in self._awaiting_secrets.worth_a_look(log.changes, seconds):
                out += self._resume(number)
        for number in self._awaiting_secrets.overdue(seconds):
            out += self._stop_waiting(number, LONG)
        return out

    def _resume(self, number: int) -> list[Completed]:
        """Continue a connection as far as there are secrets for it."""
        encrypted = self._encrypted_of(number)
        out = self._feed_plaintext(encrypted, encrypted.stream.go_on())
        out += self._report_unreadable(encrypted)
        if encrypted.stream.waiting is None:
            self._awaiting_secrets.end(number)
            later, encrypted.later = encrypted.later, []
            for event in later:
                out += self.feed(event)
        return out

    def _stop_waiting(self, number: int, waited: str) -> list[Completed]:
        """Continue a connection without the secret; `waited`: how long it waited, for the row."""
        self._encrypted_of(number).stream.give_up(waited)
        return self._resume(number)

    def _encrypted_of(self, number: int) -> Encrypted:
        encrypted = self._open[number]
        assert _is_encrypted(encrypted)
        return encrypted

    def _enforce_limit(self) -> list[Completed]:
        """Continue those that waited longest without secrets, where all take too much memory."""
        out: list[Completed] = []
        for number in self._awaiting_secrets.beyond():
            out += self._stop_waiting(number, BEYOND)
        return out

    def finish(self) -> list[Completed]:
        """End all conversations; requests in flight become open exchanges."""
        out: list[Completed] = []
        for number in self._awaiting_secrets.numbers():
            out += self._stop_waiting(number, END)
        for current in list(self._open.values()):
            if current is not None:
                out += self.feed(
                    Closed(current.connection, None, "end", current.connection.last_ns)
                )
        self._open.clear()
        return sorted(out, key=lambda one: one.origin)


# By elimination, because the class is not loaded before there is TLS: of the four kinds of
# connections HTTP alone is not resumable.
def _is_encrypted(current: object) -> TypeIs[Encrypted]:
    return isinstance(current, Resumable) and not isinstance(current, Conversation | Undecided)


def _drop_cache(current: Conversation | Undecided | Encrypted | HttpConversation) -> int:
    """Drop state of a connection that costs no exchange; return the bytes of memory that it
    took."""
    conversation = current.inside if _is_encrypted(current) else current
    return conversation.drop_cache() if isinstance(conversation, Conversation) else 0
