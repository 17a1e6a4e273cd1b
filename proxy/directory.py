"""Brokers that are known and the listeners that stand for them. State and sockets, no traffic."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from proxy.state import State

MAX_NODES: Final = 2_000
"""Listeners that a cluster may make us open; large clusters have some hundreds of brokers."""
BACKLOG: Final = 512


class Address(NamedTuple):
    """Host and port as people write them."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_host(name: str) -> bool:
    """Whether a name can be looked up at all: `a..b`, labels over 63 letters, spaces cannot."""
    if not name.isprintable() or " " in name:
        return False
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def whole_address(text: str, *, least: int = 0) -> Address | None:
    """`host:port` with both of them, the port not below `least`; None for anything else."""
    host, _, port = text.rpartition(":")
    if not host or not is_host(host) or not port.isdecimal() or not least <= int(port) < 65_536:
        return None
    return Address(host.strip("[]"), int(port))


def parse_address(text: str, *, host: str = "127.0.0.1", port: int = 9092) -> Address:
    """`host:port`, `:port`, `host`, `[::1]:port`; `ValueError` with a sentence."""
    rest = text.strip()
    if rest.startswith("["):
        name, _, rest = rest[1:].partition("]")
        digits = rest.removeprefix(":")
    elif rest.count(":") > 1:
        name, digits = rest, ""
    else:
        name, colon, digits = rest.partition(":")
        if name.isdecimal() and not colon:
            raise ValueError(f"{text!r} is a port alone; write :{name}")
    if digits and not (digits.isdecimal() and int(digits) < 65_536):
        raise ValueError(f"{text!r} has no port between 0 and 65535")
    if not is_host(name):
        raise ValueError(f"{text!r} has no name of a host")
    return Address(name or host, int(digits) if digits else port)


@dataclass(slots=True)
class Listener:
    """A socket that clients connect to."""

    node_id: int | None
    """None: the address that clients start with."""
    socket: socket.socket
    address: Address


def open_socket(address: Address) -> socket.socket:
    """A socket that accepts from now on; `OSError`."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        infos = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(address)) from None
    for info in infos:
        family = info[0]
        where = info[4]
        break
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(where)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        raise OSError(error.errno, error.strerror, str(address)) from None
    sock.setblocking(False)
    return sock


class Nodes:
    """The cluster as responses told it; a listener for each broker from the moment it is named."""

    def __init__(
        self,
        upstreams: list[Address],
        listen: Callable[[Listener], None],
        *,
        host: str,
        port_base: int | None = None,
        advertise: str | None = None,
    ) -> None:
        self.upstreams = upstreams
        self.generation = 0
        self.known: dict[int, Address] = {}
        self.listeners: dict[int, Listener] = {}
        self._listen = listen
        self._host = host
        self._port_base = port_base
        self._advertise = advertise

    def advertise(self, relay: State, node_id: int, host: str, port: int) -> tuple[str, int]:
        """See `addresses.Directory`."""
        if self.known.get(node_id) != (host, port):
            self.known[node_id] = Address(host, port)
            self.generation += 1
        listener = self.listeners.get(node_id)
        if listener is None:
            listener = self._open(node_id)
        return self._advertise or relay.advertise_host or self._host, listener.address.port

    def brokers(self, relay: State) -> list[tuple[int, str, int]]:
        """See `addresses.Directory`."""
        return [
            (node_id, *self.advertise(relay, node_id, *known))
            for node_id, known in tuple(self.known.items())
        ]

    def _open(self, node_id: int) -> Listener:
        if len(self.listeners) >= MAX_NODES:
            raise OSError(f"the cluster names more than {MAX_NODES} brokers")
        port = 0 if self._port_base is None else self._port_base + node_id
        if not 0 <= port < 65_536:
            raise OSError(f"node {node_id} would need port {port} (--port-base)")
        sock = open_socket(Address(self._host, port))
        name = sock.getsockname()
        listener = Listener(node_id, sock, Address(name[0], name[1]))
        self.listeners[node_id] = listener
        self._listen(listener)
        return listener

    def candidates(self, node_id: int | None) -> list[Address]:
        """Where to connect to for a listener, in order."""
        if node_id is not None:
            return [self.known[node_id]]
        return list(dict.fromkeys((*self.upstreams, *self.known.values())))
