"""Common facts of the connections of a listener: mode, layers, upstreams, TLS."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from mitmproxy.connection import Client, Server
from mitmproxy.options import Options
from mitmproxy.proxy import layer, tunnel
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import modes
from mitmproxy.proxy.mode_specs import ProxyMode

from kafkascope.captures.model import Endpoint
from kafkascope.captures.proxy_protocol import header_of
from kafkascope.proxy.engine.destinations import Destinations
from kafkascope.proxy.engine.directory import Nodes
from kafkascope.proxy.engine.layer import BrokerTlsLayer, ClientHelloLayer, KafkaLayer
from kafkascope.proxy.engine.stream import Arena, Stream
from kafkascope.proxy.engine.tls import Tls
from kafkascope.proxy.hub import Hub

Mode = Literal["reverse", "transparent", "socks5"]


def options() -> Options:
    """mitmproxy's options, as its layers need them without its add-ons."""
    made = Options()
    made.add_option("connection_strategy", str, "lazy", "")
    made.add_option("tcp_timeout", int, 600, "")
    return made


class Top(layer.Layer):
    """The topmost layer."""

    child_layer: layer.Layer

    def _handle_event(self, event: Any) -> Any:
        yield from self.child_layer.handle_event(event)

    def handle_event(self, event: Any) -> Any:
        return self.child_layer.handle_event(event)


class Socks(modes.Socks5Proxy):
    """mitmproxy's layer, which says what it refuses."""

    def __init__(self, context: Context, hub: Hub) -> None:
        super().__init__(context)
        self.hub = hub

    def socks_err(self, message: str, reply_code: int | None = None) -> Any:
        # A Kafka client without SOCKS settings begins with the size of a request.
        self.hub.once(f"socks {message}", f"client refused by --mode socks5: {message}")
        return super().socks_err(message, reply_code)


@dataclass(eq=False)
class Route:
    """Serves the connections of one listener."""

    hub: Hub
    arena: Arena
    mode: Mode
    nodes: Nodes
    tls: Tls
    destinations: Destinations
    node_id: int | None = None
    ports: deque[int] = field(default_factory=lambda: deque(maxlen=1000))
    sends: int = 0
    """Version of the PROXY protocol header that brokers get; 0: none."""
    closing: set[Stream] = field(default_factory=set)
    """Streams of connections that are over: their last bytes are on their way."""

    def __post_init__(self) -> None:
        reverse = "reverse:tcp://127.0.0.1:9092"
        self.spec = ProxyMode.parse(reverse if self.mode == "reverse" else self.mode)

    @property
    def plain(self) -> bool:
        """Whether reads may be passed on as views: no TLS, no preamble to keep."""
        return self.mode != "socks5" and not self.tls.client and not self.tls.upstream

    def begin(self, context: Context, stream: Stream) -> tuple[layer.Layer, KafkaLayer | None]:
        """Return the layers of a new connection, see `layers`; after SOCKS these come later."""
        context.layers.clear()
        if self.mode == "socks5":
            return Socks(context, self.hub), None
        if self.mode == "transparent":
            context.server.address = self._original(stream)
            context.client.sockname = context.server.address
        return self.layers(context, stream)

    def _original(self, stream: Stream) -> tuple[str, int]:
        from mitmproxy import platform

        if platform.original_addr is None:
            raise OSError("transparent mode is not supported on this system")
        address = platform.original_addr(stream.get_extra_info("socket"))
        return address[0], address[1]

    def layers(self, context: Context, stream: Stream) -> tuple[layer.Layer, KafkaLayer]:
        stack = tunnel.LayerStack()
        top = Top(context)
        stack /= top
        if self.tls.upstream:
            stack /= BrokerTlsLayer(context)
        if self.tls.client:
            stack /= ClientHelloLayer(context)
        kafka = KafkaLayer(context, self.hub, tls=not self.plain)
        stack /= kafka
        kafka.balancer = stream.balancer
        return stack[0], kafka

    def upstreams(self, server: Server) -> Iterable[tuple[str, int]]:
        if self.mode != "reverse":
            return [(server.address[0], server.address[1])] if server.address else []
        return self.nodes.candidates(self.node_id)

    def given(self, host: str, port: int) -> bool:
        """Whether the user, or the client by the mode, named that address: then it is not
        judged."""
        return self.mode != "reverse" or (host, port) in self.nodes.upstreams

    def refusal(self, host: str, port: int, address: str) -> str | None:
        """Why a broker's address, as advertised and as looked up, is not connected
        to; None when it is."""
        why = self.destinations.refusal(address)
        if why is None:
            return None
        self.hub.metrics.add("upstreams_refused_total")
        broker = "a broker" if self.node_id is None else f"node {self.node_id}"
        return (
            f"{broker} is said to be at {host}:{port}, which is not connected to: {why} "
            f"(--allow-broker {address.partition('%')[0]} allows it)"
        )

    def header(self, client: Client, stream: Stream) -> bytes:
        """The header with the client's address for a broker; empty if it gets none."""
        if not self.sends:
            return b""
        target = client.sockname
        if stream.balancer is not None and stream.balancer.header.server is not None:
            target = stream.balancer.header.server
        ends = (Endpoint(name[0], name[1]) for name in (client.peername, target))
        return header_of(self.sends, *ends)
