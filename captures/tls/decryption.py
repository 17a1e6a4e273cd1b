"""Records of one connection, in order: what they hold becomes plaintext, changes keys, or shows how
the connection does. Steps of its `state`, without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Piece
from kafkascope.captures.tls import messages as m
from kafkascope.captures.tls.begin import CLIENT_HELLO
from kafkascope.captures.tls.handshake import NO_FAILURE
from kafkascope.captures.tls.keys.epoch import Epoch, Stage, updated
from kafkascope.captures.tls.keys.protection import BadRecord, Protection
from kafkascope.captures.tls.records import (
    ALERT,
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    HANDSHAKE,
    HEADER,
    TlsRecord,
    data_records,
)
from kafkascope.captures.tls.resync import awaits_late, begins_late
from kafkascope.captures.tls.search import Search
from kafkascope.captures.tls.state import LACKS_HANDSHAKE, Side, Stall, TlsState, opens


def take_bytes(state: TlsState, side: Side, data: bytes, pieces: list[Piece]) -> None:
    """Take bytes that begin where a record goes on."""
    records: list[TlsRecord] = []
    joined = side.buffer.joined(data, pieces)
    if joined is not None:
        at = 0 if side.steady is None else _steadily(state, side, side.steady, *joined)
        records = side.buffer.cut(*joined, at)
    take_records(state, side, records, pieces)


def take_records(
    state: TlsState, side: Side, records: Sequence[TlsRecord], pieces: Sequence[Piece]
) -> None:
    """Take the records that came with a chunk, as far as they need not wait."""
    buffer = side.buffer
    for index, record in enumerate(records):
        if state.patient and _awaits(state, side, record):
            state.waiting = Stall(side.number, records[index:], pieces)
            return
        searching = side.search is not None
        if searching and record.behind < buffer.unread:
            # It came after the search began, which has to have it.
            buffer.restart()
            return
        _record(state, side, record)
        if side.search is not None and not searching:
            buffer.unread = record.behind
    if side.buffer.lost and side.stage is Stage.TRAFFIC and side.opened and side.readable:
        # The header of a record was changed.
        state.damaged("bytes that are not a TLS record")
        state.plain.gap(pieces[-1].time_ns, "lost")
        side.search = Search.behind(side.sequence, 0)


def _awaits(state: TlsState, side: Side, record: TlsRecord) -> bool:
    """Return whether a record needs a secret that may still come."""
    epoch, stage, opener = side.epoch, side.stage, side.opener
    if state.keys.log is None or not side.readable or (opener and stage is Stage.TRAFFIC):
        return False
    if epoch is None or stage is Stage.PLAIN:
        if record.kind == APPLICATION_DATA and state.holed:
            return awaits_late(state, side)
        if record.kind != CHANGE_CIPHER_SPEC:
            return False
        # Not later: what it may resume is looked up here, and that may wait as well.
        client = side.number == state.client
        epoch = state.negotiation.changed(client=client, keys=state.keys)
        return epoch is not None and not epoch.modern and state.awaits(side, epoch, Stage.TRAFFIC)
    if epoch.modern and record.kind != APPLICATION_DATA:
        return False
    if record.kind == ALERT and record.size == 2:
        return False
    if state.awaits(side, epoch, stage):
        return True
    if stage is Stage.TRAFFIC or not state.awaits(side, epoch, _next(stage)):
        return False
    # After a hole it may be one of the next stage: `_handshake_unopened` would try that.
    opener = opener or state.opener(side)
    return opener is not None and not opens(opener, side.sequence, record)


def _record(state: TlsState, side: Side, record: TlsRecord) -> None:
    if state.handshake.result is None and not state.midstream:
        state.handshake.record(record, side.number)
        state.ended()
    if side.stage is Stage.PLAIN and begins_late(state, side, record):
        state.plain.gap(record.pieces[-1].time_ns, "lost")
    epoch = side.epoch
    if epoch is None or side.stage is Stage.PLAIN:
        _unprotected(state, side, record)
    elif epoch.modern and record.kind != APPLICATION_DATA:
        # A ChangeCipherSpec for middleboxes, a second ClientHello, an alert without keys.
        if record.kind != CHANGE_CIPHER_SPEC:
            _unprotected(state, side, record)
    elif record.kind == ALERT and record.size == 2:
        _alert(state, side, record.body)
    elif side.readable:
        _protected(state, side, epoch, record)


def _unprotected(state: TlsState, side: Side, record: TlsRecord) -> None:
    if record.kind == APPLICATION_DATA:
        hello = state.negotiation.client_hello
        early = side.number == state.client and hello is not None and hello.early_data
        if early and len(state.early) < LIMITS.early_records:
            state.early.append(record)
    else:
        _control(state, side, record.kind, record.body)


def _control(state: TlsState, side: Side, kind: int, data: bytes, *, sealed: bool = False) -> None:
    """Take what is no application data. `sealed`: it was encrypted."""
    if kind == HANDSHAKE:
        take_messages(state, side, data)
    elif kind == ALERT:
        _alert(state, side, data, sealed=sealed)
    elif kind == CHANGE_CIPHER_SPEC:
        # Records are encrypted with what was negotiated from here on.
        client = side.number == state.client
        epoch = state.negotiation.changed(client=client, keys=state.keys)
        if epoch is not None and not epoch.modern:
            side.start(epoch, Stage.TRAFFIC)
            side.messages.clear()


def _protected(state: TlsState, side: Side, epoch: Epoch, record: TlsRecord) -> None:
    opener = side.opener
    if opener is None:
        opener = side.opener = state.opener(side)
    try:
        if opener is None:
            raise BadRecord("no secret")
        kind, data = opener.protection.open(side.sequence, record.header, record.body)
    except BadRecord:
        side.records += 1
        _unopened(state, side, epoch, record)
        return
    side.took(1)
    if kind != APPLICATION_DATA:
        _control(state, side, kind, data, sealed=True)
        return
    if not state.data:
        state.data = True
        if state.midstream or state.tls.note == LACKS_HANDSHAKE:
            state.say("", "")
    if not state.handshake.proved:
        state.handshake.opened(side.number, None)
        state.ended()
    state.plain.add(data, record, opener.protection.start)


def _unopened(state: TlsState, side: Side, epoch: Epoch, record: TlsRecord) -> None:
    """A record could not be opened: find out whether that matters."""
    if epoch.modern and side.stage < Stage.TRAFFIC:
        _handshake_unopened(state, side, epoch, record)
        return
    if not side.opened or side.opener is None:
        # Nothing ever fitted: it is the secret, or there is none.
        side.give_up()
        state.unreadable(epoch, side.records - 1, secret=side.opener is not None)
        return
    state.damaged(f"record {side.sequence} failed authentication")
    state.plain.gap(record.pieces[-1].time_ns, "lost")
    side.sequence += 1
    side.bad += 1
    if side.bad >= LIMITS.unauthentic_records:
        side.search = Search.behind(side.sequence - side.bad, 0)


def _handshake_unopened(state: TlsState, side: Side, epoch: Epoch, record: TlsRecord) -> None:
    """TLS 1.3, before application data: look whether those secrets fit already."""
    later = _next(side.stage)
    sequence, stage, opener = side.sequence, side.stage, side.opener
    side.stage, side.sequence = later, 0
    side.opener = state.opener(side)
    if side.opener is not None and opens(side.opener, 0, record):
        side.records -= 1
        _protected(state, side, epoch, record)
        if later is Stage.TRAFFIC and side.skipped:
            state.readable_again()
        return
    nothing = side.opener is None and opener is None
    side.sequence, side.stage, side.opener = sequence, stage, opener
    side.skipped += 1
    if stage is Stage.EARLY:
        return
    if nothing or (not side.opened and side.skipped >= LIMITS.handshake_records):
        side.give_up()
    if not side.opened:
        state.unreadable(epoch, 0, secret=not nothing)


# --- handshake messages and alerts


def take_messages(state: TlsState, side: Side, data: bytes) -> None:
    for message in side.messages.feed(data):
        _message(state, side, message)


def _message(state: TlsState, side: Side, message: bytes) -> None:
    kind, epoch = message[0], side.epoch
    client = side.number == state.client
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
            state.tls.updates += 1
        elif not client or kind == m.CERTIFICATE:
            state.negotiation.modern(message, client=client, tls=state.tls)
        if kind != CLIENT_HELLO:
            return
    chosen = state.negotiation.message(message, client=client, keys=state.keys, tls=state.tls)
    if kind == CLIENT_HELLO and client and epoch is None:
        state.hopeless()
    if chosen is not None:
        _chosen(state, chosen)


def _chosen(state: TlsState, epoch: Epoch) -> None:
    if not state.tls.version or not any(side.epoch for side in state.sides):
        state.chosen(epoch)
    if not epoch.supported:
        state.fail("unsupported", f"{state.tls.name} is not supported")
        return
    if not epoch.modern:
        return
    log = state.keys.log_for(epoch)
    if log is not None and not state.patient and log.secrets(epoch.client_random) is None:
        state.unreadable(epoch, 0, secret=False)
        for side in state.sides:
            side.give_up()
    assert state.client is not None
    hello = state.negotiation.client_hello
    early = hello is not None and hello.early_data
    state.sides[1 - state.client].start(epoch, Stage.HANDSHAKE)
    state.sides[state.client].start(epoch, Stage.EARLY if early else Stage.HANDSHAKE)


def _alert(state: TlsState, side: Side, data: bytes, *, sealed: bool = False) -> None:
    """Take an alert. `sealed`: it was encrypted, and only its size is known."""
    if len(data) < 2 or data[1] in NO_FAILURE:
        return
    if sealed and not state.handshake.proved:
        state.handshake.opened(side.number, data[1])
        state.ended()
    _keep_alert(state, side, data[1])


def take_late_alert(state: TlsState, side: Side, number: int) -> None:
    """Take an alert after bytes that are no record."""
    state.handshake.late(side.number, number)
    state.ended()
    _keep_alert(state, side, number)


def _keep_alert(state: TlsState, side: Side, number: int) -> None:
    if len(state.tls.alerts) < LIMITS.alerts:
        state.tls.alerts += ((side.number, number),)


# --- whole records of application data


def texts_of(
    side: Side, protection: Protection, data: bytes, spans: Sequence[tuple[int, int]]
) -> list[bytes]:
    """Return the plaintexts of the next records of application data, which stand at `spans`, as far
    as they are that. Nothing is taken: see `Side.took`."""
    sequence, view, opened = side.sequence, memoryview(data), protection.open
    found: list[bytes] = []
    with suppress(BadRecord):
        for begin, end in spans:
            body = begin + HEADER
            kind, text = opened(sequence, data[begin:body], view[body:end])
            if kind != APPLICATION_DATA or not text:
                break
            found.append(text)
            sequence += 1
    return found


def _steadily(
    state: TlsState, side: Side, protection: Protection, data: bytes, pieces: list[Piece]
) -> int:
    """Take the records of application data that bytes begin with; return where they end."""
    spans = data_records(data)
    texts = texts_of(side, protection, data, spans)
    if not texts:
        return 0
    side.took(len(texts))
    spans = spans[: len(texts)]
    state.plain.extend(texts, spans, pieces, protection.start)
    return spans[-1][1]


def _next(stage: Stage) -> Stage:
    return Stage.HANDSHAKE if stage is Stage.EARLY else Stage.TRAFFIC
