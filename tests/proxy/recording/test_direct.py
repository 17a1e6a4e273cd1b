"""What goes past the page cache is in the file byte for byte, whatever comes between."""

import asyncio
import errno
import fcntl
import os
import random
import resource
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkascope.proxy.recording.direct import BLOCK, CHUNK, ROOM, STRAIGHT, Direct, huge
from kafkascope.proxy.recording.packing import Batch
from kafkascope.proxy.recording.sinks import BULK, FileSink, PipeSink
from tests.kit.proxy import until

HEAD = b"head" * 7


def batch(seed: int, size: int) -> Batch:
    """`size` bytes in parts of all sizes."""
    made = random.Random(seed)
    data = memoryview(made.randbytes(size))
    parts, at = [], 0
    while at < size:
        take = made.choice((3, 82, 4096, 65_000))
        parts.append(data[at : at + take])
        at += take
    return Batch(tuple(parts), size, 1, ())


def content(batches: list[Batch]) -> bytes:
    return HEAD + b"".join(bytes(part) for each in batches for part in each.parts)


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much was written past the page cache: of each write the size."""
    written = []
    plain = os.pwrite

    def pwrite(descriptor: int, data: memoryview, offset: int) -> int:
        done = plain(descriptor, data, offset)
        if len(data) % BLOCK == 0:
            written.append(done)
        return done

    monkeypatch.setattr(os, "pwrite", pwrite)
    return written


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file.pcapng"


SIZES = (
    [BULK] * 3,
    [BULK, 10, BULK + 1, BULK - 1, 5_000, BULK * 3, BLOCK - 1, BULK],
    [ROOM, ROOM + 1, 3 * ROOM + 5, 1],
    [BLOCK - len(HEAD), BULK, BULK],
)


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("pause", [False, True])
def test_large_and_small_batches_make_one_file(
    path: Path, direct: list[int], sizes: list[int], pause: bool
) -> None:
    batches = [batch(seed, size) for seed, size in enumerate(sizes)]
    check_file(path, batches, pause=pause)
    if hasattr(os, "O_DIRECT") and pause:
        assert sum(direct) >= sum(size for size in sizes if size >= BULK) - len(sizes) * BLOCK


def check_file(path: Path, batches: list[Batch], *, pause: bool) -> None:
    """Write batches; check that the file holds them, with `pause` after each."""
    sink = FileSink(path)
    sink.start(HEAD)
    for index, each in enumerate(batches):
        sink.put(each)
        if pause:
            # All of it is there, not only the whole blocks, soon after it came.
            until_idle(sink)
            assert path.read_bytes() == content(batches[: index + 1])
    sink.stop(10)
    assert path.read_bytes() == content(batches)
    assert (sink.dropped, sink.failed) == (0, "")


def filled(sink: FileSink, batches: list[Batch]) -> FileSink:
    """Write batches as they come, and stop."""
    sink.start(HEAD)
    for each in batches:
        sink.put(each)
    sink.stop(30)
    return sink


def until_idle(sink: FileSink) -> None:
    asyncio.run(until(lambda: sink.idle))


def test_each_file_of_a_row_is_whole(tmp_path: Path) -> None:
    batches = [batch(seed, BULK + 1000 * seed) for seed in range(9)]
    sink = filled(FileSink(tmp_path / "row.pcapng", rotate_bytes=3 * BULK), batches)
    assert len(sink.files) > 3
    written = b"".join(path.read_bytes().removeprefix(HEAD) for path in sink.files)
    assert HEAD + written == content(batches)


@pytest.mark.parametrize("how", ["open", "first write", "later write"])
def test_a_file_system_that_does_not_want_it_gets_everything_the_usual_way(
    path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    plain_open, plain_write = os.open, os.pwrite
    ours: set[int] = set()
    calls = 0

    def opened(path: Path, flags: int, mode: int = 0o777) -> int:
        wanted = bool(flags & getattr(os, "O_DIRECT", 0))
        if wanted and how == "open":
            raise OSError(errno.EINVAL, "no")
        descriptor = plain_open(path, flags, mode)
        if wanted:
            ours.add(descriptor)
        return descriptor

    def pwrite(descriptor: int, data: memoryview, offset: int) -> int:
        nonlocal calls
        if descriptor in ours:
            calls += 1
            if calls > (2 if how == "later write" else 0):
                ours.discard(descriptor)
                raise OSError(errno.EINVAL, "no")
            if how == "later write":
                return plain_write(descriptor, data[: len(data) // 2 // BLOCK * BLOCK], offset)
        return plain_write(descriptor, data, offset)

    monkeypatch.setattr(os, "open", opened)
    monkeypatch.setattr(os, "pwrite", pwrite)
    batches = [batch(seed, BULK * 2 + 77) for seed in range(5)]
    sink = filled(FileSink(path), batches)
    assert path.read_bytes() == content(batches)
    assert (sink.dropped, sink.failed) == (0, "")


@pytest.mark.parametrize("size", [BULK // 2, BULK * 2])
def test_behind_a_write_that_failed_nothing_is_written(
    path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    calls = 0
    everything_waits = threading.Event()

    def full() -> bool:
        nonlocal calls
        calls += 1
        everything_waits.wait(10)
        return calls in (2, 3)

    def failing(write: Callable[..., int]) -> Callable[..., int]:
        def written(*given: Any) -> int:
            if full():
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return write(*given)

        return written

    batches = [batch(seed, size) for seed in range(6)]
    sink = FileSink(path)
    sink.start(HEAD)
    monkeypatch.setattr(os, "pwrite", failing(os.pwrite))
    monkeypatch.setattr(os, "writev", failing(os.writev))
    for each in batches:
        sink.put(each)
    everything_waits.set()
    sink.stop(10)
    assert content(batches).startswith(path.read_bytes())
    assert sink.failed == "Input/output error"
    assert sink.dropped == 5


def chunked(seed: int, size: int, start: int) -> Batch:
    """A batch in one part, as it lies in a chunk from `start` on."""
    memory = huge(CHUNK)
    memory[start : start + size] = random.Random(seed).randbytes(size)
    return Batch((memory[start : start + size],), size, 1, (), (start % BLOCK,))


@pytest.mark.parametrize("skew", [0, 4, BLOCK - 4])
@pytest.mark.parametrize("pause", [False, True])
@pytest.mark.parametrize("way", ["straight", "no flag", "half", "fails", "fails later"])
def test_what_lies_as_in_the_file_is_written_as_it_lies(
    path: Path, monkeypatch: pytest.MonkeyPatch, skew: int, pause: bool, way: str
) -> None:
    plain = os.pwritev
    straight: list[int] = []

    def pwritev(descriptor: int, parts: Sequence[memoryview], offset: int) -> int:
        if way == "fails" or (way == "fails later" and straight):
            raise OSError(errno.EINVAL, "no")
        if way == "half":
            parts = [parts[0] or parts[1][:BLOCK]]
        straight.append(plain(descriptor, parts, offset))
        return straight[-1]

    monkeypatch.setattr(os, "pwritev", pwritev)
    if way == "no flag":
        monkeypatch.setattr(os, "O_DIRECT", 0)
    sizes = [BULK + 77, 5, BULK * 2, STRAIGHT - 1, BULK + 1, BULK * 3, 1_000, BULK]
    batches, at = [], len(HEAD) + skew
    for seed, size in enumerate(sizes):
        batches.append(chunked(seed, size, at % BLOCK))
        at += size
    check_file(path, batches, pause=pause)
    if way == "straight" and hasattr(os, "O_DIRECT"):
        assert bool(straight) is (skew == 0)


def test_a_file_says_how_far_it_is_ahead_of_what_was_put(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "row.pcapng", rotate_bytes=3 * BULK)
    assert sink.skew == 0
    sink.start(HEAD)
    assert sink.skew == len(HEAD)
    put = 0
    for seed in range(7):
        sink.put(batch(seed, BULK + seed))
        put += BULK + seed
        until_idle(sink)
        assert sink.files[-1].stat().st_size == put + sink.skew
    sink.limit = 0
    assert not sink.put(batch(9, BULK))
    sink.limit = 10 * BULK
    sink.put(batch(10, BULK))
    until_idle(sink)
    assert sink.files[-1].stat().st_size == put + 2 * BULK + sink.skew
    sink.stop(10)


def test_bursts_go_to_the_page_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [batch(seed, BULK) for seed in range(12)]
    sink = FileSink(path)
    sink.limit = 10 * BULK
    sink.patience_s = 10
    past: list[int] = []
    write = Direct.write

    def written(
        direct: Direct, parts: tuple[bytes, ...], end: int, starts: tuple[int, ...]
    ) -> bool:
        past.append(end)
        return write(direct, parts, end, starts)

    monkeypatch.setattr(Direct, "write", written)
    for each in batches[:10]:
        sink.put(each)  # nobody writes yet
    sink.start(HEAD)
    for each in batches[10:]:
        sink.put(each)
    until_idle(sink)
    assert len(past) < 10
    sink.put(batch(99, BULK))
    sink.stop(10)
    assert path.read_bytes() == content([*batches, batch(99, BULK)])


def test_a_named_pipe_takes_bulk_too(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.pcapng"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    batches = [batch(seed, BULK + seed) for seed in range(3)]
    sink = filled(FileSink(pipe), batches)
    reader.join(30)
    assert not sink.failed
    assert got == [content(batches)]


def test_a_pipe_may_have_a_high_descriptor() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2_048:
        pytest.skip("needs more than 1024 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2_048), hard))
    ours, theirs = os.pipe()
    try:
        sink = PipeSink(fcntl.fcntl(theirs, fcntl.F_DUPFD, 1_500))
    finally:
        os.close(theirs)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    batches = [batch(seed, BULK + seed) for seed in range(3)]
    sink.start(HEAD)
    for each in batches:
        sink.put(each)
    whole, got = content(batches), b""
    while len(got) < len(whole) and (data := os.read(ours, 1 << 16)):
        got += data
    sink.stop(30)
    os.close(ours)
    assert got == whole


def test_room_that_is_made_meanwhile_is_no_disk_that_hangs(tmp_path: Path) -> None:
    sink = FileSink(tmp_path / "r.pcapng")
    sink._put = sink.limit

    class Less(threading.Event):
        def clear(self) -> None:
            self.set()
            super().clear()
            sink._done = sink._put  # the other thread is through just now

        def wait(self, timeout: float | None = None) -> bool:
            return self.is_set()

    sink._less = Less()
    sink.put(batch(1, 1_000))
    assert not sink._hangs
    assert not sink.dropped
