"""mitmproxy's connection handler on our streams: carries out the commands of the layers.

mitmproxy's own reads go through `StreamReader`, drain all writers at once and queue without bound
while a layer waits (docs/decisions/0010-proxy-engine.md); the rest of its life cycle is used as it
is.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable
from time import time_ns
from typing import Any

from mitmproxy.connection import Connection, ConnectionState, Server
from mitmproxy.options import Options
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.mode_specs import ProxyMode
from mitmproxy.proxy.server import ConnectionIO, LiveConnectionHandler, TimeoutWatchdog

from kafkascope.proxy.engine.directory import no_broker
from kafkascope.proxy.engine.layer import Acted, Do, KafkaLayer, Reset, Steer
from kafkascope.proxy.engine.route import Route
from kafkascope.proxy.engine.stream import LAYER, MEMORY, PEER_FULL, SELF_FULL, Data, Stream
from kafkascope.proxy.hub import Hub
from kafkascope.proxy.relay.connection import Connection as Relay
from kafkascope.proxy.rules.verdicts import BROKER, Action, Ask, Read, WakeUp

_log = logging.getLogger("kafkascope.proxy")


class BrokerRefused(OSError):
    """An advertised address is not connected to; a sentence."""


class NoWatchdog(TimeoutWatchdog):
    """Never ends idle connections: that is up to clients and brokers (connections.max.idle.ms)."""

    async def watch(self) -> None:
        """Do nothing."""

    def register_activity(self) -> None:
        """Do nothing."""


class Handler(LiveConnectionHandler):
    """One client connection and its connection to a broker."""

    def __init__(self, stream: Stream, options: Options, mode: ProxyMode, route: Route) -> None:
        super().__init__(stream, stream, options, mode)  # type: ignore[arg-type]
        self.timeout_watchdog = NoWatchdog(1, self.on_timeout)
        self.route = route
        self.streams: list[Stream | None] = [stream, None]
        """Streams of the client and of the broker."""
        self._queue: deque[events.Event] = deque()
        self._busy = False
        self._timers: set[asyncio.TimerHandle] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._cut = False
        self.kafka: KafkaLayer | None
        self.layer, self.kafka = route.begin(self.layer.context, stream)

    # --- layers and hooks

    async def handle_hook(self, hook: commands.StartHook) -> None:
        self._hook(hook)

    def _hook(self, hook: commands.StartHook) -> None:
        client = self.streams[0]
        if isinstance(hook, layer.NextLayerHook) and client is not None:
            hook.data.layer, self.kafka = self.route.layers(hook.data.context, client)
        else:
            self.route.tls.hook(self.layer.context, hook)

    async def server_event(self, event: events.Event) -> None:
        self.dispatch(event)

    def dispatch(self, event: events.Event) -> None:
        """Pass an event to the layers and carry out their commands. Never waits, never
        re-enters."""
        if self._busy:
            if isinstance(event, events.DataReceived):
                event.data = bytes(event.data)
            self._queue.append(event)
            return
        self._busy = True
        try:
            while True:
                for command in self.layer.handle_event(event):
                    self._obey(command)
                if not self._queue:
                    break
                event = self._queue.popleft()
        except Exception:
            self._crash()
        finally:
            self._busy = False

    def steer(self, what: Callable[[Relay, int], list[Action]]) -> None:
        self.dispatch(Steer(what))

    def _crash(self) -> None:
        """Close this connection after a bug of ours or mitmproxy's; the others do not notice."""
        _log.exception("%s: internal error, the connection is closed", self.peer)
        self.route.hub.metrics.add("errors_total")
        self.kill()

    @property
    def peer(self) -> str:
        name = self.client.peername
        return f"{name[0]}:{name[1]}" if name else "?"

    def log(self, message: str, level: int = logging.INFO, exc_info: Any = None) -> None:
        _log.log(min(level, logging.DEBUG), "%s: %s", self.peer, message, exc_info=exc_info)

    # --- commands

    def _obey(self, command: commands.Command) -> None:
        if isinstance(command, commands.SendData):
            io = self.transports.get(command.connection)
            if io is not None and io.writer is not None and not io.writer.is_closing():
                io.writer.write(command.data)
        elif isinstance(command, Do):
            self._do(command.action)
        elif isinstance(command, Reset):
            stream = self.streams[command.side]
            if stream is not None:
                stream.reset()
        elif isinstance(command, commands.OpenConnection):
            handler = asyncio.get_running_loop().create_task(self.open_connection(command))
            self.transports[command.connection] = ConnectionIO(handler=handler)
        elif isinstance(command, commands.CloseConnection):
            if command.connection in self.transports:
                half = isinstance(command, commands.CloseTcpConnection) and command.half_close
                self.close_connection(command.connection, half)
        elif isinstance(command, commands.StartHook):
            self._hook(command)
            if command.blocking:
                self._queue.append(events.HookCompleted(command))
        elif isinstance(command, commands.Log):
            self.log(command.message, command.level)
        else:
            raise RuntimeError(f"unexpected command {command}")

    def _do(self, action: Action) -> None:
        match action:
            case Read(side, on):
                stream = self.streams[side]
                if stream is not None:
                    (stream.allow if on else stream.stop)(LAYER)
            case WakeUp():
                self._wake(action)
            case Ask():
                self._ask(action)

    def _wake(self, action: WakeUp) -> None:
        def woken() -> None:
            self._timers.discard(timer)
            self.steer(lambda relay, now_ns: relay.woken(action.token, now_ns))

        timer = asyncio.get_running_loop().call_later(action.delay_ns / 1e9, woken)
        self._timers.add(timer)

    def _ask(self, action: Ask) -> None:
        async def wait() -> None:
            result = None
            try:
                result = await action.what
            except Exception as error:
                hub = self.route.hub
                hub.metrics.add("errors_total")
                hub.once(f"rule {error!r}", f"a rule failed: internal error ({error})")
            self.steer(lambda relay, now_ns: relay.awaited(action.token, result, now_ns))

        task = asyncio.get_running_loop().create_task(wait())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- connections

    @property
    def relay(self) -> Relay | None:
        return None if self.kafka is None else self.kafka.relay

    async def handle_client(self) -> None:
        try:
            await super().handle_client()
        finally:
            if self.kafka is not None:
                self.kafka.finish()
            for timer in self._timers:
                timer.cancel()
            for task in tuple(self._tasks):
                task.cancel()
            for stream in self.streams:
                if stream is not None and not stream.lost:
                    self._finish(stream)

    async def handle_connection(self, connection: Connection) -> None:
        """Read one side until it ends; then keep it while the other side may still send."""
        stream = self.streams[0 if connection is self.client else 1]
        assert stream is not None
        cancelled = None
        half = False
        try:
            stream.start(self._receiver(connection))
            half = await asyncio.shield(stream.ended)
        except asyncio.CancelledError as error:
            cancelled = error
        if half and cancelled is None and not stream.left:
            connection.state &= ~ConnectionState.CAN_READ
        else:
            connection.state = ConnectionState.CLOSED
            if isinstance(stream.error, ConnectionResetError):
                connection.error = "reset"
        self.dispatch(events.ConnectionClosed(connection))
        if connection.state is ConnectionState.CAN_WRITE:
            try:
                await asyncio.shield(stream.gone)
                connection.state = ConnectionState.CLOSED
            except asyncio.CancelledError as error:
                cancelled = error
        stream.close()
        self.transports.pop(connection, None)
        if cancelled is not None:
            raise cancelled

    def _receiver(self, connection: Connection) -> Callable[[Data], None]:
        dispatch = self.dispatch
        if not self.route.plain:
            return lambda data: dispatch(events.DataReceived(connection, bytes(data)))

        # Nothing stands between the socket and the relay: the layers need not be asked when all
        # that a read leads to is a write.
        side = 0 if connection is self.client else 1
        streams = self.streams
        kafka = self.kafka
        assert kafka is not None

        def receive(data: Data) -> None:
            relay = kafka.relay
            other = streams[1 - side]
            if relay is None or other is None or self._busy:
                dispatch(events.DataReceived(connection, data))  # type: ignore[arg-type]
                return
            try:
                actions = relay.feed(side, data, time_ns())
            except Exception:
                self._crash()
                return
            if actions is None:
                if not other.lost:
                    other.write(data)
            elif actions:
                dispatch(Acted(actions))

        return receive

    async def open_connection(self, command: commands.OpenConnection) -> None:
        server = command.connection
        assert isinstance(server, Server)
        try:
            stream, error = await self._connect(server)
        except asyncio.CancelledError:
            self.transports.pop(server, None)
            raise
        if stream is None:
            server.error = error
            self.transports.pop(server, None)
            self.dispatch(events.OpenConnectionCompleted(command, error))
            return
        server.state = ConnectionState.OPEN
        server.peername = stream.get_extra_info("peername")
        server.sockname = stream.get_extra_info("sockname")
        self.streams[1] = stream
        self.route.ports.append(server.sockname[1])
        self.transports[server] = ConnectionIO(
            handler=asyncio.current_task(),
            writer=stream,  # type: ignore[arg-type]
        )
        client = self.streams[0]
        assert client is not None
        header = self.route.header(self.client, client)
        if header:
            stream.write(header)
        stream.must_drain = lambda: self.relay is not None and self.relay.must_drain(BROKER)
        _couple(client, stream, self.route.hub)
        self.dispatch(events.OpenConnectionCompleted(command, None))
        await self.handle_connection(server)

    async def _connect(self, server: Server) -> tuple[Stream | None, str]:
        errors = []
        for host, port in self.route.upstreams(server):
            try:
                async with asyncio.timeout(self.route.hub.limits.connect_s):
                    if self.route.given(host, port):
                        stream = await self._reach(host, port)
                        self.route.destinations.trust(stream.get_extra_info("peername")[0])
                    else:
                        stream = await self._reach_advertised(host, port)
            except BrokerRefused as error:
                errors.append(str(error))
                continue
            except (OSError, TimeoutError, ValueError, OverflowError) as error:
                # The latter two: a name or a port that no broker can have.
                errors.append(no_broker(host, port, error))
                self.route.hub.metrics.add("upstream_failures_total", f"{host}:{port}")
                continue
            server.address = (host, port)
            return stream, ""
        return None, "; ".join(errors) or "no upstream is set"

    async def _reach(self, host: str, port: int) -> Stream:
        loop = asyncio.get_running_loop()
        _, stream = await loop.create_connection(lambda: Stream(self.route.arena), host, port)
        return stream

    async def _reach_advertised(self, host: str, port: int) -> Stream:
        """Connect to where a response says that a broker is: to the very address that is judged,
        for a name that is looked up twice may lead to two places."""
        loop = asyncio.get_running_loop()
        error: OSError = OSError("no address")
        for info in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            address = str(info[4][0])
            why = self.route.refusal(host, port, address)
            if why is not None:
                error = BrokerRefused(why)
                continue
            try:
                return await self._reach(address, port)
            except OSError as failed:
                error = failed
        raise error

    def close_connection(self, connection: Connection, half_close: bool = False) -> None:
        io = self.transports[connection]
        if half_close:
            if connection.state & ConnectionState.CAN_WRITE and io.writer is not None:
                io.writer.write_eof()
                connection.state &= ~ConnectionState.CAN_WRITE
        else:
            connection.state = ConnectionState.CLOSED
        if connection.state is ConnectionState.CLOSED and io.handler is not None:
            io.handler.cancel("closed by command")

    @property
    def busy(self) -> bool:
        relay = self.relay
        if relay is not None and relay.busy and not relay.context.over:
            return True
        return any(s is not None and not s.lost and s.unsent > 0 for s in self.streams)

    # --- memory

    def holds(self) -> int:
        """Bytes that it keeps now."""
        if self._cut:
            return 0
        relay = self.relay
        buffered = relay.kept if relay is not None else 0
        return buffered + sum(s.unsent for s in self.streams if s is not None and not s.lost)

    def wait(self, on: bool) -> None:
        """Stop reading the frames that are being kept, or read on."""
        relay = self.relay
        if relay is None:
            return
        for stream, direction in zip(self.streams, relay.directions, strict=True):
            if stream is not None:
                (stream.stop if on and direction.grows else stream.allow)(MEMORY)

    def grows(self) -> bool:
        """Whether it keeps a part of a frame whose rest is to come."""
        relay = self.relay
        return relay is not None and (relay.directions[0].grows or relay.directions[1].grows)

    def cut(self, holds: int) -> None:
        """Close the connection: all together keep too much."""
        self._cut = True
        relay = self.relay
        if relay is not None:
            relay.context.cause = "memory"
        hub = self.route.hub
        hub.once(
            f"memory {self.client.peername}",
            f"too much is kept for all connections together (--buffer): that of {self.peer}, "
            f"which keeps {holds} bytes, is closed",
        )
        # Not at once: its own read may be what was too much.
        asyncio.get_running_loop().call_soon(self.kill)

    def end(self) -> None:
        """End both sides when all is sent."""
        for io in tuple(self.transports.values()):
            if io.handler is not None:
                io.handler.cancel("the proxy is shutting down")

    def _finish(self, stream: Stream) -> None:
        stream.close()
        if stream.unsent:
            closing = self.route.closing
            closing.add(stream)
            stream.gone.add_done_callback(lambda _: closing.discard(stream))
            linger_s = self.route.hub.limits.linger_s
            asyncio.get_running_loop().call_later(linger_s, stream.abort)

    def kill(self) -> None:
        for stream in self.streams:
            if stream is not None:
                stream.abort()
        for io in tuple(self.transports.values()):
            if io.handler is not None:
                io.handler.cancel("killed")


def _couple(client: Stream, broker: Stream, hub: Hub) -> None:
    """Stop reading a side while the other one takes nothing. Where rules respond, a client that
    does not take its responses is not read either."""

    def client_full(on: bool) -> None:
        (broker.stop if on else broker.allow)(PEER_FULL)
        if not on:
            client.allow(SELF_FULL)
        elif hub.chain is not None:
            client.stop(SELF_FULL)
        if on:
            hub.grew(client.unsent)

    def broker_full(on: bool) -> None:
        (client.stop if on else client.allow)(PEER_FULL)
        if on:
            hub.grew(broker.unsent)

    client.on_full = client_full
    broker.on_full = broker_full
