"""Opening inputs: what is read, in what order, and the one sentence for what is not."""

import bz2
import gzip
import lzma
import os
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from struct import pack

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.errors import CaptureError, CutShort, NotACapture
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.inputs.files import BLOCK_BYTES, Source
from kafkascope.captures.inputs.spool import NotKept, PacketPlaces, Spool
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Chunk, StreamEvent
from kafkascope.captures.streams.streams import streams
from tests.kit.captures import START_NS, Tape, Trickle, bytes_of, conversation, joined, read
from tests.kit.samples import ROOT

WHOLE = conversation(30)
EXPECTED = bytes_of(read(WHOLE.pcap())[0])


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": lambda data: data,
    "gz": gzip.compress,
    "gz, two members": lambda data: gzip.compress(data[:999]) + gzip.compress(data[999:]),
    "gz, padded": lambda data: gzip.compress(data) + bytes(512),
    "zst": zstd,
    "zst, two frames": lambda data: zstd(data[:999]) + zstd(data[999:]),
    "zst, skippable frame": lambda data: pack("<II", 0x184D2A53, 4) + b"skip" + zstd(data),
    "xz": lzma.compress,
    "xz, two streams, padded": lambda data: (
        lzma.compress(data[:999]) + bytes(8) + lzma.compress(data[999:]) + bytes(4)
    ),
    "bz2": bz2.compress,
    "bz2, two streams": lambda data: bz2.compress(data[:999]) + bz2.compress(data[999:]),
    "gz in zst": lambda data: zstd(gzip.compress(data)),
}


@pytest.mark.parametrize("how", PACKED)
@pytest.mark.parametrize("pcapng", [False, True])
def test_reads_whatever_the_name_says(tmp_path: Path, how: str, pcapng: bool) -> None:
    path = tmp_path / "capture.txt"
    path.write_bytes(PACKED[how](WHOLE.pcapng() if pcapng else WHOLE.pcap()))
    with open_inputs([path]) as source:
        assert bytes_of(streams(source)) == EXPECTED
        assert source.statistics.packets == len(WHOLE.frames)


def refusal(*paths: str | Path) -> str:
    with pytest.raises(NotACapture) as caught:
        open_inputs(paths)
    return str(caught.value)


@pytest.mark.parametrize("order", ["<", ">"])
def test_aix_writes_nanoseconds_and_link_types_of_its_own(order: str) -> None:
    aix = pack(order + "IHH", 0xA1B2C3D4, 2, 2) + WHOLE.pcap(order=order, link_type=6)[8:]
    assert joined(read(aix)[0]) == joined(read(WHOLE.pcap())[0])


def test_what_cannot_be_read_gets_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "prod.txt").write_text("hello world, this is no capture")
    (tmp_path / "bin").write_bytes(bytes(range(200, 240)))
    (tmp_path / "head").write_bytes(WHOLE.pcap()[:10])
    (tmp_path / "old.snoop").write_bytes(b"snoop\0\0\0" + bytes(100))
    (tmp_path / "bad.gz").write_bytes(b"\x1f\x8b" + bytes(100))
    (tmp_path / "bad.xz").write_bytes(b"\xfd7zXZ\0" + bytes(100))
    (tmp_path / "bad.bz2").write_bytes(b"BZh9" + bytes(100))
    (tmp_path / "folder").mkdir()
    assert refusal(tmp_path / "gone").endswith("gone: no such file or folder")
    assert refusal(tmp_path / "empty").endswith("empty is empty")
    text = refusal(tmp_path / "prod.txt")
    assert "prod.txt is not a capture: it starts with 'hello world,'; write packets with" in text
    assert "it starts with c8 c9" in refusal(tmp_path / "bin")
    assert refusal(tmp_path / "head").endswith("is cut short inside its file header")
    assert "editcap" in refusal(tmp_path / "old.snoop")
    for name in ("bad.gz", "bad.xz", "bad.bz2"):
        assert f"{name} is damaged" in refusal(tmp_path / name)
    assert refusal(tmp_path / "folder").endswith("is a folder without captures")
    assert "once" in refusal("-", "-")
    assert refusal() == "no input"


def test_files_without_a_byte_beside_others_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "b").write_bytes(WHOLE.pcap())
    with open_inputs([tmp_path / "a", tmp_path / "b"]) as source:
        assert bytes_of(streams(source)) == EXPECTED
        assert source.empty == [str(tmp_path / "a")]
    assert refusal(tmp_path / "a", tmp_path / "a").endswith("is empty")


def test_a_folder_without_files_has_those_of_its_folders(tmp_path: Path) -> None:
    for number in (1, 2):
        below = tmp_path / f"broker-{number}" / "old"
        below.mkdir(parents=True)
        (below / "deeper").write_bytes(WHOLE.pcap())
        (below.parent / "log").write_bytes(WHOLE.pcap())
    assert open_inputs([tmp_path]).names == [str(tmp_path / f"broker-{n}" / "log") for n in (1, 2)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.pcap"
    path.write_bytes(WHOLE.pcap())
    path.chmod(0)
    assert "permission denied" in refusal(path)


@pytest.mark.parametrize("how", ["plain", "gz", "zst", "xz"])
def test_a_cut_file_gives_all_that_is_whole(tmp_path: Path, how: str) -> None:
    data = PACKED[how](WHOLE.pcap())
    path = tmp_path / "cut.pcap"
    path.write_bytes(data[: len(data) // 2] if how in ("plain", "xz") else data[:-30])
    source = open_inputs([path])
    events: list[StreamEvent] = []
    with pytest.raises(CutShort, match=r"cut\.pcap"):
        events.extend(streams(source))
    # `extend` keeps what came before the error.
    assert 10 < source.statistics.packets < len(WHOLE.frames)
    found = bytes_of(event for event in events)
    assert all(EXPECTED[name].startswith(part) for name, part in found.items())
    assert len(source.statistics.damage) == 1


@pytest.mark.parametrize("how", ["gz", "zst", "xz", "bz2"])
def test_a_file_cut_before_its_first_block_is_not_called_empty(tmp_path: Path, how: str) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(PACKED[how](WHOLE.pcap())[:12])
    assert "cut.pcap is cut short after byte 12" in refusal(path)


def test_damage_names_its_place_and_spares_other_files(tmp_path: Path) -> None:
    data = WHOLE.pcap()
    records = 24 + 16 + len(WHOLE.frames[0][1])
    broken = data[:records] + pack("<IIII", 1, 1, 0x7FFFFFFF, 0x7FFFFFFF) + data[records:]
    (tmp_path / "a.pcap").write_bytes(broken)
    later = Tape()
    later.now_ns = START_NS + 10**12
    later.add([frame for _, frame in conversation(30, isn=(1, 2)).frames])
    (tmp_path / "b.pcap").write_bytes(later.pcap())
    source = open_inputs([tmp_path])
    with pytest.raises(
        CutShort, match=rf"a\.pcap is damaged at byte {records}: a record of 2147483647"
    ):
        list(streams(source))
    assert source.statistics.packets == 2 * len(WHOLE.frames)


def rotated(folder: Path) -> list[Path]:
    """The capture in three files whose names say nothing about their order."""
    paths = []
    for name, part in zip("bca", (slice(0, 20), slice(20, 60), slice(60, None)), strict=True):
        tape = Tape()
        tape.frames = WHOLE.frames[part]
        paths.append(folder / name)
        paths[-1].write_bytes(tape.pcap() if name != "c" else gzip.compress(tape.pcapng()))
    return paths


def test_rotated_files_come_in_the_order_of_time(tmp_path: Path) -> None:
    paths = rotated(tmp_path)
    (tmp_path / "notes.txt").write_text("not a capture")
    for inputs in ([tmp_path], sorted(paths)):
        source = open_inputs(inputs)
        assert source.names == [str(path) for path in paths]
        numbers = [packet.number for packet in source.packets()]
        assert numbers == list(range(1, len(WHOLE.frames) + 1))
        assert bytes_of(streams(open_inputs(inputs))) == EXPECTED


def test_pieces_lead_back_to_their_bytes(tmp_path: Path) -> None:
    paths = rotated(tmp_path)
    spool = Spool(1 << 20)
    with open_inputs(paths, spool=spool) as source:
        for event in streams(source):
            if isinstance(event, Chunk):
                ends = [piece.start for piece in event.pieces[1:]] + [len(event.data)]
                for piece, end in zip(event.pieces, ends, strict=True):
                    part = event.data[piece.start : end]
                    assert source.read(piece.file, piece.at, len(part)) == part
        found = source.find([3, 41, 70])
        assert [packet.number for packet in found] == [3, 41, 70]
        assert [packet.data for packet in found] == [WHOLE.frames[n - 1][1] for n in (3, 41, 70)]


@pytest.mark.parametrize("form", ["pcap", "pcapng", "gz", "rotated"])
def test_packets_are_found_by_their_places_as_by_reading_again(form: str, tmp_path: Path) -> None:
    """Each search began at the first packet: what is shown of n exchanges took n readings."""
    data = {"pcap": WHOLE.pcap(), "gz": gzip.compress(WHOLE.pcap())}.get(form)
    paths = rotated(tmp_path) if form == "rotated" else [tmp_path / "x"]
    if form == "pcapng":
        with paths[0].open("wb") as file:
            writer = PcapngWriter(file)
            for name in ("lo", "eth0"):
                writer.interface(name)
            for number, (time_ns, frame) in enumerate(WHOLE.frames):
                writer.packet(frame, time_ns, interface=number % 2, length=len(frame) + 7)
    elif data is not None:
        paths[0].write_bytes(data)
    with open_inputs(paths, spool=Spool(1 << 20)) as source:
        source.places = PacketPlaces()
        assert source.find([1]) == []
        list(streams(source))
        numbers = range(1, len(WHOLE.frames) + 2)
        found = source.find(numbers)
        places, source.places = source.places, None
        assert found == source.find(numbers)
        assert [each.data for each in found] == [frame for _, frame in WHOLE.frames]
        places.close()


def test_compressed_bytes_are_kept_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(gzip.compress(WHOLE.pcap()))
    with open_inputs([path]) as source:
        source.places = PacketPlaces()
        list(streams(source))
        with pytest.raises(NotKept):
            source.read(0, 24, 16)
        assert len(source.find([5])) == 1


def test_standard_input_is_spooled_and_found_again() -> None:
    data = WHOLE.pcap()
    with Source(["-"], Spool(len(data)), {0: Trickle(data, [100] * 99999)}) as source:
        list(streams(source))
        assert source.read(0, 24, 16) == data[24:40]
        assert source.find([2])[0].data == WHOLE.frames[1][1]
    with Source(["-"], Spool(1000), {0: Trickle(data)}) as source:
        list(streams(source))
        assert source.read(0, len(data) - 1000, 1000) == data[-1000:]
        with pytest.raises(NotKept, match="no longer kept"):
            source.read(0, len(data) - 1001, 1000)
        with pytest.raises(NotKept):
            source.find([2])


def test_a_pipe_delivers_each_packet_as_it_comes(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = conversation(1, 10)
    blob, cuts = data.pcap(), [24]
    for _, frame in data.frames:
        cuts.append(cuts[-1] + 16 + len(frame))
    arrived: list[int] = []
    ready = threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as pipe:
            pipe.write(blob[:24])
            for begin, end in pairwise(cuts):
                pipe.write(blob[begin:end])
                assert ready.wait(60), "the packet was not delivered while the pipe stayed open"
                ready.clear()

    writer = threading.Thread(target=write)
    writer.start()
    for packet in open_inputs([str(path)]).packets():
        arrived.append(packet.number)
        ready.set()
    writer.join()
    assert arrived == list(range(1, len(data.frames) + 1))


def test_reads_standard_input(tmp_path: Path) -> None:
    program = "from kafkascope.captures.merge.inputs import open_inputs\n"
    program += "print(sum(1 for _ in open_inputs(['-']).packets()))"
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=gzip.compress(WHOLE.pcapng()),
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    assert int(run.stdout) == len(WHOLE.frames)


def test_records_larger_than_a_block() -> None:
    tape = Tape()
    tape.add([bytes(14) + bytes(5 * BLOCK_BYTES), bytes(60)])
    _, source, error = read(tape.pcapng(), portions=[100_000] * 1000)
    assert (source.statistics.packets, error) == (2, "")


SEEDS = [WHOLE.pcap(), conversation(5).pcap(order=">", nano=False), conversation(5).pcapng("leg")]


def everything(data: bytes) -> None:
    """Read to the end: events or a CaptureError, in time (of the CPU: others may use it, too)."""
    begun = time.process_time()
    for bulk in (False, True):
        with suppress(CaptureError):
            read(data, bulk=bulk)
    assert time.process_time() - begun < 20


@given(st.sampled_from([b"", *(seed[:28] for seed in SEEDS)]), st.binary(max_size=300))
def test_garbage_gives_events_or_a_capture_error(head: bytes, rest: bytes) -> None:
    everything(head + rest)
    everything(gzip.compress(head + rest)[: len(rest) + 20])
    everything(b"\x28\xb5\x2f\xfd" + rest)
    everything(b"\x1f\x8b\x08" + rest)


@settings(max_examples=200)
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 6000), st.binary(min_size=1, max_size=8)), max_size=8),
    st.integers(0, 8000),
)
def test_damaged_captures_give_events_or_a_capture_error(
    seed: bytes, changes: list[tuple[int, bytes]], size: int
) -> None:
    data = bytearray(seed[:6000])
    for at, new in changes:
        data[at : at + len(new)] = new
    everything(bytes(data[:size]))


def test_zeros_at_the_end_are_damage() -> None:
    _, source, error = read(WHOLE.pcap() + bytes(1000))
    assert source.statistics.packets == len(WHOLE.frames)
    assert f"damaged at byte {len(WHOLE.pcap())}: zeros" in error


def test_a_bomb_stays_within_its_memory() -> None:
    for pack_up, size in ((zstd, 300 << 20), (gzip.compress, 50 << 20)):
        bomb = pack_up(WHOLE.pcapng() + pack("<II", 0x0BAD, size + 12) + bytes(size + 4))
        tracemalloc.start()
        _, source, error = read(bomb)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert source.statistics.packets == len(WHOLE.frames)
        assert "two lengths" in error or "times its size" in error or not error
        assert peak < 60 << 20


def test_little_that_expands_to_very_much_is_cut_off() -> None:
    block = pack("<II", 0x0BAD, (120 << 20) + 12) + bytes((120 << 20) + 4)
    bomb = gzip.compress(gzip.compress(WHOLE.pcapng() + block * 2))
    assert len(bomb) < 20_000
    _, source, error = read(bomb)
    assert source.statistics.packets == len(WHOLE.frames)
    assert "expands to more than 1000 times its size" in error
