"""The programs of docs/fixtures.md read a folder; manifests match docs/fixtures.schema.json."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from kafkascope.analyzer.commands.fixture import fixture
from tests.interop.needs import need
from tests.kit.samples import DOCS

SAMPLES = sorted((DOCS.parent / "captures" / "samples").glob("*.pcap*"))

PROGRAMS = dict(
    re.findall(
        r"^```(\w+)\n(.*?)^```$", (DOCS / "fixtures.md").read_text(), re.MULTILINE | re.DOTALL
    )
)
RUN = {
    "python": ("program.py", [sys.executable, "program.py"]),
    "java": ("Fixtures.java", ["java", "Fixtures.java"]),
    "go": ("program.go", ["go", "run", "program.go"]),
    "javascript": ("program.js", ["node", "program.js"]),
    "rust": ("program.rs", ["./program"]),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target: Path = tmp_path_factory.mktemp("fixtures") / "folder"
    made(str(SAMPLES[0]), "-o", str(target), "-q")
    return target


def made(*arguments: str) -> None:
    done = CliRunner().invoke(fixture, arguments, standalone_mode=False)
    assert done.exception is None, done.output


def manifest_of(folder: Path) -> Any:
    return json.loads((folder / "manifest.json").read_bytes())


def test_there_is_a_program_for_each_language() -> None:
    assert PROGRAMS.keys() == RUN.keys()


@pytest.mark.parametrize(
    "language",
    [pytest.param(each, marks=() if each == "python" else pytest.mark.interop) for each in RUN],
)
def test_the_program_of_the_document_reads_a_folder(
    language: str, folder: Path, tmp_path: Path
) -> None:
    name, command = RUN[language]
    if language != "python":
        need("rustc" if language == "rust" else command[0])
    (tmp_path / name).write_text(PROGRAMS[language])
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": ""}
    if language == "rust":
        compiling = ["rustc", "--edition", "2021", name]
        subprocess.run(compiling, cwd=tmp_path, check=True, timeout=240)
    done = subprocess.run(
        [*command, str(folder)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    wanted = [f"{each['name']} {each['bytes']}" for each in manifest_of(folder)["fixtures"]]
    assert wanted
    assert done.stdout.splitlines() == wanted


def wrong(manifest: Any) -> list[str]:
    schema = json.loads((DOCS / "fixtures.schema.json").read_bytes())
    Draft202012Validator.check_schema(schema)
    return [error.message for error in Draft202012Validator(schema).iter_errors(manifest)]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_manifests_of_captures_match_the_schema(sample: Path, tmp_path: Path) -> None:
    made(str(sample), "-o", str(tmp_path / "f"), "-q")
    manifest = manifest_of(tmp_path / "f")
    assert manifest["fixtures"]
    assert wrong(manifest) == []


def test_manifests_of_made_up_messages_match_the_schema(tmp_path: Path) -> None:
    made("new", "--matrix", "Fetch", "-o", str(tmp_path / "f"))
    assert wrong(manifest_of(tmp_path / "f")) == []
    made("new", "Fetch", "12", "--set", "max_wait_ms=5", "-o", str(tmp_path / "g"))
    manifest = manifest_of(tmp_path / "g")
    assert wrong(manifest) == []
    manifest["fixtures"][0]["direction"] = "sideways"
    assert len(wrong(manifest)) == 1
