"""`kafkascope map`: the demo's applications in all formats."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from kafkascope.analyzer.export.asyncapi import MEDIA_TYPES
from tests.analyzer.export.documents import held
from tests.kit.run import run
from tests.kit.samples import SAMPLES
from tests.kit.schemas import capture

DEMO = SAMPLES / "demo.pcap.zst"
CLUSTER = DEMO.with_name("cluster.pcap.gz")


def printed(path: Path, *options: str) -> str:
    result = run("map", path, "-q", *options)
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
    result = run("map", DEMO, "-Y", "api == Metadata")
    assert "no producers or consumers" in result.stderr


def test_a_journey_in_a_topic_that_nobody_uses_says_so() -> None:
    words = [run("journey", DEMO, f"{topic}-0@99").stderr for topic in ("orders", "oders")]
    assert words == ["", "kafkascope: no topic oders in this capture\n"]


# --- kafkascope journey --otlp: files that opentelemetry-proto's own classes read -----------------


SENT = "topic == orders and api == Produce"


def written(target: Path, *options: str) -> Result:
    words = ["journey", str(DEMO), "-Y", SENT, "--otlp", str(target), *options]
    return run(*words)


def test_spans_are_written_as_protobuf_and_as_json(tmp_path: Path) -> None:
    result = written(tmp_path / "x.pb", "-n", "5")
    assert result.exit_code == 0, result.output
    assert not result.stdout
    assert "spans of 5 records in" in result.stderr
    assert "no traceparent: " in result.stderr
    traces = TracesData.FromString((tmp_path / "x.pb").read_bytes())
    services = [each.resource.attributes[0].value.string_value for each in traces.resource_spans]
    assert "billing" in services
    assert written(tmp_path / "x.json", "-n", "5", "-q").stderr == ""
    names = [
        [span["name"] for span in each["scopeSpans"][0]["spans"]]
        for each in json.loads((tmp_path / "x.json").read_text())["resourceSpans"]
    ]
    assert names == [
        [span.name for span in each.scope_spans[0].spans] for each in traces.resource_spans
    ]


def test_all_records_are_written_without_n(tmp_path: Path) -> None:
    assert written(tmp_path / "x.pb").exit_code == 0
    traces = TracesData.FromString((tmp_path / "x.pb").read_bytes())
    spans = [span for each in traces.resource_spans for span in each.scope_spans[0].spans]
    assert sum(span.name == "send orders" for span in spans) > 100
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)


def test_the_suffix_names_the_encoding(tmp_path: Path) -> None:
    result = written(tmp_path / "x.txt")
    assert result.exit_code == 2
    assert ".json" in result.stderr
