"""Keys and values of real serializers: what was written is shown, with schemas of a folder and with
those of the capture itself; what is broken says why, and is never a wrong value."""

import base64
import datetime
import decimal
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.schemas.folder import read_folder
from tests.kit.run import lines_of, run
from tests.kit.schemas import SAMPLES, by_key, capture, folder, form

HOME = Path(__file__).parent.parent / "captures" / "schemas"
TRUTHS = sorted(HOME.glob("*.truth.json"))
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$")
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def plain(value: Any) -> Any:
    """Bring a value into the one form that is compared: the truth files write numbers, bytes and
    times in a way of their own."""
    if isinstance(value, dict):
        if value.keys() == {"bytes"}:
            return base64.b64encode(bytes.fromhex(value["bytes"])).decode()
        if value.keys() == {"base64"}:
            return value["base64"]
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str) and TIME.match(value):
        whole, _, part = value.replace("+00:00", "Z").rstrip("Z").partition(".")
        return f"{datetime.datetime.fromisoformat(whole).isoformat()}.{(part + '000000')[:6]}"
    if isinstance(value, int | float) or (isinstance(value, str) and NUMBER.fullmatch(value)):
        text = repr(value) if isinstance(value, float) else value
        return f"number {decimal.Decimal(text).normalize():f}"
    return value


def shown(capture: Path, *options: str) -> dict[Any, Any]:
    done = run("records", capture, "--json", "-q", *options)
    assert done.exit_code in (0, 4), done.output
    records = map(json.loads, done.stdout.splitlines())
    return {
        (each["topic"], each["partition"], each["offset"]): each
        for each in records
        if each["source"] == "produce"
    }


def expected(truth: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], str, dict[str, Any]]]:
    for step in truth["steps"]:
        for record in step.get("records") or []:
            for side in ("key", "value"):
                yield (record["topic"], record["partition"], record["offset"]), side, record


def ways() -> Iterator[Any]:
    for path in TRUTHS:
        truth = json.loads(path.read_text())
        name = path.name.partition(".")[0]
        yield pytest.param(truth, ["--schemas", str(HOME / "schemas" / name)], id=name)
        topics = {each["topic"] for step in truth["steps"] for each in step.get("records") or []}
        if truth["registry"].get("http_in_capture") or "_schemas" in topics:
            yield pytest.param(truth, [], id=f"{name}-alone")


@pytest.mark.parametrize(("truth", "options"), list(ways()))
def test_what_serializers_wrote_is_shown(truth: dict[str, Any], options: list[str]) -> None:
    found = shown(HOME / truth["capture"], *options)
    decoded = 0
    for place, side, record in expected(truth):
        got = found[place]
        schema = record.get(f"{side}_schema")
        if schema is None:
            assert f"{side}_decoded" not in got, record.get("note")
            reasons = record.get(f"{side}_error_any")
            if reasons:
                assert got[f"{side}_error"]["reason"] in reasons, record.get("note")
            continue
        decoded += 1
        assert plain(got[f"{side}_decoded"]) == plain(record[side])
        about = got[f"{side}_schema"]
        assert about["format"] == schema["format"]
        assert about["source"] == ("folder" if options else "capture")
        names = {
            str(schema[key]) for key in ("id", "guid", "globalId", "contentId") if schema.get(key)
        }
        assert (
            not names
            or str(about.get("id") or about.get("guid")) in names
            or about.get("guid") in names
        )
    assert decoded >= 3


def test_there_are_captures() -> None:
    assert len(TRUTHS) == 5


def test_without_schemas_records_are_what_they_were(tmp_path: Path) -> None:
    capture = HOME / "avro-registry.pcap"
    for each in shown(capture, "--no-schemas").values():
        assert not [name for name in each if name.endswith(("_decoded", "_error", "_schema"))]


def test_the_raw_value_stays_beside_the_decoded_one() -> None:
    capture = HOME / "avro-registry.pcap"
    with_schemas, without = shown(capture), shown(capture, "--no-schemas")
    for place, each in with_schemas.items():
        assert (each["key"], each["value"]) == (without[place]["key"], without[place]["value"])


def test_a_pipe_takes_schemas_while_it_is_read() -> None:
    data = (HOME / "avro-registry.pcap").read_bytes()
    words = [sys.executable, "-m", "kafkascope", "records", "-", "--json", "-q"]
    done = subprocess.run(words, input=data, capture_output=True, check=True, timeout=120)
    records = list(map(json.loads, done.stdout.splitlines()))
    # The registry answers before the first record is sent.
    assert sum("value_decoded" in each for each in records) == 74


def test_fields_of_values_are_columns(tmp_path: Path) -> None:
    capture = str(HOME / "avro-registry.pcap")
    words = ["records", capture, "--format", "csv", "--columns", "offset,value.amount,key.region"]
    done = run(*words, "-Y", "topic == orders", "-q")
    assert done.stdout.splitlines()[:2] == ["offset,value.amount,key.region", "0,-50.00,US"]
    out = tmp_path / "records.csv"
    words = ["export", capture, "-o", str(out), "--table", "records", "-q"]
    done = run(*words, "--columns", "topic,value.amount,value_decoded")
    assert done.exit_code == 0, done.output
    assert out.read_text().splitlines()[1].startswith('orders,-50.00,"{""id""')


COLUMNS = "offset,value.amount,value.tags,record.key.region,value_schema"


def test_fields_of_values_are_columns_of_json_and_of_every_file(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    capture = str(HOME / "avro-registry.pcap")
    choice = ["--columns", COLUMNS, "-q", "-Y", "topic == orders and api == Produce"]
    done = run("records", capture, "--json", *choice)
    records = lines_of(done)
    assert records[1] == {
        "offset": 1,
        "value.amount": "-30.01",
        "value.tags": ["t0"],
        "record.key.region": "EU",
        "value_schema": records[1]["value_schema"],
    }
    assert records[0]["value.tags"] == []
    assert records[18]["value.amount"] is None
    done = run("records", capture, "--format", "json", *choice)
    assert json.loads(done.stdout) == records
    for name in ("x.jsonl", "x.parquet"):
        out = str(tmp_path / name)
        words = ["export", capture, "-o", out, "--table", "records", *choice]
        assert run(*words).exit_code == 0
        if name == "x.jsonl":
            assert [json.loads(x) for x in Path(out).read_text().splitlines()] == records
            continue
        table = pq.read_table(out)
        assert table.column_names == COLUMNS.split(",")
        rows = table.to_pylist()
        assert [row["value.amount"] for row in rows] == [one["value.amount"] for one in records]
        assert [row["value.tags"] or "" for row in rows] == [
            ";".join(one["value.tags"] or []) for one in records
        ]


def test_a_column_of_exchanges_names_the_one_of_records() -> None:
    capture = str(HOME / "avro-registry.pcap")
    done = run("ls", capture, "--columns", "record.value.user.Name")
    assert done.exit_code == 2
    assert "kafkascope records --columns value.user.Name" in done.output


@pytest.mark.parametrize("column", ["value.", "value.a..b", "nothing", "headers.x"])
def test_a_wrong_column_is_refused(column: str) -> None:
    capture = str(HOME / "bad-schemas.pcap")
    done = run("records", capture, "--columns", column)
    assert done.exit_code == 2


# --- kafkascope schemas: what is known, used and missing, and the folder that it writes -----------


def ran(*words: str, code: int = 0) -> str:
    result = run("schemas", *words)
    assert result.exit_code == code, result.output
    return result.stdout


def lines(*words: str) -> dict[str, dict[str, Any]]:
    return {each["id"]: each for each in map(json.loads, ran(*words, "--json").splitlines())}


def test_schemas_of_the_capture_with_their_uses() -> None:
    found = lines(str(capture("avro-registry")))
    assert list(found) == [f"id {number}" for number in range(1, 12)]
    assert {each["source"] for each in found.values()} == {"capture"}
    key = found["id 1"]
    assert (key["type"], key["subjects"], key["origin"]) == (
        "shop.OrderKey",
        ["orders-key v1"],
        "127.0.0.1:8081",
    )
    # Produced once, fetched once.
    assert (key["keys"], key["values"], key["topics"]) == (38, 0, ["orders"])
    assert found["id 6"]["references"] == ["people.Address"]


def test_what_is_missing() -> None:
    found = lines(str(capture("bad-schemas")))
    assert found["id 999999"]["source"] == "missing"
    assert found["id 999999"]["values"] == 2
    given = lines(str(capture("bad-schemas")), "--schemas", str(SAMPLES / "schemas/bad-schemas"))
    assert given["id 100002"]["source"] == "folder"
    assert given["id 999999"]["source"] == "missing"


def test_a_filter_chooses_whose_uses_count() -> None:
    found = lines(str(capture("avro-registry")), "-Y", "kafka.api == Produce")
    assert (found["id 1"]["keys"], found["id 2"]["values"]) == (19, 10)


def test_the_folder_that_is_written_serves_as_well(tmp_path: Path) -> None:
    out = tmp_path / "schemas"
    ran(str(capture("protobuf-json-schemas-topic")), "-o", str(out))
    back = by_key(read_folder(out).schemas)
    for wanted in folder("protobuf-json-schemas-topic"):
        assert form(back[wanted.keys[0]]) == form(wanted)
    again = lines(str(capture("protobuf-json-schemas-topic")), "--schemas", str(out))
    assert again["id 42"]["values"] == 40
    ran(str(capture("avro-registry")), "-o", str(out), code=3)


def test_a_table_for_people() -> None:
    text = ran(str(capture("apicurio-serdes")))
    assert text.splitlines()[0].startswith("ID\tFormat\tType\tSubjects")
    assert "globalId 7\tjson\tItem\tap-js-value v1" in text


def test_a_registry_whose_address_is_none() -> None:
    result = run("schemas", capture("bad-schemas"), "--registry", "http://me:s3cret@host")
    assert result.exit_code == 2
    assert "s3cret" not in result.output
