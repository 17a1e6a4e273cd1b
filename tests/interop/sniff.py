"""Capture of loopback traffic with tcpdump while something runs."""

import os
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

REST_SECONDS = 3.0  # for what is still on its way to tcpdump: the kernel hands it on each second
LAST_SECONDS = 60.0
TAIL = 1 << 20


@contextmanager
def sniff(path: Path, ports: Iterable[int], interface: str = "lo") -> Iterator[None]:
    """Write all packets from and to these ports to `path`; raises when the kernel dropped some."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mark:
        mark.bind(("127.0.0.1", 0))
        condition = " or ".join(f"tcp port {port}" for port in ports)
        condition += f" or udp port {mark.getsockname()[1]}"
        with _tcpdump(path, condition, interface):
            yield
            if interface == "lo":
                _all_is_in(path, mark)
            else:
                time.sleep(REST_SECONDS)


def _all_is_in(path: Path, mark: socket.socket) -> None:
    """Packets come in order: with one of ours, all before it are in the file."""
    token = os.urandom(16)
    mark.sendto(token, mark.getsockname())
    end = time.monotonic() + LAST_SECONDS
    while token not in _tail(path):
        if time.monotonic() > end:
            raise RuntimeError("the last packet does not get to tcpdump")
        time.sleep(0.05)


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        return file.read()


@contextmanager
def _tcpdump(path: Path, condition: str, interface: str) -> Iterator[None]:
    command = ["tcpdump", "-i", interface, "-U", "-B", "65536", "-w", str(path), condition]
    if os.geteuid() == 0:
        command[1:1] = ["-Z", "root"]  # else it gives up the right to write into our folder
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    said = ""
    while "listening on" not in said:
        line = process.stderr.readline()
        if not line:
            raise RuntimeError(f"tcpdump does not capture: {said}")
        said += line
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        said += process.communicate(timeout=120)[1]
    dropped = re.search(r"(\d+) packets? dropped by kernel", said)
    if dropped and int(dropped[1]):
        raise RuntimeError(f"the capture is not whole: {dropped[0]}")
    _without_udp(path)


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
