"""Workers that share connections with TLS tell what one process tells, with the same key logs."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.pool.messages import Work
from kafkascope.captures.limits import LIMITS
from kafkascope.captures.model import Closed, Connection, Opened, Packet
from kafkascope.captures.streams.shares import NeedsSingleProcess
from kafkascope.captures.tls.keys.keylog import KeyLog
from kafkascope.captures.tls.sources import KeySources
from tests.analyzer.pipeline.encrypted import LOGS, PORTS, packets_of
from tests.analyzer.pool.kit import line_of, lines_of, needs_fork, run
from tests.analyzer.pool.kit import together as shared_by
from tests.kit.captures import written
from tests.kit.samples import TLS
from tests.matrix import each_nth

NAMES = sorted(each.name for each in TLS.glob("*.pcap*"))


class Seen:
    """Connections, with what is known of their TLS at the end."""

    def __init__(self) -> None:
        self._connections: dict[int, Connection] = {}

    def saw(self, event: Opened | Closed) -> None:
        self._connections[event.connection.first_packet] = event.connection

    def told(self) -> list[tuple[int, Any]]:
        return [
            (first, each.tls and [getattr(each.tls, field.name) for field in fields(each.tls)])
            for first, each in self._connections.items()
        ]


def opened(names: Sequence[str], logs: Sequence[Path]) -> OpenInput:
    return open_capture(names, keylog=logs, decode_as=PORTS)


def alone(names: Sequence[str], logs: Sequence[Path]) -> tuple[list[bytes], Any]:
    seen = Seen()
    with opened(names, logs) as capture:
        capture.watch = seen.saw
        lines = lines_of(capture)
    return lines, sorted(seen.told())


def together(names: Sequence[str], logs: Sequence[Path], count: int) -> tuple[list[bytes], Any]:
    works = []
    for _ in range(count):
        seen = Seen()
        works.append(Work(shape=line_of, on_connection=seen.saw, result=seen.told))
    lines, summary, _ = shared_by([opened(names, logs) for _ in range(count)], works)
    return lines, sorted(one for result in summary.results for one in result)


def check(names: Sequence[str], logs: Sequence[Path], count: int) -> bool:
    """Compare; return whether workers could do it."""
    try:
        found = together(names, logs, count)
    except NeedsSingleProcess:
        return False
    assert found == alone(names, logs)
    return True


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_samples(name: str, count: int) -> None:
    done = check([str(TLS / name)], LOGS, count)
    # What is tried in vain depends on what others have.
    assert done or name.startswith(("tls12-tickets", "tls13-midstream"))


@pytest.mark.parametrize("logs", [[], LOGS[:3]], ids=["no log", "of others"])
def test_without_their_secrets(logs: list[Path]) -> None:
    for name in NAMES:
        done = check([str(TLS / name)], logs, 2)
        # A session that is resumed may be another worker's.
        assert done or (logs and name.startswith("tls12")), name


@pytest.mark.parametrize("seed", range(12))
def test_many_captures_mixed_and_damaged(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    parts = [packets_of(name) for name in random.sample(NAMES, 3)]
    packets: list[Packet] = []
    time_ns = 1_700_000_000_000_000_000
    lost = random.choice([0.0, 0.0, 0.01])
    while any(parts):
        part = random.choice([each for each in parts if each])
        for _ in range(random.randint(1, 5)):
            if part:
                time_ns += random.choice([1_000, 1_000_000, 60_000_000])
                packet = part.pop(0)._replace(time_ns=time_ns)
                if random.random() >= lost:
                    packets.append(packet)
    path = written(packets, tmp_path / "mixed.pcapng")
    check([str(path)], LOGS, random.randint(2, 4))


def test_mixed_captures_are_not_all_read_by_one(tmp_path: Path) -> None:
    names = [name for name in NAMES if name.startswith("tls13") and "midstream" not in name]
    packets = [each for name in names for each in packets_of(name)]
    packets.sort(key=lambda each: each.time_ns)
    path = written(packets, tmp_path / "mixed.pcapng")
    assert check([str(path)], LOGS, 2)


@needs_fork
@pytest.mark.parametrize("command", each_nth(["ls", "check", "stats connections"], 3))
def test_the_output_is_that_of_one_process(command: str) -> None:
    for name, log in (("tls13-psk.pcap.gz", "tls13-psk.keys"), ("tls13-dsb.pcapng.gz", "")):
        words = [*command.split(), "--json", TLS / name]
        words += ["--keylog", TLS / log] if log else []
        expected = run(*words, "--jobs", "1")
        assert b"TLS 1.3" in expected[1] or command == "check"
        assert run(*words, "--jobs", "3") == expected


def test_limits_for_all_connections_are_kept_away_from() -> None:
    keys = KeySources(KeyLog())
    assert not keys.limited(4)
    keys.sequences -= 1_500_000
    assert keys.limited(4)
    assert not keys.limited(3)
    keys = KeySources(KeyLog())
    keys.trials -= LIMITS.secret_trials // 3
    assert keys.limited(4)
    assert not keys.limited(3)
