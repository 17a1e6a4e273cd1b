"""Floods of connections: bare packets, made fast, for there are hundreds of thousands."""

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Final

Host = tuple[int, int]
"""An IPv4 address as a number, and a port."""

SERVER: Final[Host] = 0x0B000001, 9092
SYN, RST_ACK, SYN_ACK, DATA = 0x02, 0x14, 0x12, 0x18


def packet(a: Host, b: Host, seq: int, flags: int, data: bytes = b"", ack: int = 1) -> bytes:
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 40 + len(data), 0, 0, 64, 6, 0, a[0], b[0])
    tcp = struct.pack(">HHIIBBHHH", a[1], b[1], seq, ack, 0x50, flags, 65_535, 0, 0)
    return bytes(12) + b"\x08\0" + ip + tcp + data


def client(number: int) -> Host:
    """The client of each connection."""
    return 0x0A000000 + number // 50_000, 1024 + number % 50_000


def written(path: Path, packets: Iterable[bytes]) -> Path:
    """A pcap with these packets, ten microseconds apart."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262_144, 1))
        for number, data in enumerate(packets):
            second, micro = divmod(number * 10, 1_000_000)
            file.write(struct.pack("<IIII", 1_700_000_000 + second, micro, len(data), len(data)))
            file.write(data)
    return path
