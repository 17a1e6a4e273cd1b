"""Capture files for tests of commands: frames of one connection as packets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kafkascope.captures.build import Composer
from kafkascope.captures.formats.write import PcapngWriter
from tests.analyzer.wire import BROKER, CLIENT, MS, START


def capture_file(
    path: Path,
    frames: Sequence[tuple[str, bytes]],
    *,
    snaplen: int | None = None,
    mirrored: bool = False,
    port: int = BROKER.port,
    only: str = "",
    handshake: bool = True,
) -> Path:
    """Write a capture of ("client" or "broker", bytes), a millisecond apart; `only`: the side
    whose packets are in it; `mirrored`: what sent the packets here has cut them to `snaplen`;
    without `handshake` the capture began late."""
    composer = Composer(CLIENT, BROKER._replace(port=port))
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.interface("eth0")
        time_ns = START
        for packet in composer.open():
            if handshake and (not only or _is_of(only, packet)):
                writer.packet(packet, time_ns)
        for side, data in frames:
            time_ns += MS
            for packet in composer.send(0 if side == "client" else 1, data):
                if not only or _is_of(only, packet):
                    kept = packet[:snaplen]
                    writer.packet(kept, time_ns, length=len(kept if mirrored else packet))
    return path


def _is_of(side: str, packet: bytes) -> bool:
    """Return whether a side sent a packet, by the source port of TCP in IPv4 in Ethernet."""
    return (int.from_bytes(packet[34:36], "big") == CLIENT.port) == (side == "client")
