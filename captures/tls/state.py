"""What is known of the TLS of one connection, and why it cannot be read: what the steps of reading
it share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

from kafkascope.captures.model import Connection, Piece, Tls, TlsError
from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.tls.handshake import Handshake
from kafkascope.captures.tls.keys.epoch import Epoch, Opener, opener_of
from kafkascope.captures.tls.keys.suites import suite_of, version_name
from kafkascope.captures.tls.negotiation import Negotiation
from kafkascope.captures.tls.records import TlsRecord
from kafkascope.captures.tls.side import Side
from kafkascope.captures.tls.sources import SharedKeys

NO_KEY_LOG: Final = "no key log was given (--keylog)"
LACKS_HANDSHAKE: Final = "bytes of the handshake are missing"


class Stall(NamedTuple):
    """Where a connection waits for a secret."""

    direction: int
    records: Sequence[TlsRecord] = ()
    """That came already; without any, it is a search that waits."""
    pieces: Sequence[Piece] = ()


class TlsState(Resumable):
    """State of one connection, without I/O and without steps."""

    STATE = ("client", "connection", "data", "early", "holed", "midstream")

    def __init__(self, connection: Connection, client: int | None, keys: SharedKeys) -> None:
        """`client`: direction of the side that sent the ClientHello; None where the handshake is
        not in the capture."""
        self.connection = connection
        self.keys = keys
        self.client = client
        self.midstream = client is None
        self.tls = connection.tls or Tls()
        self.sides = (Side(), Side())
        self.handshake = Handshake(client or 0)
        self.negotiation = Negotiation()
        self.early: list[TlsRecord] = []
        """Of early data, until it is known how they are encrypted."""
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

    def dump(self) -> Dump:
        """Return the state, without keys."""
        return {
            **super().dump(),
            "sides": [side.dump() for side in self.sides],
            "handshake": self.handshake.dump(),
            "negotiation": self.negotiation.dump(),
        }

    def load(self, state: Dump) -> Self:
        """Take over what `dump` gave."""
        super().load(state)
        for side, each in zip(self.sides, state["sides"], strict=True):
            side.load(each)
        self.handshake = Handshake(self.client or 0).load(state["handshake"])
        self.negotiation.load(state["negotiation"])
        self.tls = self.connection.tls or Tls()
        return self

    @property
    def incomplete(self) -> int:
        """Memory of what waits for more bytes of its own direction."""
        records = self.early if self.waiting is None else [*self.early, *self.waiting.records]
        return sum(side.held for side in self.sides) + sum(len(each.body) for each in records)

    def opener(self, side: Side, direction: int) -> Opener | None:
        """Return what opens the records of a direction; None where there is no secret."""
        assert side.epoch is not None
        log = self.keys.log_for(side.epoch)
        if log is None:
            return None
        found = opener_of(
            side.epoch,
            side.stage,
            client=direction == self.client,
            updates=side.updates,
            log=log,
        )
        if found is not None and self.keys.opened is not None:
            self.keys.opened(self.connection, side.epoch)
        return found

    # --- what was learned

    def chosen(self, epoch: Epoch) -> None:
        """Tell version and suite."""
        self.tls.version = version_name(epoch.version)
        self.tls.suite = suite_of(epoch.suite).name

    def found(self, epoch: Epoch) -> None:
        """Tell what a connection whose ClientHello is missing was found to use."""
        self.tls.random = epoch.client_random
        self.chosen(epoch)

    def ended(self) -> None:
        """Take over how the handshake ended."""
        result = self.tls.result = self.handshake.result
        if result is not None and not self.tls.certificate:
            if result.outcome != "established":
                self.negotiation.explain(self.tls)
                if result.side != self.client and self.handshake.empty_certificate:
                    self.tls.unauthenticated = True
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
