"""Whether several readers of one input are worth it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkascope.captures.streams.reassembly import MAX_CONNECTIONS
from kafkascope.captures.streams.shares import busiest, is_busy, is_divisible
from tests.explosion.floods import DATA, SERVER, SYN, client, packet, written

COUNT = MAX_CONNECTIONS + 4_000


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


def test_connections_with_much_of_the_traffic_are_followed_by_all(tmp_path: Path) -> None:
    busy, other = client(1), client(2)
    packets = [packet(busy, SERVER, 1000, DATA) for _ in range(60)]
    packets += [packet(other, SERVER, 1000, DATA) for _ in range(40)]
    names = [str(written(tmp_path / "in.pcap", iter(packets)))]
    assert not is_busy(names)
    assert not busiest(names, 2)
    assert len(busiest(names, 3)) == 2  # of one connection, both directions
    assert len(busiest(names, 8)) == 4
    packets += [packet(busy, SERVER, 1000, DATA) for _ in range(60)]
    assert is_busy([str(written(tmp_path / "more.pcap", iter(packets)))])
