"""`kafkascope journey --otlp`: files that opentelemetry-proto's own classes read."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from kafkascope.tui.cli import main

DEMO = Path(__file__).parents[3] / "captures" / "samples" / "demo.pcap.zst"
SENT = "topic == orders and api == Produce"


def written(target: Path, *options: str) -> Result:
    words = ["journey", str(DEMO), "-Y", SENT, "--otlp", str(target), *options]
    return CliRunner().invoke(main, words)


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
