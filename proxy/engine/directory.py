"""The known brokers and the listeners that stand for them. State and sockets, no traffic."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from kafkascope.proxy.limits import LIMITS, Limits, remember

if TYPE_CHECKING:
    from kafkascope.proxy.relay.context import Context

BACKLOG: Final = 512
# A node that the cluster no longer lists keeps its listener for so long: clients refresh their
# metadata every five minutes (metadata.max.age.ms), and a broker that restarts is back by then.
GONE_NS: Final = 5 * 60 * 1_000_000_000
# Before an address: `PLAINTEXT://`. Kafka's clients skip it, too (`Utils.HOST_PORT_PATTERN`).
LISTENER: Final = re.compile(r"[0-9a-zA-Z%._-]*://")


class Address(NamedTuple):
    """A host and a port, as people write them."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_host(name: str) -> bool:
    """Whether a name can be looked up at all: `a..b`, labels over 63 letters and spaces cannot."""
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


def parse_address(text: str, *, port: int = 9092) -> Address:
    """Parse `host:port`, `:port`, `host` or `[::1]:port`, which may have a listener's name before
    it (`PLAINTEXT://host:port`); `ValueError` with a sentence."""
    rest = without_listener(text.strip())
    if rest.startswith("["):
        name, _, rest = rest[1:].partition("]")
        digits = rest.removeprefix(":")
    elif rest.count(":") > 1:
        name, digits = rest, ""
    else:
        name, colon, digits = rest.partition(":")
        if name.isdecimal() and not colon:
            raise ValueError(f"{text!r} is only a port; write :{name}")
    if digits and not (digits.isdecimal() and int(digits) < 65_536):
        raise ValueError(f"{text!r} has no port between 0 and 65535")
    if not is_host(name):
        raise ValueError(f"{text!r} has no host name")
    return Address(name or "127.0.0.1", int(digits) if digits else port)


def without_listener(text: str) -> str:
    """An address without the name of its listener: `PLAINTEXT://host:port` is `host:port`."""
    named = LISTENER.match(text)
    return text[named.end() :] if named else text


@dataclass(slots=True, eq=False)
class Listener:
    """A socket that clients connect to."""

    node_id: int | None
    """None: the address that clients start with."""
    socket: socket.socket
    address: Address
    server: asyncio.Server | None = None
    """Accepts from the socket, once it does."""
    connections: int = 0
    """Open now."""
    closed: bool = False

    def close(self) -> None:
        """Stop accepting; open connections stay."""
        self.closed = True
        if self.server is not None:
            self.server.close()
        self.socket.close()


def open_socket(address: Address) -> socket.socket:
    """Open a listening socket; `OSError`."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(address)) from None
    family, _, _, _, where = found[0]
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


@dataclass(eq=False)
class Nodes:
    """The brokers of the cluster, as responses advertised them, with a listener for each."""

    upstreams: list[Address]
    listen: Callable[[Listener], None]
    host: str
    port_base: int | None = None
    advertised: str | None = None
    limits: Limits = LIMITS
    generation: int = 0

    def __post_init__(self) -> None:
        self.known: dict[int, Address] = {}
        self.listeners: dict[int, Listener] = {}
        self._gone: dict[int, int] = {}
        """Nodes that the cluster no longer lists -> since when, longest first."""
        self._listed: set[int] = set()
        """Those with a listener that are not gone."""
        self._ports: dict[int, int] = {}
        """Ports of listeners that were taken back: a node that returns gets its port if it is
        free."""

    def advertise(self, context: Context, node_id: int, host: str, port: int) -> tuple[str, int]:
        if len(host) > self.limits.host_chars:
            raise OSError(f"broker {node_id} has an advertised host name of {len(host)} characters")
        listener = self.listeners.get(node_id)
        if listener is None:
            listener = self._open(node_id)
        self._gone.pop(node_id, None)
        self._listed.add(node_id)
        if self.known.get(node_id) != (host, port):
            self.known[node_id] = Address(host, port)
            self.generation += 1
        return self.advertised or context.advertise_host or self.host, listener.address.port

    def brokers(self, context: Context) -> list[tuple[int, str, int]]:
        return [
            (node_id, *self.advertise(context, node_id, *known))
            for node_id, known in tuple(self.known.items())
            if node_id not in self._gone
        ]

    def listed(self, context: Context, node_ids: Collection[int]) -> None:
        if not node_ids:
            return  # a broker that has just started knows nobody
        now_ns = context.now_ns
        for node_id in node_ids:
            if self._gone.pop(node_id, None) is not None:
                self._listed.add(node_id)
        for node_id in self._listed.difference(node_ids):
            self._listed.discard(node_id)
            self._gone[node_id] = now_ns
        long = takewhile(lambda each: now_ns - each[1] >= GONE_NS, self._gone.items())
        for node_id, _ in tuple(long):
            self._take_back(node_id)

    def close(self) -> None:
        """Close all listeners; the brokers stay known."""
        for listener in self.listeners.values():
            listener.close()
        self.listeners.clear()
        self._gone.clear()
        self._listed.clear()

    def _take_back(self, node_id: int) -> bool:
        """Close the listener of a node that is gone, unless it has connections."""
        listener = self.listeners[node_id]
        if listener.connections:
            return False
        listener.close()
        for known in (self.listeners, self.known, self._gone):
            del known[node_id]
        remember(self._ports, node_id, listener.address.port, self.limits.nodes)
        self.generation += 1
        return True

    def _take_back_one(self) -> bool:
        """Close the listener of the node that has been gone for longest; False: there is none."""
        return any(map(self._take_back, tuple(self._gone)))

    def _socket(self, node_id: int) -> socket.socket:
        if self.port_base is not None:
            port = self.port_base + node_id
            if not 0 <= port < 65_536:
                raise OSError(f"node {node_id} would need port {port} (--port-base)")
            return open_socket(Address(self.host, port))
        before = self._ports.pop(node_id, 0)
        try:
            return open_socket(Address(self.host, before))
        except OSError as error:
            if not before or error.errno != errno.EADDRINUSE:
                raise
            return open_socket(Address(self.host, 0))

    def _open(self, node_id: int) -> Listener:
        if len(self.listeners) >= self.limits.nodes and not self._take_back_one():
            raise OSError(f"the cluster advertises more than {self.limits.nodes} brokers")
        try:
            sock = self._socket(node_id)
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._take_back_one():
                raise
            sock = self._socket(node_id)
        name = sock.getsockname()
        listener = Listener(node_id, sock, Address(name[0], name[1]))
        self.listeners[node_id] = listener
        self.listen(listener)
        return listener

    def candidates(self, node_id: int | None) -> list[Address]:
        """The addresses to connect to for a listener, in order."""
        if node_id is not None:
            known = self.known.get(node_id)
            return [] if known is None else [known]
        return list(dict.fromkeys((*self.upstreams, *self.known.values())))


# Seconds for a connection at the start.
TRY_S: Final = 5.0
# In the text of asyncio's error about several addresses of a host, which has no number itself.
_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")


def no_broker(host: str, port: int, error: Exception) -> str:
    return f"no broker answers at {host}:{port} ({reason(error)})"


def reason(error: Exception) -> str:
    if isinstance(error, socket.gaierror):
        return (error.strerror or "the host has no address").lower()
    if isinstance(error, TimeoutError):
        return "timed out"
    number = getattr(error, "errno", None)
    inside = _ERRNO.search(str(error))
    if number is None and inside is not None:
        number = int(inside[1])
    if number is not None:
        return os.strerror(number).lower()
    return str(error) or "no reason given"


def unanswered(addresses: Sequence[Address], report: Callable[[str], None]) -> None:
    """Try each address and report those at which no broker answers. Blocks: for a thread."""
    for address in addresses:
        try:
            socket.create_connection((address.host, address.port), TRY_S).close()
        except (OSError, UnicodeError) as error:
            report(no_broker(address.host, address.port, error))
