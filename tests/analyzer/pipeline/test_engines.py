"""The plain way and the shuffled one make the same tables, and these are what `export` tells."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap, wrpcap

from kafkascope.analyzer.pipeline.store import Store
from kafkascope.analyzer.pipeline.stored import Stored
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.captures.inputs.files import Source
from tests.analyzer.pipeline.kit import ALL, MORE, PORTS, exchanges, made, made_alike
from tests.kit.captures import Tape
from tests.kit.run import output, run
from tests.kit.samples import CAPTURES, CAUSES, SAMPLES
from tests.kit.traffic import bursts, files, in_order, overlapping, tape, written
from tests.kit.wire import MS
from tests.matrix import each_nth

READS = CAPTURES / "slow-reads.pcap.gz"
"""What earlier answers of a connection tell decides about waits."""


@pytest.mark.parametrize(
    "path", each_nth([*sorted(SAMPLES.glob("*.pcap*")), READS], 3), ids=lambda path: path.name
)
def test_samples(path: Path, tmp_path: Path) -> None:
    made_alike([str(path)], tmp_path, size=100_000, **ALL)


@given(seed=st.integers(0, 1 << 32), size=st.integers(300, 20_000), tasks=st.integers(1, 5))
@example(seed=116, size=12_252, tasks=5)  # a SYN behind its connection
@example(seed=1292, size=10_000, tasks=1)  # an orphan inside a request
@example(seed=2464, size=10_000, tasks=1)  # holes in both directions
@example(seed=2960, size=300, tasks=1)  # a client id that is no UTF-8
@settings(max_examples=settings().max_examples // 8)
def test_whatever_happens_on_the_network(seed: int, size: int, tasks: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        names = files(seed, path / "in")
        made_alike(names, path, tasks, size=size, decode_as=PORTS, **MORE)
        plain, apart = (Store(path / how).manifests() for how in ("plain", "apart"))
        assert [each["batch_id"] for each in plain] == [each["batch_id"] for each in apart]


@given(seed=st.integers(0, 1 << 32), size=st.integers(300, 20_000), tasks=st.integers(1, 4))
@settings(max_examples=settings().max_examples // 8)
def test_where_captures_overlap_numbers_are_those_of_ls(seed: int, size: int, tasks: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        names = overlapping(seed, path / "in")
        made_alike(names, path, tasks, size=size, decode_as=PORTS)


# --- host names that captures resolve reach the statistics, whatever reads the captur -------------


CAPTURE = CAUSES / "advertised-host-java.pcap.gz"
NAME = "kafka-1.prod.internal"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """The client can resolve the name, but not as far as Kafka is."""
    packets = []
    for each in rdpcap(str(CAPTURE)):
        packets.append(Ether() / each[IP])
        packets[-1].time = each.time
    message = DNS(qr=1, qd=[DNSQR(qname=NAME)], an=[DNSRR(rrname=NAME, rdata="10.7.0.99")])
    answer = Ether() / IP(src="10.7.0.53", dst="10.7.0.2") / UDP(sport=53, dport=4000) / message
    answer.time = packets[0].time
    path = tmp_path / "dns.pcap"
    wrpcap(str(path), [packets[0], answer, *packets[1:]])
    return path


def of(folder: Path) -> list[dict[str, object]]:
    found = Cluster()
    Stored(str(folder)).merge_into(found)
    return [line for line in found.rows() if line["node"] is not None]


def test_plain_and_shuffled_know_the_same_names(capture: Path, tmp_path: Path) -> None:
    made_alike([str(capture)], tmp_path, size=1_000, export=False)
    (line,) = of(tmp_path / "plain")
    assert line["contacted"] == "no"
    assert line["remarks"] == ["never contacted", "resolves to 10.7.0.99"]
    assert of(tmp_path / "apart") == [line]


def cluster(*words: object) -> str:
    return output("cluster", *words, "--only", "nodes", "--json", "-q").splitlines()[0]


def test_commands_know_the_names_of_the_capture(capture: Path) -> None:
    assert '"resolves to 10.7.0.99"' in cluster(capture)


def test_commands_are_told_names(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"10.7.0.1 {NAME}\n")
    line = cluster(CAPTURE, "--hosts", hosts)
    assert '"contacted":"yes"' in line
    assert '"resolves to 10.7.0.1"' in line
    hosts.write_text(f"{NAME} 10.7.0.1\n")
    done = run("check", CAPTURE, "--hosts", hosts)
    assert done.exit_code == 2
    assert "line 1" in done.stderr


# --- copies that complete each other make the tables of the whole ---------------------------------


OTHER = {"exchange_id", "file_id", "record_offset", "batch_id"}
"""Columns that tell which file an exchange came from."""


def copies(rng: Random, frames: list[tuple[int, bytes]], folder: Path, shift_ns: int) -> list[str]:
    """Two captures of the frames, of which each lacks some that the other one has."""
    parts = Tape(), Tape()
    for time_ns, frame in frames:
        kept = rng.choices(("both", 0, 1), (9, 1, 1))[0]
        for number, part in enumerate(parts):
            if kept in ("both", number):
                part.frames.append((time_ns + number * shift_ns, frame))
    names = []
    for name, part in zip("ab", parts, strict=True):
        path = folder / f"{name}.pcap"
        path.write_bytes(part.pcap())
        names.append(str(path))
    return names


def rows(out: Path) -> list[dict[str, Any]]:
    found = sorted(exchanges(out), key=lambda row: row["number"])
    return [{name: each for name, each in row.items() if name not in OTHER} for row in found]


@example(seed=147, shift_ns=0, size=300, tasks=1)  # no beginning, on a port of another file
@given(
    seed=st.integers(0, 1 << 32),
    shift_ns=st.integers(-3_000 * MS, 3_000 * MS),
    size=st.integers(300, 20_000),
    tasks=st.integers(1, 4),
)
@settings(max_examples=settings().max_examples // 8)
def test_whatever_one_copy_lacks(seed: int, shift_ns: int, size: int, tasks: int) -> None:
    """The engines agree about any copies, whatever these lack."""
    with TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "in").mkdir()
        names = copies(Random(seed), tape(seed).frames, path / "in", shift_ns)
        more = files(seed + 1, path / "in") if seed % 3 == 0 else []
        made_alike([*names, *more], path, tasks, size=size, decode_as=PORTS, **MORE)


@pytest.mark.parametrize("name", ["aiokafka.pcap", "rebalance.pcap", "transactions.pcap"])
@pytest.mark.parametrize("shift_ns", [0, 3 * MS, -4_000 * MS])
def test_copies_have_the_rows_of_the_whole(name: str, shift_ns: int, tmp_path: Path) -> None:
    with Source([str(SAMPLES / name)]) as source:
        frames = [(each.time_ns, each.data) for each in source.packets()]
        link_type = source.interfaces()[0].link_type
    whole = Tape()
    whole.frames = frames
    (tmp_path / "whole.pcap").write_bytes(whole.pcap(link_type=link_type))
    made([str(tmp_path / "whole.pcap")], tmp_path / "expected")
    names = copies(Random(name), frames, tmp_path, shift_ns)
    for path in map(Path, names):
        data = path.read_bytes()
        path.write_bytes(data[:20] + link_type.to_bytes(4, "little") + data[24:])
    made_alike(names, tmp_path)
    for how in ("plain", "apart"):
        assert rows(tmp_path / how) == rows(tmp_path / "expected")


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_files_that_are_not_in_the_order_of_time(seed: int, tmp_path: Path) -> None:
    """The engines agree, and what is read is what the file in order holds."""
    (tmp_path / "in").mkdir()
    frames = in_order(seed)
    shuffled = written(bursts(frames, 400 * MS), tmp_path / "in" / "a.pcap")
    second = written(
        [(at + 60_000 * MS, frame) for at, frame in frames], tmp_path / "in" / "b.pcap"
    )
    names = [shuffled, second]
    made_alike(names, tmp_path, size=3_000, **MORE)
