"""Fixtures are stable, whole, without secrets, and what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from kafkascope.analyzer.commands.fixture import fixture
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.fixtures.check import check
from kafkascope.analyzer.fixtures.folder import read, write_folder
from kafkascope.analyzer.fixtures.make import Making
from kafkascope.analyzer.fixtures.new import fixture_with, matrix
from kafkascope.analyzer.transform.pseudonyms import Pseudonyms
from kafkascope.analyzer.transform.redaction import Level, Redaction
from kafkascope.dissectors.errors import Malformed
from kafkascope.dissectors.registry import APIS, api_named

DOCS = Path(__file__).parents[2] / "docs"
SAMPLES = sorted((Path(__file__).parents[2] / "captures" / "samples").glob("*.pcap*"))


def made_of(path: Path, level: Level, per_version: int | None = None) -> Making:
    making = Making(
        Redaction(level, Pseudonyms(same_length=True)),
        per_version=per_version,
        captures=[str(path)],
    )
    with open_capture([path]) as capture:
        for exchange in capture.exchanges():
            making.add(exchange)
    return making


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("level", ["none", "all"])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_two_runs_make_the_same_folder_and_it_is_what_it_says(path, level, tmp_path):
    for name in ("one", "two"):
        write_folder(made_of(path, level).fixtures(), tmp_path / name, level)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    remarks = [str(remark) for found in read(tmp_path / "one") for remark in check(found)]
    assert remarks == []


def test_one_message_for_each_shape_and_not_more_than_wished():
    whole = made_of(SAMPLES[0], "values").fixtures()
    names = [each.name for each in whole]
    assert len(set(names)) == len(names)
    assert len({(f.api_key, f.version, f.direction, f.sha256) for f in whole}) == len(whole)
    few = made_of(SAMPLES[0], "values", per_version=1).fixtures()
    assert len({(f.api_key, f.version, f.direction) for f in few}) == len(few) < len(whole)


def test_an_answer_names_its_request():
    for each in made_of(SAMPLES[0], "values").fixtures():
        if each.request is not None:
            assert each.direction == "response"
            assert each.request.startswith(f"{each.api}/v{each.version}/request-")


def test_the_matrix_is_what_it_says(tmp_path):
    made = list(matrix([api_named("Fetch"), api_named("Metadata"), api_named("Produce")]))
    assert {each.form for each in made} == {"default", "null", "empty", "full", "tagged"}
    write_folder(made, tmp_path / "m", "none")
    assert [remark for found in read(tmp_path / "m") for remark in check(found)] == []


@pytest.mark.soak
def test_the_whole_matrix_is_what_it_says_and_always_the_same(tmp_path):
    for name in ("one", "two"):
        write_folder(list(matrix()), tmp_path / name, "none")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    seen = set()
    for found in read(tmp_path / "one"):
        assert list(check(found)) == []
        seen.add((found.fixture.api_key, found.fixture.version, found.fixture.direction))
    sides = ("request", "response")
    assert seen == {
        (api.key, version, side)
        for api in APIS.values()
        for version in range(api.versions.low, api.versions.high + 1)
        for side in sides
    }
    schema = json.loads((DOCS / "fixtures.schema.json").read_bytes())
    manifest = json.loads((tmp_path / "one" / "manifest.json").read_bytes())
    assert [str(e) for e in Draft202012Validator(schema).iter_errors(manifest)] == []


def test_settings_reach_into_arrays():
    api = api_named("Fetch")
    settings = ["topics.0.topic=orders", "topics.0.partitions.1.fetch_offset=7", "rack_id=12"]
    body = fixture_with(api, 12, "request", settings).decoded().body
    assert body["topics"][0]["topic"] == "orders"
    assert [part["fetch_offset"] for part in body["topics"][0]["partitions"]] == [0, 7]
    assert body["rack_id"] == "12"
    for wrong in ("topics.0.topik=x", "topics.x.topic=y", "nothing", "max_wait_ms=soon"):
        with pytest.raises(Malformed):
            fixture_with(api, 12, "request", [wrong])


def test_what_was_changed_by_hand_is_found(tmp_path):
    runner = CliRunner()
    done = runner.invoke(
        fixture, [str(SAMPLES[0]), "-o", str(tmp_path / "f"), "--per-version", "1"]
    )
    assert done.exit_code == 0, done.output
    assert runner.invoke(fixture, ["check", str(tmp_path / "f")]).exit_code == 0
    victim = next((tmp_path / "f").rglob("request-0001.json"))
    told = json.loads(victim.read_bytes())
    told["header"]["correlation_id"] += 1
    victim.write_text(json.dumps(told))
    done = runner.invoke(fixture, ["check", str(tmp_path / "f")], standalone_mode=False)
    assert done.return_value == 1
    assert "header.correlation_id" in done.output
    victim.with_suffix(".bin").write_bytes(b"\0")
    done = runner.invoke(fixture, ["check", str(tmp_path / "f")], standalone_mode=False)
    assert "cannot be decoded" in done.output
    done = runner.invoke(fixture, ["check", str(tmp_path / "none")], standalone_mode=False)
    assert done.return_value == 3


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    done = CliRunner().invoke(fixture, ["new", "Fetch", "12", "-o", str(tmp_path)])
    assert done.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_lines_hold_the_same(tmp_path):
    target = tmp_path / "f.jsonl"
    done = CliRunner().invoke(fixture, [str(SAMPLES[0]), "-o", str(target), "--redact", "keys"])
    assert done.exit_code == 0
    found = list(read(target))
    assert found
    assert [remark for each in found for remark in check(each)] == []
