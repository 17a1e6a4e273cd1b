"""One connection with TLS: the stream that decrypts it, and the connection of its plaintext. State
without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.conversation.undecided import EMPTY, Undecided, loaded
from kafkascope.captures.model import Chunk, Closed, Connection, StreamEvent
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.signatures import TLS, protocol_of
from kafkascope.captures.tls.records import CHANGE_CIPHER_SPEC, HEARTBEAT
from kafkascope.captures.tls.stream import TlsStream

if TYPE_CHECKING:
    from kafkascope.analyzer.conversation.context import Context
    from kafkascope.analyzer.conversation.http.exchanges import HttpConversation
    from kafkascope.analyzer.conversation.ordinary import Completed
    from kafkascope.analyzer.model import Origin


class Encrypted(Resumable):
    """Keeps the stream and its contents together; `Conversations` decides what these are."""

    STATE = ("_closed", "_ended", "connection", "fresh")

    def __init__(self, connection: Connection, context: Context, client: int | None) -> None:
        """`client`: direction of the side that sent the ClientHello; None: it was not seen."""
        self.connection = connection
        self._context = context
        self.stream = TlsStream(connection, client, context.keys)
        self.outer: Undecided | None = None
        """Makes the row that says why nothing can be decrypted; None once that row is made, or is
        not needed."""
        self.inside: Conversation | Undecided | HttpConversation | None = None
        """Receives the plaintext; None before the first of it, and for protocols without a
        consumer."""
        self.fresh = True
        """Whether no plaintext came yet."""
        self._closed = [False, False]
        self._ended = False
        """Whether a FIN or RST was seen."""
        self.later: list[StreamEvent] = []
        """Events that came while the stream waits for a secret."""

    def dump(self) -> Dump:
        """Return the state, without keys."""
        inside, outer = self.inside, self.outer
        if not isinstance(inside, Conversation | Undecided):
            inside = None  # HTTP is read in one go only
        return {
            **super().dump(),
            "stream": self.stream.dump(),
            "outer": outer and outer.dump(),
            "inside": inside and [type(inside).__name__, inside.dump()],
        }

    def load(self, state: Dump) -> Self:
        super().load(state)
        self.stream.load(state["stream"])
        if state["outer"] is not None:
            self.outer = Undecided(self.connection, self._context).load(state["outer"])
        if state["inside"] is not None:
            kind, inside = state["inside"]
            self.inside = loaded(kind, inside, self._context)
            if isinstance(self.inside, Conversation):
                self.inside.opener = self.stream
        return self

    def begin(self, undecided: Undecided) -> None:
        """Begin; `undecided` has the events before it was known to be TLS."""
        self.outer = undecided
        self.stream.begin()

    def trim(self) -> None:
        """Drop the events before it was known to be TLS, except the first bytes for a row."""
        if self.outer is not None:
            self.outer.keep_first()

    @property
    def synchronized(self) -> bool:
        """Whether the frames inside follow each other: see `Conversation.synchronized`."""
        inside = self.inside
        return isinstance(inside, Conversation) and inside.synchronized and self.stream.synchronized

    @property
    def over(self) -> bool:
        return all(self._closed)

    @property
    def held(self) -> int:
        return self.stream.held + (0 if self.inside is None else self.inside.held)

    def evict(self) -> None:
        """Evict what waits for more bytes, because all connections take too much memory."""
        self.stream.evict()

    def decrypt_fast(self, chunk: Chunk) -> list[Completed] | None:
        """Return the exchanges that a chunk of whole records of Kafka completes, without the
        general steps; None for any other chunk, which has to be fed."""
        inside = self.inside
        if type(inside) is not Conversation:
            return None
        plain = self.stream.decrypt_fast(chunk)
        return None if plain is None else inside.feed(plain)

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        if isinstance(event, Closed):
            for direction in (0, 1):
                if event.direction in (None, direction) or event.how == "rst":
                    self._closed[direction] = True
            self._ended |= event.how in ("fin", "rst")
        elif isinstance(event, Chunk) and not event.offset:
            self._answered(event)
        return self.stream.feed(event)

    def _answered(self, chunk: Chunk) -> None:
        """Note the protocol of a server that answers a ClientHello without TLS."""
        stream, first = self.stream, chunk.data[0]
        foreign = not (CHANGE_CIPHER_SPEC <= first <= HEARTBEAT or first & 0x80)
        if foreign and stream.client is not None and chunk.direction != stream.client:
            stream.tls.answer = protocol_of(chunk.data, "server") or "unknown"

    @property
    def _failed(self) -> bool:
        """Whether the handshake failed, as far as the capture shows."""
        tls, connection = self.stream.tls, self.connection
        if tls.result is not None:
            return tls.result.outcome != "established"
        silent = bool(tls.offered) and not min(connection.bytes) and min(connection.packets) > 0
        return bool(tls.answer) or (silent and self._ended)

    def unsettled(self, begun: list[Origin]) -> int:
        """Return what `Conversation.unsettled` does, for the plaintext, and for the row about TLS
        that may still be made."""
        first = self.stream.first_waiting
        if self.outer is not None:
            first = min(first, self.outer.first_packet)
        inside = self.inside
        if isinstance(inside, Conversation):
            return min(first, inside.unsettled(begun))
        return min(first, inside.first_packet) if isinstance(inside, Undecided) else first

    def describe(self, what: str) -> None:
        """Note the protocol of the plaintext, where it is not Kafka."""
        tls = self.stream.tls
        if what != EMPTY:
            tls.inside = what.removesuffix(", not Kafka")
            self._context.not_kafka(f"{tls.inside} inside TLS", self.connection)

    def unreadable(self) -> list[Completed]:
        """Return the row that says why nothing can be decrypted, as soon as that is certain."""
        outer, stream = self.outer, self.stream
        if outer is None:
            return []
        if any(stream.tls.decrypted) or (self.over and stream.readable):
            self.outer = None
            return []
        log = self._context.keys.log
        if not stream.readable and (log is not None or stream.over or self.over):
            # Not before the end of the handshake: if it fails, that is the reason, not the key log.
            self.outer = None
            reason = outer.reason if log is None else f"{TLS}: {stream.tls.note}"
            if self._failed:
                reason = f"{TLS}: the handshake failed; `kafkascope check` shows the cause"
            self._context.not_kafka(outer.reason, self.connection)
            return [*outer.row(reason)]
        return []
