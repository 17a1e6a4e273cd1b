"""The bulk path gives what the path packet by packet gives."""

import random
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.build import Composer
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Endpoint
from kafkascope.captures.packets.columns import columns_of
from tests.kit.captures import A, B, Tape, Trickle, conversation, joined, read
from tests.kit.samples import ROOT

A6, B6 = Endpoint("fd00::1", 40001), Endpoint("fd00::2", 9092)
STEPS = ["send", "send", "send", "answer", "drop", "swap", "twice", "again", "wait", "cut", "close"]
STEPS += ["syn", "udp", "vlan", "rst", "vanish", "vanish", "burst"]


def messy(steps: list[tuple[str, int]], seed: random.Random) -> Tape:
    """Several conversations at once, with all that can go wrong."""
    tape = Tape()
    composers = [
        Composer(A, B, mss=500, isn=(0xFFFF_F000, 5)),
        Composer(A._replace(port=40002), B, mss=700),
        Composer(A6, B6, mss=600),
    ]
    for composer in composers[:2]:
        tape.add(composer.open())
    for step, number in steps:
        composer = composers[number % 3]
        data = seed.randbytes(number * 37 % 3000)
        frames = tape.frames
        match step:
            case "send" | "answer":
                tape.add(composer.send(int(step == "answer"), data))
            case "drop":
                tape.add(composer.send(0, data)[1:])
            case "vanish":
                composer.lose(number & 1, 1 + len(data))
            case "burst":
                tape.add(composer.send(number & 1, seed.randbytes(12_000), ack=False))
            case "swap" if len(frames) > 3:
                at = len(frames) - 3
                frames[at], frames[-1] = frames[-1], frames[at]
            case "twice" if frames:
                tape.add([frames[-1][1]], 300)
            case "again" if frames:
                tape.add([frames[-min(len(frames), number % 40 + 1)][1]])
            case "wait":
                tape.now_ns += number * 7_000_000
            case "close":
                tape.add(composer.close(number & 1))
            case "syn":
                composers[number % 3] = Composer(A, B, isn=(number * 99991, number))
                tape.add(composers[number % 3].open())
            case "rst":
                tape.add(composer.reset(number & 1))
            case "udp":
                frame = bytearray(composer.packet(0, 16))
                frame[23] = 17
                tape.add([bytes(frame)])
            case "vlan":
                for frame in composer.send(0, data):
                    tape.add([frame[:12] + b"\x81\x00\x00\x05" + frame[12:]])
            case _:
                pass
    return tape


def outcome(data: bytes, bulk: bool, **options: Any) -> Any:
    events, source, error = read(data, bulk=bulk, **options)
    statistics = astuple(source.statistics)[:-1]
    return joined(events), statistics, error


steps = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 100)), max_size=60)


@settings(max_examples=150)
@given(steps, st.randoms(use_true_random=False), st.sampled_from([120, 262144]), st.booleans())
def test_bulk_equals_one_by_one(
    steps: list[tuple[str, int]], seed: random.Random, snaplen: int, pcapng: bool
) -> None:
    tape = messy(steps, seed)
    data = tape.pcapng("a leg") if pcapng else tape.pcap(snaplen=snaplen)
    assert outcome(data, True) == outcome(data, False)


@settings(max_examples=60)
@given(steps, st.randoms(use_true_random=False), st.lists(st.integers(1, 5000), max_size=200))
def test_any_cut_into_reads_gives_the_same_events(
    steps: list[tuple[str, int]], seed: random.Random, portions: list[int]
) -> None:
    data = messy(steps, seed).pcapng()
    expected = outcome(data, False)
    for bulk in (True, False):
        assert outcome(data, bulk, portions=portions) == expected


@pytest.mark.parametrize(
    "options", [{"order": ">"}, {"nano": False}, {"nano": False, "order": ">"}]
)
def test_every_kind_of_pcap(options: dict[str, Any]) -> None:
    data = conversation(10).pcap(**options)
    assert outcome(data, True) == outcome(data, False)


def test_a_run_becomes_one_chunk_with_its_pieces() -> None:
    tape = conversation(2, 20_000)
    events, _, _ = read(tape.pcap(), bulk=True)
    chunks = [event for event in events if hasattr(event, "pieces")]
    assert [len(chunk.data) for chunk in chunks] == [20_000, 10_000, 20_000, 10_000]
    data = tape.pcap()
    for chunk in chunks:
        assert len(chunk.pieces) > 5
        ends = [piece.start for piece in chunk.pieces[1:]] + [len(chunk.data)]
        for piece, end in zip(chunk.pieces, ends, strict=True):
            assert data[piece.at : piece.at + end - piece.start] == chunk.data[piece.start : end]


def test_blocks_are_the_same_for_any_order_of_reads() -> None:
    data = conversation(50).pcap()
    source = Source(["x"], None, {0: Trickle(data, [7] * 100_000)})
    assert sum(len(block.positions) for block in source.blocks()) == len(conversation(50).frames)


def same_both_ways(tape: Tape) -> list[Any]:
    found = outcome(tape.pcap(), True)
    assert found == outcome(tape.pcap(), False)
    events: list[Any] = found[0]
    return [event[0] for event in events if isinstance(event[0], str)]


def test_an_ack_of_unseen_bytes_ends_a_run() -> None:
    tape, composer = Tape(), Composer(A, B)
    tape.add(composer.open())
    tape.add(composer.send(1, b"one" * 1000, ack=False))
    composer.lose(0, 50)
    tape.add(composer.send(1, b"two" * 1000, ack=False))
    assert same_both_ways(tape) == ["open", "chunk", "gap", "chunk", "closed"]


def test_a_gap_is_given_up_in_the_middle_of_a_run() -> None:
    tape, first, second = Tape(), Composer(A, B), Composer(A._replace(port=7), B)
    tape.add(first.open())
    tape.add(second.open())
    first.lose(0, 50)
    tape.add(first.send(0, b"late"))
    for _ in range(50):
        tape.add(second.send(0, b"x" * 100), 5_000_000)
    kinds = same_both_ways(tape)
    assert kinds == ["open", "open", "chunk", "gap", "chunk", "chunk", "closed", "closed"]


def test_packets_are_read_without_numpy(tmp_path: Path) -> None:
    """To load it takes a quarter of the time that a small capture does."""
    path, size = tmp_path / "small.pcap", 60
    head = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    record = struct.pack("<IIII", 1, 0, size, size) + bytes(size)
    path.write_bytes(head + record * 20_000)
    code = (
        "import sys; from kafkascope.captures.merge.inputs import open_inputs\n"
        "from kafkascope.captures.streams.streams import streams\n"
        "list(streams(open_inputs(sys.argv[1:]))); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, cwd=ROOT)
    assert done.stdout == b"False\n"


# --- tunnels at once give what tunnels one by one give, and are indeed read at once ---------------


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
    assert not columns.others
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
