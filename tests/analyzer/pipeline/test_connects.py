"""Connects that came to no connection: the table tells what `stats connections` tells of them."""

import gzip
from collections import Counter
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.pipeline.tables import collect
from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.captures.build import Composer
from kafkascope.captures.limits import CaptureLimits
from kafkascope.captures.model import Endpoint
from kafkascope.captures.packets.tcp import ACK, FIN, RST, SYN
from tests.analyzer.pipeline.kit import (
    PORTS,
    Apart,
    in_batches,
    in_files,
    made,
    made_alike,
    rows_of,
)
from tests.kit.captures import START_NS, Tape
from tests.kit.counting import count_capture
from tests.kit.run import objects
from tests.kit.samples import CAUSES
from tests.kit.traffic import tape
from tests.kit.wire import MS, request, response

TOLD = ("connection", "retransmissions", "out_of_order", "unanswered", "state", "packet")
NOT_TCP = bytes(12) + b"\x08\x06" + bytes(28)
"""A frame of ARP."""
BROKER = Endpoint("10.0.1.2", 9092)


def rows(out: Path) -> list[dict[str, Any]]:
    return sorted(rows_of(out, "connections"), key=lambda row: row["connection"])


def counted(path: Path) -> tuple[list[dict[str, Any]], set[int]]:
    """Return the lines of connections, and the numbers of those that began before the capture and
    carry no message."""
    statistic = Connections()
    names = count_capture(path, statistic, decode_as=PORTS)
    lines = sorted(statistic.rows(names), key=lambda line: line["connection"])
    silent = {line["connection"] for line in lines if not line["requests"]}
    return lines, silent & statistic.midstream()


def told(lines: list[dict[str, Any]], silent: Collection[int] = ()) -> list[list[Any]]:
    """Without the order of the sides of `silent`: the statistic knows the brokers of the whole
    capture, a task those of its part."""
    out = []
    for line in lines:
        sides = [(line[f"{side}_address"], line[f"{side}_bytes"]) for side in ("client", "broker")]
        if line["connection"] in silent:
            sides.sort()
        out.append([*sides, *(line[name] for name in TOLD)])
    return out


def attempt(rng: Random, number: int, start_ns: int) -> list[tuple[int, bytes]]:
    """A connect, with what may come of it."""
    made = Composer(Endpoint("10.0.0.4", 50_000 + number % 7), BROKER, isn=(rng.randrange(99), 7))
    kind = rng.choice(["refused", "silent", "silent", "half", "checked", "one way", "forged"])
    packets = [made.packet(0, SYN)]
    if kind == "refused":
        packets.append(made.packet(1, RST | ACK))
    elif kind == "silent":
        packets += packets * rng.randrange(3)
    elif kind == "half":
        packets.append(made.packet(1, SYN | ACK))
    elif kind == "checked":
        packets += [made.packet(1, SYN | ACK), made.packet(0, ACK), made.packet(0, FIN | ACK)]
        packets.append(made.packet(rng.randrange(2), RST | ACK))
    elif kind == "one way":
        packets += [made.packet(0, FIN | ACK), made.packet(0, RST | ACK)]
    else:
        packets += [made.packet(1, RST | ACK), made.packet(0, ACK, b"late")]
    found = []
    for each in packets:
        start_ns += rng.choice([10_000, 40 * MS, 700 * MS])
        found.append((start_ns, each))
    return found


def files(seed: int, folder: Path, *, only: bool = False) -> list[str]:
    """Connects, among other traffic or alone, in files of some packets each."""
    rng = Random(seed)
    packets = [] if only else list(tape(seed).frames)
    start = START_NS
    for number in range(rng.randrange(1, 12)):
        start += rng.choice([0, 3 * MS, 400 * MS, 5000 * MS])
        packets += attempt(rng, number, start)
    packets.sort(key=lambda each: each[0])
    # A capture may go on behind the last packet of a connection.
    packets += [(packets[-1][0] + rng.choice([300 * MS, 1200 * MS]), NOT_TCP)] * rng.randrange(2)
    return list(map(str, in_files(packets, folder, rng, [1, 5, 40])))


@given(seed=st.integers(0, 1 << 32), size=st.integers(300, 5000), tasks=st.integers(1, 3))
@settings(max_examples=settings().max_examples // 8)
def test_both_ways_tell_what_the_statistic_tells(seed: int, size: int, tasks: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        names = files(seed, path / "in")
        made_alike(names, path, tasks, size=size, export=False, decode_as=PORTS)
        lines, silent = counted(path / "in")
        assert told(rows(path / "plain"), silent) == told(lines, silent)


@given(seed=st.integers(0, 1 << 32))
@settings(max_examples=settings().max_examples // 14)
def test_batches_tell_what_one_run_tells(seed: int) -> None:
    """The last batch may have no packet: how long a connect waited is known from those before."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        names = files(seed, path / "in", only=seed % 2 == 0)
        made(names, path / "whole")
        step = Random(seed).choice([1, 2, 9])
        assert list(in_batches(map(Path, names), path / "spool", path / "out", lambda: step))
        assert told(rows(path / "out")) == told(rows(path / "whole"))


@pytest.mark.parametrize(("rest", "state"), [(999, "open"), (1000, "unreachable")])
def test_a_connect_waits_until_the_end_of_the_capture(
    rest: int, state: str, tmp_path: Path
) -> None:
    """Not only until the last packet of a connection."""
    capture = Tape()
    connect = Composer(Endpoint("10.0.0.4", 50_000), BROKER).packet(0, SYN)
    capture.frames = [(START_NS, connect), (START_NS + rest * MS, NOT_TCP)]
    path = tmp_path / "in.pcap"
    path.write_bytes(capture.pcap())
    made_alike([str(path)], tmp_path)
    for name in ("plain", "apart"):
        assert [row["state"] for row in rows(tmp_path / name)] == [state]
        (stored,) = objects("stats", "connections", tmp_path / name, "--json")
        assert stored["state"] == state
    assert [line["state"] for line in counted(path)[0]] == [state]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("broker-down-java", {"refused": 275, "closed": 6, "open": 1}),
        ("advertised-silent-librdkafka", {"unreachable": 4, "closed": 3}),
    ],
)
def test_real_connects(name: str, expected: dict[str, int], tmp_path: Path) -> None:
    source = tmp_path / "in.pcap"
    source.write_bytes(gzip.decompress((CAUSES / f"{name}.pcap.gz").read_bytes()))
    made_alike([str(source)], tmp_path, size=5_000)
    found = rows(tmp_path / "plain")
    assert Counter(row["state"] for row in found) == expected
    expected, *stored = (
        objects("stats", "connections", each, "--json")
        for each in (source, tmp_path / "plain", tmp_path / "apart")
    )
    assert stored == [expected] * 2
    assert told(found) == told(expected)


def most_seen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of connections that a collector keeps whenever it settles."""
    kept: list[int] = []
    settle = collect.TableCollector.settle

    def settled(self: collect.TableCollector) -> None:
        kept.append(len(self._seen))
        settle(self)

    monkeypatch.setattr(collect.TableCollector, "settle", settled)
    return kept


def test_a_flood_is_not_kept_and_not_cut(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows of connects that are over are made before the end, each once."""
    few = CaptureLimits(connections=20)
    kept = most_seen(monkeypatch)
    flood = Tape()
    for number in range(500):
        made_of = Composer(Endpoint("10.0.0.4", 2000 + number), BROKER)
        for late, each in enumerate((made_of.packet(0, SYN), made_of.packet(1, RST | ACK))):
            flood.frames.append((START_NS + number * MS + late, each))
        if number % 50 == 7:
            # Behind a forged RST there is still somebody.
            flood.frames.append((START_NS + number * MS + 5, made_of.packet(0, ACK, b"late")))
    path = tmp_path / "flood.pcap"
    path.write_bytes(flood.pcap())
    whole, _ = made([str(path)], tmp_path / "plain", limits=few)
    assert 20 < max(kept) < 60
    apart, _ = made([str(path)], tmp_path / "apart", Apart(), size=5_000, limits=few)
    assert apart == whole
    states = Counter(row["state"] for row in rows(tmp_path / "plain"))
    assert states == {"refused": 490, "reset": 10}


def shaken(number: int) -> list[bytes]:
    return Composer(Endpoint("10.0.0.4", 2000 + number), BROKER).open()


def asked(number: int, *, ends: bool = False) -> list[bytes]:
    """A connection with one exchange, which stays open."""
    tape = Composer(Endpoint("10.0.0.4", 2000 + number), BROKER)
    sent = tape.open()
    sent += tape.send(0, request("ApiVersions", 0, 1))
    sent += tape.send(1, response("ApiVersions", 0, 1))
    return sent + [tape.packet(side, FIN | ACK) for side in (0, 1) if ends]


closed = partial(asked, ends=True)


@pytest.mark.parametrize("each", [asked, shaken, closed])
def test_connections_are_written_when_they_are_over(
    each: Callable[[int], list[bytes]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Those that carried exchanges as well, and with no exchange in between: 100,000 took 640 MB,
    a million of one SYN each twice that."""
    few = CaptureLimits(connections=20)
    monkeypatch.setattr(collect, "ROWS", 10)
    tape = Tape()
    for number in range(500):
        for late, packet in enumerate(each(number)):
            tape.frames.append((START_NS + number * MS + late, packet))
    path = tmp_path / "in.pcap"
    path.write_bytes(tape.pcap())
    apart, _ = made([str(path)], tmp_path / "apart", Apart(), size=5_000, limits=few)
    kept = most_seen(monkeypatch)
    whole, _ = made([str(path)], tmp_path / "plain", limits=few)
    if each is closed:
        # Others are forgotten in a crowd, and open where each is read alone.
        assert apart == whole
    found = rows(tmp_path / "plain")
    assert [row["connection"] for row in found] == list(range(500))
    assert {row["exchanges"] for row in found} == {int(each is not shaken)}
    assert max(kept) < 80
