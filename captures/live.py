"""Sniff an interface: dumpcap or tcpdump where they are installed, else scapy's socket.

Whatever captures writes a capture to a pipe, and a `Source` reads that pipe: live packets take the
way of all others.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from struct import pack
from typing import Final

from kafkascope.captures.errors import CaptureError, NotAllowed
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.inflate import ByteStream, Pieces
from kafkascope.captures.inputs.opening import has_come
from kafkascope.captures.inputs.spool import Spool
from kafkascope.captures.limits import LIMITS

_DENIED: Final = ("permission", "not permitted", "are you root", "privilege")
_SNAPLEN: Final = 262_144
# The reason inside dumpcap's message, which ends with a reference to Wireshark's manual.
_BAD_FILTER: Final = re.compile(r"valid capture filter \((.+)\)")


def open_interface(
    interface: str, capture_filter: str = "", *, spool: Spool | None = None
) -> Source:
    """Capture on `interface`, with a BPF filter, until the source is closed.

    NotAllowed, with the command that grants the right, comes at the latest with the first block.
    """
    command = capture_command(interface, capture_filter)
    stream: ByteStream
    if command is not None:
        stream = _Program(command, interface)
    else:
        stream = _Sniffer(interface, capture_filter)
    source = Source([interface], spool, {0: stream})
    source.sorts = False
    return source


def capture_command(interface: str, capture_filter: str = "") -> list[str] | None:
    """Return the command that captures to standard output; None when no program is installed."""
    if program := shutil.which("dumpcap"):
        chosen = ["-f", capture_filter] if capture_filter else []
        return [program, "-q", "-i", interface, *chosen, "-w", "-"]
    if program := shutil.which("tcpdump"):
        chosen = ["--", capture_filter] if capture_filter else []
        flags = ["-U", "--immediate-mode", "-n", "-s", str(_SNAPLEN), "-i", interface, "-w", "-"]
        return [program, *flags, *chosen]
    return None


def refusal(interface: str, program: str, said: str) -> CaptureError:
    """Return what went wrong, as one sentence; NotAllowed with a remedy when it was a right."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    reason = lines[-1] if lines else "no reason given"
    if any(word in said.lower() for word in _DENIED):
        remedy = f"sudo setcap cap_net_raw,cap_net_admin=eip {os.path.realpath(program)}"
        return NotAllowed(f"not allowed to capture on {interface}; grant it with: {remedy}")
    if reason.startswith("(") and reason.endswith(")"):
        reason = reason[1:-1]  # as dumpcap ends
    if bad_filter := _BAD_FILTER.search(said):
        reason = bad_filter[1]
    if "parse filter expression" in reason:  # of libpcap; usually a display filter
        reason += "; -f takes a filter of tcpdump: port 9092"
    return CaptureError(f"cannot capture on {interface}: {reason}")


class _Program:
    """Stream of what a capturing program writes."""

    def __init__(self, command: list[str], interface: str) -> None:
        from tempfile import TemporaryFile  # slow to import

        self._program, self._interface = command[0], interface
        self._said = TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._said
        )
        assert self._process.stdout is not None
        self._descriptor = self._process.stdout.fileno()
        self._any = False

    def wait(self, seconds: float) -> bool:
        return has_come(self._descriptor, seconds)

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Read what the program writes; raise its complaint when it ends without a packet."""
        size = os.readv(self._descriptor, [buffer])
        if not size:
            code = self._process.wait()
            if code > 0 or not self._any:
                self._said.seek(0)
                said = self._said.read(LIMITS.tool_message_bytes).decode(errors="replace")
                raise refusal(self._interface, self._program, said)
        self._any = True
        return size

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._said.close()


class _Sniffer(Pieces):
    """Stream of what scapy's socket receives, as a pcap file with nanoseconds."""

    def __init__(self, interface: str, capture_filter: str) -> None:
        from scapy.arch import conf
        from scapy.error import Scapy_Exception

        logging.getLogger("scapy.runtime").setLevel(logging.ERROR)  # it warns of loopback
        try:
            self._socket = conf.L2listen(iface=interface, filter=capture_filter or None)
        except (OSError, Scapy_Exception) as error:
            raise refusal(interface, sys.executable, str(error)) from None
        super().__init__(self._records(), self._socket.close)
        self.ready = memoryview(pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAPLEN, 1))

    def wait(self, seconds: float) -> bool:
        return bool(self.ready) or has_come(self._socket.fileno(), seconds)

    def _records(self) -> Iterator[bytes]:
        """Yield the packets, each after the header of a record."""
        while True:
            _, data, seconds = self._socket.recv_raw(_SNAPLEN)
            if data is not None:
                time_ns = int(seconds * 1_000_000_000)
                size = len(data)
                head = pack("<IIII", time_ns // 10**9, time_ns % 10**9, size, size)
                yield head + bytes(data)
