"""Records of one connection, in order: what they hold becomes plaintext, or changes keys. State
without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafkascope.captures.model import Piece
from kafkascope.captures.tls.changes import KeyChanges
from kafkascope.captures.tls.keys.epoch import Epoch, Stage, awaited
from kafkascope.captures.tls.keys.protection import BadRecord, Protection
from kafkascope.captures.tls.plaintext import Plaintext
from kafkascope.captures.tls.records import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    HEADER,
    TlsRecord,
    data_records,
)
from kafkascope.captures.tls.resync import MOST_SKIPPED, TlsResync
from kafkascope.captures.tls.search import Search
from kafkascope.captures.tls.side import Side
from kafkascope.captures.tls.state import LACKS_HANDSHAKE, Stall, TlsState

MOST_EARLY: Final = 64
"""Records of early data that wait for the ServerHello, which says how they are encrypted."""
MOST_BAD: Final = 3
"""Records in a row that do not authenticate, before the next one is searched for."""


class Decryption:
    """Opens records as they come, and tells `changes` of those that are no application data."""

    __slots__ = ("_changes", "_resync", "_state")

    def __init__(self, state: TlsState, changes: KeyChanges, resync: TlsResync) -> None:
        self._state = state
        self._changes = changes
        self._resync = resync

    def take(
        self, side: Side, data: bytes, pieces: list[Piece], direction: int, plain: Plaintext
    ) -> None:
        """Take bytes that begin where a record goes on."""
        found: list[TlsRecord] = []
        joined = side.buffer.joined(data, pieces)
        if joined is not None:
            at = 0 if side.steady is None else _steadily(side, side.steady, *joined, plain)
            found = side.buffer.cut(*joined, at)
        self.records(side, found, pieces, direction, plain)

    def records(
        self,
        side: Side,
        records: Sequence[TlsRecord],
        pieces: Sequence[Piece],
        direction: int,
        plain: Plaintext,
    ) -> None:
        """Take the records that came with a chunk, as far as they need not wait."""
        state = self._state
        for index, record in enumerate(records):
            if state.patient and self._awaits(side, record, direction):
                state.waiting = Stall(direction, records[index:], pieces)
                return
            self._record(side, record, direction, plain)
        if side.buffer.lost and side.stage is Stage.TRAFFIC and side.opened and side.readable:
            # The header of a record was changed.
            state.damaged("bytes that are not a TLS record")
            plain.gap(pieces[-1].time_ns, "lost")
            side.search = Search.behind(side.sequence, 0)

    def _awaits(self, side: Side, record: TlsRecord, direction: int) -> bool:
        """Return whether a record needs a secret that may still come."""
        state = self._state
        epoch, stage, opener = side.epoch, side.stage, side.opener
        log = state.keys.log
        if log is None or not side.readable or (opener is not None and stage is Stage.TRAFFIC):
            return False
        client = direction == state.client
        if epoch is None or stage is Stage.PLAIN:
            if record.kind == APPLICATION_DATA and state.holed:
                return self._resync.awaits_late(direction)
            if record.kind != CHANGE_CIPHER_SPEC:
                return False
            # Not later: what it may resume is looked up here, and that may wait as well.
            epoch = state.negotiation.changed(client=client, keys=state.keys)
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
        opener = opener or state.opener(side, direction)
        if opener is None:
            return False
        try:
            opener.protection.open(side.sequence, record.kind, record.version, record.body)
        except BadRecord:
            return True
        return False

    def _record(self, side: Side, record: TlsRecord, direction: int, plain: Plaintext) -> None:
        state = self._state
        if state.handshake.result is None and not state.midstream:
            state.handshake.record(record, direction)
            state.ended()
        if side.stage is Stage.PLAIN and self._resync.begins_late(side, record, direction):
            plain.gap(record.pieces[-1].time_ns, "lost")
        epoch = side.epoch
        if epoch is None or side.stage is Stage.PLAIN:
            self._unprotected(side, record, direction)
        elif epoch.modern and record.kind != APPLICATION_DATA:
            # A ChangeCipherSpec for middleboxes, a second ClientHello, an alert without keys.
            if record.kind != CHANGE_CIPHER_SPEC:
                self._unprotected(side, record, direction)
        elif record.kind == ALERT and record.size == 2:
            self._changes.alert(record.body, direction)
        elif side.readable:
            self._protected(side, epoch, record, direction, plain)

    def _unprotected(self, side: Side, record: TlsRecord, direction: int) -> None:
        """Take a record that is not encrypted."""
        state = self._state
        if record.kind == HANDSHAKE:
            self._changes.messages(side, record.body, direction)
        elif record.kind == CHANGE_CIPHER_SPEC:
            self._changes.change_cipher(side, direction)
        elif record.kind == ALERT:
            self._changes.alert(record.body, direction)
        elif record.kind == APPLICATION_DATA and direction == state.client:
            hello = state.negotiation.client_hello
            if hello is not None and hello.early_data and len(state.early) < MOST_EARLY:
                state.early.append(record)

    def _protected(
        self, side: Side, epoch: Epoch, record: TlsRecord, direction: int, plain: Plaintext
    ) -> None:
        """Take an encrypted record."""
        state = self._state
        opener = side.opener
        if opener is None:
            opener = side.opener = state.opener(side, direction)
        try:
            if opener is None:
                raise BadRecord("no secret")
            kind, data = opener.protection.open(
                side.sequence, record.kind, record.version, record.body
            )
        except BadRecord:
            side.records += 1
            self._unopened(side, epoch, record, direction, plain)
            return
        side.took(1)
        start = opener.protection.start
        if kind == APPLICATION_DATA:
            if not state.data:
                state.data = True
                if state.midstream or state.tls.note == LACKS_HANDSHAKE:
                    state.say("", "")
                state.handshake.opened(direction, None)
                state.ended()
            plain.add(data, record, start)
        elif kind == HANDSHAKE:
            self._changes.messages(side, data, direction)
        elif kind == ALERT:
            self._changes.alert(data, direction, sealed=True)
        elif kind == CHANGE_CIPHER_SPEC:
            self._changes.change_cipher(side, direction)

    def _unopened(
        self, side: Side, epoch: Epoch, record: TlsRecord, direction: int, plain: Plaintext
    ) -> None:
        """A record could not be opened: find out whether that matters."""
        state = self._state
        if epoch.modern and side.stage < Stage.TRAFFIC:
            self._handshake_unopened(side, epoch, record, direction, plain)
            return
        if not side.opened or side.opener is None:
            # Nothing ever fitted: it is the secret, or there is none.
            side.give_up()
            state.unreadable(epoch, side.records - 1, secret=side.opener is not None)
            return
        state.damaged(f"record {side.sequence} failed authentication")
        plain.gap(record.pieces[-1].time_ns, "lost")
        side.sequence += 1
        side.bad += 1
        if side.bad >= MOST_BAD:
            side.search = Search.behind(side.sequence - side.bad, 0)

    def _handshake_unopened(
        self, side: Side, epoch: Epoch, record: TlsRecord, direction: int, plain: Plaintext
    ) -> None:
        """TLS 1.3, before application data: look whether those secrets fit already."""
        state = self._state
        later = _next(side.stage)
        sequence, stage, opener = side.sequence, side.stage, side.opener
        side.stage, side.sequence = later, 0
        side.opener = state.opener(side, direction)
        if side.opener is not None:
            try:
                side.opener.protection.open(0, record.kind, record.version, record.body)
            except BadRecord:
                pass
            else:
                side.records -= 1
                self._protected(side, epoch, record, direction, plain)
                if later is Stage.TRAFFIC and side.skipped:
                    state.readable_again()
                return
        nothing = side.opener is None and opener is None
        side.sequence, side.stage, side.opener = sequence, stage, opener
        side.skipped += 1
        if stage is Stage.EARLY:
            return
        if nothing or (not side.opened and side.skipped >= MOST_SKIPPED):
            side.give_up()
        if not side.opened:
            state.unreadable(epoch, 0, secret=not nothing)


def texts_of(
    side: Side, protection: Protection, data: bytes, spans: Sequence[tuple[int, int]]
) -> list[bytes]:
    """Return the plaintexts of the next records of application data, which stand at `spans`, as far
    as they are that. Nothing is taken: see `Side.took`."""
    sequence, view, opened = side.sequence, memoryview(data), protection.data
    found: list[bytes] = []
    for begin, end in spans:
        body = begin + HEADER
        text = opened(sequence, data[begin:body], view[body:end])
        if not text:
            break
        found.append(text)
        sequence += 1
    return found


def _steadily(
    side: Side, protection: Protection, data: bytes, pieces: list[Piece], plain: Plaintext
) -> int:
    """Take the records of application data that bytes begin with; return where they end."""
    spans = data_records(data)
    texts = texts_of(side, protection, data, spans)
    if not texts:
        return 0
    side.took(len(texts))
    spans = spans[: len(texts)]
    plain.extend(texts, spans, pieces, protection.start)
    return spans[-1][1]


def _next(stage: Stage) -> Stage:
    return Stage.HANDSHAKE if stage is Stage.EARLY else Stage.TRAFFIC
