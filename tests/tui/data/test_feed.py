"""The reading process: all rows arrive, damage and failures are told, it can be stopped."""

from __future__ import annotations

import gzip
import os
import pickle
import select
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.rows import Row, row_of
from kafkascope.captures.build import Composer
from kafkascope.captures.inputs.spool import DEFAULT_BYTES, NotKept
from kafkascope.captures.model import Closed, Opened
from kafkascope.tui.data.exports import Job
from kafkascope.tui.data.feed import Feed
from kafkascope.tui.data.indexer import Indexer
from kafkascope.tui.data.pipes import SIZE
from kafkascope.tui.data.store import Store
from kafkascope.tui.limits import ScreenLimits
from kafkascope.tui.settings.notes import Notes
from tests.explosion.packets import CLIENT
from tests.explosion.turns import BROKER, write_packets
from tests.kit.wire import request, response
from tests.matrix import mostly_slow

SAMPLES = Path(__file__).parents[3] / "captures" / "samples"
ENCRYPTED = Path(__file__).parents[2] / "analyzer" / "captures" / "tls"
LONG = 60.0
"""Seconds: a reading process loads much before it says anything."""


def read_all(feed: Feed, seconds: float = LONG) -> Store:
    until = time.monotonic() + seconds
    while not feed.store.progress.done:
        assert time.monotonic() < until
        feed.poll(0.1)
        time.sleep(0.01)
    return feed.store


def test_what_arrives_equals_what_was_read(store: Store) -> None:
    feed = Feed([str(SAMPLES / "libraries.pcap")])
    try:
        found = read_all(feed)
        assert len(found) == len(store)
        for index in range(len(store)):
            assert found.session.row(index) == store.session.row(index)
            assert found.texts[index] == store.texts[index]
        assert found.session.index_of(100) == store.session.index_of(100)
    finally:
        feed.close()


def ends_of(path: Path) -> list[tuple[int | None, str, int]]:
    found: list[tuple[int | None, str, int]] = []

    def watch(event: Opened | Closed) -> None:
        if isinstance(event, Closed) and event.how in ("fin", "rst"):
            found.append((event.direction, event.how, event.time_ns))

    with open_capture([path]) as capture:
        capture.watch = watch
        assert list(capture.exchanges())
    return sorted(found, key=lambda end: end[2])


def test_an_exported_capture_has_the_ends_of_its_connections(tmp_path: Path) -> None:
    feed = Feed([str(SAMPLES / "libraries.pcap")])
    target = tmp_path / "out.pcapng"
    try:
        found = read_all(feed)
        job = Job("pcapng", target, list(found.session.columns["number"]), found, Notes())
        assert list(job.run())
    finally:
        feed.close()
    before, after = ends_of(SAMPLES / "libraries.pcap"), ends_of(target)
    assert after
    assert {end[1] for end in before} == {end[1] for end in after}
    assert len(after) == len(before)


def test_compressed_files_can_be_looked_into() -> None:
    feed = Feed([str(SAMPLES / "cluster.pcap.gz")])
    try:
        found = read_all(feed)
        assert len(found) == sum(1 for _ in open_capture([SAMPLES / "cluster.pcap.gz"]).exchanges())
        assert found.session.exchange(0).request.frame.payload
    finally:
        feed.close()


def test_where_frames_are_is_on_disk_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    feed = Feed([str(SAMPLES / "libraries.pcap")])
    try:
        store = read_all(feed)
        assert list(tmp_path.iterdir()) == []
        assert store.session.exchange(0).request is not None
        assert feed._places is not None
        os.ftruncate(feed._places.fileno(), 0)
        with pytest.raises(NotKept):
            store.session.exchange(0)
    finally:
        feed.close()


def test_a_file_that_is_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_text("hello")
    feed = Feed([str(path)])
    try:
        progress = read_all(feed).progress
        assert "not a capture" in progress.failure
        assert progress.code == 3
    finally:
        feed.close()


def test_a_cut_file_shows_what_it_has(tmp_path: Path) -> None:
    path = tmp_path / "cut.pcap"
    path.write_bytes((SAMPLES / "libraries.pcap").read_bytes()[:100_001])
    feed = Feed([str(path)])
    try:
        found = read_all(feed)
        assert len(found) > 50
        assert found.progress.code == 4
        assert "cut short" in found.progress.said[0]
    finally:
        feed.close()


def test_a_reader_that_waits_for_packets_stops_when_told() -> None:
    ours, theirs = os.pipe()
    feed = Feed(["-"], stdin=ours)
    os.close(ours)
    try:
        os.write(theirs, (SAMPLES / "libraries.pcap").read_bytes()[:60_000])
        until = time.monotonic() + LONG
        while len(feed.store) < 20:
            assert time.monotonic() < until
            feed.poll(0.1)
            time.sleep(0.01)
        assert not feed.store.progress.done
        assert feed.store.session.exchange(0).request.frame.payload
        feed.stop()
        assert read_all(feed).progress.stopped
    finally:
        os.close(theirs)
        feed.close()


def test_a_reader_that_dies_leaves_its_rows() -> None:
    ours, theirs = os.pipe()
    feed = Feed(["-"], stdin=ours)
    os.close(ours)
    try:
        os.write(theirs, (SAMPLES / "libraries.pcap").read_bytes()[:60_000])
        until = time.monotonic() + LONG
        while len(feed.store) < 20:
            assert time.monotonic() < until
            feed.poll(0.1)
            time.sleep(0.01)
        feed._process.kill()
        found = read_all(feed)
        assert "ended early" in found.progress.failure
        assert len(found) >= 20
    finally:
        os.close(theirs)
        feed.close()


def test_a_reader_that_dies_in_the_middle_of_a_batch_leaves_its_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reader = tmp_path / "kafkascope" / "tui" / "data" / "indexer.py"
    reader.parent.mkdir(parents=True)
    for above in reader.parents[:3]:
        (above / "__init__.py").touch()
    reader.write_text(
        "import json, os, sys\n"
        f"os.write(json.loads(sys.argv[1])['results'], {SIZE.pack(1000) + b'half of it'!r})\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    feed = Feed([str(SAMPLES / "libraries.pcap")])
    try:
        assert "ended early (exit code 0)" in read_all(feed).progress.failure
    finally:
        feed.close()


def test_what_is_read_without_end_is_kept_in_a_file_and_can_be_looked_at(tmp_path: Path) -> None:
    sample = (SAMPLES / "libraries.pcap").read_bytes()
    path = tmp_path / "kept.pcap"
    ours, theirs = os.pipe()
    feed = Feed(["-"], stdin=ours, output=str(path), limit=100)
    os.close(ours)

    def write() -> None:
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(sample)

    threading.Thread(target=write, daemon=True).start()
    try:
        found = read_all(feed)
        assert path.read_bytes() == sample
        assert found.progress.ring
        assert len(found) + found.session.dropped == 336
        assert found.session.exchange(len(found) - 1).connection
    finally:
        feed.close()


def rows_of(path: Path, *keys: str) -> list[Row]:
    with open_capture([path], keylog=keys) as capture:
        return [row_of(exchange, capture.context.names) for exchange in capture.exchanges()]


@pytest.mark.parametrize("name", ["tls13-dsb", "tls13-missing-key", "tls12-cbc-sha256-etm"])
def test_what_was_encrypted_can_be_looked_at(name: str) -> None:
    path = next(ENCRYPTED.glob(f"{name}.pcap*"))
    keys = [] if name == "tls13-dsb" else [str(ENCRYPTED / f"{name}.keys")]
    feed = Feed([str(path)], keylog=keys)
    try:
        found = read_all(feed)
        rows = rows_of(path, *keys)
        assert [found.session.row(index) for index in range(len(found))] == rows
        assert [found.texts[index] for index in range(len(found))] == list(map(result, rows))
        readable = [index for index, row in enumerate(rows) if row.state != "opaque"]
        assert feed._plaintext is not None
        os.ftruncate(feed._plaintext_file.fileno(), 0)
        for index in range(len(rows)):
            if index not in readable:
                assert found.session.exchange(index).state == "opaque"
                continue
            with pytest.raises(NotKept):
                found.session.exchange(index)
    finally:
        feed.close()


def test_plaintext_is_on_disk_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    feed = Feed([str(ENCRYPTED / "tls13-dsb.pcapng.gz")])
    try:
        assert read_all(feed).session.exchange(0).request is not None
        assert list(tmp_path.iterdir()) == []
        assert os.fstat(feed._plaintext_file.fileno()).st_size > 10_000
    finally:
        feed.close()


def test_an_encrypted_file_that_is_written_is_followed(tmp_path: Path) -> None:
    path, keys = tmp_path / "growing.pcap", str(ENCRYPTED / "tls12-tickets.keys")
    data = gzip.decompress((ENCRYPTED / "tls12-tickets.pcap.gz").read_bytes())
    rows = rows_of(ENCRYPTED / "tls12-tickets.pcap.gz", keys)
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
        file.flush()
        feed = Feed([str(path)], keylog=[keys])
        try:
            found = _told(feed, lambda found: found.progress.following and len(found) > 5)
            seen = len(found)
            assert found.session.row(0).software == rows[0].software != ""
            file.write(data[len(data) // 2 :])
            file.flush()
            _told(feed, lambda found: len(found) > seen)
            file.close()
            assert len(read_all(feed)) == len(rows)
            # Numbered as they came.
            assert sorted(found.texts[n] for n in range(len(found))) == sorted(map(result, rows))
        finally:
            feed.close()


def test_following_an_encrypted_file_ends_when_told(tmp_path: Path) -> None:
    path, keys = tmp_path / "growing.pcap", str(ENCRYPTED / "tls12-tickets.keys")
    data = gzip.decompress((ENCRYPTED / "tls12-tickets.pcap.gz").read_bytes())
    with path.open("wb") as file:
        file.write(data[: len(data) // 2])
        file.flush()
        feed = Feed([str(path)], keylog=[keys])
        try:
            _told(feed, lambda found: found.progress.following)
            feed.stop()
            found = read_all(feed)
            assert found.progress.stopped
            assert found.progress.code == 0
            assert len(found) > 5
        finally:
            feed.close()


def test_of_encrypted_input_without_end_old_rows_go(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    keys = str(ENCRYPTED / "tls13-psk.keys")
    feed = Feed(["-"], stdin=ours, keylog=[keys], limit=10)
    os.close(ours)
    gone = threading.Event()

    def write() -> None:
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(gzip.decompress((ENCRYPTED / "tls13-psk.pcap.gz").read_bytes()))
            pipe.flush()
            gone.wait(LONG)

    threading.Thread(target=write, daemon=True).start()
    try:
        _told(feed, lambda store: store.session.dropped > 0 and len(store) <= 10)
        gone.set()
        found = read_all(feed)
        rows = rows_of(ENCRYPTED / "tls13-psk.pcap.gz", keys)
        assert found.session.dropped
        assert len(found) + found.session.dropped == len(rows)
        last = rows[found.session.dropped :]
        assert [found.session.row(index).errors for index in range(len(found))] == [
            row.errors for row in last
        ]
        assert feed._plaintext is not None
        assert feed._plaintext.capacity == DEFAULT_BYTES
    finally:
        feed.close()


def _told(feed: Feed, what: Callable[[Store], bool], seconds: float = LONG) -> Store:
    until = time.monotonic() + seconds
    while not what(feed.store):
        assert time.monotonic() < until, feed.store.progress
        feed.poll(0.1)
        time.sleep(0.01)
    return feed.store


def test_of_live_input_rows_come_when_their_secrets_do(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    late, keys = tmp_path / "keys.log", ENCRYPTED / "tls13-psk.keys"
    feed = Feed(["-"], stdin=ours, keylog=[str(late)])
    os.close(ours)
    pipe = os.fdopen(theirs, "wb")
    try:
        pipe.write(gzip.decompress((ENCRYPTED / "tls13-psk.pcap.gz").read_bytes()))
        pipe.flush()
        _told(feed, lambda store: store.progress.read > 0)
        assert not len(feed.store)
        late.write_bytes(keys.read_bytes())
        rows = rows_of(ENCRYPTED / "tls13-psk.pcap.gz", str(keys))
        found = _told(feed, lambda store: len(store) >= len(rows))
        assert sorted(found.session.row(index).time_ns for index in range(len(found))) == sorted(
            row.time_ns for row in rows
        )
        assert not found.progress.done
    finally:
        pipe.close()
        feed.close()


def test_a_file_that_is_written_is_followed(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "growing.pcap"
    data = (SAMPLES / "libraries.pcap").read_bytes()
    with path.open("wb") as file:
        file.write(data[:100_001])
        file.flush()
        feed = Feed([str(path)])
        try:
            found = _told(feed, lambda found: found.progress.following and len(found) > 50)
            seen = len(found)
            assert found.session.row(0) == store.session.row(0)
            file.write(data[100_001:])
            file.flush()
            _told(feed, lambda found: len(found) > seen)
            assert not found.progress.done
            file.close()
            found = read_all(feed)
            assert not found.progress.following
            assert found.progress.code == 0
            assert len(found) == len(store)
            texts = [[each.texts[n] for n in range(len(each))] for each in (found, store)]
            assert sorted(texts[0]) == sorted(texts[1])
            # Numbered as they came.
            numbers = found.session.columns["number"].tolist()
            assert numbers == list(range(1, len(store) + 1))
        finally:
            feed.close()


def test_following_ends_when_told_and_a_record_half_written_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "growing.pcap"
    with path.open("wb") as file:
        file.write((SAMPLES / "libraries.pcap").read_bytes()[:100_001])
        file.flush()
        feed = Feed([str(path)])
        try:
            _told(feed, lambda found: found.progress.following)
            feed.stop()
            found = read_all(feed)
            assert found.progress.stopped
            assert found.progress.code == 0
            assert len(found) > 50
        finally:
            feed.close()


def test_a_followed_file_whose_reader_dies_leaves_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "growing.pcap"
    with path.open("wb") as file:
        file.write((SAMPLES / "libraries.pcap").read_bytes()[:100_001])
        file.flush()
        feed = Feed([str(path)])
        try:
            _told(feed, lambda found: found.progress.following and len(found) > 0)
            feed._process.kill()
            found = read_all(feed)
            assert "ended early" in found.progress.failure
            assert not found.progress.following
            os.truncate(path, 30_000)
            assert found.result(len(found) - 1)  # no bytes any more, no crash either
        finally:
            feed.close()


def reader_of(results: int, spool: int) -> dict[str, Any]:
    """What a reader of a capture is told, which gets no commands."""
    return {
        "inputs": [str(SAMPLES / "libraries.pcap")],
        "ports": [],
        "legs": "client",
        "results": results,
        "commands": -1,
        "spool": os.dup(spool),
        "plaintext": os.dup(spool),
        "keylog": [],
    }


def test_a_failure_is_not_told_in_the_middle_of_rows() -> None:
    ours, theirs = os.pipe()
    with tempfile.TemporaryFile(buffering=0) as spool:
        options = reader_of(theirs, spool.fileno())
        indexer = Indexer(options)
        with indexer._pipe:
            failing = threading.Thread(target=indexer.fail, args=("broken", 4))
            failing.start()
            assert not select.select([ours], [], [], 0.1)[0]
            os.write(theirs, b"the rest of a batch")
        failing.join(LONG)
        indexer.capture.close()
        os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        assert pipe.read(19) == b"the rest of a batch"
        told = pickle.loads(pipe.read(SIZE.unpack(pipe.read(SIZE.size))[0]))
        assert told == {"kind": "failed", "text": "broken", "code": 4}


def beats(path: Path, count: int, first: int) -> Path:
    """A connection of heartbeats, fifty in a packet."""
    mark = 0x12345678
    asked = request("Heartbeat", 0, mark).split(struct.pack(">i", mark))
    told = response("Heartbeat", 0, mark).split(struct.pack(">i", mark))

    def packets() -> Iterator[bytes]:
        composer = Composer(CLIENT._replace(port=1024 + first % 60_000), BROKER)
        yield from composer.open()
        for begin in range(first, first + count, 50):
            ids = [struct.pack(">i", begin + number) for number in range(50)]
            for side, (head, tail) in enumerate((asked, told)):
                yield from composer.send(side, b"".join(head + each + tail for each in ids))

    write_packets(path, packets())
    return path


@pytest.mark.parametrize("files", mostly_slow([1, 2], (2).__eq__))
def test_of_too_much_the_list_has_the_beginning_and_says_so(files: int, tmp_path: Path) -> None:
    each = 300_000 // files  # the first 8 MB of a file come at once
    names = [str(beats(tmp_path / f"{n}.pcapng", each, n * each)) for n in range(files)]
    feed = Feed(names, limits=ScreenLimits(listed_bytes=5_000_000))
    try:
        found = read_all(feed)
        assert 0 < len(found) < files * each
        numbers = [found.session.row(index).number for index in range(len(found))]
        assert numbers == list(range(1, len(found) + 1))
        assert found.progress.stopped
        assert found.progress.remarks[0].startswith(
            f"there is more: the list holds the first {len(found):,} exchanges"
        )
    finally:
        feed.close()
