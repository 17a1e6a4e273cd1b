"""Captures of the same traffic are read as the whole that they come from."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.captures.build import Composer
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.merge import inputs, merging
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Chunk, Endpoint, Gap
from kafkascope.captures.streams.streams import streams
from tests.kit.captures import START_NS, A, B, Tape
from tests.kit.wire import MS

Frames = list[tuple[int, bytes]]


def traffic(rng: Random, connections: int, rounds: int, mss: int = 1460) -> Frames:
    """Requests and answers of several connections in turn."""
    composers = []
    for number in range(connections):
        ends = Endpoint("10.0.0.1", 40000 + number), Endpoint("10.0.0.2", 9092)
        isn = rng.randrange(1 << 32), rng.randrange(1 << 32)
        composers.append(Composer(*ends, mss=mss, isn=isn))
    made = [each for composer in composers for each in composer.open()]
    for _ in range(rounds):
        composer = rng.choice(composers)
        made += composer.send(0, rng.randbytes(rng.randrange(16, 9000)))
        made += composer.send(1, rng.randbytes(rng.randrange(16, 3000)))
    times, now = [], START_NS
    for _ in made:
        now += rng.choice([20_000, 300_000, 4 * MS])
        times.append(now)
    return list(zip(times, made, strict=True))


def write(path: Path, frames: Iterable[tuple[int, bytes]], shift_ns: int = 0) -> None:
    tape = Tape()
    tape.frames = [(time_ns + shift_ns, frame) for time_ns, frame in frames]
    path.write_bytes(tape.pcapng() if path.suffix == ".pcapng" else tape.pcap())


def read(paths: Iterable[Path]) -> tuple[list[tuple[int, int, bytes]], Source]:
    with open_inputs(paths) as source:
        return [(each.number, each.time_ns, each.data) for each in source.packets()], source


def numbered(frames: Frames) -> list[tuple[int, int, bytes]]:
    return [(number, *frame) for number, frame in enumerate(frames, 1)]


def split(rng: Random, whole: Frames, copies: int) -> list[Frames]:
    """Copies that lack packets; each packet is in one at least."""
    out: list[Frames] = [[] for _ in range(copies)]
    for frame in whole:
        holders = [number for number in range(copies) if rng.random() < 0.8]
        for number in holders or [rng.randrange(copies)]:
            out[number].append(frame)
    return out


@given(
    seed=st.integers(0, 1 << 32),
    copies=st.integers(2, 4),
    shift_ns=st.integers(-5_000 * MS, 5_000 * MS),
    suffix=st.sampled_from([".pcap", ".pcapng"]),
    step=st.sampled_from([8, 64, merging.STEP]),
)
def test_what_any_copy_holds_is_there(
    seed: int, copies: int, shift_ns: int, suffix: str, step: int
) -> None:
    rng = Random(seed)
    whole = traffic(rng, rng.randrange(1, 6), 25)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "STEP", step)
        paths = []
        for number, frames in enumerate(split(rng, whole, copies)):
            paths.append(Path(folder) / f"{number}{suffix}")
            write(paths[-1], frames, number * shift_ns)
        found, source = read(rng.sample(paths, len(paths)))
        assert found == numbered(whole)
        ahead = {Path(source.names[each.file]).stem: each for each in source.order.shared}
        assert {name: each.ahead_ns for name, each in ahead.items()} == {
            str(number): number * shift_ns for number in range(1, copies)
        }


def test_a_file_given_twice_counts_once(tmp_path: Path) -> None:
    whole = traffic(Random(1), 2, 3)
    write(tmp_path / "a.pcap", whole)
    found, source = read([tmp_path / "a.pcap", tmp_path / "a.pcap"])
    assert found == numbered(whole)
    (shared,) = source.order.shared
    assert (shared.both, shared.own, shared.ahead_ns) == (len(whole), 0, 0)


def test_the_smallest_capture_given_twice(tmp_path: Path) -> None:
    composer = Composer(Endpoint("10.0.0.1", 40000), Endpoint("10.0.0.2", 9092))
    frames = [composer.send(0, bytes(20))[0], composer.send(1, bytes(30))[0]]
    whole = [(START_NS, frames[0]), (START_NS + MS, frames[1])]
    write(tmp_path / "a.pcap", whole)
    write(tmp_path / "b.pcap", whole)
    assert read([tmp_path])[0] == numbered(whole)


@pytest.mark.parametrize("overlap", [3, 40])
def test_rotated_files_that_overlap(tmp_path: Path, overlap: int) -> None:
    whole = traffic(Random(2), 3, 60)
    size = len(whole) // 4
    for number in range(4):
        begin = max(number * size - overlap, 0)
        write(tmp_path / f"{number}.pcap", whole[begin : (number + 1) * size])
    write(tmp_path / "4.pcap", whole[4 * size :])
    assert read([tmp_path])[0] == numbered(whole)


def test_rotated_files_of_two_places(tmp_path: Path) -> None:
    whole = traffic(Random(3), 3, 80)
    here, there = split(Random(4), whole, 2)
    third, half = len(here) // 3, len(there) // 2
    for number in range(3):
        end = None if number == 2 else (number + 1) * third
        write(tmp_path / f"a{number}.pcap", here[number * third : end])
    write(tmp_path / "b0.pcap", there[:half], 7 * MS)
    write(tmp_path / "b1.pcap", there[half:], 7 * MS)
    assert read([tmp_path])[0] == numbered(whole)


def test_other_traffic_is_read_one_file_after_the_other(tmp_path: Path) -> None:
    one, two = traffic(Random(5), 2, 9), traffic(Random(6), 2, 9)
    write(tmp_path / "a.pcap", one)
    write(tmp_path / "b.pcap", two, MS)
    found, source = read([tmp_path])
    assert source.order is None
    later = [(time_ns + MS, frame) for time_ns, frame in two]
    assert found == numbered(one + later)


@pytest.mark.parametrize("few_bytes", [0, inputs.FEW_BYTES])
def test_files_with_one_direction_each(
    tmp_path: Path, few_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "FEW_BYTES", few_bytes)
    whole = traffic(Random(11), 3, 40)
    source_at = slice(26, 30)  # behind Ethernet's header
    for name, host in (("there", b"\x0a\0\0\x01"), ("back", b"\x0a\0\0\x02")):
        mine = [(time_ns, frame) for time_ns, frame in whole if frame[source_at] == host]
        for half in (0, 1):
            cut = slice(half * len(mine) // 2, (half + 1) * len(mine) // 2)
            write(tmp_path / f"{name}{half}.pcap", mine[cut])
    assert read([tmp_path])[0] == numbered(whole)


def test_retransmissions_stay_what_they_are(tmp_path: Path) -> None:
    """A copy that lacks the first of two equal segments does not lend its time to the second."""
    whole = traffic(Random(7), 1, 12)
    again = [(time_ns + 30 * MS, frame) for time_ns, frame in whole[5:40:5]]
    whole = sorted(whole + again)
    here = [each for number, each in enumerate(whole) if number % 9 != 5]
    there = [each for number, each in enumerate(whole) if number % 7 != 3 or number % 9 == 5]
    write(tmp_path / "a.pcap", here)
    write(tmp_path / "b.pcap", there, -2 * MS)
    assert read([tmp_path])[0] == numbered(whole)


def test_the_copy_with_more_of_a_packet_is_read(tmp_path: Path) -> None:
    whole = traffic(Random(8), 2, 9)
    tape = Tape()
    tape.frames = whole
    (tmp_path / "a.pcap").write_bytes(tape.pcap(snaplen=96))
    write(tmp_path / "b.pcap", whole)
    assert read([tmp_path])[0] == numbered(whole)


def bytes_in(paths: Iterable[Path]) -> tuple[dict[tuple[str, int], bytes], int]:
    """Bytes by direction, and how many gaps there were."""
    out: dict[tuple[str, int], bytes] = defaultdict(bytes)
    gaps = 0
    with open_inputs(paths) as source:
        for event in streams(source):
            if isinstance(event, Chunk):
                out[str(event.connection.a), event.direction] += event.data
            gaps += isinstance(event, Gap)
    return dict(out), gaps


@given(
    seed=st.integers(0, 1 << 32),
    sizes=st.permutations([700, 1460, 60_000]),
    jitter_ns=st.sampled_from([0, 20_000, 300_000]),
)
def test_hosts_that_cut_and_join_segments(seed: int, sizes: list[int], jitter_ns: int) -> None:
    """A sender's capture has large segments, a receiver's small ones; each lacks messages."""
    rng = Random(seed)
    messages = [(number % 2, rng.randbytes(rng.randrange(16, 9000))) for number in range(60)]
    isn = rng.randrange(1 << 32), rng.randrange(1 << 32)
    with TemporaryDirectory() as folder:
        paths = []
        for number, mss in enumerate(sizes):
            composer = Composer(A, B, mss=mss, isn=isn)
            frames = [(START_NS, frame) for frame in composer.open()]
            for index, (direction, data) in enumerate(messages, 1):
                now = START_NS + index * 2 * MS + rng.randrange(jitter_ns + 1)
                made = composer.send(direction, data)
                if index % 5 != number:
                    frames += [(now + 1_000 * at, frame) for at, frame in enumerate(made)]
            paths.append(Path(folder) / f"{number}.pcap")
            write(paths[-1], frames, number * 900 * MS)
        sent = {
            (str(A), direction): b"".join(data for side, data in messages if side == direction)
            for direction in (0, 1)
        }
        assert bytes_in(paths) == (sent, 0)


def test_what_is_written_meanwhile_comes_behind(tmp_path: Path) -> None:
    whole = traffic(Random(9), 2, 9)
    write(tmp_path / "a.pcap", whole[:-6])
    write(tmp_path / "b.pcap", whole[5:-6])
    with open_inputs([tmp_path]) as source:
        write(tmp_path / "a.pcap", whole)
        assert [(each.time_ns, each.data) for each in source.packets()] == whole
