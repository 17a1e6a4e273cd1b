"""The relay as a mitmproxy layer: events down, commands up. No decisions here.

It overrides `handle_event` as a whole: mitmproxy's own would run a generator per read, and queue
without bound while a command is pending. Here the socket is not read meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from mitmproxy.connection import Connection as Socket
from mitmproxy.connection import ConnectionState
from mitmproxy.net.tls import starts_like_tls_record
from mitmproxy.proxy import commands, events, layer, layers
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.tls import TLSLayer

from kafkascope.captures.model import Endpoint
from kafkascope.proxy.hub import Hub
from kafkascope.proxy.limits import LIMITS
from kafkascope.proxy.relay.connection import Connection
from kafkascope.proxy.relay.proxy_header import Balancer
from kafkascope.proxy.rules.verdicts import BROKER, CLIENT, Action, End, Read, Send


# Plain commands, not connection commands: TLS layers pass them through.
class Do(commands.Command):
    """Carry out an action of the relay: `Read`, `WakeUp` or `Ask`."""

    def __init__(self, action: Action) -> None:
        self.action = action


class Reset(commands.Command):
    """End the connection of a side with RST."""

    def __init__(self, side: int) -> None:
        self.side = side


class Acted(events.Event):
    """The relay wants these actions carried out."""

    def __init__(self, actions: list[Any]) -> None:
        self.actions = actions


class Steer(events.Event):
    """Something but bytes happened to a connection: a time is over, a rule or a user decided.
    `what` notifies the relay, with the time, and returns its actions."""

    def __init__(self, what: Callable[[Connection, int], list[Action]]) -> None:
        self.what = what


FAILED: Final = "TLS Error: "
"""Begins mitmproxy's log line about bytes that OpenSSL refuses, and about alerts."""
TOO_LONG: Final = f"a ClientHello of more than {LIMITS.client_hello_bytes >> 10} KB"
RECORD_HEAD: Final = 5
HANDSHAKE_HEAD: Final = 4


class Hello:
    """How much of a ClientHello has come. State without I/O."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._at = 0
        """Where the next record begins."""
        self._head = bytearray()
        """Type and size of the hello, as far as they have come."""
        self._size = 0
        """Size of what the records before it carry."""

    def feed(self, data: bytes) -> bool:
        """Append the next bytes. Return whether the ClientHello is complete, or malformed: then
        `data` must be parsed."""
        self.data += data
        while len(self.data) >= self._at + RECORD_HEAD:
            body = self._at + RECORD_HEAD
            size = int.from_bytes(self.data[body - 2 : body])
            if not size or not starts_like_tls_record(bytes(self.data[self._at : body])):
                return True
            if len(self.data) < body + size:
                break
            self._head += self.data[body : body + min(size, HANDSHAKE_HEAD - len(self._head))]
            self._size += size
            self._at = body + size
            if len(self._head) == HANDSHAKE_HEAD:
                whole = HANDSHAKE_HEAD + int.from_bytes(self._head[1:])
                if self._size >= whole:
                    return True
        return False


class AlertLayer(TLSLayer):
    """mitmproxy's layer, which ends a connection at an alert after the handshake.

    In TLS 1.3 a broker refuses a client certificate only then. mitmproxy logs the alert, and takes
    the end of the connection for one that it has passed on: the other side would wait forever."""

    _failed = False

    def receive_data(self, data: bytes) -> Any:
        error = ""
        for command in super().receive_data(data):
            if isinstance(command, commands.Log) and command.message.startswith(FAILED):
                error = command.message.removeprefix(FAILED)
            yield command
        if error and not self._failed:
            self._failed = True
            yield from TLSLayer.on_handshake_error(self, error)

    def receive_close(self) -> Any:
        if self._failed:
            yield from self.event_to_child(events.ConnectionClosed(self.conn))
        else:
            yield from super().receive_close()


class BrokerTlsLayer(AlertLayer, layers.ServerTLSLayer):
    """Towards brokers."""


class ClientHelloLayer(AlertLayer, layers.ClientTLSLayer):
    """mitmproxy's layer, which gets the ClientHello when it is whole.

    mitmproxy's own parses all that has come with each read, without bound: a client that sends its
    hello in the smallest records, or byte by byte, would stop all other connections."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._hello: Hello | None = Hello()

    def receive_handshake_data(self, data: bytes) -> Any:
        hello = self._hello
        if hello is None:
            return (yield from super().receive_handshake_data(data))
        whole = hello.feed(data)
        if len(hello.data) > LIMITS.client_hello_bytes:
            return False, TOO_LONG
        if not whole:
            return False, None
        self._hello = None
        return (yield from super().receive_handshake_data(bytes(hello.data)))

    def on_handshake_error(self, err: str) -> Any:
        # mitmproxy's sentences name its own options, and blame trust for what they do not know.
        yield from TLSLayer.on_handshake_error(self, err)
        self.event_to_child = self.errored  # type: ignore[method-assign]


NONE: Final[tuple[commands.Command, ...]] = ()


class KafkaLayer(layer.Layer):
    """One client connection, and the broker's connection that it opens."""

    def __init__(self, context: Context, hub: Hub, *, tls: bool = False) -> None:
        super().__init__(context)
        self.hub = hub
        self.relay: Connection | None = None
        self.balancer: Balancer | None = None
        self._tls = tls
        self._open: commands.OpenConnection | None = None
        self._early: list[bytes] = []
        """What the client sent before the broker's connection is there: a read at most."""

    def _handle_event(self, event: events.Event) -> Any:
        yield from self.handle_event(event)

    def handle_event(self, event: events.Event) -> Any:
        if type(event) is events.DataReceived:
            relay = self.relay
            if relay is None:
                # After TLS the first request may come with the end of the handshake.
                self._early.append(bytes(event.data))
                return NONE
            side = CLIENT if event.connection is self.context.client else BROKER
            actions = relay.feed(side, event.data, time.time_ns())
            if actions is None:
                return (commands.SendData(self._of(1 - side), event.data),)
            return self._commands(actions) if actions else NONE
        if type(event) is Acted:
            return self._commands(event.actions)
        return self._other(event)

    def _other(self, event: events.Event) -> Iterable[commands.Command]:
        relay = self.relay
        now_ns = time.time_ns()
        if isinstance(event, events.Start):
            command = commands.OpenConnection(self.context.server)
            command.blocking = self  # type: ignore[assignment]  # we do not wait: reading is stopped instead
            self._open = command
            return Do(Read(CLIENT, False)), command
        if isinstance(event, events.OpenConnectionCompleted):
            return self._opened(event, now_ns)
        if relay is None:
            if isinstance(event, events.ConnectionClosed):
                if event.connection.state is ConnectionState.CAN_WRITE:
                    return NONE  # it has asked and waits for responses: see `_opened`
                return (commands.CloseConnection(event.connection),)
            return NONE
        if isinstance(event, events.ConnectionClosed):
            return self._closed_by(event.connection, now_ns)
        if isinstance(event, Steer):
            return self._commands(event.what(relay, now_ns))
        return NONE

    def _opened(
        self, event: events.OpenConnectionCompleted, now_ns: int
    ) -> Iterable[commands.Command]:
        client, server = self.context.client, self.context.server
        if server.error:
            self.hub.once(server.error, server.error)
            return (commands.CloseConnection(client),)
        self.relay = relay = Connection(
            self.hub, next(self.hub.numbers), _endpoint(client.peername), _endpoint(server.peername)
        )
        if self.balancer is not None:
            relay.context.via = str(self.balancer.address)
        relay.context.advertise_host = client.sockname[0] if client.sockname else ""
        if self.hub.recording is not None:
            relay.taps.start(self.hub.recording, now_ns, self.balancer)
        out: list[commands.Command] = [Do(Read(CLIENT, True))]
        early, self._early = self._early, []
        for data in early:
            actions = relay.feed(CLIENT, data, now_ns)
            if actions is None:
                out.append(commands.SendData(server, data))
            else:
                out += self._commands(actions)
        if not client.state & ConnectionState.CAN_READ:
            out += self._commands(relay.eof(CLIENT, now_ns))
        return out

    def _closed_by(self, connection: Socket, now_ns: int) -> Iterable[commands.Command]:
        relay = self.relay
        assert relay is not None
        side = CLIENT if connection is self.context.client else BROKER
        other = self._of(1 - side)
        if connection.state is ConnectionState.CLOSED:
            out: list[commands.Command] = [
                commands.SendData(other, part) for part in relay.cut_short(side)
            ]
            if not relay.context.over:
                relay.taps.end(side, "rst" if connection.error == "reset" else "fin", now_ns)
            relay.context.ended_by(("client", "broker")[side])
            relay.closed()
            if connection.error == "reset" and other.state is not ConnectionState.CLOSED:
                out.append(Reset(1 - side))
            return [*out, commands.CloseConnection(other)]
        actions = relay.eof(side, now_ns)
        return self._commands(actions)

    def finish(self) -> None:
        relay = self.relay
        if relay is None:
            return
        relay.closed()
        self.hub.metrics.add("connections_closed_total", relay.context.cause or "proxy")
        relay.taps.end(None, "fin", time.time_ns())

    def _of(self, side: int) -> Socket:
        return self.context.client if side == CLIENT else self.context.server

    def _commands(self, actions: list[Action]) -> Iterable[commands.Command]:
        out: list[commands.Command] = []
        for action in actions:
            if type(action) is Send:
                data = action.data
                if self._tls and type(data) is memoryview:
                    data = bytes(data)
                out.append(commands.SendData(self._of(action.side), data))  # type: ignore[arg-type]
            elif type(action) is End:
                out += self._end(action)
            else:
                out.append(Do(action))
        return out

    def _end(self, action: End) -> Iterable[commands.Command]:
        relay = self.relay
        assert relay is not None
        connection = self._of(action.side)
        if action.side == CLIENT:
            relay.taps.end(BROKER, "rst" if action.how == "reset" else "fin", time.time_ns())
        if action.how == "half":
            if action.side == BROKER:
                relay.taps.end(CLIENT, "fin", time.time_ns())
            yield commands.CloseTcpConnection(connection, half_close=True)
            return
        if action.how == "reset":
            yield Reset(action.side)
        yield commands.CloseConnection(connection)


def _endpoint(name: Any) -> Endpoint:
    return Endpoint(name[0], name[1]) if name else Endpoint("0.0.0.0", 0)
