"""Where reading begins or goes on after bytes missing from the capture: which record is the first
one, which keys it has, and its sequence number. Steps of a connection's `state`, without I/O.

A pair of key and number is believed when a record opens with it.
"""

from __future__ import annotations

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Piece
from kafkascope.captures.tls.keys.epoch import Epoch, Opener, Stage, opener_of
from kafkascope.captures.tls.keys.suites import TLS_1_3, suite_of
from kafkascope.captures.tls.records import APPLICATION_DATA, TlsRecord
from kafkascope.captures.tls.search import Search
from kafkascope.captures.tls.sources import MODERN_SUITES
from kafkascope.captures.tls.state import LACKS_HANDSHAKE, NO_KEY_LOG, Side, Stall, TlsState, opens


def begin_midstream(state: TlsState) -> None:
    """Begin with a connection whose handshake is not in the capture."""
    for side in state.sides:
        side.search = Search.anywhere()
    if state.keys.log is None:
        state.fail("no-key-log", NO_KEY_LOG)
    else:
        state.say("no-handshake", "the capture starts after the handshake")


def lacks_handshake(state: TlsState, side: Side) -> None:
    """Say that bytes of the handshake are missing, until application data is read all the same."""
    state.holed = True
    if side.number == state.client and state.negotiation.client_hello is None:
        # Nothing shows which secrets belong to this connection.
        state.midstream = True
        for each in state.sides:
            each.search = Search.anywhere()
    if not (state.tls.error or side.opened or state.data):
        state.say("no-handshake", LACKS_HANDSHAKE)


def search_record(
    state: TlsState, side: Side, data: bytes, pieces: list[Piece]
) -> tuple[bytes, list[Piece]] | None:
    """Take the next bytes of a search; return what is there from a record on that fits, which ends
    it. None where there is none yet, or where it waits for a secret."""
    search = side.search
    assert search is not None
    search.add(data, pieces)
    while (record := search.candidate()) is not None:
        late = side.stage is not Stage.TRAFFIC and state.holed
        sequence = _sequence(state, side, search, record)
        if state.waiting is not None:
            return None
        if sequence is None:
            search.reject()
            continue
        if late and sequence > side.first:
            state.plain.gap(record.pieces[-1].time_ns, "lost")
        side.sequence, side.bad, side.search = sequence, 0, None
        side.buffer.restart()
        return search.rest()
    if search.tried_all and not side.opened:
        side.readable = False
    return None


def _sequence(state: TlsState, side: Side, search: Search, record: TlsRecord) -> int | None:
    """Return the sequence number with which a record opens; None where there is none."""
    if state.midstream and side.epoch is None:
        return _midstream(state, side, search, record)
    if side.stage is not Stage.TRAFFIC:
        if state.patient and awaits_late(state, side):
            state.waiting = Stall(side.number)
            return None
        return _late(state, side, record, search.sequences(state.keys.sequences))
    if side.opener is None:
        side.opener = state.opener(side)
    if side.opener is not None:
        numbers = search.sequences(state.keys.sequences)
        return _fitting(state, side.opener, record, numbers)
    if state.patient and side.readable and state.awaits(side, side.epoch, Stage.TRAFFIC):
        state.waiting = Stall(side.number)
    return None


def _fitting(state: TlsState, opener: Opener, record: TlsRecord, numbers: range) -> int | None:
    """Return the first of the numbers with which a record opens."""
    for sequence in numbers:
        state.keys.sequences -= 1
        if opens(opener, sequence, record):
            return sequence
    return None


# --- after a hole in the handshake


def _likely(state: TlsState, side: Side) -> list[Epoch]:
    """Return what application data may be encrypted with, as far as the rest of the handshake
    tells."""
    chosen, other = state.negotiation.chosen, state.sides[1 - side.number].epoch
    if chosen is not None and not chosen.modern:
        client = side.number == state.client
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


def awaits_late(state: TlsState, side: Side) -> bool:
    """Return whether the key log may still get the secrets of application data."""
    return any(state.awaits(side, epoch, Stage.TRAFFIC) for epoch in _likely(state, side))


def begins_late(state: TlsState, side: Side, record: TlsRecord) -> bool:
    """Look whether a record is one of application data, whose handshake has holes; return whether
    records with application data may be missing before it."""
    if record.kind != APPLICATION_DATA or not (side.readable and state.holed):
        return False
    side.records += 1
    sequence = _late(state, side, record, range(side.records + LIMITS.coalesced_records))
    if sequence is None:
        return False
    side.sequence, side.bad = sequence, 0
    side.records -= 1
    return sequence > side.first


def _late(state: TlsState, side: Side, record: TlsRecord, numbers: range) -> int | None:
    """Try the keys of application data on a record, and begin with those that fit."""
    log, client = state.keys.log, side.number == state.client
    if log is None or side.skipped >= LIMITS.handshake_records:
        return None
    for epoch in _likely(state, side):
        opener = opener_of(epoch, Stage.TRAFFIC, client=client, updates=0, log=log)
        sequence = None if opener is None else _fitting(state, opener, record, numbers)
        if sequence is not None:
            side.start(epoch, Stage.TRAFFIC)
            side.messages.clear()
            side.opener = state.opener(side)
            if not state.tls.version:
                state.found(epoch)
            return sequence
    side.skipped += 1
    return None


# --- mid-stream


def _midstream(state: TlsState, side: Side, search: Search, record: TlsRecord) -> int | None:
    """Try the secrets of the key log that no other connection has claimed."""
    twin = state.sides[1 - side.number]
    found = state.keys.midstream(
        record,
        search.tried,
        (state.connection.number, side.number),
        client=None if state.client is None else side.number == state.client,
        epoch=twin.epoch,
    )
    if found.epoch is None:
        if state.patient and state.keys.trials > 0:
            state.waiting = Stall(side.number)
            return None
        side.skipped += 1
        if state.holed and side.skipped < LIMITS.tried_records:
            search.tried.clear()
            return None
        search.tried_all = True
        what = f"the capture starts after the handshake; {found.text}{state.waited}"
        state.say("no-handshake", what)
        return None
    state.client = side.number if found.client else twin.number
    if state.holed and not twin.readable and twin.epoch is None:
        # Given up when nothing shows which secret it is.
        twin.readable, twin.search, twin.skipped = True, Search.anywhere(), 0
    side.start(found.epoch, Stage.TRAFFIC)
    state.found(found.epoch)
    return found.sequence
