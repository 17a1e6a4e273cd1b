"""Workers that share the connections of a capture tell what one process tells, byte by byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import Capture, open_capture
from kafkascope.analyzer.exchanges.row_json import json_of_row
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.analyzer.pool import worker
from kafkascope.analyzer.pool.gathering import Gathering, sums_of
from kafkascope.analyzer.pool.messages import Alone, BlockReport, Marks, Sums, Work
from kafkascope.analyzer.pool.worker import Worker
from kafkascope.captures import Source
from kafkascope.captures.model import Connection
from kafkascope.captures.statistics import Statistics
from kafkascope.captures.streams import scan, shares
from kafkascope.captures.streams.shares import Share, busiest, is_divisible
from tests.analyzer.pipeline.traffic import files
from tests.captures.inputs.test_time_order import mixed
from tests.captures.streams.test_translated import made
from tests.captures.wires import Tape

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"
CAUSES = Path(__file__).parents[1] / "captures"
MARKS = Marks(12_345_678_901_234_567)


def line_of(row: Row, *_: object) -> bytes:
    return json_of_row(row) + b"\n"


WORK = Work(shape=line_of, reshape=line_of)


def alone(names: list[str]) -> tuple[list[bytes], Capture]:
    with open_capture(names) as capture:
        topics = capture.context.names
        lines = [line_of(row_of(exchange, topics)) for exchange in capture.exchanges()]
    return lines, capture


def together(names: list[str], count: int, work: Work = WORK) -> tuple[list[bytes], Sums]:
    gathering = Gathering(count, MARKS, work.reshape)
    captures = [open_capture(names) for _ in range(count)]
    common = busiest(names, count)
    workers: list[Iterator[BlockReport | Sums]] = [
        Worker(capture, Share(number, count, common), MARKS, work).run()
        for number, capture in enumerate(captures)
    ]
    lines: list[bytes] = []
    try:
        while True:
            found = [next(worker) for worker in workers]
            sums = [each for each in found if isinstance(each, Sums)]
            if sums:
                return lines, sums_of(sums)
            reports = [each for each in found if isinstance(each, BlockReport)]
            lines += gathering.take(reports).data.splitlines(keepends=True)
    finally:
        for capture in captures:
            capture.close()


def told(statistics: Statistics) -> dict[str, Any]:
    found = asdict(replace(statistics, damage=[]))
    return found | {"damage": list(map(str, statistics.damage))}


def _ends(connections: Iterable[Connection]) -> list[str]:
    return sorted(str(each.a) for each in connections)


def check(names: list[str], count: int) -> bool:
    """Compare; return whether workers could do it."""
    expected, capture = alone(names)
    try:
        lines, sums = together(names, count)
    except Alone:
        return False
    assert lines == expected
    context, statistics = capture.context, capture.source.statistics
    assert told(sums.statistics) == told(statistics)
    assert str(sums.damage) == str(capture.damage)
    assert sums.skipped_bytes == context.skipped_bytes
    assert sums.opaque == context.opaque
    assert sums.brokers == context.brokers
    # Those are counted only: their order is that of the connections, not that of being recognized.
    assert _ends(sums.encrypted) == _ends(context.encrypted)
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


def test_most_captures_need_no_single_process() -> None:
    paths = sorted(CAUSES.glob("*.pcap*"))
    done = sum(check([str(path)], 2) for path in paths)
    assert done > 0.8 * len(paths)


@given(
    seed=st.integers(0, 1 << 32),
    count=st.integers(1, 4),
    bulk=st.booleans(),
    much=st.sampled_from([0.0, 0.5, shares.MUCH]),
)
# A deadline within a run of another connection; one of a connection that all follow.
@example(seed=1016, count=2, bulk=False, much=shares.MUCH)
@example(seed=386, count=3, bulk=False, much=shares.MUCH)
@settings(max_examples=settings().max_examples // 2)
def test_whatever_happens_on_the_network(seed: int, count: int, bulk: bool, much: float) -> None:
    """With `bulk`, blocks with many odd packets are read at once, too; the less `much`, the more
    connections are followed by all."""
    with (
        TemporaryDirectory() as folder,
        patch.object(scan, "MAX_ODD", 2.0 if bulk else 0.3),
        patch.object(shares, "MUCH", much),
        patch.object(shares, "TURN_BITS", 4),
    ):
        check(files(seed, Path(folder)), count)


def test_workers_take_turns_on_a_busy_connection() -> None:
    told: list[int] = []
    names = [str(SAMPLES / "java-codecs.pcap")]
    with patch.object(shares, "TURN_BITS", 3), patch.object(shares, "MUCH", 0.0):
        common = busiest(names, 2)
        for number in range(2):
            rows: list[Row] = []
            work = Work(adds=[lambda row, _, rows=rows: rows.append(row)])
            with open_capture(names) as capture:
                for _ in Worker(capture, Share(number, 2, common), MARKS, work).run():
                    pass
            told.append(len(rows))
    assert min(told) > 0.2 * sum(told)


def test_random_networks_are_not_all_read_by_one() -> None:
    done = 0
    for seed in range(40):
        with TemporaryDirectory() as folder:
            done += check(files(seed, Path(folder)), 2)
    assert done > 20


def topics_seen(work: Work) -> set[str]:
    """Return the topics of the rows that a worker adds."""
    found: set[str] = set()
    work.adds = [lambda row, _: found.update(row.topics)]
    with open_capture([str(SAMPLES / "java-codecs.pcap")]) as capture:
        for _ in Worker(capture, Share(0, 1), MARKS, work).run():
            pass
    return found


def test_where_heads_suffice_bodies_are_not_read() -> None:
    assert not topics_seen(Work(heads=True, whole=False))
    assert topics_seen(Work(heads=False, whole=False))


def test_heads_do_not_suffice_for_filters_and_for_what_counts_everything() -> None:
    assert topics_seen(Work(heads=True, whole=False, wanted=lambda *_: True))
    assert topics_seen(Work(heads=True, whole=False, alls=[lambda *_: None]))


@pytest.mark.parametrize("bytes_at_once", [1, 100, 1 << 20])
def test_marks_are_found_whatever_stands_around_them(
    bytes_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Formats, nothing at all, numbers in another order, none, and several."""
    monkeypatch.setattr(worker, "AT_ONCE", bytes_at_once)
    forms = ["{0} {1}", "100 % %d %s {0}", "", "{1} < {0}", "%%", "{0}{0}{1}"]

    def text_of(row: Row, number: int, connection: int) -> bytes:
        return (forms[hash(row.id) % len(forms)].format(number, connection) + "\n").encode()

    def shape(row: Row, *_: object) -> bytes:
        return text_of(row, row.number, row.connection)

    names = [str(SAMPLES / "java-codecs.pcap")]
    with open_capture(names) as capture:
        rows = [row_of(each, capture.context.names) for each in capture.exchanges()]
    expected = [text_of(row, row.number, row.connection) for row in rows]
    assert together(names, 2, Work(shape=shape, reshape=shape))[0] == expected
