"""Connects that were refused or not answered: lines of `stats connections` and of `ls --connects`,
and what findings about them point at."""

import json
from typing import Any

import pytest

from kafkascope.analyzer.reading import connects
from kafkascope.analyzer.reading.limits import LIMITS
from tests.kit.run import lines_of, objects, run
from tests.kit.samples import CAPTURES, CAUSES

REFUSED = str(CAPTURES / "wrong-address.pcap")
SILENT = str(CAUSES / "advertised-silent-librdkafka.pcap.gz")
DOWN = str(CAUSES / "broker-down-java.pcap.gz")
DROPPED = str(CAUSES / "firewall-idle-drop-librdkafka.pcap.gz")
TLS = str(CAUSES / "tls-expired-java.pcap.gz")


def connections(*words: str) -> list[dict[str, Any]]:
    return objects("stats", "connections", *words, "--json")


@pytest.mark.parametrize(
    ("path", "state", "count"), [(REFUSED, "refused", 6), (SILENT, "unreachable", 4)]
)
def test_connections_have_a_state(path: str, state: str, count: int) -> None:
    lines = connections(path)
    failed = [line for line in lines if line["state"] == state]
    assert len(failed) == count
    assert all(line["packet"] > 0 and line["opened"] and not line["requests"] for line in failed)
    assert {line["state"] for line in lines} - {state} <= {"open", "closed", "reset"}


def test_the_first_packet_is_a_syn_to_that_address() -> None:
    from scapy.layers.inet import TCP
    from scapy.layers.l2 import Ether  # registers the link type
    from scapy.utils import rdpcap

    assert Ether
    packets = rdpcap(REFUSED)
    for line in connections(REFUSED):
        tcp = packets[line["packet"] - 1][TCP]
        assert tcp.flags == "S"
        assert line["broker_address"].endswith(f":{tcp.dport}")
        assert line["client_address"].endswith(f":{tcp.sport}")


@pytest.mark.parametrize("path", [REFUSED, SILENT, DOWN, DROPPED, TLS])
def test_findings_about_connects_select_connections(path: str) -> None:
    lines = objects("check", path, "--json", codes=(0, 1))
    pointing = [line for line in lines if line["connects"]]
    assert pointing
    for line in pointing:
        found = connections(path, "-Y", line["connects"])
        assert found
        assert len(found) < len(connections(path)) or path == TLS
        if line["name"].startswith("address-un"):
            assert {each["state"] for each in found} <= {"refused", "unreachable"}
    told = run("check", path).stdout
    assert f"evidence: kafkascope connections {path} -Y" in told


def test_filters_of_connections_select_connections() -> None:
    found = connections(REFUSED, "-Y", "broker.port == 9")
    assert [line["state"] for line in found] == ["refused"] * 6
    found = connections(REFUSED, "-Y", "conn in {0, 1} and not conn == 0")
    assert [line["connection"] for line in found] == [1]
    (line,) = connections(REFUSED, "--by", "client", "-Y", "broker.port == 9")
    assert (line["connections"], line["open"]) == (6, 0)


def test_other_filters_leave_connects_out_and_say_so() -> None:
    done = run("stats", "connections", REFUSED, "-Y", "api == Metadata", "--json")
    assert "6 connects left out" in done.stderr
    assert all(json.loads(line)["requests"] for line in done.stdout.splitlines())
    done = run("ls", "--connects", REFUSED, "-Y", "api == Metadata", "--json")
    assert "6 connects left out" in done.stderr
    assert "connect/1" not in done.stdout


@pytest.mark.parametrize(("path", "count"), [(REFUSED, 6), (SILENT, 4), (DOWN, 275)])
def test_ls_lists_connects_without_numbers(path: str, count: int) -> None:
    lines = objects("ls", "--connects", path, "--json")
    connects = [line for line in lines if line["schema"] == "connect/1"]
    assert len(connects) == count
    assert all(line["number"] is None and line["frames"] for line in connects)
    # Exchanges stay what they are.
    assert [line for line in lines if line not in connects] == objects("ls", path, "--json")


def test_connects_of_a_part_are_refused() -> None:
    assert run("ls", "--connects", REFUSED, "-c", "2").exit_code == 2


def test_tables_and_fields_have_connects() -> None:
    told = run("ls", "--connects", "-Y", "broker.port == 9", REFUSED).stdout.splitlines()
    assert len(told) == 7
    assert all(line.startswith("-\t") and "connect refused" in line for line in told[1:])
    told = run("ls", "--connects", REFUSED, "-T", "fields", "-e", "conn", "-e", "state").stdout
    assert "1\trefused" in told.splitlines()


def test_a_flood_of_connects_is_counted_beyond_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    every = objects("ls", "--connects", DOWN, "--json")
    monkeypatch.setattr(connects, "LIMITS", LIMITS._replace(connection_attempts=10))
    done = run("ls", "--connects", DOWN, "--json")
    lines = lines_of(done)
    missing = len(every) - len(lines)
    assert missing > 100
    assert f"{missing} more connects are not listed" in done.stderr
    assert [line for line in every if line["number"]] == [line for line in lines if line["number"]]
    assert [line for line in every if line in lines] == lines
