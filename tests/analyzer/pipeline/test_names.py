"""Host names that captures resolve reach the statistics, whatever reads the captures."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from scapy.layers.dns import DNS, DNSQR, DNSRR
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import rdpcap, wrpcap

from kafkascope.analyzer.pipeline.stored import Stored
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.tui.cli import main
from tests.analyzer.pipeline.kit import Apart, made

CAPTURE = Path(__file__).parents[1] / "captures" / "causes" / "advertised-host-java.pcap.gz"
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
    expected, _ = made([str(capture)], tmp_path / "plain")
    found, _ = made([str(capture)], tmp_path / "apart", Apart(), size=1_000)
    assert found == expected
    (line,) = of(tmp_path / "plain")
    assert line["contacted"] == "no"
    assert line["remarks"] == ["never contacted", "resolves to 10.7.0.99"]
    assert of(tmp_path / "apart") == [line]


def cluster(*words: str) -> str:
    done = CliRunner().invoke(main, ["cluster", *words, "--only", "nodes", "--json", "-q"])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()[0]


def test_commands_know_the_names_of_the_capture(capture: Path) -> None:
    assert '"resolves to 10.7.0.99"' in cluster(str(capture))


def test_commands_are_told_names(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(f"10.7.0.1 {NAME}\n")
    line = cluster(str(CAPTURE), "--hosts", str(hosts))
    assert '"contacted":"yes"' in line
    assert '"resolves to 10.7.0.1"' in line
    hosts.write_text(f"{NAME} 10.7.0.1\n")
    done = CliRunner().invoke(main, ["check", str(CAPTURE), "--hosts", str(hosts)])
    assert done.exit_code == 2
    assert "line 1" in done.stderr
