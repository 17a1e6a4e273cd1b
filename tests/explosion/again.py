"""Real captures in which all happens again and again: each copy later than the one before it, on
connections of its own; with the same clients, groups and topics, or with others each time."""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Packet
from kafkascope.library.capture import open as open_capture
from tests.kit.samples import ROOT

SAMPLES: Final = {
    path.name.partition(".")[0]: path
    for path in sorted((ROOT / "captures" / "samples").glob("*.pcap*"))
}
_PORTS: Final = struct.Struct(">HH")
_IP: Final = {1: 14, 113: 16, 276: 20, 101: 0, 0: 4}
"""Link type -> bytes before the IPv4 header."""
_SERVED: Final = frozenset({2181, 8081, *range(9092, 9100)})
_LEAST: Final = 4
"""Letters of a name of which the last three may change."""
_PAUSE_NS: Final = 1_000_000_000
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


def write_again(path: Path, sample: Path, count: int, *, renamed: bool) -> None:
    """A pcapng with so many copies of a capture; `renamed`: with other names in each."""
    with open_inputs([sample]) as source:
        packets = list(source.packets())
    tcp = [_tcp_of(packet) for packet in packets]
    served = _SERVED | {
        _PORTS.unpack_from(packet.data, at)[1]
        for packet, at in zip(packets, tcp, strict=True)
        if at is not None and packet.data[at + 13] & 0x12 == 0x02
    }
    names = _names_of(sample) if renamed else None
    times = [packet.time_ns for packet in packets]
    span = max(times) - min(times) + _PAUSE_NS
    with path.open("wb") as file:
        writer = PcapngWriter(file)
        writer.interface("again", link_type=packets[0].link_type)
        for copy in range(count):
            ending = _ending(copy)
            for packet, at in zip(packets, tcp, strict=True):
                data = bytearray(packet.data)
                for place in () if at is None else (at, at + 2):
                    (port,) = struct.unpack_from(">H", data, place)
                    if port not in served:
                        struct.pack_into(">H", data, place, 20_000 + (port + copy * 487) % 40_000)
                said = bytes(data)
                if names is not None and at is not None:
                    said = names.sub(lambda found: found.group()[:-3] + ending, said)  # noqa: B023
                writer.packet(said, packet.time_ns + copy * span)


def _tcp_of(packet: Packet) -> int | None:
    """Where the TCP header of an IPv4 packet is."""
    data, at = packet.data, _IP[packet.link_type]
    if len(data) < at + 40 or data[at] >> 4 != 4 or data[at + 9] != 6:
        return None
    start = at + (data[at] & 15) * 4
    return start if len(data) >= start + 20 else None


def _names_of(sample: Path) -> re.Pattern[bytes] | None:
    """What clients, groups, topics and transactions are called."""
    found = {name for name in _told(sample) if len(name) >= _LEAST and name.isascii()}
    longest = sorted(found, key=lambda name: (-len(name), name))
    return re.compile("|".join(map(re.escape, longest)).encode()) if longest else None


def _told(sample: Path) -> Iterator[str]:
    with open_capture([sample]) as capture:
        for each in capture.exchanges():
            for names in (each.topics, each.groups, each.members, each.transactional_ids):
                yield from (name for name in names if not name.startswith("_"))
            yield each.client_id or ""


def _ending(copy: int) -> bytes:
    base = len(_DIGITS)
    return "".join(_DIGITS[copy // base**place % base] for place in (2, 1, 0)).encode()
