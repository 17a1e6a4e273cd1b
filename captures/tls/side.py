"""One direction of a connection with TLS: its records, its keys, and how much of it was read."""

from __future__ import annotations

from typing import Self

from kafkascope.captures.resumable import Dump, Resumable
from kafkascope.captures.tls.keys.epoch import Epoch, Opener, Stage
from kafkascope.captures.tls.keys.protection import Protection
from kafkascope.captures.tls.messages import Messages
from kafkascope.captures.tls.records import RecordBuffer
from kafkascope.captures.tls.search import Search


class Side(Resumable):
    """State of one direction; the steps that change it are in `decryption`, `changes`, `resync`."""

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
    __slots__ = (*STATE, "opener", "search", "steady")

    def __init__(self) -> None:
        self.buffer = RecordBuffer()
        self.messages = Messages()
        self.search: Search | None = None
        """While it is not known where the next record begins."""
        self.epoch: Epoch | None = None
        self.stage = Stage.PLAIN
        self.updates = 0
        """KeyUpdates since the handshake."""
        self.opener: Opener | None = None
        """No part of the state: made from the epoch, with the key log."""
        self.steady: Protection | None = None
        """What opens the next record, where nothing but application data has to be expected: what
        else comes shows by not being that."""
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

    def give_up(self) -> None:
        """Read no more of it."""
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
