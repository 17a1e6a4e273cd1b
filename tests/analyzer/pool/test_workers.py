"""Workers that share the connections of a capture find what one process finds, and print the same
lines."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.pipeline.tables.numbers import exchange_place
from kafkascope.analyzer.pool.merging import WorkerMerge
from kafkascope.analyzer.pool.messages import Work, WorkerBatch, WorkerSummary
from kafkascope.analyzer.reading.remarks import remarks
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.model import Connection, Statistics
from kafkascope.captures.streams import scan
from kafkascope.captures.streams.shares import NeedsSingleProcess, is_divisible
from tests.analyzer.pool.kit import PLACEHOLDERS, WORK, lines_of, together
from tests.kit.captures import Tape
from tests.kit.forwarded import LOCAL, forwarded
from tests.kit.samples import CAPTURES, SAMPLES, rows_of
from tests.kit.traffic import files, mixed
from tests.kit.translated import made


def alone(names: list[str]) -> tuple[list[bytes], OpenInput]:
    with open_capture(names) as capture:
        return lines_of(capture), capture


def shared(names: list[str], count: int, work: Work = WORK) -> tuple[list[bytes], WorkerSummary]:
    lines, summary, _ = together([open_capture(names) for _ in range(count)], [work] * count)
    return lines, summary


def counted(statistics: Statistics) -> dict[str, Any]:
    found = asdict(replace(statistics, damage=[]))
    return found | {"damage": list(map(str, statistics.damage))}


def _ends(connections: Iterable[Connection]) -> list[str]:
    return sorted(str(each.a) for each in connections)


def check(names: list[str], count: int) -> bool:
    """Compare; return whether workers could do it."""
    expected, capture = alone(names)
    try:
        lines, summary = shared(names, count)
    except NeedsSingleProcess:
        return False
    assert lines == expected
    context, statistics = capture.context, capture.source.statistics
    assert counted(summary.statistics) == counted(statistics)
    assert str(summary.damage) == str(capture.damage)
    assert summary.skipped_bytes == context.skipped_bytes
    assert summary.opaque == context.opaque
    assert summary.brokers == context.brokers
    # Those are counted only: their order is that of the connections, not that of being recognized.
    assert _ends(summary.encrypted) == _ends(context.encrypted)
    return True


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
@pytest.mark.parametrize("count", [2, 3])
def test_samples(path: Path, count: int) -> None:
    assert check([str(path)], count)


def test_packets_out_of_the_order_of_time(tmp_path: Path) -> None:
    with Source([str(SAMPLES / "rebalance.pcap")]) as source:
        frames = [(each.time_ns, each.data) for each in source.packets()]
        link_type = source.interfaces()[0].link_type
    path = tmp_path / "a.pcap"
    tape = Tape()
    tape.frames = mixed(Random(1), frames, 500_000_000)
    path.write_bytes(tape.pcap(link_type=link_type))
    assert check([str(path)], 2)
    rows, capture = alone([str(path)])
    assert capture.source.statistics.moved > 0
    assert len(rows) == len(alone([str(SAMPLES / "rebalance.pcap")])[0])


@pytest.mark.parametrize("late", [False, True], ids=["", "late"])
@pytest.mark.parametrize("count", [2, 3])
def test_two_pairs_of_addresses_need_a_single_process(
    count: int, late: bool, tmp_path: Path
) -> None:
    """Each pair may be another worker's; where that begins late, workers find it out."""
    _, twice = made("dnat")
    path = tmp_path / "a.pcap"
    path.write_bytes(twice.pcap())
    names = [str(SAMPLES / "java-codecs.pcap"), str(path)] if late else [str(path)]
    assert is_divisible([str(path)], 1 << 20) is False
    assert not check(names, count)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("late", [False, True])
def test_a_leg_of_a_proxy_needs_a_single_process(count: int, late: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(forwarded(LOCAL).pcap())
    names = [str(SAMPLES / "java-codecs.pcap"), str(path)] if late else [str(path)]
    assert not check(names, count)


def test_both_legs_of_a_proxy(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(forwarded(LOCAL).pcap())
    opened: dict[str, list[int]] = {}
    for legs in ("client", "both"):
        with open_capture([path], legs=legs) as capture:
            seen = opened.setdefault(legs, [])
            capture.watch = lambda event, seen=seen: seen.append(event.connection.number)
            assert list(capture.exchanges())
            text = " ".join(remarks(capture, verbose=False))
            assert ("both sides of a TCP proxy" in text) is (legs == "client")
    assert (set(opened["client"]), set(opened["both"])) == ({0}, {0, 1})


def test_most_captures_need_no_single_process() -> None:
    paths = sorted(CAPTURES.glob("*.pcap*"))
    done = sum(check([str(path)], 2) for path in paths)
    assert done > 0.8 * len(paths)


@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 4), bulk=st.booleans())
@example(seed=1016, count=2, bulk=False)
@example(seed=386, count=3, bulk=False)
@settings(max_examples=settings().max_examples // 2)
def test_whatever_happens_on_the_network(seed: int, count: int, bulk: bool) -> None:
    """With `bulk`, blocks with many odd packets are read at once, too."""
    forced = patch.object(scan, "scan", partial(scan.scan, forced=bulk))
    with TemporaryDirectory() as folder, forced:
        check(files(seed, Path(folder)), count)


def test_random_networks_are_not_all_read_by_one() -> None:
    done = 0
    for seed in range(40):
        with TemporaryDirectory() as folder:
            done += check(files(seed, Path(folder)), 2)
    assert done > 20


FORMS: list[Callable[[int, int], str]] = [
    lambda number, connection: f"{number} {connection}",
    lambda number, _: f"100 % %d %s {number}",
    lambda *_: "",
    lambda number, connection: f"{connection} < {number}{number}",
]


def test_numbers_get_into_their_places_whatever_stands_around_them() -> None:
    def shape(row: Row, *_: object) -> bytes:
        form = FORMS[int(row.id, 16) % len(FORMS)]
        return (form(row.number, row.connection) + "\n").encode()

    names = [str(SAMPLES / "java-codecs.pcap")]
    assert shared(names, 2, Work(shape=shape))[0] == list(map(shape, rows_of(*map(Path, names))))


def test_provisional_numbers_become_those_of_one_process() -> None:
    names = [str(SAMPLES / "transactions.pcap")]
    rows = rows_of(*map(Path, names))
    expected = {row.id: (row.number, row.connection) for row in rows}
    seen: list[tuple[str, int, int]] = []
    work = Work(on_match=[lambda row, _: seen.append((row.id, row.number, row.connection))])
    _, _, merge = together([open_capture(names) for _ in range(3)], [work] * 3)
    assert len(seen) == len(expected)
    assert {id_: (merge.rank(a), merge.rank(b)) for id_, a, b in seen} == expected
    assert merge.rank(17) == 17  # an offset, say
    assert merge.rank((1 << 62) + 12_345) == (1 << 62) + 12_345


def test_exchanges_of_one_packet_are_ranked_by_their_offsets() -> None:
    # A place holds 25 bits of the offset; here the second one of packet 7 has gone beyond.
    merge = WorkerMerge(1, PLACEHOLDERS, prints=False)
    origins = [(7, (1 << 25) + 20), (7, (1 << 25) - 10), (3, 5)]
    batch = WorkerBatch()
    for origin in origins:
        batch.origins.extend(origin)
    merge.take([batch])
    assert [merge.rank(exchange_place(*each)) for each in origins] == [3, 2, 1]
