"""Maps and journeys of the samples: real brokers and clients."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.journeys.journeys import Journeys
from kafkascope.analyzer.statistics.journeys.model import AppMap
from kafkascope.tui.cli import main
from tests.analyzer.statistics.journeys.shop import Shop, records
from tests.kit.counting import traffic
from tests.kit.wire import MS


def journeys(sample: str) -> Journeys:
    found = Journeys()
    for row, exchange in traffic(sample)[0]:
        found.add(ExchangeBatch.of(row, exchange))
    return found


def test_the_map_of_the_demo_lists_its_applications() -> None:
    found, names = journeys("demo.pcap.zst"), traffic("demo.pcap.zst")[1]
    applications = found.map_of(names).applications
    edges = {
        (each.name, edge.topic, edge.group or "", edge.records)
        for each, edge in AppMap(applications).edges()
    }
    # crm-sync, whose authentication fails, neither writes nor reads.
    assert edges == {
        ("billing", "orders", "billing", 428),
        ("checkout", "orders", "", 21),
        ("inventory-sync", "inventory", "", 23),
        ("invoicing", "invoices", "", 150),
        ("ledger", "payments", "ledger", 17),
        ("legacy-export", "exports", "", 20),
        ("legacy-export", "exports", "legacy-export", 20),
        ("orders-svc", "orders", "", 550),
        ("reports-ui", "reports", "", 8),
    }
    billing = next(each for each in applications if each.name == "billing")
    assert billing.client_ids == ("billing-1", "billing-2", "billing-3")
    assert "number" in billing.rule


def test_journeys_of_the_demo() -> None:
    found, names = journeys("demo.pcap.zst"), traffic("demo.pcap.zst")[1]
    lines = {(line["producer"], line["group"]): line for line in found.rows(names)}
    assert {key: line["records"] for key, line in lines.items()} == {
        ("checkout", "billing"): 1,
        ("legacy-export", "legacy-export"): 20,
        ("orders-svc", "billing"): 395,
    }
    orders = lines["orders-svc", "billing"]
    assert (orders["lag"], orders["negative"]) == (160, 0)
    # A broker stalls, and billing is fenced: most records are fast.
    assert orders["deliver_p50"] < 20 * MS < 500 * MS < orders["deliver_p95"]
    assert orders["produce_p50"] <= orders["produce_p95"] <= orders["produce_p99"]


def test_a_read_committed_group_gets_what_was_committed() -> None:
    found, names = journeys("transactions.pcap"), traffic("transactions.pcap")[1]
    reads = {
        edge.topic: edge.records
        for each in found.map_of(names).applications
        for edge in each.edges
        if edge.way == "reads" and edge.topic.endswith(".tx")
    }
    assert reads == {"java-3.9.2.tx": 20, "java-1.1.1.tx": 20}
    records = {line["topic"]: line["records"] for line in found.rows(names)}
    assert (records["java-3.9.2.tx"], records["java-1.1.1.none"]) == (20, 24)


def test_replication_between_brokers_is_no_application() -> None:
    found, names = journeys("cluster.pcap.gz"), traffic("cluster.pcap.gz")[1]
    applications = found.map_of(names).applications
    assert applications
    assert all(
        client_id.startswith("java") for each in applications for client_id in each.client_ids
    )


# --- one run captured on the hosts of two brokers -------------------------------------------------


FIRST, SECOND = 9092, 9192


def run() -> Shop:
    """Records that are produced to the first broker, replicated to the second, and read there."""
    shop = Shop()
    for base in range(0, 30, 3):
        shop.produce("web", base, records(3), port=FIRST)
        shop.fetch("broker-2-fetcher-0", base, records(3, base), replica=2, port=FIRST)
        shop.fetch("bill", base, records(3, base), port=SECOND)
        shop.commit("bill", "g", base + 3)
    return shop


def asked(*words: Any) -> Result:
    result = CliRunner().invoke(main, list(map(str, words)))
    assert result.exit_code == 0, result.output
    return result


def hosts(folder: Path, skew_ns: int = 0, *, common: bool = True) -> list[Path]:
    """The captures of both hosts; the clock of the second is so much ahead."""
    shop = run()
    return [
        shop.capture(folder / "first.pcapng", {FIRST}),
        shop.capture(folder / "second.pcapng", {SECOND}, skew_ns, followers=common),
    ]


@pytest.mark.parametrize("words", [("map", "--brokers"), ("stats", "journeys")])
def test_two_captures_of_a_run_say_what_one_says(tmp_path: Path, words: tuple[str, ...]) -> None:
    whole = run().capture(tmp_path / "whole.pcapng", {FIRST, SECOND})
    one = asked(*words, whole, "--json").stdout
    assert json.loads(one.splitlines()[0])
    assert asked(*words, *hosts(tmp_path), "--json").stdout == one
    assert asked(*words, *reversed(hosts(tmp_path)), "--json").stdout == one


def test_a_journey_crosses_two_captures(tmp_path: Path) -> None:
    (line,) = asked("journey", *hosts(tmp_path), "t-0@4", "--json").stdout.splitlines()
    found = json.loads(line)
    assert found["produced"]["client_id"] == "web"
    assert [each["replica"] for each in found["replicated"]] == [2]
    assert [(each["client_id"], each["group"]) for each in found["fetched"]] == [("bill", "g")]
    assert found["fetched"][0]["again"] == 0
    assert (
        found["produced"]["sent"] < found["fetched"][0]["time"] < found["fetched"][0]["committed"]
    )


@pytest.mark.parametrize("skew_ms", [-3_000, 3_000])
def test_packets_in_both_captures_align_the_clocks(tmp_path: Path, skew_ms: int) -> None:
    line, apart = (
        json.loads(asked("stats", "journeys", *hosts(tmp_path, skew_ns), "--json").stdout)
        for skew_ns in (0, skew_ms * MS)
    )
    assert (line["records"], line["negative"]) == (30, 0)
    assert apart == line


def test_a_clock_that_is_behind_is_reported(tmp_path: Path) -> None:
    files = hosts(tmp_path, -3_000 * MS, common=False)
    result = asked("stats", "journeys", *files, "--json")
    (line,) = map(json.loads, result.stdout.splitlines())
    assert (line["records"], line["negative"]) == (30, 30)
    assert line["deliver_ms"] == {"p50": None, "p95": None, "p99": None}
    assert min(line["commit_ms"].values()) >= 0
    assert "30 records fetched before being sent: clocks of hosts disagree" in result.stderr
    text = asked("journey", *files, "t-0@4").stdout
    assert "Legs are negative: clocks of the capture's hosts disagree" in text
    spans = tmp_path / "spans.json"
    asked("journey", *files, "t-0@4", "--otlp", spans)
    legs = [
        span
        for each in json.loads(spans.read_text())["resourceSpans"]
        for span in each["scopeSpans"][0]["spans"]
    ]
    assert all(int(leg["startTimeUnixNano"]) <= int(leg["endTimeUnixNano"]) for leg in legs)
    skews = [leg for leg in legs if "kafkascope.clock_skew_ns" in json.dumps(leg["attributes"])]
    assert [leg["name"] for leg in skews] == ["receive t"]


def test_replication_in_both_captures_counts_once(tmp_path: Path) -> None:
    for skew_ns in (0, -3_000 * MS, 40 * MS):
        (line,) = asked("map", *hosts(tmp_path, skew_ns), "--brokers", "--json").stdout.splitlines()
        (broker,) = [e for e in json.loads(line)["applications"] if e["name"] == "broker 2"]
        assert [(each["topic"], each["records"]) for each in broker["reads"]] == [("t", 30)]
