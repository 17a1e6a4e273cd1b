"""The library says what the commands say, of every sample; and how it behaves as Python."""

import gc
import io
import json
import subprocess
import sys
import threading
from datetime import timedelta
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest

import kafkascope as ks
from kafkascope.analyzer.exchanges.record_columns import json_value
from kafkascope.library.passes import Passes
from kafkascope.library.tables import TABLES
from tests.kit.run import lines_of, run
from tests.kit.samples import ROOT, SAMPLES
from tests.matrix import each_nth

FILES = sorted(path for path in SAMPLES.iterdir() if path.suffix != ".md")
SMALL = SAMPLES / "kafka-python.pcap"
SASL = SAMPLES / "sasl.pcap"
SCHEMAS = {
    "clients": ("clients",),
    "client-apis": ("clients", "--apis"),
    "groups": ("groups",),
    "rebalances": ("groups", "--rebalances"),
    "group-members": ("groups", "--members"),
    "delivery-partitions": ("groups", "--partitions"),
    "delivery-events": ("groups", "--events"),
    "delivery-plans": ("groups", "--plans"),
    "delivery-lag": ("groups", "--lag"),
    "nodes": ("cluster", "--only", "nodes"),
    "coordinators": ("cluster", "--only", "coordinators"),
    "leaders": ("cluster", "--only", "leaders"),
    "producers": ("producers",),
    "producer-partitions": ("producers", "--partitions"),
    "transactions": ("producers", "--transactions"),
    "client-connections": ("stats", "connections", "--by", "client"),
}
"""Tables and the commands that print them; others are `stats NAME`."""


def objects(*arguments: str) -> list[dict[str, Any]]:
    """The JSON lines of a command."""
    done = run(*arguments, "--json", "-q")
    return lines_of(done)


def as_json(value: Any) -> Any:
    from kafkascope.dissectors.codec.jsonform import dumps

    return json.loads(dumps(value))


# --- the same as the commands


@pytest.mark.parametrize("path", each_nth(FILES, 4), ids=lambda path: path.name)
def test_exchanges_and_records_are_those_of_the_commands(path: Path) -> None:
    capture = ks.open(path)
    assert [as_json(each.to_dict()) for each in capture] == objects("ls", str(path))
    listed = objects("records", str(path))
    found = list(capture.records())
    assert len(found) == len(listed)
    for record, told in zip(found, listed, strict=True):
        for name in ("exchange", "source", "partition", "offset", "codec", "magic", "sequence"):
            assert getattr(record, name) == told[name]
        assert (record.topic or "") == ("" if told["topic_id"] else told["topic"]) or record.topic
        assert (record.transactional, record.control) == (told["transactional"], told["control"])
        assert len(record.headers) == len(told["headers"])
        assert as_json(record.internal) == told.get("decoded")
        for side in ("key", "value"):
            data = getattr(record, side)
            text = json_value(told, side)
            if isinstance(text, str):
                assert data == text.encode()


@pytest.mark.parametrize("path", each_nth(FILES, 4), ids=lambda path: path.name)
def test_bodies_are_those_of_the_export(path: Path) -> None:
    full = {each["number"]: each for each in objects("export", str(path), "-o", "-", "--full")}
    for exchange in ks.open(path):
        for side in ("request", "response"):
            assert _without_records(as_json(getattr(exchange, side))) == _without_records(
                full[exchange.number][side]
            )


def _without_records(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_records(v) for k, v in value.items() if "records" not in k}
    return [_without_records(each) for each in value] if isinstance(value, list) else value


NESTED = ("map", "journeys")
"""Tables whose commands print objects in objects."""


@pytest.mark.parametrize("name", each_nth(sorted(set(TABLES) - set(NESTED)), 3))
def test_tables_are_those_of_the_commands(name: str) -> None:
    path = SAMPLES / "demo.pcap.zst"
    group, *rest = SCHEMAS.get(name, ("stats", name))
    table = ks.open(path).table(name)
    command = (
        (group, *rest[:1], str(path), *rest[1:]) if group == "stats" else (group, str(path), *rest)
    )
    told = objects(*command)
    assert len(table) == len(told) > 0 or name in (
        "transactions",
        "producers",
        "producer-partitions",
    )
    for line, printed in zip(table, told, strict=True):
        for column in table.columns:
            value = line[column]
            if isinstance(value, timedelta):
                assert value / timedelta(milliseconds=1) == pytest.approx(
                    printed[f"{column}_ms"], abs=2e-3
                )
            elif isinstance(value, str | int | list) and column in printed:
                assert printed[column] == value


def test_the_map_and_journeys_are_those_of_the_commands() -> None:
    path = SAMPLES / "demo.pcap.zst"
    capture = ks.open(path)
    (printed,) = objects("map", str(path))
    edges = {
        (each["name"], way, edge["topic"], edge.get("group"), edge["records"])
        for each in printed["applications"]
        for way in ("writes", "reads")
        for edge in each[way]
    }
    columns = ("application", "way", "topic", "group", "records")
    assert {tuple(line[name] for name in columns) for line in capture.map()} == edges
    lines = objects("stats", "journeys", str(path))
    assert len(lines) == len(capture.journeys()) == 3
    for line, told in zip(capture.journeys(), lines, strict=True):
        for name in ("producer", "topic", "group", "records", "lag"):
            assert line[name] == told[name]
        took = line["deliver_p95"] / timedelta(milliseconds=1)
        assert took == pytest.approx(told["deliver_ms"]["p95"], abs=2e-3)


@pytest.mark.parametrize("path", each_nth(FILES, 4), ids=lambda path: path.name)
def test_tables_are_the_same_once_findings_are_counted(path: Path, reads: list[str]) -> None:
    alone, beside = ks.open(path), ks.open(path)
    beside.findings()
    reads.clear()
    told = {name: beside.table(name).raw for name in TABLES}
    # Rates, applications and journeys are nothing that findings read.
    assert len(reads) <= 1 + len(NESTED)
    for name, raw in told.items():
        assert raw == alone.table(name).raw, name


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The filters of all readings of the test."""
    found: list[str] = []
    reading = Passes._reading

    def counted(passes: Passes, filter: str) -> Any:
        found.append(filter)
        return reading(passes, filter)

    monkeypatch.setattr(Passes, "_reading", counted)
    return found


def test_findings_are_those_of_check() -> None:
    path = SAMPLES / "demo.pcap.zst"
    found = [as_json(each.to_dict()) for each in ks.open(path).findings()]
    assert found == objects("check", str(path))
    errors = ks.open(path).findings("error")
    assert {each.severity for each in errors} == {"error"}
    with pytest.raises(ks.UsageError, match="grave"):
        ks.open(path).findings("grave")


def test_findings_of_a_selection_know_the_whole() -> None:
    chosen = "api in {Produce, Fetch}"
    path = str(SAMPLES / "libraries.pcap")
    found = [as_json(each.to_dict()) for each in ks.open(path, filter=chosen).findings()]
    assert found == objects("check", path, "-Y", chosen)
    clients = [
        (each["client_id"], each["outcome"]) for each in ks.open(path, filter=chosen).clients("4.0")
    ]
    told = objects("clients", path, "-Y", chosen, "--for", "4.0")
    assert clients == [(each["client_id"], each["outcome"]) for each in told]


# --- as Python


def test_a_filter_is_joined_with_another() -> None:
    capture = ks.open(SMALL, filter="api == Produce or api == Fetch")
    assert {each.api for each in capture} == {"Produce", "Fetch"}
    assert {each.api for each in capture.exchanges("api == Fetch or api == Metadata")} == {"Fetch"}


def test_iterating_again_reads_again_and_leaves_nothing_open() -> None:
    capture = ks.open(SMALL)
    before = len(list(Path("/proc/self/fd").iterdir()))
    first = next(iter(capture))
    for _ in range(3):
        assert next(iter(capture)).id == first.id
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert [each.number for each in capture] == [each.number for each in capture]


@pytest.mark.parametrize(
    "path", [SAMPLES / "sasl-old.pcap", ROOT / "tests/analyzer/captures/moved-producer.pcapng"]
)
def test_ids_stay_while_a_file_grows(path: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    some = [each.id for each in ks.open(part)]
    assert some
    assert some == [each.id for each in ks.open(path)][: len(some)]


def test_file_objects_lists_and_folders(tmp_path: Path) -> None:
    count = sum(1 for _ in ks.open(SMALL))
    with SMALL.open("rb") as file:
        capture = ks.open(file)
    assert sum(1 for _ in capture) == sum(1 for _ in capture) == count
    assert sum(1 for _ in ks.open(io.BytesIO(SMALL.read_bytes()))) == count
    (tmp_path / "a.pcap").write_bytes(SMALL.read_bytes())
    assert sum(1 for _ in ks.open(tmp_path)) == count
    assert sum(1 for _ in ks.open([str(tmp_path / "a.pcap"), SASL])) > count


def test_a_pipe_is_read_once() -> None:
    code = (
        "import kafkascope as ks\n"
        "capture = ks.open('-')\n"
        "print(sum(1 for _ in capture))\n"
        "try:\n    list(capture)\nexcept ks.UsageError as error:\n    print(error)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=SMALL.read_bytes(), capture_output=True, cwd=ROOT)
    count, said = done.stdout.decode().splitlines()
    assert int(count) == sum(1 for _ in ks.open(SMALL))
    assert said == "- can be read once only: save it to a file"
    assert done.stderr == b""


def test_what_is_wrong_is_said_when_it_is_opened(tmp_path: Path) -> None:
    with pytest.raises(ks.NotACapture, match="no such file"):
        ks.open(tmp_path / "missing.pcap")
    with pytest.raises(ks.FilterError, match="unknown field"):
        ks.open(SMALL, filter="topik == orders")
    with pytest.raises(ks.UsageError, match="terminal UI"):
        ks.open(SMALL, filter="marked")
    with pytest.raises(ks.UsageError, match="there is no table 'latenzy'"):
        ks.open(SMALL).table("latenzy")
    with pytest.raises(ks.UsageError, match="has no 'moon'"):
        ks.open(SMALL).table("latency", by="moon")
    with pytest.raises(ks.UsageError, match="no Kafka release"):
        ks.open(SMALL).clients("four")


def test_damage_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    assert ks.open(SMALL).damage == ()
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(SMALL.read_bytes()[:-30])
    capture = ks.open(cut)
    assert len(list(capture)) > 5
    (sentence,) = capture.damage
    assert "cut.pcap" in sentence


def test_secrets_show_only_when_they_are_asked_for() -> None:
    asked = "api == SaslAuthenticate"
    tokens = [each.request["auth_bytes"] for each in ks.open(SASL, filter=asked) if each.request]
    shown = [
        each.request["auth_bytes"]
        for each in ks.open(SASL, filter=asked, secrets=True)
        if each.request
    ]
    assert len(tokens) == len(shown) > 0
    assert all(set(token) <= {ord("*")} for token in tokens)
    assert all(token != other for token, other in zip(tokens, shown, strict=True))
    exchange = next(iter(ks.open(SASL)))
    with pytest.raises(ks.UsageError, match="secrets=True"):
        exchange.frame("request")
    exchange = next(iter(ks.open(SASL, secrets=True)))
    frame = exchange.frame("request")
    assert len(frame) + 4 == exchange.request_bytes


def test_threads_read_side_by_side() -> None:
    capture = ks.open(SMALL)
    found: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: found.append([each.id for each in capture]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert all(each == found[0] for each in found)


def test_tables_as_arrow_and_pandas() -> None:
    capture = ks.open(SAMPLES / "demo.pcap.zst")
    exchanges = capture.to_arrow()
    assert exchanges.num_rows == sum(1 for _ in capture)
    assert sum(each.num_rows for each in capture.to_batches(rows=100)) == exchanges.num_rows
    assert {each.num_rows for each in list(capture.to_batches(rows=100))[:-1]} == {100}
    assert capture.to_arrow("records").num_rows == sum(1 for _ in capture.records())
    latency = capture.to_arrow("latency")
    assert str(latency.schema.field("p50").type) == "duration[ns]"
    frame = capture.to_pandas("connections")
    assert len(frame) == len(capture.connections())


def test_all_columns_of_the_row_are_attributes_of_their_type() -> None:
    from kafkascope.analyzer.exchanges.rows import Row

    exchange = next(iter(ks.open(SMALL)))
    other = {"client_address", "broker_address", "api_version", "records", "batches", "frames"}
    own = {"generations", "producer_epochs", "topic_ids", "offset", "flexible", "id", "zookeeper"}
    for name in Row.__dataclass_fields__:
        if name not in other | own and not name.startswith("tls"):
            assert getattr(exchange, name) is not None or getattr(exchange.row, name) is None


def test_the_names_are_these() -> None:
    assert ks.__all__ == sorted(ks.__all__)
    assert [name for name in ks.__all__ if not hasattr(ks, name)] == []
    assert set(ks.__all__) <= set(dir(ks))
    assert ks.__version__ == distribution("kafkascope").version
    errors = [getattr(ks, name) for name in ks.__all__ if isinstance(getattr(ks, name), type)]
    errors = [each for each in errors if issubclass(each, Exception)]
    assert all(issubclass(each, ks.Error) for each in errors)
    with pytest.raises(AttributeError):
        _ = ks.nothing
