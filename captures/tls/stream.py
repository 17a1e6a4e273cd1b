"""Decrypts one connection: chunks and gaps of TLS in, chunks and gaps of its plaintext out.

stream = TlsStream(connection, client, keys)
for event in stream.feed(event): ...        # of the plaintext; Closed events pass through
connection.tls                              # what is known of its TLS, and why it cannot be read

Where each byte stands: `plaintext`. State without I/O; knows nothing of what is inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from kafkascope.captures.model import Chunk, Closed, Connection, Gap, Piece, StreamEvent, Tls
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.tls import messages as m
from kafkascope.captures.tls.begin import CLIENT_HELLO
from kafkascope.captures.tls.epoch import Epoch, Opener, Stage, awaited, opener_of, updated
from kafkascope.captures.tls.handshake import NO_FAILURE, Handshake
from kafkascope.captures.tls.negotiation import Negotiation
from kafkascope.captures.tls.plaintext import Plaintext
from kafkascope.captures.tls.protection import BadRecord
from kafkascope.captures.tls.records import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    HEADER,
    MOST_RECORD,
    RecordBuffer,
    TlsRecord,
)
from kafkascope.captures.tls.search import MODERN_SUITES, Search
from kafkascope.captures.tls.sources import SharedKeys
from kafkascope.captures.tls.suites import suite_of, version_name

MOST_EARLY: Final = 64
"""Records of early data that wait for the ServerHello, which says how they are encrypted."""
MOST_SKIPPED: Final = 32
"""Records of a handshake that may pass before one has to fit the secret of application data."""
MOST_UNNAMED: Final = 4
"""Records on which all secrets are tried, where the ClientHello is missing: some may be of the
handshake."""
MOST_BAD: Final = 3
"""Records in a row that do not authenticate, before the next one is searched for."""
MOST_ALERTS: Final = 4
MOST_COALESCED: Final = 4
"""Records that may have passed unseen with one whose end only is missing."""
NO_KEY_LOG: Final = "no key log was given (--keylog)"
LACKS_HANDSHAKE: Final = "bytes of the handshake are missing"


class Side(Resumable):
    """One direction: its records, its keys, and how much of it was read."""

    STATE = (
        "bad",
        "buffer",
        "epoch",
        "messages",
        "offset",
        "opened",
        "readable",
        "records",
        "sequence",
        "skipped",
        "stage",
        "updates",
    )
    __slots__ = (*STATE, "opener", "search")

    def __init__(self) -> None:
        self.buffer = RecordBuffer()
        self.messages = m.Messages()
        self.search: Search | None = None
        """While it is not known where the next record begins."""
        self.epoch: Epoch | None = None
        self.stage = Stage.PLAIN
        self.updates = 0
        """KeyUpdates since the handshake."""
        self.opener: Opener | None = None
        """No part of the state: made from the epoch, with the key log."""
        self.sequence = 0
        """Number of the next record under its key."""
        self.records = 0
        """Encrypted ones that came."""
        self.opened = 0
        """Those that could be opened."""
        self.bad = 0
        """Records in a row that could not."""
        self.skipped = 0
        """Records of the handshake that could not be opened, and need not be."""
        self.readable = True
        """Whether there is hope."""
        self.offset = 0
        """Of the plaintext."""

    def dump(self) -> Dump:
        """Return the state, without keys."""
        return {**super().dump(), "search": self.search and self.search.dump()}

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave; the keys are made when the next record comes."""
        if state["search"] is not None:
            self.search = Search().load(state["search"])
        super().load(state)
        self.stage = Stage(self.stage)
        return self

    def start(self, epoch: Epoch, stage: Stage) -> None:
        """Begin with other keys."""
        self.epoch, self.stage, self.opener = epoch, stage, None
        self.sequence = self.updates = 0

    @property
    def held(self) -> int:
        """Memory of what waits for more bytes."""
        search = 0 if self.search is None else self.search.held
        return self.buffer.held + self.messages.held + search


class Stall(NamedTuple):
    """Where a connection waits for a secret."""

    direction: int
    records: Sequence[TlsRecord] = ()
    """That came already; without any, it is a search that waits."""
    pieces: Sequence[Piece] = ()


class TlsStream(Resumable):
    """One connection. `feed` events in order; `over` when nothing more can be learned."""

    STATE = ("_data", "_early", "_holed", "client", "connection", "midstream")

    def __init__(self, connection: Connection, client: int | None, keys: SharedKeys) -> None:
        """`client`: direction of the side that sent the ClientHello; None where the handshake is
        not in the capture."""
        self.connection = connection
        self._keys = keys
        self.client = client
        self.midstream = client is None
        self.tls = connection.tls or Tls()
        self._sides = (Side(), Side())
        self._handshake = Handshake(client or 0)
        self._negotiation = Negotiation()
        self._early: list[TlsRecord] = []
        self._data = False
        """Application data was read."""
        self._holed = False
        """Bytes of the handshake are missing."""
        self._patient = keys.growing
        """What the key log has no secret for waits until it grows."""
        self.waiting: Stall | None = None
        """What waits so. Nothing may be fed until `go_on` found the secret."""
        self._waited = ""
        """How long that was, when it was for nothing."""

    def begin(self) -> None:
        """Begin with a connection that is new."""
        self.tls = self.connection.tls = Tls()
        if self.midstream:
            self._begin_midstream()
        elif self._keys.log is None:
            self._fail("no-key-log", NO_KEY_LOG)

    def dump(self) -> Dump:
        """Return the state, without keys."""
        return {
            **super().dump(),
            "sides": [side.dump() for side in self._sides],
            "handshake": self._handshake.dump(),
            "negotiation": self._negotiation.dump(),
        }

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        super().load(state)
        for side, each in zip(self._sides, state["sides"], strict=True):
            side.load(each)
        self._handshake = Handshake(self.client or 0).load(state["handshake"])
        self._negotiation.load(state["negotiation"])
        self.tls = self.connection.tls or Tls()
        return self

    @property
    def readable(self) -> bool:
        """Whether any of it was read, or may still be."""
        return any(side.readable or side.opened for side in self._sides)

    @property
    def over(self) -> bool:
        """Whether nothing more can be learned."""
        if any(side.readable for side in self._sides):
            return False
        if self.client is not None and not self.midstream and self._sides[self.client].buffer.lost:
            # An alert may follow, see `_bare_alert`.
            return all(each.buffer.lost for each in self._sides)
        handshake = self._handshake.result is not None or self.midstream
        return handshake or any(each.buffer.lost for each in self._sides)

    @property
    def held(self) -> int:
        """Memory of what waits for more bytes."""
        return self._incomplete + self._negotiation.held

    @property
    def _incomplete(self) -> int:
        records = self._early if self.waiting is None else [*self._early, *self.waiting.records]
        return sum(side.held for side in self._sides) + sum(len(each.body) for each in records)

    def relieve(self) -> None:
        """Give up what waits for more bytes."""
        self._negotiation.relieve()
        if self._incomplete:
            self._fail("damaged", "given up: too many connections at once wait for more bytes")
            for side in self._sides:
                side.buffer.lost = True
                side.messages.clear()
                side.search = None

    @property
    def synchronized(self) -> bool:
        """Whether both directions are read record by record, with nothing to be found out."""
        return all(
            side.opener is not None and side.stage is Stage.TRAFFIC and side.search is None
            for side in self._sides
        )

    def begun(self, direction: int) -> bool:
        """Whether the first bytes of a record with application data are here, but not its last."""
        side = self._sides[direction]
        return side.opened > 0 and side.stage is Stage.TRAFFIC and side.buffer.application

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """Take the next event of the connection; return those of the plaintext."""
        if isinstance(event, Chunk):
            return self._chunk(event)
        if isinstance(event, Gap):
            return self._gap(event)
        if isinstance(event, Closed):
            if self._handshake.result is None and event.how in ("fin", "rst"):
                self._handshake.closed(event.direction)
                self._ended()
            self._end(event)
        return [event]

    # --- chunks

    def _chunk(self, chunk: Chunk) -> list[StreamEvent]:
        found = self.single(chunk)
        if found is not None:
            return [found]
        side = self._sides[chunk.direction]
        plain = Plaintext(self.connection, chunk.direction, side.offset)
        if side.search is not None:
            if not side.readable:
                return []
            self._searched(side, chunk.data, chunk.pieces, chunk.direction, plain)
        else:
            self._take(side, chunk.data, chunk.pieces, chunk.direction, plain)
            if side.buffer.lost and side.stage is Stage.PLAIN and chunk.direction == self.client:
                self._bare_alert(chunk)
        return self._read(side, plain, chunk.direction)

    def single(self, chunk: Chunk) -> Chunk | None:
        """Return what a chunk holds that is one record of application data, as small messages are;
        None for any other, of which nothing is taken: `feed` gives the same, and takes longer."""
        direction, data = chunk.direction, chunk.data
        side, size = self._sides[direction], len(data)
        opener = side.opener
        if (
            opener is None
            or side.stage is not Stage.TRAFFIC
            or not HEADER < size <= HEADER + MOST_RECORD
            or data[0] != APPLICATION_DATA
            or data[3] << 8 | data[4] != size - HEADER
            or data[1] != 3
            or len(chunk.pieces) != 1
            or not (self._data and side.readable and side.buffer.empty)
            or side.search is not None
            or self.waiting is not None
        ):
            return None
        text = opener.protection.data(side.sequence, data)
        if not text:
            return None
        side.records += 1
        side.sequence += 1
        side.opened += 1
        side.bad = 0
        offset = side.offset
        _, time_ns, packet, file, at = chunk.pieces[0]
        piece = Piece(0, time_ns, packet, file, at + HEADER + opener.protection.start)
        side.offset = end = offset + len(text)
        tls = self.tls
        read = tls.decrypted
        tls.decrypted = (read[0], end) if direction else (end, read[1])
        return Chunk(self.connection, direction, offset, text, [piece])

    def _bare_alert(self, chunk: Chunk) -> None:
        """Take an alert that is alone in its packet, though it follows bytes that are no record:
        clients of Kafka 2.4 send all of a buffer before it."""
        data = chunk.data[chunk.pieces[-1].start :]
        if len(data) != HEADER + 2 or data[0] != ALERT or data[3:HEADER] != b"\0\2":
            return
        self._handshake.late(chunk.direction, data[-1])
        self._ended()
        if len(self.tls.alerts) < MOST_ALERTS:
            self.tls.alerts += ((chunk.direction, data[-1]),)

    def go_on(self) -> list[StreamEvent]:
        """Take what waits, as far as the key log has the secrets by now; return what is inside."""
        waiting, self.waiting = self.waiting, None
        if waiting is None:
            return []
        direction = waiting.direction
        side = self._sides[direction]
        plain = Plaintext(self.connection, direction, side.offset)
        if waiting.records:
            self._records(side, waiting.records, waiting.pieces, direction, plain)
        else:
            self._searched(side, b"", [], direction, plain)
        if self.waiting is None and not self.midstream:
            self._keys.claim(self.tls.random)
        return self._read(side, plain, direction)

    def give_up(self, waited: str) -> None:
        """Wait no more; `go_on` takes what waits as it is. `waited`: for how long."""
        self._patient, self._waited = False, f"; it was waited for {waited}"
        if not self.midstream and not any(side.opened for side in self._sides):
            self._hopeless()

    def _read(self, side: Side, plain: Plaintext, direction: int) -> list[StreamEvent]:
        """Return what was read, and the early data that waited for it."""
        out = self._told(side, plain, direction)
        client = self.client
        if not self._early or self.waiting is not None or client is None:
            return out
        asking = self._sides[client]
        if asking.epoch is not None:
            # The ServerHello says how they are encrypted.
            early, self._early = self._early, []
            plain = Plaintext(self.connection, client, asking.offset)
            self._records(asking, early, early[-1].pieces, client, plain)
            out += self._told(asking, plain, client)
        return out

    def _told(self, side: Side, plain: Plaintext, direction: int) -> list[StreamEvent]:
        side.offset = plain.end
        if plain.end != plain.begin:
            read = list(self.tls.decrypted)
            read[direction] = plain.end
            self.tls.decrypted = (read[0], read[1])
        return plain.events()

    def _take(
        self, side: Side, data: bytes, pieces: list[Piece], direction: int, plain: Plaintext
    ) -> None:
        """Take bytes that begin where a record goes on."""
        self._records(side, side.buffer.feed(data, pieces), pieces, direction, plain)

    def _records(
        self,
        side: Side,
        records: Sequence[TlsRecord],
        pieces: Sequence[Piece],
        direction: int,
        plain: Plaintext,
    ) -> None:
        """Take the records that came with a chunk, as far as they need not wait."""
        for index, record in enumerate(records):
            if self._patient and self._awaits(side, record, direction):
                self.waiting = Stall(direction, records[index:], pieces)
                return
            self._record(side, record, direction, plain)
        if side.buffer.lost and side.stage is Stage.TRAFFIC and side.opened and side.readable:
            # The header of a record was changed.
            self._damaged(side, "bytes that are no record")
            plain.gap(_time(pieces), "lost")
            side.search = Search.behind(side.sequence, 0)

    def _awaits(self, side: Side, record: TlsRecord, direction: int) -> bool:
        """Return whether a record needs a secret that may still come."""
        epoch, stage, opener = side.epoch, side.stage, side.opener
        log = self._keys.log
        if log is None or not side.readable or (opener is not None and stage is Stage.TRAFFIC):
            return False
        client = direction == self.client
        if epoch is None or stage is Stage.PLAIN:
            if record.kind == APPLICATION_DATA and self._holed:
                return self._awaits_late(direction)
            if record.kind != CHANGE_CIPHER_SPEC:
                return False
            # Not later: what it may resume is looked up here, and that may wait as well.
            epoch = self._negotiation.changed(client=client, keys=self._keys)
            if epoch is None or epoch.modern:
                return False
            return awaited(epoch, Stage.TRAFFIC, client=client, log=log)
        if epoch.modern and record.kind != APPLICATION_DATA:
            return False
        if record.kind == ALERT and record.size == 2:
            return False
        if awaited(epoch, stage, client=client, log=log):
            return True
        if stage is Stage.TRAFFIC or not awaited(epoch, _next(stage), client=client, log=log):
            return False
        # Behind a hole it may be one of the next stage: `_handshake_unopened` would try that.
        opener = opener or self._opener(side, direction)
        if opener is None:
            return False
        try:
            opener.protection.open(side.sequence, record.kind, record.version, record.body)
        except BadRecord:
            return True
        return False

    def _record(self, side: Side, record: TlsRecord, direction: int, plain: Plaintext) -> None:
        if self._handshake.result is None and not self.midstream:
            self._handshake.record(record, direction)
            self._ended()
        if side.stage is Stage.PLAIN and self._begins_late(side, record, direction):
            plain.gap(_time(record.pieces), "lost")
        epoch = side.epoch
        if epoch is None or side.stage is Stage.PLAIN:
            self._unprotected(side, record, direction)
        elif epoch.modern and record.kind != APPLICATION_DATA:
            # A ChangeCipherSpec for middleboxes, a second ClientHello, an alert without keys.
            if record.kind != CHANGE_CIPHER_SPEC:
                self._unprotected(side, record, direction)
        elif record.kind == ALERT and record.size == 2:
            self._alert(record.body, direction)
        elif side.readable:
            self._protected(side, epoch, record, direction, plain)

    def _unprotected(self, side: Side, record: TlsRecord, direction: int) -> None:
        """Take a record that is not encrypted."""
        if record.kind == HANDSHAKE:
            for message in side.messages.feed(record.body):
                self._message(side, message, direction)
        elif record.kind == CHANGE_CIPHER_SPEC:
            self._change(side, direction)
        elif record.kind == ALERT:
            self._alert(record.body, direction)
        elif record.kind == APPLICATION_DATA and direction == self.client:
            hello = self._negotiation.client_hello
            if hello is not None and hello.early_data and len(self._early) < MOST_EARLY:
                self._early.append(record)

    def _protected(
        self, side: Side, epoch: Epoch, record: TlsRecord, direction: int, plain: Plaintext
    ) -> None:
        """Take an encrypted record."""
        side.records += 1
        opener = side.opener
        if opener is None:
            opener = side.opener = self._opener(side, direction)
        try:
            if opener is None:
                raise BadRecord("no secret")
            kind, data = opener.protection.open(
                side.sequence, record.kind, record.version, record.body
            )
        except BadRecord:
            self._unopened(side, epoch, record, direction, plain)
            return
        side.sequence += 1
        side.opened += 1
        side.bad = 0
        start = opener.protection.start
        if kind == APPLICATION_DATA:
            if not self._data:
                self._data = True
                if self.midstream or self.tls.note == LACKS_HANDSHAKE:
                    self._say("", "")
                self._handshake.opened(direction, None)
                self._ended()
            plain.add(data, record, start)
        elif kind == HANDSHAKE:
            for message in side.messages.feed(data):
                self._message(side, message, direction)
        elif kind == ALERT:
            self._alert(data, direction, sealed=True)
        elif kind == CHANGE_CIPHER_SPEC:
            self._change(side, direction)

    def _opener(self, side: Side, direction: int) -> Opener | None:
        assert side.epoch is not None
        log = self._keys.log_for(side.epoch)
        if log is None:
            return None
        found = opener_of(
            side.epoch,
            side.stage,
            client=direction == self.client,
            updates=side.updates,
            log=log,
        )
        if found is not None and self._keys.opened is not None:
            self._keys.opened(self.connection, side.epoch)
        return found

    def _unopened(
        self, side: Side, epoch: Epoch, record: TlsRecord, direction: int, plain: Plaintext
    ) -> None:
        """A record could not be opened: find out whether that matters."""
        if epoch.modern and side.stage < Stage.TRAFFIC:
            self._handshake_unopened(side, epoch, record, direction, plain)
            return
        if not side.opened or side.opener is None:
            # Nothing ever fitted: it is the secret, or there is none.
            self._give_up(side)
            self._unreadable(epoch, side.records - 1, secret=side.opener is not None)
            return
        self._damaged(side, f"record {side.sequence} does not authenticate")
        plain.gap(_time(record.pieces), "lost")
        side.sequence += 1
        side.bad += 1
        if side.bad >= MOST_BAD:
            side.search = Search.behind(side.sequence - side.bad, 0)

    def _handshake_unopened(
        self, side: Side, epoch: Epoch, record: TlsRecord, direction: int, plain: Plaintext
    ) -> None:
        """TLS 1.3, before application data: look whether those secrets fit already."""
        later = _next(side.stage)
        sequence, stage, opener = side.sequence, side.stage, side.opener
        side.stage, side.sequence = later, 0
        side.opener = self._opener(side, direction)
        if side.opener is not None:
            try:
                side.opener.protection.open(0, record.kind, record.version, record.body)
            except BadRecord:
                pass
            else:
                side.records -= 1
                self._protected(side, epoch, record, direction, plain)
                if later is Stage.TRAFFIC and side.skipped:
                    self._clear_error()
                return
        nothing = side.opener is None and opener is None
        side.sequence, side.stage, side.opener = sequence, stage, opener
        side.skipped += 1
        if stage is Stage.EARLY:
            return
        if nothing or (not side.opened and side.skipped >= MOST_SKIPPED):
            self._give_up(side)
        if not side.opened:
            self._unreadable(epoch, 0, secret=not nothing)

    # --- handshake

    def _message(self, side: Side, message: bytes, direction: int) -> None:
        """Take a handshake message, encrypted or not."""
        kind = message[0]
        client = direction == self.client
        epoch = side.epoch
        if epoch is not None and epoch.modern and side.stage is not Stage.PLAIN:
            if kind == m.FINISHED and side.stage is Stage.HANDSHAKE:
                side.start(epoch, Stage.TRAFFIC)
                side.messages.clear()
            elif kind == m.END_OF_EARLY_DATA and side.stage is Stage.EARLY:
                side.start(epoch, Stage.HANDSHAKE)
            elif kind == m.KEY_UPDATE and side.stage is Stage.TRAFFIC and side.opener is not None:
                side.opener = updated(epoch, side.opener)
                side.updates += 1
                side.sequence = 0
                self.tls.updates += 1
            elif not client or kind == m.CERTIFICATE:
                self._negotiation.modern(message, client=client, tls=self.tls)
            if kind != CLIENT_HELLO:
                return
        made = self._negotiation.message(message, client=client, keys=self._keys, tls=self.tls)
        if kind == CLIENT_HELLO and client and epoch is None:
            self._hopeless()
        if made is not None:
            self._chosen(made)

    def _chosen(self, epoch: Epoch) -> None:
        """A server has chosen version and suite."""
        tls = self.tls
        if not tls.version or not any(side.epoch for side in self._sides):
            tls.version = version_name(epoch.version)
            tls.suite = suite_of(epoch.suite).name
        if not epoch.supported:
            self._fail("unsupported", f"{tls.name} is not supported")
            return
        if not epoch.modern:
            return
        log = self._keys.log_for(epoch)
        if log is not None and not self._patient and log.secrets(epoch.client_random) is None:
            self._unreadable(epoch, 0, secret=False)
            for side in self._sides:
                self._give_up(side)
        assert self.client is not None
        asking, serving = self._sides[self.client], self._sides[1 - self.client]
        hello = self._negotiation.client_hello
        serving.start(epoch, Stage.HANDSHAKE)
        early = hello is not None and hello.early_data
        asking.start(epoch, Stage.EARLY if early else Stage.HANDSHAKE)

    def _change(self, side: Side, direction: int) -> None:
        """A ChangeCipherSpec: records are encrypted with what was negotiated from here on."""
        epoch = self._negotiation.changed(client=direction == self.client, keys=self._keys)
        if epoch is not None and not epoch.modern:
            side.start(epoch, Stage.TRAFFIC)
            side.messages.clear()

    def _alert(self, data: bytes, direction: int, *, sealed: bool = False) -> None:
        """Take an alert. `sealed`: it was encrypted, and its record told nothing but its size."""
        if len(data) < 2 or data[1] in NO_FAILURE:
            return
        if sealed and not self._data:
            self._handshake.opened(direction, data[1])
            self._ended()
        if len(self.tls.alerts) < MOST_ALERTS:
            self.tls.alerts += ((direction, data[1]),)

    def _ended(self) -> None:
        """Take over how the handshake ended."""
        result = self.tls.result = self._handshake.result
        if result is not None and not self.tls.certificate:
            if result.outcome != "established":
                self.tls.certificate = self._negotiation.server_certificate()
            elif self._data:
                self._negotiation.done()

    # --- what cannot be read

    def _hopeless(self) -> None:
        """Say so at once where the key log cannot have the secret."""
        if self._keys.log is None or self._patient or self._negotiation.may_open(self._keys):
            return
        self._fail("no-secret", self._no_line(self.tls.random))

    def _unreadable(self, epoch: Epoch, record: int, *, secret: bool) -> None:
        """Say why an epoch cannot be read. `secret`: the key log had one, which did not fit."""
        if self._keys.log is None:
            # There was one while a state was made that this goes on with.
            self._say("no-key-log", NO_KEY_LOG)
        elif secret:
            self._say(
                "bad-secret",
                f"authentication failed at record {record}: the key log's secret for client random "
                f"{epoch.client_random.hex()} is not the one of this connection",
            )
        elif epoch.modern or self.tls.note != LACKS_HANDSHAKE:
            # In TLS 1.2 what is missing may have named a line.
            self._say("no-secret", self._no_line(epoch.client_random))

    def _no_line(self, random: bytes) -> str:
        return f"the key log has no line for client random {random.hex()}{self._waited}"

    def _fail(self, error: str, note: str) -> None:
        """Give up all that is not read yet."""
        self._say(error, note)
        for side in self._sides:
            self._give_up(side)
        self._early.clear()

    def _give_up(self, side: Side) -> None:
        side.readable = False
        side.buffer.whole = False

    def _damaged(self, side: Side, what: str) -> None:
        if not self.tls.error:
            self._say("damaged", f"bytes are missing or were changed: {what}")

    def _say(self, error: str, note: str) -> None:
        self.tls.error, self.tls.note = error, note  # type: ignore[assignment]

    def _clear_error(self) -> None:
        if self.tls.error in ("bad-secret", "no-secret"):
            self._say("", "")

    # --- gaps

    def _gap(self, gap: Gap) -> list[StreamEvent]:
        side = self._sides[gap.direction]
        plain = Plaintext(self.connection, gap.direction, side.offset)
        if side.readable and side.stage is Stage.PLAIN:
            self._cut_record(side, side.buffer.head, gap.direction)
        if side.search is not None:
            side.search.gap(gap.size)
        elif gap.size is not None and side.buffer.skip(gap.size):
            if side.stage is not Stage.PLAIN:
                side.sequence += 1
            else:
                side.messages.lost = True
                self._lacks_handshake(side, gap)
        elif side.epoch is None or side.stage is not Stage.TRAFFIC or not side.readable:
            # Where the handshake goes on cannot be known; application data is looked for.
            side.buffer.lost = True
            if side.readable:
                side.search = Search.behind(0, gap.size)
                self._lacks_handshake(side, gap)
            return []
        else:
            side.search = Search.behind(side.sequence, gap.size)
        if side.readable and side.opened:
            self._damaged(side, "a hole in the capture")
            plain.gap(gap.time_ns, gap.reason)
        return self._told(side, plain, gap.direction)

    def _searched(
        self, side: Side, data: bytes, pieces: list[Piece], direction: int, plain: Plaintext
    ) -> None:
        """Look for a record that fits, and go on behind it."""
        search = side.search
        assert search is not None
        search.add(data, pieces)
        while (record := search.candidate()) is not None:
            late = side.stage is not Stage.TRAFFIC and self._holed
            sequence = self._fits(side, search, record, direction)
            if self.waiting is not None:
                return
            if sequence is None:
                search.reject()
                continue
            if late and sequence > self._first(side):
                plain.gap(_time(record.pieces), "lost")
            side.sequence = sequence
            side.search = None
            side.bad = 0
            side.buffer.restart()
            rest, at = search.rest()
            self._take(side, rest, at, direction, plain)
            return
        if search.tried_all and not side.opened:
            side.readable = False

    def _fits(self, side: Side, search: Search, record: TlsRecord, direction: int) -> int | None:
        """Return the sequence number with which a record opens; None where there is none."""
        if self.midstream and side.epoch is None:
            return self._midstream_fits(side, search, record, direction)
        if side.stage is not Stage.TRAFFIC:
            return self._late_fits(side, search, record, direction)
        if side.opener is None:
            side.opener = self._opener(side, direction)
        if side.opener is None:
            if self._patient and self._awaits(side, record, direction):
                self.waiting = Stall(direction)
            return None
        for sequence in search.sequences(self._keys.sequences):
            self._keys.sequences -= 1
            try:
                side.opener.protection.open(sequence, record.kind, record.version, record.body)
            except BadRecord:
                continue
            return sequence
        return None

    # --- behind a hole in the handshake

    def _cut_record(self, side: Side, head: bytes, direction: int) -> None:
        """Take the messages of a record whose end is missing, and the start of a ClientHello."""
        if head[:1] != bytes((HANDSHAKE,)):
            return
        for message in side.messages.feed(head[HEADER:]):
            self._message(side, message, direction)
        cut = direction == self.client and side.epoch is None
        if cut and self._negotiation.cut_hello(head, self._keys, self.tls):
            self._hopeless()

    def _lacks_handshake(self, side: Side, gap: Gap) -> None:
        """Say so, until application data is read all the same."""
        self._holed = True
        if gap.direction == self.client and self._negotiation.client_hello is None:
            # Nothing tells which secrets are those of this connection.
            self.midstream = True
            for each in self._sides:
                each.search = Search.anywhere()
        if not (self.tls.error or side.opened or self._data):
            self._say("no-handshake", LACKS_HANDSHAKE)

    def _likely(self, direction: int) -> list[Epoch]:
        """Return what application data may be encrypted with, as far as the rest of the handshake
        tells."""
        client = direction == self.client
        chosen, other = self._negotiation.chosen, self._sides[1 - direction].epoch
        if chosen is not None and not chosen.modern:
            chosen = self._negotiation.changed(client=client, keys=self._keys)
        if chosen is not None or other is not None:
            return [each for each in (chosen or other,) if each is not None and each.supported]
        hello, log = self._negotiation.client_hello, self._keys.log
        if hello is None or log is None:
            return []
        # The ServerHello is missing: in TLS 1.3 the client's random is enough.
        secrets = log.secrets(hello.random)
        made = () if secrets is None else (secrets.client_traffic, secrets.server_traffic)
        sizes = {len(secret) for secret in made if secret is not None}
        return [
            Epoch(m.TLS_1_3, suite, hello.random, b"")
            for suite in MODERN_SUITES
            if not sizes or suite_of(suite).secret_size in sizes
        ]

    def _awaits_late(self, direction: int) -> bool:
        """Return whether the key log may still get the secrets of application data."""
        log, likely = self._keys.log, self._likely(direction)
        client = direction == self.client
        return log is not None and any(
            awaited(epoch, Stage.TRAFFIC, client=client, log=log) for epoch in likely
        )

    def _begins_late(self, side: Side, record: TlsRecord, direction: int) -> bool:
        """Look whether a record is one of application data, whose handshake has holes; return
        whether records with application data may be missing before it."""
        if record.kind != APPLICATION_DATA or not (side.readable and self._holed):
            return False
        side.records += 1
        found = self._late(side, record, direction, range(side.records + MOST_COALESCED))
        if found is None:
            return False
        side.sequence, side.bad = found, 0
        side.records -= 1
        return found > self._first(side)

    def _late_fits(
        self, side: Side, search: Search, record: TlsRecord, direction: int
    ) -> int | None:
        """Return the sequence number of the first record of application data that is found."""
        if self._patient and self._awaits_late(direction):
            self.waiting = Stall(direction)
            return None
        return self._late(side, record, direction, search.sequences(self._keys.sequences))

    def _late(self, side: Side, record: TlsRecord, direction: int, numbers: range) -> int | None:
        """Try the keys of application data on a record, and begin with those that fit."""
        log, client = self._keys.log, direction == self.client
        if log is None or side.skipped >= MOST_SKIPPED:
            return None
        for epoch in self._likely(direction):
            opener = opener_of(epoch, Stage.TRAFFIC, client=client, updates=0, log=log)
            if opener is None:
                continue
            for sequence in numbers:
                self._keys.sequences -= 1
                try:
                    opener.protection.open(sequence, record.kind, record.version, record.body)
                except BadRecord:
                    continue
                side.start(epoch, Stage.TRAFFIC)
                side.messages.clear()
                side.opener = self._opener(side, direction)
                if not self.tls.version:
                    self.tls.random = epoch.client_random
                    self.tls.version = version_name(epoch.version)
                    self.tls.suite = suite_of(epoch.suite).name
                return sequence
        side.skipped += 1
        return None

    def _first(self, side: Side) -> int:
        """Return the number of the first record that may hold application data."""
        return 0 if side.epoch is None or side.epoch.modern else 1

    # --- mid-stream

    def _begin_midstream(self) -> None:
        for side in self._sides:
            side.search = Search.anywhere()
        if self._keys.log is None:
            self._fail("no-key-log", NO_KEY_LOG)
        else:
            self._say("no-handshake", "the capture begins behind the handshake")

    def _midstream_fits(
        self, side: Side, search: Search, record: TlsRecord, direction: int
    ) -> int | None:
        """Try the secrets of the key log that no other connection has claimed."""
        other = self._sides[1 - direction].epoch
        found = self._keys.midstream(
            record,
            search.tried,
            (self.connection.number, direction),
            client=None if self.client is None else direction == self.client,
            epoch=other,
        )
        if found.epoch is None:
            if self._patient and self._keys.trials > 0:
                self.waiting = Stall(direction)
                return None
            side.skipped += 1
            if self._holed and side.skipped < MOST_UNNAMED:
                search.tried.clear()
                return None
            search.tried_all = True
            self._say(
                "no-handshake",
                f"the capture begins behind the handshake; {found.text}{self._waited}",
            )
            return None
        epoch = found.epoch
        self.client = direction if found.client else 1 - direction
        twin = self._sides[1 - direction]
        if self._holed and not twin.readable and twin.epoch is None:
            # Given up when nothing told which secret it is.
            twin.readable, twin.search, twin.skipped = True, Search.anywhere(), 0
        side.start(epoch, Stage.TRAFFIC)
        self.tls.random = epoch.client_random
        self.tls.version = version_name(epoch.version)
        self.tls.suite = suite_of(epoch.suite).name
        return found.sequence

    def _end(self, closed: Closed) -> None:
        """Nothing more comes in a direction, or in both."""
        for direction, side in enumerate(self._sides):
            if closed.how == "fin" and closed.direction == direction and side.buffer.application:
                self._damaged(side, "the connection ends inside a record")
            if closed.direction in (None, direction) and self.midstream and not side.opened:
                search = side.search
                if side.readable and search is not None and self._sides[1 - direction].opened:
                    continue
                side.readable = False


def _next(stage: Stage) -> Stage:
    return Stage.HANDSHAKE if stage is Stage.EARLY else Stage.TRAFFIC


def _time(pieces: Sequence[Piece]) -> int:
    return pieces[-1].time_ns
