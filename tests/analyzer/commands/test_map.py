"""`kafkascope map`: the demo's applications in all formats."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.export.asyncapi import MEDIA_TYPES
from kafkascope.tui.cli import main
from tests.analyzer.export.test_asyncapi import held
from tests.analyzer.schema_samples import capture

DEMO = Path(__file__).parents[3] / "captures" / "samples" / "demo.pcap.zst"
CLUSTER = DEMO.with_name("cluster.pcap.gz")


def printed(path: Path, *options: str) -> str:
    result = CliRunner().invoke(main, ["map", str(path), "-q", *options])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_says_who_reads_what_an_application_writes() -> None:
    lines = printed(DEMO).splitlines()
    orders = lines[lines.index("orders-svc") + 2].split()
    assert orders[:2] == ["writes", "orders"]
    assert orders[-2:] == ["->", "billing"]


def test_json_is_one_document() -> None:
    found = json.loads(printed(DEMO, "--json"))
    assert found == json.loads(printed(DEMO, "--format", "json"))
    assert [each["name"] for each in found["applications"]] == [
        *("billing", "checkout", "inventory-sync", "invoicing", "ledger", "legacy-export"),
        *("orders-svc", "reports-ui"),
    ]


def test_a_table_has_a_line_for_each_edge() -> None:
    rows = printed(DEMO, "--format", "tsv", "--columns", "application,way,topic,peers").splitlines()
    assert rows[0] == "application\tway\ttopic\tpeers"
    assert "orders-svc\twrites\torders\tbilling" in rows
    assert "billing\treads\torders\tcheckout,orders-svc" in rows


def test_graphs_have_the_same_edges() -> None:
    edges = len(printed(DEMO, "--format", "csv").splitlines()) - 1
    assert printed(DEMO, "--format", "mermaid").count(" -->|") == edges
    assert printed(DEMO, "--format", "dot").count(" -> ") == edges


@pytest.mark.parametrize(
    ("name", "formats"),
    [
        ("avro-registry", {"avro"}),
        ("apicurio-serdes", {"avro", "json"}),
        ("mistakes", {"avro", "json", "protobuf"}),
        ("protobuf-json-schemas-topic", {"json", "protobuf"}),
        ("bad-schemas", set[str]()),
    ],
)
def test_asyncapi_holds_with_the_schemas_of_records(name: str, formats: set[str]) -> None:
    document = held(json.loads(printed(capture(name), "--format", "asyncapi")))
    messages = [m for c in document["channels"].values() for m in c["messages"].values()]
    media = {m["payload"]["schemaFormat"] for m in messages if "payload" in m}
    assert media == {MEDIA_TYPES[each] for each in formats}  # type: ignore[index]


def test_brokers_stand_beside_applications_on_request() -> None:
    assert "broker 1" not in printed(CLUSTER)
    assert "\nbroker 1\n" in printed(CLUSTER, "--brokers")


def test_it_says_when_there_is_no_producer() -> None:
    result = CliRunner().invoke(main, ["map", str(DEMO), "-Y", "api == Metadata"])
    assert "no producers or consumers" in result.stderr
