"""One TCP connection of the proxy: a buffered protocol that also looks like the writer that
mitmproxy's core expects; and the memory that all sockets of a loop are read into.

Reading stops while anybody has a reason for it; the kernel's window then holds the sender back.
"""

from __future__ import annotations

import asyncio
import select
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.recording.direct import Lease
from kafkascope.proxy.relay.proxy_header import Balancer

# One read. Larger ones fall out of the cache, smaller ones cost more calls.
READ_BYTES: Final = 512 * 1024
# One read, while a recording holds all slabs, or many streams cannot send.
SCARCE_BYTES: Final = 64 * 1024
# With less room than that the next slab is taken.
LEAST_BYTES: Final = 128 * 1024
SLAB_BYTES: Final = 2 * READ_BYTES


class Arena:
    """Slabs of memory for reads. `view` is where the next read goes: see `room`.

    What is read is usually used up before the next read: the same memory serves again, which stays
    in the cache. A recording, or a transport that could not send all, keeps a lease on the slab; a
    slab without a lease is reused."""

    __slots__ = ("_at", "_free", "_lease", "_made", "held", "limits", "piles", "view")

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._free: deque[bytearray] = deque()
        self._made = 0
        self.held = False
        """Whether somebody keeps what was just read: see `advance`."""
        self.piles = 0
        """Streams that could not send all that was read for them."""
        self._next()

    @property
    def scarce(self) -> bool:
        return self._made >= self.limits.arena_slabs and not self._free

    @property
    def room(self) -> memoryview:
        """Where the next read goes, and how much it may be."""
        limits = self.limits  # asked for before each read: `scarce` is spelled out
        scarce = self._made >= limits.arena_slabs and not self._free
        if scarce or self.piles > limits.unsent_streams:
            return self.view[:SCARCE_BYTES]
        return self.view

    def keep(self, data: memoryview) -> Lease[bytearray] | None:
        """A lease on what was just read; None when it lies elsewhere, or too much is leased."""
        if data.obj is not self._lease.memory or self.scarce:
            return None
        self.held = True
        return self._lease

    def advance(self, used: int) -> None:
        """Leave the `used` bytes of the last read to those who keep them."""
        self.held = False
        self._at += used + 63 & ~63
        if SLAB_BYTES - self._at < LEAST_BYTES:
            self._next()
        else:
            self.view = memoryview(self._lease.memory)[self._at : self._at + READ_BYTES]

    def renew(self) -> None:
        """Leave the slab to a transport that needs it for an unknown time."""
        self._lease.leave()
        self._made -= 1
        self._next()

    def _next(self) -> None:
        if self._free:
            memory = self._free.pop()  # the last one: it may still be in a cache
        else:
            memory = bytearray(SLAB_BYTES)
            self._made += 1
        self._lease = Lease(memory, self._free)
        self._at = 0
        self.view = memoryview(memory)[:READ_BYTES]


Data: TypeAlias = bytes | memoryview

# Unsent bytes above which the other side is no longer read: none, for the next write shall go
# straight to the kernel, whose buffers are large enough, instead of being copied after the rest.
WRITE_HIGH: Final = 0

# Reason not to read: nobody listens yet.
STARTING: Final = 1
# Reason not to read: the other side does not take what was read.
PEER_FULL: Final = 2
# Reason not to read: the layer said so (a rule, a connection that is being opened).
LAYER: Final = 4
# Reason not to read: it does not take the responses that we gave in the broker's place.
SELF_FULL: Final = 16
# Reason not to read: the proxy stops and takes no new requests.
DRAINING: Final = 8
# Reason not to read: all connections together keep too much.
MEMORY: Final = 32


_LINGER_RESET: Final = struct.pack("ii", 1, 0)


KEEPS_VIEWS: Final = sys.version_info >= (3, 12)


# A peer that is gone without a word (a cable, a firewall) is noticed after two minutes of
# silence; the system would take two hours.
KEEP_ALIVE: Final = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))


def _keep_alive(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEP_ALIVE:
        option = getattr(socket, name, None)
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


class Stream(asyncio.BufferedProtocol):
    """A connection. `on_data` gets views that are valid during the call only."""

    def __init__(self, arena: Arena, made: Callable[[Stream], None] | None = None) -> None:
        self._arena = arena
        self._made = made
        self._why = STARTING
        self._early: list[bytes] = []
        self._reading = True
        self._asks = False
        self._full = False
        self._views = True
        self._leases: list[Lease[bytearray]] = []
        """On memory that the transport has to send from."""
        self.transport: asyncio.Transport = None  # type: ignore[assignment]
        self.on_data: Callable[[Data], None] | None = None
        self.on_full: Callable[[bool], None] | None = None
        """Told True when unsent bytes pile up, False when they are gone."""
        self.ended: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """True: the other end sends no more; False: the connection is lost."""
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when nothing can be read or written any more."""
        self.lost = False
        self.error: Exception | None = None
        self.left = False
        """The other end closed while we did not read: what it had sent before is not wanted."""
        self.balancer: Balancer | None = None
        self.must_drain: Callable[[], bool] | None = None
        """Returns whether what the other end sent before it left must still be forwarded."""

    # --- protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by its class
        self._views = KEEPS_VIEWS or not type(transport).__module__.startswith("asyncio")
        self.transport.set_write_buffer_limits(high=WRITE_HIGH)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            _keep_alive(sock)
        # Not at once: uvloop, and asyncio of 3.11.2, begin to read after `connection_made`,
        # whether or not reading was paused in it.
        asyncio.get_running_loop().call_soon(self._begin)

    def _begin(self) -> None:
        self._update()
        if self._made is not None:
            self._made(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._arena.room

    def buffer_updated(self, nbytes: int) -> None:
        arena = self._arena
        data = arena.view[:nbytes]
        if self.on_data is None or self._why & STARTING:
            self._early.append(bytes(data))
        else:
            self.on_data(data)
            if arena.held:
                arena.advance(nbytes)

    def eof_received(self) -> bool:
        if not self.ended.done():
            self.ended.set_result(True)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        self._empty()
        self.error = exc
        self._leases.clear()
        if not self.gone.done():
            self.gone.set_result(None)
        if not self.ended.done():
            self.ended.set_result(False)
        if self.on_full is not None:
            self.on_full(False)

    def pause_writing(self) -> None:
        if not self._full:
            self._full = True
            self._arena.piles += 1
        if self.on_full is not None:
            self.on_full(True)

    def resume_writing(self) -> None:
        self._empty()
        self._leases.clear()
        if self.on_full is not None:
            self.on_full(False)

    def _empty(self) -> None:
        if self._full:
            self._full = False
            self._arena.piles -= 1

    # --- reading

    def start(self, on_data: Callable[[Data], None]) -> None:
        self.on_data = on_data
        early, self._early = self._early, []
        self.allow(STARTING)
        for data in early:
            on_data(data)

    def again(self, early: bytes) -> None:
        """Stop reading; the next reader gets these bytes first."""
        self.on_data = None
        self.stop(STARTING)
        self._early = [early] if early else []

    def stop(self, reason: int) -> None:
        self._why |= reason
        self._update()
        if reason in (LAYER, MEMORY) and not self._asks:
            self._asks = True
            asyncio.get_running_loop().call_later(self._arena.limits.gone_check_s, self._check_gone)

    def _check_gone(self) -> None:
        """Find out whether the other end has left: a socket that is not read does not tell."""
        self._asks = False
        if self.lost or not self._why & (LAYER | MEMORY) or self.transport.is_closing():
            return
        sock = self.transport.get_extra_info("socket")
        if sock is not None and hasattr(select, "POLLRDHUP") and not self.ended.done():
            poll = select.poll()
            poll.register(sock.fileno(), select.POLLRDHUP)
            if poll.poll(0) and not (self.must_drain is not None and self.must_drain()):
                self.left = True
                self.ended.set_result(True)
                return
        self._asks = True
        asyncio.get_running_loop().call_later(self._arena.limits.gone_check_s, self._check_gone)

    def allow(self, reason: int) -> None:
        self._why &= ~reason
        self._update()

    def _update(self) -> None:
        reading = not self._why
        if reading != self._reading and not self.lost and not self.transport.is_closing():
            self._reading = reading
            if reading:
                self.transport.resume_reading()
            else:
                self.transport.pause_reading()

    # --- the writer that mitmproxy knows

    def write(self, data: Data) -> None:
        if self._views and type(data) is memoryview and self._arena.scarce:
            data = bytes(data)  # what is not sent at once stays with the transport
        self.transport.write(data)
        # In a pile even a full send is kept: the transport sends in order. Since Python 3.12, and
        # in uvloop, it keeps the view.
        if self._full and self._views and type(data) is memoryview:
            lease = self._arena.keep(data)
            if lease is not None:
                self._leases.append(lease)
            elif type(data.obj) is not bytes:
                self._arena.renew()

    @property
    def unsent(self) -> int:
        return self.transport.get_write_buffer_size()

    def write_eof(self) -> None:
        if not self.transport.is_closing():
            self.transport.write_eof()

    def is_closing(self) -> bool:
        return self.transport.is_closing()

    def close(self) -> None:
        """Close when all is sent."""
        self.transport.close()

    def reset(self) -> None:
        """Close at once, with RST."""
        sock = self.transport.get_extra_info("socket")
        if sock is not None:
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            except OSError:
                pass
        self.transport.abort()

    def abort(self) -> None:
        self.transport.abort()

    async def drain(self) -> None:
        """Return at once: back pressure works by `on_full`."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As the transport says; the client is the one that a load balancer names."""
        if name == "peername" and self.balancer is not None and self.balancer.header.client:
            return tuple(self.balancer.header.client)
        return self.transport.get_extra_info(name, default)
