"""Whatever happens on a network, all ways to read it give the same exchanges: the general reader,
the kernel compiled and as plain Python, two processes, the tasks of Spark."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partialmethod
from hashlib import blake2b
from pathlib import Path

import pytest

from kafkascope.analyzer.conversation.conversation import Conversation
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.captures.inputs import files
from kafkascope.captures.inputs.keylogs import read_key_logs
from kafkascope.captures.streams.shares import NeedsSingleProcess
from kafkascope.captures.streams.streams import Assembly
from tests.analyzer.pipeline.kit import Apart, check_against_export, made
from tests.analyzer.pool.kit import WORK, together
from tests.kernel.networks import keys_of, lines_of, write
from tests.kit.authority import Authority

NAMES = 200
"""Captures that one process reads, and that are there at a time."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Authority(tmp_path_factory.mktemp("authority")).issue("broker", "10.0.1.2")


def general(path: Path) -> list[bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Conversation, "_is_ordinary", lambda conversation: False)
        return lines_of(path)


def cut(path: Path, bulk: bool, block_bytes: int) -> list[bytes]:
    """What is read in blocks of a size, packet by packet or all at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", block_bytes)
        patch.setattr(Assembly, "batches", partialmethod(Assembly.batches, bulk=bulk))
        return lines_of(path)


def by_two(path: Path) -> list[bytes] | None:
    """What two workers read; None where one has to read alone."""
    try:
        captures = [open_capture([path], keylog=keys_of(path)) for _ in range(2)]
        return [line.rstrip(b"\n") for line in together(captures, [WORK] * 2)[0]]
    except NeedsSingleProcess:
        return None


def plain(paths: Iterable[Path]) -> Iterator[str]:
    """What the kernel reads as plain Python."""
    command = [sys.executable, "-m", "tests.kernel.networks", *map(str, paths)]
    environment = os.environ | {"KAFKASCOPE_PURE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    yield from done.stdout.split()


def check(
    seeds: range, folder: Path, certificate: Path, tables: Callable[[int], bool]
) -> tuple[int, int]:
    """Compare; return how many captures two workers could read, and how many tables were
    compared."""
    paths = [write(seed, folder, certificate) for seed in seeds]
    hashes, shared, compared = plain(paths), 0, 0
    for seed, path, expected in zip(seeds, paths, hashes, strict=True):
        lines = lines_of(path)
        assert general(path) == lines, seed
        for bulk in (True, False):
            assert cut(path, bulk, 300 + seed % 7 * 1_000) == lines, seed
        assert blake2b(b"\n".join(lines)).hexdigest() == expected, seed
        found = by_two(path)
        assert found is None or sorted(found) == sorted(lines), seed
        shared += found is not None
        # A task knows its own connections. Others show whether Kafka is at an unusual port, and
        # which secrets are left for a connection whose handshake was not captured.
        asks = (b"starts after the handshake", b":19094")
        if tables(seed) and not any(each in line for line in lines for each in asks):
            compared += 1
            out, keys = folder / f"{seed}.tables", read_key_logs(keys_of(path))
            made([str(path)], out, Apart(tasks=1 + seed % 4), 20_000, keys=keys)
            check_against_export(out, [str(path)], keylog=keys_of(path))
    return shared, compared


def test_all_ways_to_read_a_network_agree(tmp_path: Path, certificate: Path) -> None:
    shared, compared = check(range(12), tmp_path, certificate, lambda seed: seed in (3, 4, 8))
    assert shared > 3
    assert compared == 3


@pytest.mark.soak
@pytest.mark.parametrize("begin", range(0, 10_000, NAMES))
def test_all_ways_to_read_ten_thousand_networks_agree(
    begin: int, tmp_path: Path, certificate: Path
) -> None:
    check(range(begin, begin + NAMES), tmp_path, certificate, lambda seed: seed % 4 == 0)
