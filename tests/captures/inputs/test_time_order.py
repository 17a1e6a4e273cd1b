"""Files whose packets are not in the order of their times are read as those in order."""

from contextlib import suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.captures.build import Composer
from kafkascope.captures.errors import CutShort
from kafkascope.captures.inputs import time_order
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Endpoint, Packet
from tests.kit.captures import Tape, Trickle, conversation, joined, read
from tests.kit.traffic import Frames, bursts, files, in_order, mixed, written
from tests.kit.wire import MS


def packets(name: str, block_bytes: int = 1 << 20) -> list[tuple[int, int, bytes]]:
    with open_inputs([name]) as source:
        source.block_bytes = block_bytes
        return [(each.number, each.time_ns, each.data) for each in source.packets()]


def is_late(frames: Frames) -> bool:
    """Whether two packets, or more, stand before one that is older."""
    latest = time_order.NO_TIMES
    for time_ns, _ in frames:
        if latest.second_ns - time_ns > time_order.TOLERANCE_NS:
            return True
        latest = latest.with_time(time_ns)
    return False


@given(
    seed=st.integers(0, 1 << 32),
    window_ms=st.sampled_from([3, 40, 300, 2_000]),
    block_bytes=st.sampled_from([300, 5_000, 1 << 20]),
)
@settings(max_examples=settings().max_examples // 4)
def test_the_order_of_a_file_changes_nothing(seed: int, window_ms: int, block_bytes: int) -> None:
    frames, rng = in_order(seed), Random(seed)
    shuffled = mixed(rng, frames, window_ms * MS)
    with TemporaryDirectory() as folder:
        name = written(shuffled, Path(folder) / "a", rng.randrange(3))
        found = packets(name, block_bytes)
        with open_inputs([name]) as source:
            again = source.find([1, len(frames) // 2, len(frames)])
    expected = frames if is_late(shuffled) else shuffled
    assert found == [(number, *frame) for number, frame in enumerate(expected, 1)]
    assert [each.data for each in again] == [
        found[number - 1][2] for number in sorted({1, len(frames) // 2, len(frames)}) if number
    ]


@given(seed=st.integers(0, 1 << 32), block_bytes=st.sampled_from([300, 5_000, 1 << 20]))
@settings(max_examples=settings().max_examples // 4)
def test_windows_are_bounded_and_the_same_for_every_reader(seed: int, block_bytes: int) -> None:
    """A file that is larger than the window: each packet comes once, blocks decide nothing."""
    frames = in_order(seed)
    shuffled = frames[:60] + mixed(Random(seed), frames[60:], 500 * MS)
    with (
        TemporaryDirectory() as folder,
        patch.object(time_order, "WINDOW_BYTES", 4_000),
        patch.object(time_order, "AHEAD_BYTES", 2_000),
    ):
        name = written(shuffled, Path(folder) / "a")
        found = packets(name, block_bytes)
        assert found == packets(name)
    assert [each[0] for each in found] == list(range(1, len(frames) + 1))
    assert sorted(each[1:] for each in found) == sorted(shuffled)


@pytest.mark.parametrize("window_ms", [250, 3_600_000])
def test_directions_in_bursts_have_no_gaps(window_ms: int) -> None:
    made = Tape()
    composer = Composer(Endpoint("10.0.0.2", 40000), Endpoint("10.0.0.1", 9092))
    made.add(composer.open())
    for number in range(40):
        made.now_ns += 20 * MS
        made.add(composer.send(0, bytes([number]) * 100))
        made.add(composer.send(1, bytes([number]) * 300))
    expected, *_ = read(made.pcap())
    shuffled = Tape()
    shuffled.frames = bursts(made.frames, window_ms * MS)
    found, source, _ = read(shuffled.pcap())
    assert source.statistics.moved > 0
    assert [each[:-1] for each in joined(found)] == [each[:-1] for each in joined(expected)]
    connection = found[0].connection
    assert connection.gap_bytes == (0, 0)
    assert connection.handshake_ns == 40_000


def test_sequence_numbers_tell_a_clock_that_was_set_back() -> None:
    """The order of the file is the true one: bytes would be acknowledged before they are sent."""
    made = conversation(30)
    half = len(made.frames) // 2
    made.frames[half:] = [(at - 700 * MS, frame) for at, frame in made.frames[half:]]
    found, source, _ = read(made.pcap())
    assert source.statistics.moved == 0
    assert found[0].connection.gap_bytes == (0, 0)


def test_one_packet_of_the_future_moves_no_other() -> None:
    made = conversation(5)
    made.frames[4] = made.frames[4][0] + 4_000 * MS, made.frames[4][1]
    _, source, _ = read(made.pcap())
    assert source.statistics.moved == 0


def test_damage_comes_behind_all_that_was_read(tmp_path: Path) -> None:
    frames = bursts(in_order(3), 500 * MS)
    name = written(frames, tmp_path / "a")
    Path(name).write_bytes(Path(name).read_bytes()[:-3])
    with open_inputs([name]) as source:
        found: list[Packet] = []
        with pytest.raises(CutShort):
            found.extend(source.packets())
    assert len(found) == len(frames) - 1


def test_streams_are_read_as_they_come(tmp_path: Path) -> None:
    """Nobody waits for packets that may be older."""
    frames = bursts(in_order(5), 500 * MS)
    name = written(frames, tmp_path / "a")
    with Source(["-"], None, {0: Trickle(Path(name).read_bytes())}) as source:
        source.unsorted.add(0)
        assert [each.time_ns for each in source.packets()] == [at for at, _ in frames]


@pytest.mark.parametrize("seed", [334, 416, 479, 682])
def test_compressed_files_and_later_sections_are_read(seed: int, tmp_path: Path) -> None:
    """Bytes of a compressed file may look like changed lines; a block that is put in order may be
    of a section before the one that was read last."""
    with open_inputs(files(seed, tmp_path)) as source, suppress(CutShort):
        assert sum(len(block.positions) for block in source.blocks()) >= 10
