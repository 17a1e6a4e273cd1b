"""The reading process: all rows arrive, damage and failures are told, it can be stopped."""

import gzip
import json
import os
import pickle
import select
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.spans import spans, within
from kafkascope.captures.build import Composer
from kafkascope.captures.inputs.spool import DEFAULT_BYTES, NotKept
from kafkascope.captures.model import Closed, Opened
from kafkascope.tui.data.exports import Job
from kafkascope.tui.data.feed import Feed
from kafkascope.tui.data.indexer import Indexer
from kafkascope.tui.data.numbers import ProcessNumbers
from kafkascope.tui.data.pipes import SIZE
from kafkascope.tui.data.store import Store
from kafkascope.tui.limits import ScreenLimits
from kafkascope.tui.settings.notes import Notes
from tests.explosion.packets import CLIENT
from tests.explosion.turns import BROKER, write_packets
from tests.kit.samples import SAMPLES, TLS, rows_of
from tests.kit.wire import request, response
from tests.matrix import mostly_slow

SAMPLE = SAMPLES / "libraries.pcap"
BYTES = SAMPLE.read_bytes()
TICKETS = gzip.decompress((TLS / "tls12-tickets.pcap.gz").read_bytes())
PSK = gzip.decompress((TLS / "tls13-psk.pcap.gz").read_bytes())
LONG = 60.0
"""Seconds: a reading process loads much before it says anything."""


def reading(path: Path, **options: Any) -> closing[Feed]:
    return closing(Feed([str(path)], **options))


def told(feed: Feed, what: Callable[[Store], object]) -> Store:
    """Wait until something is so."""
    until = time.monotonic() + LONG
    while not what(feed.store):
        assert time.monotonic() < until, feed.store.progress
        feed.poll(0.1)
        time.sleep(0.01)
    return feed.store


def read_all(feed: Feed) -> Store:
    return told(feed, lambda store: store.progress.done)


@contextmanager
def piped(data: bytes, **options: Any) -> Iterator[tuple[Feed, Callable[[], None]]]:
    """A feed of a pipe through which these bytes come, and what ends the pipe behind them."""
    ours, theirs = os.pipe()
    over = threading.Event()

    def write() -> None:
        with os.fdopen(theirs, "wb") as pipe:
            pipe.write(data)
            pipe.flush()
            over.wait(LONG)

    feed = Feed(["-"], stdin=ours, **options)
    os.close(ours)
    with closing(feed):
        threading.Thread(target=write, daemon=True).start()
        yield feed, over.set
        over.set()


@contextmanager
def growing(path: Path, data: bytes, **options: Any) -> Iterator[tuple[Feed, BinaryIO]]:
    """A feed of a file that holds these bytes and is still written."""
    with path.open("wb", buffering=0) as file:
        file.write(data)
        with reading(path, **options) as feed:
            yield feed, file


def test_what_arrives_equals_what_was_read(store: Store) -> None:
    with reading(SAMPLE) as feed:
        found = read_all(feed)
        assert len(found) == len(store)
        for index in range(len(store)):
            assert found.session.row(index) == store.session.row(index)
            assert found.texts[index] == store.texts[index]
        assert found.session.index_of(100) == store.session.index_of(100)


def ends_of(path: Path) -> list[str]:
    found: list[str] = []

    def watch(event: Opened | Closed) -> None:
        if isinstance(event, Closed) and event.how in ("fin", "rst"):
            found.append(event.how)

    with open_capture([path]) as capture:
        capture.watch = watch
        assert list(capture.exchanges())
    return found


def test_an_exported_capture_has_the_ends_of_its_connections(tmp_path: Path) -> None:
    target = tmp_path / "out.pcapng"
    with reading(SAMPLE) as feed:
        found = read_all(feed)
        job = Job("pcapng", target, list(found.session.columns["number"]), found, Notes())
        assert list(job.run())
    before, after = ends_of(SAMPLE), ends_of(target)
    assert len(after) == len(before) > 0
    assert {*before} == {*after}


def test_compressed_files_can_be_looked_into() -> None:
    path = SAMPLES / "cluster.pcap.gz"
    with reading(path) as feed:
        found = read_all(feed)
        assert len(found) == len(rows_of(path))
        assert found.session.exchange(0).request.frame.payload


def test_where_frames_are_is_on_disk_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with reading(SAMPLE) as feed:
        store = read_all(feed)
        assert list(tmp_path.iterdir()) == []
        assert store.session.exchange(0).request is not None
        os.ftruncate(feed._places.fileno(), 0)
        with pytest.raises(NotKept):
            store.session.exchange(0)


@pytest.mark.parametrize(
    ("data", "rows", "code", "said"),
    [(b"hello", 0, 3, "not a capture"), (BYTES[:100_001], 50, 4, "cut short")],
)
def test_a_damaged_file_shows_what_it_has(
    tmp_path: Path, data: bytes, rows: int, code: int, said: str
) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(data)
    with reading(path) as feed:
        found = read_all(feed)
        assert len(found) >= rows
        assert found.progress.code == code
        assert said in "".join([found.progress.failure, *found.progress.said])


def test_a_reader_that_waits_for_packets_stops_when_told() -> None:
    with piped(BYTES[:60_000]) as (feed, _):
        told(feed, lambda store: len(store) >= 20)
        assert not feed.store.progress.done
        assert feed.store.session.exchange(0).request.frame.payload
        feed.stop()
        assert read_all(feed).progress.stopped


def test_a_reader_that_dies_leaves_its_rows() -> None:
    with piped(BYTES[:60_000]) as (feed, _):
        told(feed, lambda store: len(store) >= 20)
        feed._process.kill()
        found = read_all(feed)
        assert "ended early" in found.progress.failure
        assert len(found) >= 20


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
    with reading(SAMPLE) as feed:
        assert "ended early (exit code 0)" in read_all(feed).progress.failure


def test_what_is_read_without_end_is_kept_in_a_file_and_can_be_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "kept.pcap"
    with piped(BYTES, output=str(path), limit=100) as (feed, end):
        end()
        found = read_all(feed)
        assert path.read_bytes() == BYTES
        assert found.progress.ring
        assert len(found) + found.session.dropped == 336
        assert found.session.exchange(len(found) - 1).connection


@pytest.mark.parametrize("name", ["tls13-dsb", "tls13-missing-key", "tls12-cbc-sha256-etm"])
def test_what_was_encrypted_can_be_looked_at(name: str) -> None:
    path = next(TLS.glob(f"{name}.pcap*"))
    keys = [] if name == "tls13-dsb" else [str(TLS / f"{name}.keys")]
    with reading(path, keylog=keys) as feed:
        found = read_all(feed)
        rows = rows_of(path, keylog=keys)
        assert [found.session.row(index) for index in range(len(found))] == rows
        assert [found.texts[index] for index in range(len(found))] == list(map(result, rows))
        readable = [index for index, row in enumerate(rows) if row.state != "opaque"]
        os.ftruncate(feed._plaintext_file.fileno(), 0)
        for index in range(len(rows)):
            if index not in readable:
                assert found.session.exchange(index).state == "opaque"
                continue
            with pytest.raises(NotKept):
                found.session.exchange(index)


def test_plaintext_is_on_disk_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with reading(TLS / "tls13-dsb.pcapng.gz") as feed:
        assert read_all(feed).session.exchange(0).request is not None
        assert list(tmp_path.iterdir()) == []
        assert os.fstat(feed._plaintext_file.fileno()).st_size > 10_000


@pytest.mark.parametrize("encrypted", [False, True])
def test_a_file_that_is_written_is_followed(tmp_path: Path, encrypted: bool) -> None:
    whole, keys = (TICKETS, [str(TLS / "tls12-tickets.keys")]) if encrypted else (BYTES, [])
    rows = rows_of(TLS / "tls12-tickets.pcap.gz", keylog=keys) if encrypted else rows_of(SAMPLE)
    cut = len(whole) // 2 if encrypted else 100_001
    with growing(tmp_path / "growing.pcap", whole[:cut], keylog=keys) as (feed, file):
        found = told(feed, lambda found: found.progress.following and len(found) > 5)
        seen = len(found)
        assert found.session.row(0).software == rows[0].software
        file.write(whole[cut:])
        told(feed, lambda found: len(found) > seen)
        assert not found.progress.done
        file.close()
        read_all(feed)
        assert not found.progress.following
        assert found.progress.code == 0
        assert sorted(found.texts[n] for n in range(len(found))) == sorted(map(result, rows))
        # Numbered as they came.
        assert found.session.columns["number"].tolist() == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("encrypted", [False, True])
def test_following_ends_when_told_and_a_record_half_written_is_no_damage(
    tmp_path: Path, encrypted: bool
) -> None:
    data = TICKETS[: len(TICKETS) // 2] if encrypted else BYTES[:100_001]
    keys = [str(TLS / "tls12-tickets.keys")] if encrypted else []
    with growing(tmp_path / "growing.pcap", data, keylog=keys) as (feed, _):
        told(feed, lambda found: found.progress.following)
        feed.stop()
        found = read_all(feed)
        assert found.progress.stopped
        assert found.progress.code == 0
        assert len(found) > 5


def test_of_encrypted_input_without_end_old_rows_go() -> None:
    keys = [str(TLS / "tls13-psk.keys")]
    rows = rows_of(TLS / "tls13-psk.pcap.gz", keylog=keys)
    with piped(PSK, keylog=keys, limit=10) as (feed, end):
        told(feed, lambda store: store.session.dropped > 0 and len(store) <= 10)
        end()
        found = read_all(feed)
        assert found.session.dropped
        assert len(found) + found.session.dropped == len(rows)
        errors = [found.session.row(index).errors for index in range(len(found))]
        assert errors == [row.errors for row in rows[found.session.dropped :]]
        assert feed._plaintext.capacity == DEFAULT_BYTES


def test_of_live_input_rows_come_when_their_secrets_do(tmp_path: Path) -> None:
    late, keys = tmp_path / "keys.log", TLS / "tls13-psk.keys"
    rows = rows_of(TLS / "tls13-psk.pcap.gz", keylog=[keys])
    with piped(PSK, keylog=[str(late)]) as (feed, _):
        told(feed, lambda store: store.progress.read > 0)
        assert not len(feed.store)
        late.write_bytes(keys.read_bytes())
        found = told(feed, lambda store: len(store) >= len(rows))
        times = sorted(found.session.row(index).time_ns for index in range(len(found)))
        assert times == sorted(row.time_ns for row in rows)
        assert not found.progress.done


def test_a_followed_file_whose_reader_dies_leaves_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "growing.pcap"
    with growing(path, BYTES[:100_001]) as (feed, _):
        told(feed, lambda found: found.progress.following and len(found) > 0)
        feed._process.kill()
        found = read_all(feed)
        assert "ended early" in found.progress.failure
        assert not found.progress.following
        os.truncate(path, 30_000)
        assert found.result(len(found) - 1)  # no bytes any more, no crash either


def reader_of(results: int, spool: int) -> dict[str, Any]:
    """What a reader of a capture is told, which gets no commands."""
    return {
        "inputs": [str(SAMPLE)],
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
    with closing(Feed(names, limits=ScreenLimits(listed_bytes=5_000_000))) as feed:
        found = read_all(feed)
        assert 0 < len(found) < files * each
        numbers = [found.session.row(index).number for index in range(len(found))]
        assert numbers == list(range(1, len(found) + 1))
        assert found.progress.stopped
        assert found.progress.remarks[0].startswith(
            f"there is more: the list holds the first {len(found):,} exchanges"
        )


# --- ports on the way to the reading process ----------------------------------------------------


@given(st.sets(st.integers(1, 40)))
def test_the_same_ports_come_out(ports: set[int]) -> None:
    told = json.loads(json.dumps(spans(ports)))
    assert within(told) == ports


def test_neighbours_are_told_together() -> None:
    assert spans([9095, 9092, 9094, 9093, 19092]) == [(9092, 9095), (19092, 19092)]


def test_all_ports_there_are_fit_a_command_line() -> None:
    every = range(1, 65_536)
    Feed([str(SAMPLE)], ports=every).close()
    ProcessNumbers([str(SAMPLE)], ports=every).close()
