"""Where reading begins or goes on behind bytes missing from the capture: which record is the first
one, which keys it has, and its sequence number. State without I/O.

A pair of key and number is believed when a record opens with it.
"""

from __future__ import annotations

from typing import Final

from kafkascope.captures.model import Gap, Piece
from kafkascope.captures.tls.keys.epoch import Epoch, Stage, awaited, opener_of
from kafkascope.captures.tls.keys.protection import BadRecord
from kafkascope.captures.tls.keys.suites import TLS_1_3, suite_of
from kafkascope.captures.tls.plaintext import Plaintext
from kafkascope.captures.tls.records import APPLICATION_DATA, TlsRecord
from kafkascope.captures.tls.search import MODERN_SUITES, Search
from kafkascope.captures.tls.side import Side
from kafkascope.captures.tls.state import LACKS_HANDSHAKE, NO_KEY_LOG, Stall, TlsState

MOST_SKIPPED: Final = 32
"""Records of a handshake that may pass before one has to fit the secret of application data."""
MOST_UNNAMED: Final = 4
"""Records on which all secrets are tried, where the ClientHello is missing: some may be of the
handshake."""
MOST_COALESCED: Final = 4
"""Records that may have passed unseen with one whose end only is missing."""


class TlsResync:
    """Looks for records that fit, where the handshake or what was before them is missing."""

    __slots__ = ("_state",)

    def __init__(self, state: TlsState) -> None:
        self._state = state

    def begin(self) -> None:
        """Begin with a connection whose handshake is not in the capture."""
        state = self._state
        for side in state.sides:
            side.search = Search.anywhere()
        if state.keys.log is None:
            state.fail("no-key-log", NO_KEY_LOG)
        else:
            state.say("no-handshake", "the capture starts after the handshake")

    def lacks_handshake(self, side: Side, gap: Gap) -> None:
        """Say that bytes of the handshake are missing, until application data is read all the
        same."""
        state = self._state
        state.holed = True
        if gap.direction == state.client and state.negotiation.client_hello is None:
            # Nothing tells which secrets are those of this connection.
            state.midstream = True
            for each in state.sides:
                each.search = Search.anywhere()
        if not (state.tls.error or side.opened or state.data):
            state.say("no-handshake", LACKS_HANDSHAKE)

    def found(
        self, side: Side, data: bytes, pieces: list[Piece], direction: int, plain: Plaintext
    ) -> tuple[bytes, list[Piece]] | None:
        """Take the next bytes of a search; return what is there from a record on that fits, which
        ends it. None where there is none yet, or where it waits for a secret."""
        search = side.search
        assert search is not None
        search.add(data, pieces)
        while (record := search.candidate()) is not None:
            late = side.stage is not Stage.TRAFFIC and self._state.holed
            sequence = self._fits(side, search, record, direction)
            if self._state.waiting is not None:
                return None
            if sequence is None:
                search.reject()
                continue
            if late and sequence > side.first:
                plain.gap(record.pieces[-1].time_ns, "lost")
            side.sequence = sequence
            side.search = None
            side.bad = 0
            side.buffer.restart()
            return search.rest()
        if search.tried_all and not side.opened:
            side.readable = False
        return None

    def _fits(self, side: Side, search: Search, record: TlsRecord, direction: int) -> int | None:
        """Return the sequence number with which a record opens; None where there is none."""
        state = self._state
        if state.midstream and side.epoch is None:
            return self._midstream_fits(side, search, record, direction)
        if side.stage is not Stage.TRAFFIC:
            return self._late_fits(side, search, record, direction)
        if side.opener is None:
            side.opener = state.opener(side, direction)
        if side.opener is None:
            if state.patient and side.readable and self._awaits(side, direction):
                state.waiting = Stall(direction)
            return None
        for sequence in search.sequences(state.keys.sequences):
            state.keys.sequences -= 1
            try:
                side.opener.protection.open(sequence, record.kind, record.version, record.body)
            except BadRecord:
                continue
            return sequence
        return None

    def _awaits(self, side: Side, direction: int) -> bool:
        epoch, log, client = side.epoch, self._state.keys.log, direction == self._state.client
        if epoch is None or log is None:
            return False
        return awaited(epoch, Stage.TRAFFIC, client=client, log=log)

    # --- behind a hole in the handshake

    def _likely(self, direction: int) -> list[Epoch]:
        """Return what application data may be encrypted with, as far as the rest of the handshake
        tells."""
        state = self._state
        client = direction == state.client
        chosen, other = state.negotiation.chosen, state.sides[1 - direction].epoch
        if chosen is not None and not chosen.modern:
            chosen = state.negotiation.changed(client=client, keys=state.keys)
        if chosen is not None or other is not None:
            return [each for each in (chosen or other,) if each is not None and each.supported]
        hello, log = state.negotiation.client_hello, state.keys.log
        if hello is None or log is None:
            return []
        # The ServerHello is missing: in TLS 1.3 the client's random is enough.
        secrets = log.secrets(hello.random)
        made = () if secrets is None else (secrets.client_traffic, secrets.server_traffic)
        sizes = {len(secret) for secret in made if secret is not None}
        return [
            Epoch(TLS_1_3, suite, hello.random, b"")
            for suite in MODERN_SUITES
            if not sizes or suite_of(suite).secret_size in sizes
        ]

    def awaits_late(self, direction: int) -> bool:
        """Return whether the key log may still get the secrets of application data."""
        log, likely = self._state.keys.log, self._likely(direction)
        client = direction == self._state.client
        return log is not None and any(
            awaited(epoch, Stage.TRAFFIC, client=client, log=log) for epoch in likely
        )

    def begins_late(self, side: Side, record: TlsRecord, direction: int) -> bool:
        """Look whether a record is one of application data, whose handshake has holes; return
        whether records with application data may be missing before it."""
        if record.kind != APPLICATION_DATA or not (side.readable and self._state.holed):
            return False
        side.records += 1
        found = self._late(side, record, direction, range(side.records + MOST_COALESCED))
        if found is None:
            return False
        side.sequence, side.bad = found, 0
        side.records -= 1
        return found > side.first

    def _late_fits(
        self, side: Side, search: Search, record: TlsRecord, direction: int
    ) -> int | None:
        """Return the sequence number of the first record of application data that is found."""
        state = self._state
        if state.patient and self.awaits_late(direction):
            state.waiting = Stall(direction)
            return None
        return self._late(side, record, direction, search.sequences(state.keys.sequences))

    def _late(self, side: Side, record: TlsRecord, direction: int, numbers: range) -> int | None:
        """Try the keys of application data on a record, and begin with those that fit."""
        state = self._state
        log, client = state.keys.log, direction == state.client
        if log is None or side.skipped >= MOST_SKIPPED:
            return None
        for epoch in self._likely(direction):
            opener = opener_of(epoch, Stage.TRAFFIC, client=client, updates=0, log=log)
            if opener is None:
                continue
            for sequence in numbers:
                state.keys.sequences -= 1
                try:
                    opener.protection.open(sequence, record.kind, record.version, record.body)
                except BadRecord:
                    continue
                side.start(epoch, Stage.TRAFFIC)
                side.messages.clear()
                side.opener = state.opener(side, direction)
                if not state.tls.version:
                    state.found(epoch)
                return sequence
        side.skipped += 1
        return None

    # --- mid-stream

    def _midstream_fits(
        self, side: Side, search: Search, record: TlsRecord, direction: int
    ) -> int | None:
        """Try the secrets of the key log that no other connection has claimed."""
        state = self._state
        other = state.sides[1 - direction].epoch
        found = state.keys.midstream(
            record,
            search.tried,
            (state.connection.number, direction),
            client=None if state.client is None else direction == state.client,
            epoch=other,
        )
        if found.epoch is None:
            if state.patient and state.keys.trials > 0:
                state.waiting = Stall(direction)
                return None
            side.skipped += 1
            if state.holed and side.skipped < MOST_UNNAMED:
                search.tried.clear()
                return None
            search.tried_all = True
            state.say(
                "no-handshake",
                f"the capture starts after the handshake; {found.text}{state.waited}",
            )
            return None
        epoch = found.epoch
        state.client = direction if found.client else 1 - direction
        twin = state.sides[1 - direction]
        if state.holed and not twin.readable and twin.epoch is None:
            # Given up when nothing told which secret it is.
            twin.readable, twin.search, twin.skipped = True, Search.anywhere(), 0
        side.start(epoch, Stage.TRAFFIC)
        state.found(epoch)
        return found.sequence
