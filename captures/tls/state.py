"""What is known of the TLS of one connection, and why it cannot be read: what the steps of reading
it (`decryption`, `resync`) share. State without I/O."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Self

from kafkascope.captures.model import Connection, Piece, Tls, TlsError
from kafkascope.captures.resumable import TRANSIENT, Dump, Resumable
from kafkascope.captures.tls.handshake import Handshake
from kafkascope.captures.tls.keys.epoch import Epoch, Opener, Stage, awaited, opener_of
from kafkascope.captures.tls.keys.protection import BadRecord, Protection
from kafkascope.captures.tls.keys.suites import suite_of, version_name
from kafkascope.captures.tls.messages import Messages
from kafkascope.captures.tls.negotiation import Negotiation
from kafkascope.captures.tls.records import Plaintext, RecordBuffer, TlsRecord
from kafkascope.captures.tls.search import Search
from kafkascope.captures.tls.sources import KeySources

NO_KEY_LOG: Final = "no key log was given (--keylog)"
LACKS_HANDSHAKE: Final = "bytes of the handshake are missing"


class Stall(NamedTuple):
    """Where a connection waits for a secret."""

    direction: int
    records: Sequence[TlsRecord] = ()
    """That came already; without any, it is a search that waits."""
    pieces: Sequence[Piece] = ()


@dataclass(slots=True, eq=False)
class Side(Resumable):
    """State of one direction: its records, its keys, and how much of it was read."""

    number: int = field(metadata=TRANSIENT)
    """The direction."""
    buffer: RecordBuffer = field(default_factory=RecordBuffer)
    messages: Messages = field(default_factory=Messages)
    search: Search | None = field(default=None, metadata=TRANSIENT)
    """While it is not known where the next record begins."""
    epoch: Epoch | None = None
    stage: Stage = Stage.PLAIN
    updates: int = 0
    """KeyUpdates since the handshake."""
    opener: Opener | None = field(default=None, metadata=TRANSIENT)
    """No part of the state: made from the epoch, with the key log."""
    steady: Protection | None = field(default=None, metadata=TRANSIENT)
    """What opens the next record, where nothing but application data has to be expected: what
    else comes shows by not being that."""
    sequence: int = 0
    """Number of the next record under its key."""
    records: int = 0
    """Encrypted ones that came."""
    opened: int = 0
    """Those that could be opened."""
    bad: int = 0
    """Records in a row that could not."""
    skipped: int = 0
    """Records of the handshake that could not be opened, and need not be."""
    readable: bool = True
    """Whether there is hope."""
    offset: int = 0
    """Offset of the plaintext."""

    def dump(self) -> Dump:
        """Return the state, without keys."""
        return {**Resumable.dump(self), "search": self.search and self.search.dump()}

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave; the keys are made when the next record comes."""
        if state["search"] is not None:
            self.search = Search().load(state["search"])
        Resumable.load(self, state)
        self.stage = Stage(self.stage)
        return self

    def start(self, epoch: Epoch, stage: Stage) -> None:
        self.epoch, self.stage, self.opener = epoch, stage, None
        self.sequence = self.updates = 0

    def give_up(self) -> None:
        self.readable = False
        self.buffer.whole = False

    def took(self, count: int) -> None:
        """Count records that were opened."""
        self.records += count
        self.sequence += count
        self.opened += count
        self.bad = 0

    @property
    def first(self) -> int:
        """The number of the first record that may hold application data."""
        return 0 if self.epoch is None or self.epoch.modern else 1

    @property
    def held(self) -> int:
        """Memory of what waits for more bytes."""
        search = 0 if self.search is None else self.search.held
        return self.buffer.held + self.messages.held + search


class TlsState(Resumable):
    """State of one connection."""

    STATE = (
        *("client", "connection", "data", "early", "handshake", "holed", "midstream"),
        "negotiation",
    )

    def __init__(self, connection: Connection, client: int | None, keys: KeySources) -> None:
        """`client`: direction of the side that sent the ClientHello; None where the handshake is
        not in the capture."""
        self.connection = connection
        self.keys = keys
        self.client = client
        self.midstream = client is None
        self.tls = connection.tls or Tls()
        self.sides = (Side(0), Side(1))
        self.handshake = Handshake(client or 0)
        self.negotiation = Negotiation()
        self.early: list[TlsRecord] = []
        """Records of early data, until it is known how they are encrypted."""
        self.data = False
        """Application data was read."""
        self.holed = False
        """Bytes of the handshake are missing."""
        self.patient = keys.growing
        """What the key log has no secret for waits until it grows."""
        self.waiting: Stall | None = None
        """What waits so."""
        self.waited = ""
        """How long that was, when it was for nothing."""
        self.plain = Plaintext(connection, 0, 0)
        """What the event that is read turns into."""

    def dump(self) -> Dump:
        """Return the state, without keys."""
        return {**super().dump(), "sides": [side.dump() for side in self.sides]}

    def load(self, state: Dump) -> Self:
        super().load(state)
        for side, each in zip(self.sides, state["sides"], strict=True):
            side.load(each)
        self.tls = self.connection.tls or Tls()
        return self

    @property
    def incomplete(self) -> int:
        """Memory of what waits for more bytes of its own direction."""
        records = sum(len(record.body) for record in self._waiting_records)
        return records + sum(side.held for side in self.sides)

    @property
    def _waiting_records(self) -> list[TlsRecord]:
        return self.early if self.waiting is None else [*self.early, *self.waiting.records]

    @property
    def pieces(self) -> Iterator[Piece]:
        """Where the bytes stand that wait."""
        for side in self.sides:
            yield from side.buffer.pieces
            if side.search is not None:
                yield from side.search.pieces
        for record in self._waiting_records:
            yield from record.pieces

    def awaits(self, side: Side, epoch: Epoch | None, stage: Stage) -> bool:
        """Return whether the key log may still get what opens the records of a stage."""
        log = self.keys.log
        client = side.number == self.client
        if log is None or epoch is None:
            return False
        return awaited(epoch, stage, client=client, log=log)

    def opener(self, side: Side) -> Opener | None:
        """Return what opens the records of a direction; None where there is no secret."""
        assert side.epoch is not None
        log = self.keys.log_for(side.epoch)
        if log is None:
            return None
        client = side.number == self.client
        found = opener_of(side.epoch, side.stage, client=client, updates=side.updates, log=log)
        if found is not None and self.keys.opened is not None:
            self.keys.opened(self.connection, side.epoch)
        return found

    # --- what was learned

    def chosen(self, epoch: Epoch) -> None:
        self.tls.version = version_name(epoch.version)
        self.tls.suite = suite_of(epoch.suite).name

    def found(self, epoch: Epoch) -> None:
        """Record the epoch found for a connection whose ClientHello is missing."""
        self.tls.random = epoch.client_random
        self.chosen(epoch)

    def ended(self) -> None:
        """Take over how the handshake ended."""
        result = self.tls.result = self.handshake.result
        if result is not None and not self.tls.certificate:
            if result.outcome != "established":
                self.negotiation.explain(self.tls)
                if result.side != self.client:
                    self.tls.unauthenticated |= self.handshake.empty_certificate
                    self.tls.presented = self.handshake.certificate
            elif self.data:
                self.negotiation.done()

    # --- what cannot be read

    def say(self, error: TlsError, note: str) -> None:
        """Tell why it cannot be read, or not all of it."""
        self.tls.error, self.tls.note = error, note

    def fail(self, error: TlsError, note: str) -> None:
        """Give up all that is not read yet."""
        self.say(error, note)
        for side in self.sides:
            side.give_up()
        self.early.clear()

    def hopeless(self) -> None:
        """Give up at once where the key log cannot have the secret."""
        if self.keys.log is None or self.patient or self.negotiation.may_open(self.keys):
            return
        self.fail("no-secret", self._no_line(self.tls.random))

    def unreadable(self, epoch: Epoch, record: int, *, secret: bool) -> None:
        """Say why an epoch cannot be read. `secret`: the key log had one, which did not fit."""
        if self.keys.log is None:
            # There was one while a state was made that this goes on with.
            self.say("no-key-log", NO_KEY_LOG)
        elif secret:
            self.say(
                "bad-secret",
                f"authentication failed at record {record}: the key log's secret for client random "
                f"{epoch.client_random.hex()} belongs to another connection",
            )
        elif epoch.modern or self.tls.note != LACKS_HANDSHAKE:
            # In TLS 1.2 what is missing may have named a line.
            self.say("no-secret", self._no_line(epoch.client_random))

    def _no_line(self, random: bytes) -> str:
        return f"the key log has no line for client random {random.hex()}{self.waited}"

    def damaged(self, what: str) -> None:
        """Say what could not be read of a connection that can."""
        if not self.tls.error:
            self.say("damaged", f"bytes are missing or were modified: {what}")

    def readable_again(self) -> None:
        """Unsay that there is no secret: it is there for application data."""
        if self.tls.error in ("bad-secret", "no-secret"):
            self.say("", "")


def opens(opener: Opener, sequence: int, record: TlsRecord) -> bool:
    """Return whether a record authenticates with keys and a sequence number."""
    try:
        opener.protection.open(sequence, record.header, record.body)
    except BadRecord:
        return False
    return True
