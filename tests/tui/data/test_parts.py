"""Rows that workers read are those of one process, for any number of workers."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.columns import Read
from kafkascope.analyzer.exchanges.offline import Capture, open_capture
from kafkascope.analyzer.exchanges.rows import result, row_of
from kafkascope.analyzer.exchanges.seen_schemas import listen
from kafkascope.analyzer.payloads.gathered import Gathered
from kafkascope.analyzer.pool.gathering import Gathering
from kafkascope.analyzer.pool.messages import Alone, BlockReport, Marks, Sums
from kafkascope.analyzer.pool.worker import Worker
from kafkascope.analyzer.session.deltas import Growth, apply
from kafkascope.analyzer.session.rows import ColumnRow
from kafkascope.analyzer.session.session import Session
from kafkascope.captures import Spool
from kafkascope.captures.model import Closed, Opened
from kafkascope.captures.streams.shares import Share, busiest
from kafkascope.tui.data.feed import Feed
from kafkascope.tui.data.parts import Parts, beginning, work_of
from kafkascope.tui.data.store import Store
from tests.analyzer.pipeline.traffic import files
from tests.analyzer.pool.test_processes import busy, needs_fork, on_linux
from tests.tui.data.test_feed import LONG, read_all

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "captures" / "samples"
CAUSES = ROOT / "tests" / "analyzer" / "captures"
SCHEMAS = CAUSES / "schemas"
MARKS = Marks(12_345_678_901_234_567)

Shown = tuple[Store, list[Any], list[Any]]
"""A store, ends of connections, schemas."""


def alone(capture: Capture) -> Shown:
    """What one process shows."""
    ends: list[Any] = []

    def watch(event: Opened | Closed) -> None:
        if isinstance(event, Closed) and event.how in ("fin", "rst"):
            ends.append((event.connection.number, event.direction, event.how, event.time_ns))

    seen = listen(capture)
    capture.watch = watch
    store = Store(capture.source.read, capture.context)
    for exchange in capture.exchanges():
        store.add(exchange)
    return store, ends, seen.schemas()


def together(names: list[str], count: int, read: Read, early: int) -> Shown:
    """What workers show, in this process, behind some early rows; raises `Alone`."""
    gathering = Gathering(count, MARKS, None)
    captures = [open_capture(names) for _ in range(count)]
    common = busiest(names, count)
    workers: list[Iterator[BlockReport | Sums]] = [
        Worker(capture, Share(number, count, common), MARKS, work_of(schemas=True)).run()
        for number, capture in enumerate(captures)
    ]
    child = Session(Context(), read)
    growth, schemas = Growth(child, forget=True), Gathered("capture")
    store = Store(read)
    if early:
        with open_capture(names) as other:
            first = beginning(other, {"ports": [], "legs": "client"}, early)
        rows = [row_of(exchange, child.context.names) for exchange in first]
        child.extend(first, rows)
        store.texts.extend([result(row) for row in rows])
    parts = Parts(child, gathering, schemas)
    try:
        while True:
            found = [next(worker) for worker in workers]
            if any(isinstance(each, Sums) for each in found):
                return store, parts.ends, schemas.schemas()
            store.texts.extend(
                parts.take([each for each in found if isinstance(each, BlockReport)])
            )
            apply(growth.take(), store.session)
    finally:
        for capture in captures:
            capture.close()


def check(names: list[str], count: int, early: int = 0) -> bool:
    """Compare; return whether workers could do it."""
    with open_capture(names, spool=Spool()) as capture:
        return compare(names, count, early, *alone(capture))


def compare(
    names: list[str], count: int, early: int, wanted: Store, ends: list[Any], schemas: list[Any]
) -> bool:
    try:
        found, other_ends, other_schemas = together(names, count, wanted.read, early)
    except Alone:
        return False
    ours, theirs = found.session, wanted.session
    assert len(found) == len(wanted)
    columns = [name for name in dir(ColumnRow) if not name.startswith("_") and name != "exchange"]
    for index in range(len(wanted)):
        for name in columns:
            mine, other = (getattr(ColumnRow(each, index), name) for each in (ours, theirs))
            assert mine == other, (index, name)
        assert found.result(index) == wanted.result(index)
        mine, other = ours.exchange(index), theirs.exchange(index)
        assert row_of(mine, ours.context.names) == row_of(other, theirs.context.names)
        assert (mine.fetch_session, mine.ended_ns) == (other.fetch_session, other.ended_ns)
        assert ours.ids(index, index + 1) == theirs.ids(index, index + 1)
        assert ours.index_of(mine.number) == index
    assert other_ends == ends
    assert other_schemas == schemas
    return True


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.pcap*")), ids=lambda path: path.name)
@pytest.mark.parametrize("count", [1, 3])
def test_samples(path: Path, count: int) -> None:
    check([str(path)], count)


def test_most_captures_need_no_single_process() -> None:
    paths = [*sorted(CAUSES.glob("*.pcap*"))[::4], *sorted(SCHEMAS.glob("*.pcap*"))]
    done = sum(check([str(path)], 2) for path in paths)
    assert done > 0.8 * len(paths)


@pytest.mark.parametrize("early", [1, 40])
def test_rows_that_were_told_before_are_not_told_again(early: int) -> None:
    for name in ("libraries", "transactions", "rebalance", "java-codecs"):
        assert check([str(SAMPLES / f"{name}.pcap")], 2, early)


@given(seed=st.integers(0, 1 << 32), count=st.integers(1, 4))
@settings(max_examples=settings().max_examples // 4)
def test_whatever_happens_on_the_network(seed: int, count: int) -> None:
    with TemporaryDirectory() as folder:
        check(files(seed, Path(folder)), count)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return busy(tmp_path_factory.mktemp("large") / "busy.pcap", 6_000)


def _children(process: int) -> list[int]:
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:
        return []
    return list(map(int, text.split()))


def _workers(feed: Feed) -> list[int]:
    until = time.monotonic() + LONG
    while len(found := _children(feed._process.pid)) < 2:
        assert time.monotonic() < until
        time.sleep(0.001)
    return found


def _same(found: Store, path: Path) -> None:
    with open_capture([path]) as capture:
        wanted, ends, _ = alone(capture)
        assert len(found) == len(wanted)
        assert found.session.columns.keys() == wanted.session.columns.keys()
        for index in range(0, len(wanted), 50):
            assert found.session.row(index) == wanted.session.row(index)
        texts = [[each.texts[index] for index in range(len(wanted))] for each in (found, wanted)]
        assert texts[0] == texts[1]
        assert list(found.ends) == ends


@needs_fork
@on_linux
def test_workers_as_processes(large: Path) -> None:
    feed = Feed([str(large)], jobs=2)
    try:
        assert len(_workers(feed)) == 2
        found = read_all(feed)
        assert (found.progress.failure, found.progress.code) == ("", 0)
        assert found.progress.read > 0
        _same(found, large)
    finally:
        feed.close()


@needs_fork
@on_linux
def test_a_killed_worker_costs_nothing(large: Path) -> None:
    feed = Feed([str(large)], jobs=2)
    try:
        os.kill(_workers(feed)[0], signal.SIGKILL)
        found = read_all(feed)
        assert found.progress.code == 0
        _same(found, large)
    finally:
        feed.close()


@needs_fork
@on_linux
def test_workers_stop_when_told_and_end_with_the_reader(large: Path) -> None:
    feed = Feed([str(large)], jobs=2)
    try:
        workers = _workers(feed)
        feed.stop()
        found = read_all(feed)
        assert (found.progress.stopped, found.progress.code) == (True, 0)
        assert len(found) == len(found.texts) <= 6_000
    finally:
        feed.close()
    other = Feed([str(large)], jobs=2)
    workers = _workers(other)
    other.close()
    until = time.monotonic() + LONG
    while any(Path(f"/proc/{each}").exists() for each in workers):
        assert time.monotonic() < until
        time.sleep(0.01)


@needs_fork
def test_damage_is_told_once(large: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes(large.read_bytes()[:-7])
    feed = Feed([str(path)], jobs=2)
    try:
        progress = read_all(feed).progress
        assert progress.code == 4
        assert len(progress.said) == 1
        assert "cut short" in progress.said[0]
    finally:
        feed.close()
