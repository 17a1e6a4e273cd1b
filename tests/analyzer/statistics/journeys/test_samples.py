"""Maps and journeys of the samples: real brokers and clients."""

from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.journeys.journeys import Journeys
from kafkascope.analyzer.statistics.journeys.model import AppMap
from tests.kit.counting import traffic

MS = 1_000_000


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
