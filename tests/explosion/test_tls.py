"""Floods of connections with TLS: memory stays below a limit however many they are, and time grows
with them, with any key log or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.explosion import tls
from tests.explosion.floods import written
from tests.explosion.measuring import assert_fits

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
