"""A poor link between two network interfaces: frames go on late, and some of them never.

Kernels of small machines have no netem, so a thread of this process carries the frames.
"""

import array
import fcntl
import heapq
import random
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

ALL_FRAMES: Final = 3
SIOCETHTOOL: Final = 0x8946
OFFLOADS: Final = (0x17, 0x1F, 0x24, 0x2C)
"""Of ethtool: checksums, TCP segmentation, segmentation at large, receive offload."""
LARGEST: Final = 1 << 16
NOTHING: Final = 80
"""Frames so short carry no request and no answer: handshakes and bare acknowledgements."""


class Link(NamedTuple):
    """How poor a link is."""

    delay: float = 0.0
    """Seconds, in each direction."""
    loss: float = 0.0
    """Share of the frames with a payload that get lost, in each direction."""


def whole_frames(interface: str) -> None:
    """Make frames as they are on a wire, with checksums and no longer than the MTU: else the
    network card would have to, and there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for what in OFFLOADS:
            value = array.array("I", (what, 0))
            asked = struct.pack("16sQ16x", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(control, SIOCETHTOOL, asked)


@contextmanager
def joined(one: str, other: str, link: Link) -> Iterator[None]:
    """Carry the frames between two interfaces of this namespace."""
    sockets = [_opened(name) for name in (one, other)]
    stop = threading.Event()
    thread = threading.Thread(target=_carry, args=(sockets, link, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        for each in sockets:
            each.close()


def _opened(name: str) -> socket.socket:
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
    found.bind((name, ALL_FRAMES))
    return found


def _carry(sockets: list[socket.socket], link: Link, stop: threading.Event) -> None:
    chance = random.Random(4)
    waiting: list[tuple[float, int, socket.socket, bytes]] = []
    number = 0
    while not stop.is_set():
        rest = waiting[0][0] - time.monotonic() if waiting else 0.1
        for each in select.select(sockets, [], [], max(0.0, min(rest, 0.1)))[0]:
            frame, sender = each.recvfrom(LARGEST)
            lost = len(frame) > NOTHING and chance.random() < link.loss
            if sender[2] != socket.PACKET_OUTGOING and not lost:
                other = sockets[each is sockets[0]]
                number += 1
                heapq.heappush(waiting, (time.monotonic() + link.delay, number, other, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, _, other, frame = heapq.heappop(waiting)
            other.send(frame)
