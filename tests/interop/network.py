"""A network between one client and one broker that delays, loses, doubles, and slows down packets.

    client 10.60.0.2 -- c0 | c1 - client's half - broker's half - b1 | b0 -- broker 10.60.0.1
           capture "client"              "between"            capture "broker"

Three network namespaces. A process in the middle one forwards the frames: kernels of small
machines have no netem. TCP is end to end, its segments are those of the wire (no offloads).
"""

from __future__ import annotations

import heapq
import itertools
import json
import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path as File
from typing import Any, Final, NamedTuple

from tests.interop.demo.network import inside
from tests.interop.link import whole_frames
from tests.interop.processes import run, tcpdump
from tests.kit.samples import ROOT

CLIENT, BROKER = "10.60.0.2", "10.60.0.1"
POINTS: Final = ("client", "between", "broker")
IPV4: Final = 0x0800
"""Sockets for one protocol get arriving frames only; those for all get what they send, too."""
MAX_FRAME: Final = 1 << 16
PCAP_HEADER: Final = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
"""Microseconds, Ethernet."""
REST_SECONDS: Final = 0.3
"""For packets that are on their way when a client has closed its connections."""


class Interface(NamedTuple):
    """One end of the network."""

    name: str
    middle: str
    """The interface in the middle namespace to which it is linked."""
    address: str
    mac: str


INTERFACES: Final = {
    "client": Interface("c0", "c1", CLIENT, "02:00:00:00:00:02"),
    "broker": Interface("b0", "b1", BROKER, "02:00:00:00:00:01"),
}


class Path(NamedTuple):
    """One direction of one half of the network."""

    delay_ms: float = 0.0
    rate_kbit: float = 0.0
    """0: no limit. The queue in front of it has none."""
    drop: tuple[bytes, ...] = ()
    """The first packet that holds one of these is lost. Counting packets instead would depend on
    what else a client library sends."""
    double: tuple[bytes, ...] = ()
    """The first packet that holds one of these is forwarded two times."""


class Half(NamedTuple):
    """Both directions of one half of the network."""

    to_broker: Path = Path()
    to_client: Path = Path()


class Event(NamedTuple):
    """A packet that was dropped or doubled."""

    what: str
    half: str
    direction: str
    marker: bytes


class Recorded:
    """One run: the captures by point and, after its end, the dropped and doubled packets."""

    def __init__(self, folder: File) -> None:
        self.captures = {point: folder / f"{point}.pcap" for point in POINTS}
        self.events: list[Event] = []


class Network:
    """The namespaces and their interfaces; a context manager that removes them at its end."""

    def __init__(self) -> None:
        self._spaces = {point: f"kafkascope-{os.getpid()}-{point}" for point in POINTS}
        self._stack = ExitStack()

    def __enter__(self) -> Network:
        try:
            for space in self._spaces.values():
                run("ip", "netns", "add", space)
                self._stack.callback(run, "ip", "netns", "delete", space)
            for end, far in (("client", "broker"), ("broker", "client")):
                self._link(end, INTERFACES[end], INTERFACES[far])
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def _link(self, end: str, own: Interface, far: Interface) -> None:
        space, middle = self._spaces[end], self._spaces["between"]
        peer = ("peer", "name", own.name, "address", own.mac, "netns", space)
        run("ip", "-netns", middle, "link", "add", own.middle, "type", "veth", *peer)
        run("ip", "-netns", middle, "link", "set", own.middle, "up")
        run("ip", "-netns", space, "address", "add", f"{own.address}/24", "dev", own.name)
        for name in ("lo", own.name):
            run("ip", "-netns", space, "link", "set", name, "up")
        # No ARP: the first packet of a run would wait for one more round trip.
        neighbour = ("lladdr", far.mac, "dev", own.name, "nud", "permanent")
        run("ip", "-netns", space, "neighbour", "add", far.address, *neighbour)
        with inside(space):
            whole_frames(own.name)
            # Else a connection starts with what the one before it measured of the path.
            File("/proc/sys/net/ipv4/tcp_no_metrics_save").write_text("1")
        with inside(middle):
            whole_frames(own.middle)

    @contextmanager
    def inside(self, end: str) -> Iterator[None]:
        """Put this thread, and what it starts, into the namespace of `client` or `broker`."""
        with inside(self._spaces[end]):
            yield

    @contextmanager
    def recording(self, folder: File, client_half: Half, broker_half: Half) -> Iterator[Recorded]:
        """Connect both ends and capture at all points; packets are lost outside of it."""
        recorded = Recorded(folder)
        halves = {"client": client_half, "broker": broker_half}
        with ExitStack() as stack:
            for end, interface in INTERFACES.items():
                with inside(self._spaces[end]):
                    # Immediate: else the kernel hands packets over each second, and the end has
                    # to wait for it.
                    how = ("--immediate-mode", "-U", "-B", "16384")
                    to = ("-w", str(recorded.captures[end]))
                    stack.enter_context(tcpdump(interface.name, "tcp", *how, *to))
            with inside(self._spaces["between"]):
                stack.enter_context(_forwarder(recorded, halves))
            yield recorded
            time.sleep(REST_SECONDS)


@contextmanager
def _forwarder(recorded: Recorded, halves: dict[str, Half]) -> Iterator[None]:
    """Forward in the namespace of this thread until the end. In a process of its own: a thread
    would wait for the interpreter's lock while clients of this process run."""
    options = {
        half: {direction: path._asdict() for direction, path in paths._asdict().items()}
        for half, paths in halves.items()
    }
    command = [sys.executable, "-m", "tests.interop.network", str(recorded.captures["between"])]
    process = subprocess.Popen(
        [*command, json.dumps(options, default=bytes.hex)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "ready\n":
            raise RuntimeError("the forwarder does not start")
        yield
    finally:
        try:
            printed = process.communicate(timeout=20)[0]  # closes its stdin: it ends
        except subprocess.TimeoutExpired:
            process.kill()
            printed = process.communicate()[0]
    if process.returncode:
        raise RuntimeError(f"the forwarder ended with {process.returncode}")
    for line in printed.splitlines():
        what, half, direction, marker = json.loads(line)
        recorded.events.append(Event(what, half, direction, bytes.fromhex(marker)))


class _Hop:
    """One direction of one half, at work."""

    def __init__(self, half: str, direction: str, options: dict[str, Any]) -> None:
        self.names = half, direction
        self.delay = options["delay_ms"] / 1000
        self.rate = options["rate_kbit"] * 1000
        self.markers = {bytes.fromhex(marker): 0 for marker in options["drop"]}
        self.markers |= {bytes.fromhex(marker): 2 for marker in options["double"]}
        """Bytes -> copies of the first frame that holds them."""
        self.free_at = 0.0
        """When the frames before are transmitted."""

    def departures(self, frame: bytes) -> Iterator[float]:
        """Yield when a frame leaves: not at all, once, or two times."""
        copies = 1
        for marker in [marker for marker in self.markers if marker in frame]:
            copies = self.markers.pop(marker)
            print(json.dumps(["doubled" if copies else "dropped", *self.names, marker.hex()]))
        for _ in range(copies):
            self.free_at = max(time.monotonic(), self.free_at)
            if self.rate:
                self.free_at += len(frame) * 8 / self.rate
            yield self.free_at + self.delay


class _Route(NamedTuple):
    """The way from an interface, over both halves, to the interface on the other side."""

    hops: tuple[_Hop, _Hop]
    source: socket.socket
    target: socket.socket


def _forward(capture: File, options: dict[str, dict[str, Any]]) -> None:
    """Forward frames until stdin ends; write those that pass the middle to a capture."""
    sockets = {end: socket.socket(socket.AF_PACKET, socket.SOCK_RAW) for end in INTERFACES}
    routes = {}
    for near, far in (("client", "broker"), ("broker", "client")):
        sockets[near].bind((INTERFACES[near].middle, IPV4))
        direction = f"to_{far}"
        first, second = (_Hop(half, direction, options[half][direction]) for half in (near, far))
        routes[sockets[near].fileno()] = _Route((first, second), sockets[near], sockets[far])
    queue: list[tuple[float, int, int, _Route, bytes]] = []
    numbers = itertools.count()  # Frames that leave at the same time keep their order.
    stdin = sys.stdin.fileno()
    with capture.open("wb", 0) as file:
        file.write(PCAP_HEADER)

        def advance(route: _Route, step: int, frame: bytes) -> None:
            if step == len(route.hops):
                route.target.sendall(frame)
                return
            if step == 1:
                us = time.time_ns() // 1000
                size = len(frame)
                file.write(struct.pack("<IIII", *divmod(us, 10**6), size, size) + frame)
            for due in route.hops[step].departures(frame):
                heapq.heappush(queue, (due, next(numbers), step + 1, route, frame))

        print("ready", flush=True)
        while True:
            timeout = max(0.0, queue[0][0] - time.monotonic()) if queue else None
            readable = select.select([stdin, *routes], [], [], timeout)[0]
            if stdin in readable:
                return
            for number in readable:
                advance(routes[number], 0, routes[number].source.recv(MAX_FRAME))
            while queue and queue[0][0] <= time.monotonic():
                _, _, step, route, frame = heapq.heappop(queue)
                advance(route, step, frame)


if __name__ == "__main__":
    _forward(File(sys.argv[1]), json.loads(sys.argv[2]))
