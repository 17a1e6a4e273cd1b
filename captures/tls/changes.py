"""Handshake messages, ChangeCipherSpecs and alerts: which keys the next records have, and what is
told of the connection. State without I/O."""

from __future__ import annotations

from typing import Final

from kafkascope.captures.tls import messages as m
from kafkascope.captures.tls.begin import CLIENT_HELLO
from kafkascope.captures.tls.handshake import NO_FAILURE
from kafkascope.captures.tls.keys.epoch import Epoch, Stage, updated
from kafkascope.captures.tls.side import Side
from kafkascope.captures.tls.state import TlsState

MOST_ALERTS: Final = 4


class KeyChanges:
    """Takes what is no application data, whether it was encrypted or not."""

    __slots__ = ("_state",)

    def __init__(self, state: TlsState) -> None:
        self._state = state

    def messages(self, side: Side, data: bytes, direction: int) -> None:
        """Take bytes of handshake messages."""
        for message in side.messages.feed(data):
            self._message(side, message, direction)

    def _message(self, side: Side, message: bytes, direction: int) -> None:
        state, kind = self._state, message[0]
        client = direction == state.client
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
                state.tls.updates += 1
            elif not client or kind == m.CERTIFICATE:
                state.negotiation.modern(message, client=client, tls=state.tls)
            if kind != CLIENT_HELLO:
                return
        made = state.negotiation.message(message, client=client, keys=state.keys, tls=state.tls)
        if kind == CLIENT_HELLO and client and epoch is None:
            state.hopeless()
        if made is not None:
            self._chosen(made)

    def _chosen(self, epoch: Epoch) -> None:
        """A server has chosen version and suite."""
        state = self._state
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
        asking, serving = state.sides[state.client], state.sides[1 - state.client]
        hello = state.negotiation.client_hello
        serving.start(epoch, Stage.HANDSHAKE)
        early = hello is not None and hello.early_data
        asking.start(epoch, Stage.EARLY if early else Stage.HANDSHAKE)

    def change_cipher(self, side: Side, direction: int) -> None:
        """A ChangeCipherSpec: records are encrypted with what was negotiated from here on."""
        state = self._state
        epoch = state.negotiation.changed(client=direction == state.client, keys=state.keys)
        if epoch is not None and not epoch.modern:
            side.start(epoch, Stage.TRAFFIC)
            side.messages.clear()

    def alert(self, data: bytes, direction: int, *, sealed: bool = False) -> None:
        """Take an alert. `sealed`: it was encrypted, and its record told nothing but its size."""
        if len(data) < 2 or data[1] in NO_FAILURE:
            return
        state = self._state
        if sealed and not state.data:
            state.handshake.opened(direction, data[1])
            state.ended()
        self._tell(direction, data[1])

    def late_alert(self, direction: int, number: int) -> None:
        """Take an alert behind bytes that are no record."""
        self._state.handshake.late(direction, number)
        self._state.ended()
        self._tell(direction, number)

    def _tell(self, direction: int, number: int) -> None:
        tls = self._state.tls
        if len(tls.alerts) < MOST_ALERTS:
            tls.alerts += ((direction, number),)
