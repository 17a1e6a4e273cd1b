"""Connections without end, with little or nothing in them: memory stays the same however many they
are."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.explosion import tls
from tests.explosion.floods import DATA, RST_ACK, SERVER, SYN, client, packet, written
from tests.explosion.measuring import MEMORY_MB, assert_fits

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


def syns(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield packet(client(number), SERVER, 1000, SYN)


def refused(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield packet(client(number), SERVER, 1000, SYN)
        yield packet(SERVER, client(number), 0, RST_ACK)


def undecided(count: int) -> Iterator[bytes]:
    """Packets that could be of anything, on connections that began before the capture."""
    for turn in range(1900):
        for number in range(count):
            other = SERVER[0], 5555
            yield packet(client(number), other, 1000 + 10 * turn, DATA, b"\xff" * 10)


def half_sent(count: int) -> Iterator[bytes]:
    """Requests of 40 MB each, of which the last kilobyte is missing."""
    size, step = 40_000_000, 1400
    body = struct.pack(">ihhih", size + 1000, 0, 7, 1, 3) + b"app\xff\xff\xff\xff\0\0\0\1"
    body += bytes(size - len(body))
    for number in range(count):
        yield packet(client(number), SERVER, 999, SYN)
    for at in range(0, size, step):
        for number in range(count):
            yield packet(client(number), SERVER, 1000 + at, DATA, body[at : at + step])


@pytest.mark.parametrize("command", ["ls", "ls --connects", "check", "stats connections"])
@pytest.mark.parametrize("flood", [syns, refused])
def test_connections_without_bytes(
    flood: Callable[[int], Iterator[bytes]], command: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "in.pcap", flood(400_000))
    assert_fits([*command.split(), path], timeout=900, codes=(0, 1), megabytes=MEMORY_MB * 3 // 5)


@pytest.mark.parametrize("flood", [syns, refused])
def test_tables_of_connections_without_bytes(
    flood: Callable[[int], Iterator[bytes]], tmp_path: Path
) -> None:
    path, out = written(tmp_path / "in.pcap", flood(400_000)), tmp_path / "out"
    assert_fits(["spark", path, "-o", out, "--engine", "plain"], timeout=900)
    files = (out / "connections").rglob("*.parquet")
    assert sum(pq.read_metadata(each).num_rows for each in files) == 400_000


@pytest.mark.parametrize("command", ["ls", "check"])
def test_connections_of_which_nobody_knows_what_they_speak(command: str, tmp_path: Path) -> None:
    path = written(tmp_path / "in.pcap", undecided(800))
    taken = assert_fits([command, path], timeout=900, codes=(0, 1))
    assert "evicted before protocol detection" in taken.errors


@pytest.mark.parametrize("command", ["ls", "check"])
def test_frames_that_are_not_whole(command: str, tmp_path: Path) -> None:
    path = written(tmp_path / "in.pcap", half_sent(12))
    assert_fits([command, path], timeout=900, codes=(0, 1))


COUNT = 100_000
LOGS = {"none": None, "of others": range(-COUNT // 4, 0), "all": range(COUNT)}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Options for each key log."""
    folder = tmp_path_factory.mktemp("logs")
    return {
        name: [] if numbers is None else ["--keylog", str(tls.key_log(folder / name, numbers))]
        for name, numbers in LOGS.items()
    }


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("command", ["ls", "check", "stats connections", "export --full", "report"])
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("flood", [tls.hellos, tls.answered, tls.data])
def test_connections_with_a_little_of_tls(
    flood: Callable[[int], Iterator[bytes]],
    log: str,
    command: str,
    logs: dict[str, list[str]],
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "in.pcap", flood(COUNT))
    arguments: list[str | Path] = [*command.split(), path, *logs[log]]
    if command in ("export --full", "report"):
        arguments += ["-o", tmp_path / ("out.jsonl" if "export" in command else "out.html")]
    assert_fits(arguments, timeout=900, codes=(0, 1))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("command", ["cut IN -o OUT.pcapng", "spark IN -o OUT --engine plain"])
@pytest.mark.parametrize("flood", [tls.hellos, tls.answered, tls.data])
def test_what_is_written_of_connections_with_a_little_of_tls(
    flood: Callable[[int], Iterator[bytes]], command: str, tmp_path: Path
) -> None:
    path, out = written(tmp_path / "in.pcap", flood(COUNT)), tmp_path / "out"
    arguments = command.replace("IN", str(path)).replace("OUT", str(out)).split()
    assert_fits(arguments, timeout=900, codes=(0, 1))
