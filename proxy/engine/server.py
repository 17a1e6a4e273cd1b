"""Start and stop a proxy. The only module that owns an event loop's things.

async with KafkaProxy("broker:9092") as proxy:
    client.connect(proxy.bootstrap)
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from kafkascope.analyzer.reading.options import SchemaOptions
from kafkascope.captures.model import Endpoint
from kafkascope.proxy.engine import descriptors
from kafkascope.proxy.engine.destinations import Destinations, parse_network
from kafkascope.proxy.engine.directory import Address, Listener, Nodes, open_socket, parse_address
from kafkascope.proxy.engine.held import HeldFrames
from kafkascope.proxy.engine.memory import Memory
from kafkascope.proxy.engine.schemas import ProxySchemas
from kafkascope.proxy.engine.stream import DRAINING, Arena, Data, Stream
from kafkascope.proxy.engine.tls import ClientTls, Tls, UpstreamTls
from kafkascope.proxy.hub import Hub
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.relay.endpoints import Endpoints, VersionLimiter
from kafkascope.proxy.relay.proxy_header import NO_HEADERS, Balancer, HeaderReader, ProxyProtocol
from kafkascope.proxy.rules.rules import Chain, Rule

if TYPE_CHECKING:
    from kafkascope.proxy.engine.handler import Handler
    from kafkascope.proxy.engine.route import Mode, Route
    from kafkascope.proxy.recording.recorder import Recorder

# For answers that are still to come when the proxy stops.
STOP_SECONDS: Final = 5.0


class KafkaProxy:
    """A proxy in front of a Kafka cluster; an async context manager that can start and stop
    again."""

    def __init__(
        self,
        upstream: str | Iterable[str] = (),
        *,
        listen: str = "127.0.0.1:0",
        mode: Mode = "reverse",
        port_base: int | None = None,
        advertise: str | None = None,
        clamp: bool = True,
        rules: Iterable[Rule] = (),
        recorder: Recorder | None = None,
        tls: ClientTls | None = None,
        upstream_tls: UpstreamTls | None = None,
        folder: Path | None = None,
        buffer_bytes: int = LIMITS.buffer_bytes,
        allow_brokers: Iterable[str] = (),
        schemas: SchemaOptions | None = None,
        proxy_protocol: ProxyProtocol = NO_HEADERS,
        limits: Limits = LIMITS,
    ) -> None:
        """`upstream`: addresses that are tried in order, `host:port[,host:port]`. `listen` with
        port 0 takes any free one. `folder` keeps the CA of generated certificates. `buffer_bytes`:
        what all connections together may keep. `allow_brokers`: networks in which brokers may be
        though the upstream is of another kind (see `destinations`). `schemas`: where those of keys
        and values come from, besides the traffic. `proxy_protocol`: whether clients come through
        load balancers that send its headers, and whether brokers get some."""
        parts = upstream.split(",") if isinstance(upstream, str) else upstream
        upstreams = [parse_address(part) for part in parts if part.strip()]
        if mode == "reverse" and not upstreams:
            raise ValueError("an upstream broker is required")
        self._listen_at = parse_address(listen, port=0)
        self.mode: Mode = mode
        self.hub = Hub(limits)
        self.held = HeldFrames(
            lambda: {h.relay.context: h.steer for h in self.handlers if h.relay is not None}
        )
        self.hub.held = self.held
        self.schemas = ProxySchemas(self.hub, schemas or SchemaOptions())
        self.hub.matches = self.schemas.holds
        self.hub.payloads = lambda: self.schemas.held
        self.rules = Chain(rules)
        """May change while traffic flows."""
        self.rules.attach(self.hub)
        self.nodes = Nodes(
            upstreams,
            self._serve_soon,
            host=self._listen_at.host,
            port_base=port_base,
            advertised=advertise,
            limits=limits,
        )
        self.destinations = Destinations(map(parse_network, allow_brokers))
        for each in upstreams:
            self.destinations.trust(each.host)  # names: when they are resolved
        if mode == "reverse":
            self.hub.endpoints = Endpoints(self.nodes)
            self.hub.versions = VersionLimiter() if clamp else None
        names = (advertise,) if advertise else ()
        if tls is not None and names:
            tls = ClientTls(tls.certificate, tls.key, tls.ca, (*tls.names, *names))
        self.tls = Tls(tls, upstream_tls, folder=folder)
        self.tls.on_failure = self.hub.once
        self.recorder = recorder
        self.hub.recording = recorder
        if recorder is not None:
            recorder.hub = self.hub
            self.hub.with_secrets = recorder.secrets
        self.handlers: set[Handler] = set()
        self.upstream_ports: deque[int] = deque(maxlen=100_000)
        """Local ports of the connections to brokers, oldest first: what the brokers see of us."""
        self.memory = Memory(lambda: self.handlers, self._look_again, buffer_bytes)
        self.hub.grew = self.memory.grew
        self._looking: asyncio.TimerHandle | None = None
        self.arena = Arena(limits)
        self.hub.lease = self.arena.keep
        self._proxy_protocol = proxy_protocol
        self._greeting: set[Stream] = set()
        """Whose PROXY protocol header is still to come."""
        self._closing: set[Stream] = set()
        """See `Route.closing`."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._first: Listener | None = None
        """Where clients start; the others are those of `nodes`."""
        self._stopping = False
        self._most = 0
        self.address = Address("", 0)

    # --- life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen; clients may connect when this returns. `OSError` when the address is taken."""
        # The engine takes half a second to load: not before it is needed.
        from kafkascope.proxy.engine import handler, route  # noqa: F401

        self.tls.load()
        if self.mode == "transparent":
            from mitmproxy import platform

            if platform.init_transparent_mode is not None:
                platform.init_transparent_mode()
        self._stopping = False
        self._most = descriptors.connections()
        # The address first: where it is taken, no file begins, and no reader of the recording ends.
        sock = open_socket(self._listen_at)
        try:
            if self.recorder is not None:
                self.recorder.start()
        except BaseException:
            sock.close()
            raise
        name = sock.getsockname()
        self.address = Address(name[0], name[1])
        self._first = Listener(None, sock, self.address)
        await self._serve(self._first)

    async def stop(self, deadline_s: float = STOP_SECONDS) -> None:
        """Accept no more, wait for pending responses, then close everything."""
        self._stopping = True
        self._listen_no_more()
        for handler in tuple(self.handlers):
            stream = handler.streams[0]
            if stream is not None and not stream.lost:
                stream.stop(DRAINING)
        end = asyncio.get_running_loop().time() + deadline_s
        while any(h.busy for h in self.handlers) and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)
        for handler in tuple(self.handlers):
            handler.end()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=max(0.2, deadline_s / 5))
        self.kill()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=5)
        if self._closing:
            await asyncio.wait([stream.gone for stream in self._closing], timeout=5)
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self.memory.look()  # at nothing: it remembers nobody
        self.nodes.close()
        self.schemas.close()
        for rule in self.rules:
            close = getattr(rule, "close", None)
            if close is not None:
                close()
        if self.recorder is not None:
            await asyncio.to_thread(self.recorder.stop)

    def kill(self) -> None:
        self._listen_no_more()
        for handler in tuple(self.handlers):
            handler.kill()
        for stream in (*self._closing, *self._greeting):
            stream.abort()

    def _listen_no_more(self) -> None:
        if self._first is not None:
            self._first.close()
        for listener in self.nodes.listeners.values():
            listener.close()

    @property
    def bootstrap(self) -> str:
        return str(self.address)

    def status(self) -> dict[str, Any]:
        self.count_sinks()
        recorder = self.recorder
        return {
            "bootstrap": self.bootstrap,
            "mode": self.mode,
            "nodes": {
                str(node_id): {
                    "broker": str(self.nodes.known[node_id]),
                    "listener": str(listener.address),
                }
                for node_id, listener in self.nodes.listeners.items()
            },
            "connections": len(self.handlers),
            "held": len(self.held),
            "files": list(map(str, recorder.files[-self.hub.limits.status_files :]))
            if recorder is not None
            else [],
        }

    def count_sinks(self) -> None:
        if self.recorder is not None:
            dropped = self.hub.metrics.counters["recorder_dropped_total"]
            dropped["queue"] = self.recorder.dropped
            for sink in self.recorder.sinks:
                dropped[sink.name] = sink.dropped

    def _look_again(self) -> None:
        def look() -> None:
            self._looking = None
            self.memory.look()

        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(
                self.hub.limits.memory_look_s, look
            )

    # --- listening

    def _serve_soon(self, listener: Listener) -> None:
        """Start to serve a listener. Its socket accepts already: clients wait a moment in its
        queue."""
        self._begin(self._serve(listener))

    def _begin(self, what: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, listener: Listener) -> None:
        from kafkascope.proxy.engine.route import Route, options

        route = Route(
            *(self.hub, self.arena, self.mode, self.nodes, self.tls, self.destinations),
            node_id=listener.node_id,
            ports=self.upstream_ports,
            sends=self._proxy_protocol.sends,
            closing=self._closing,
        )
        made = options()
        loop = asyncio.get_running_loop()
        if listener.closed:
            return

        def accepted(stream: Stream) -> None:
            self._accepted(stream, route, made, listener)

        listener.server = await loop.create_server(
            lambda: Stream(self.arena, accepted), sock=listener.socket
        )
        if self._stopping or listener.closed:
            listener.close()

    def _accepted(self, stream: Stream, route: Route, made: object, listener: Listener) -> None:
        from kafkascope.proxy.engine.handler import Handler

        if self._stopping:
            stream.abort()
            return
        if self._most and len(self.handlers) + len(self._greeting) >= self._most:
            self.hub.metrics.add("connections_refused_total")
            self.hub.once(
                "refused",
                f"{len(self.handlers)} connections are open, more are refused until some end: "
                f"this process may have {descriptors.limit()} files open (ulimit -n)",
            )
            stream.abort()
            return
        if self._proxy_protocol.accepts and stream.balancer is None:
            self._await_header(stream, lambda: self._accepted(stream, route, made, listener))
            return
        try:
            handler = Handler(stream, made, route.spec, route)  # type: ignore[arg-type]
        except OSError as error:
            self.hub.once(f"accept {error}", f"cannot serve a connection: {error}")
            stream.abort()
            return
        self.handlers.add(handler)
        self.hub.metrics.add("connections_total")
        self.hub.metrics.add("connections")
        self._begin(self._run(handler, listener))

    def _await_header(self, stream: Stream, serve: Callable[[], None]) -> None:
        """Read the header that a load balancer sends before the bytes of its client."""
        loop = asyncio.get_running_loop()
        reader, name = HeaderReader(), stream.get_extra_info("peername")
        address = Endpoint(name[0], name[1]) if name else Endpoint("0.0.0.0", 0)
        self._greeting.add(stream)

        def over() -> None:
            self._greeting.discard(stream)
            late.cancel()

        def refuse(why: str) -> None:
            over()
            sentence = f"{why} (--proxy-protocol accept requires one): its connection is closed"
            self.hub.once(f"header {address.host} {why}", f"client {address}: {sentence}")
            stream.abort()

        def receive(data: Data) -> None:
            try:
                header = reader.feed(data)
            except ValueError as error:
                refuse(str(error))
                return
            if header is not None:
                over()
                begun, rest = reader.split(header)
                stream.balancer = Balancer(address, header, begun)
                stream.again(rest)
                serve()

        def ended(_: object) -> None:
            if stream in self._greeting:
                over()
                stream.close()

        wait_s = self.hub.limits.header_s
        late = loop.call_later(wait_s, refuse, f"no PROXY protocol header within {wait_s:g} s")
        stream.ended.add_done_callback(ended)
        # Not at once: uvloop reads on when told so in `connection_made`.
        loop.call_soon(stream.start, receive)

    async def _run(self, handler: Handler, listener: Listener) -> None:
        listener.connections += 1
        try:
            await handler.handle_client()
        finally:
            listener.connections -= 1
            self.handlers.discard(handler)
            self.hub.metrics.add("connections", count=-1)
