"""Capture of loopback traffic with tcpdump while something runs."""

import os
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.interop.processes import tcpdump, until

REST_SECONDS = 3.0  # for what is still on its way to tcpdump: the kernel hands it on each second
TAIL = 1 << 20


@contextmanager
def sniff(path: Path, ports: Iterable[int], interface: str = "lo") -> Iterator[None]:
    """Write all packets from and to these ports to `path`; raises when the kernel dropped some."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mark:
        mark.bind(("127.0.0.1", 0))
        condition = " or ".join(f"tcp port {port}" for port in ports)
        condition += f" or udp port {mark.getsockname()[1]}"
        with tcpdump(interface, condition, "-U", "-B", "65536", "-w", str(path)):
            yield
            if interface == "lo":
                _all_is_in(path, mark)
            else:
                time.sleep(REST_SECONDS)
        _without_udp(path)


def _all_is_in(path: Path, mark: socket.socket) -> None:
    """Packets come in order: with one of ours, all before it are in the file."""
    token = os.urandom(16)
    mark.sendto(token, mark.getsockname())
    until(lambda: token in _tail(path))


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        return file.read()


def _without_udp(path: Path) -> None:
    """What follows the packet that was to be the last one is cut off, with it."""
    data = path.read_bytes()
    at = 24
    while at + 16 <= len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        if data[at + 16 + 12 : at + 16 + 14] == b"\x08\x00" and data[at + 16 + 23] == 17:
            os.truncate(path, at)
            return
        at += 16 + size
