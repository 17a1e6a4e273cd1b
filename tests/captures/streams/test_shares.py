"""Whether several readers of one input are worth it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkascope.captures.inputs.files import Source
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.packets.tcp import Segment, segment_of
from kafkascope.captures.streams.shares import Share, is_busy, is_divisible
from tests.explosion.floods import DATA, SERVER, SYN, client, packet, written

COUNT = LIMITS.connections + 4_000


def new_ones() -> Iterator[bytes]:
    for number in range(COUNT):
        yield packet(client(number), SERVER, 1000, SYN)


def same_ones() -> Iterator[bytes]:
    for number in range(COUNT):
        yield packet(client(number % 200), SERVER, 1000, DATA)


@pytest.mark.parametrize(("packets", "divided"), [(new_ones, False), (same_ones, True)])
def test_readers_that_would_reach_a_limit_are_not_started(
    packets: object, divided: bool, tmp_path: Path
) -> None:
    # Both read most of 50,000 connections in vain, and one read all again.
    assert callable(packets)
    path = written(tmp_path / "in.pcap", packets())
    assert is_divisible([str(path)], path.stat().st_size) == divided
    # As large as many captures are, of which this is the beginning.
    assert is_divisible([str(path)], 1 << 30) == divided


def test_one_connection_with_most_of_the_traffic_is_no_work_for_several(tmp_path: Path) -> None:
    busy, other = client(1), client(2)
    packets = [packet(busy, SERVER, 1000, DATA) for _ in range(60)]
    packets += [packet(other, SERVER, 1000, DATA) for _ in range(40)]
    assert not is_busy([str(written(tmp_path / "in.pcap", iter(packets)))])
    packets += [packet(busy, SERVER, 1000, DATA) for _ in range(60)]
    assert is_busy([str(written(tmp_path / "more.pcap", iter(packets)))])


def test_readers_divide_connections_alike_and_fairly(tmp_path: Path) -> None:
    """Both directions of a connection, and very many connections as well as few."""
    packets = [packet(client(each), SERVER, 1000, DATA) for each in range(LIMITS.shared_flows)]
    packets += [packet(SERVER, client(each), 1000, DATA) for each in range(LIMITS.shared_flows)]
    names = [str(written(tmp_path / "in.pcap", iter(packets)))]
    taken: list[list[int]] = []
    for mine in range(3):
        share = Share(mine, 3)
        with Source(names) as source:
            found = map(segment_of, source.packets())
            taken.append(
                [
                    at
                    for at, each in enumerate(found)
                    if isinstance(each, Segment) and share.takes(each)
                ]
            )
    assert sorted(at for each in taken for at in each) == list(range(len(packets)))
    assert all(
        {(at + LIMITS.shared_flows) % len(packets) for at in each} == set(each) for each in taken
    )
    assert min(map(len, taken)) > 0.25 * len(packets)
