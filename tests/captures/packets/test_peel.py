"""Tunnels at once give what tunnels one by one give, and are indeed read at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from struct import pack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.inputs.files import Source
from kafkascope.captures.packets.columns import columns_of
from tests.captures.streams.test_scan import messy, outcome, steps
from tests.captures.wires import Tape, Trickle, conversation

MACS = bytes.fromhex("020000000001 020000000002")


def outer(payload: bytes, protocol: int, field: int = 0, first: int = 0x45) -> bytes:
    size = 20 + len(payload) + (4 if first == 0x46 else 0)
    head = pack(">BBHHHBBH", first, 0, size, 9, field, 64, protocol, 0)
    options = bytes(4) if first == 0x46 else b""
    return MACS + b"\x08\x00" + head + bytes([172, 16, 0, 1, 172, 16, 0, 2]) + options + payload


def udp(port: int, payload: bytes) -> bytes:
    return pack(">HHHH", 5555, port, 8 + len(payload), 0) + payload


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "vxlan": lambda frame: outer(udp(4789, b"\x08\0\0\0\0\0\7\0" + frame), 17),
    "geneve": lambda frame: outer(udp(6081, b"\0\0\x65\x58\0\0\1\0" + frame), 17),
    "geneve with options": lambda frame: outer(
        udp(6081, b"\2\0\x65\x58\0\0\1\0" + bytes(8) + frame), 17
    ),
    "gre": lambda frame: outer(b"\0\0\x08\0" + frame[14:], 47),
    "erspan": lambda frame: outer(b"\x10\0\x88\xbe\0\0\0\1" + bytes(8) + frame, 47),
    "ip in ip": lambda frame: outer(frame[14:], 4),
}
ODD: dict[str, Callable[[bytes], bytes]] = {
    "no id": lambda frame: outer(udp(4789, bytes(8) + frame), 17),
    "another port": lambda frame: outer(udp(53, b"\x08\0\0\0\0\0\7\0" + frame), 17),
    "options": lambda frame: outer(frame[14:], 4, first=0x46),
    "fragment": lambda frame: outer(frame[14:], 4, field=0x2000),
    "gre with a key": lambda frame: outer(b"\x20\0\x08\0\0\0\0\1" + frame[14:], 47),
    "arp inside": lambda frame: outer(udp(4789, b"\x08" + bytes(7) + MACS + b"\x08\6" + frame), 17),
}


def wrapped(tape: Tape, wrap: Callable[[bytes], bytes]) -> Tape:
    """Frames with IPv4 are wrapped."""
    tape.frames = [
        (time_ns, wrap(frame) if frame[12:14] == b"\x08\0" else frame)
        for time_ns, frame in tape.frames
    ]
    return tape


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("levels", [1, 3])
def test_all_packets_are_read_at_once(way: str, levels: int) -> None:
    tape = conversation(30)
    for _ in range(levels):
        wrapped(tape, WAYS[way])
    data = tape.pcap()
    block = next(Source(["x"], None, {0: Trickle(data)}).blocks())
    columns = columns_of(block)
    assert columns is not None
    assert columns.tcp.all()
    assert outcome(data, True) == outcome(data, False)


@settings(max_examples=40)
@given(steps, st.randoms(use_true_random=False), st.sampled_from([70, 100, 150, 262144]))
def test_at_once_equals_one_by_one(
    steps: list[tuple[str, int]], seed: random.Random, snaplen: int
) -> None:
    ways: list[Callable[[bytes], bytes]] = [*WAYS.values(), *ODD.values(), lambda frame: frame]
    tape = messy(steps, seed)
    for _ in range(seed.randrange(7)):
        wrapped(tape, lambda frame: seed.choice(ways)(frame))
    data = tape.pcap(snaplen=snaplen)
    assert outcome(data, True) == outcome(data, False)
