"""The job files of docs/ci.md: they are YAML, and their commands do what the page says.

What they install, start and capture is stood in for by small programs; kafkascope is the real one.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import orjson
import pytest
from ruamel.yaml import YAML

from tests.kit.samples import ROOT

PAGE = (ROOT / "docs" / "ci.md").read_text("utf-8")
SAMPLE = ROOT / "tests" / "analyzer" / "captures" / "too-large.pcap"
KNOWN = '{"key": "message-too-large client=generous topic=small"}\n'
STAND_INS = {
    "sudo": 'exec "$@"',
    "pip": 'test "$*" = "install kafkascope"',
    "apt-get": "exit 0",
    "sleep": 'exec "$PYTHON" -c "import time; time.sleep(0.3)"',
    "tcpdump": f'cp "{SAMPLE}" "$(echo " $*" | sed "s/.* -w //; s/ .*//")"\n'
    'echo $$ > tcpdump.pid\nexec "$PYTHON" -c "import time; time.sleep(60)"',
    "pkill": 'test "$*" = "-x tcpdump" && kill $(cat tcpdump.pid)',
    "make": 'test -f kafka.pcap && exit "${TESTS_FAIL:-0}"',
    "kafkascope": 'exec "$PYTHON" -m kafkascope "$@"',
}


def jobs() -> list[dict[str, Any]]:
    found = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [YAML(typ="safe").load(text) for text in found]


GITHUB, GITLAB = jobs()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the stand-ins, in which jobs run."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in STAND_INS.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    return tmp_path


def run(script: str, place: Path, **more: str) -> int:
    """The exit code of a script. Its output is a file: what it leaves running holds that open."""
    environment = {
        **os.environ,
        "PATH": f"{place / 'bin'}:{os.environ['PATH']}",
        "PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "GITHUB_STEP_SUMMARY": str(place / "summary.md"),
        **more,
    }
    with (place / "log").open("ab") as log:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=place,
            env=environment,
            stdout=log,
            stderr=log,
        )
    return done.returncode


def is_over(place: Path) -> bool:
    """Whether the capture was ended."""
    pid = int((place / "tcpdump.pid").read_text())
    return not Path(f"/proc/{pid}").exists() or " Z " in Path(f"/proc/{pid}/stat").read_text()


@pytest.mark.parametrize(("known", "failed"), [(KNOWN, []), ("", ["Findings"])])
def test_github(place: Path, known: str, failed: list[str]) -> None:
    (place / "kafka-known.jsonl").write_text(known)
    (job,) = GITHUB["jobs"].values()
    codes = {
        step.get("name", step["run"]): run(step["run"], place)
        for step in job["steps"]
        if "run" in step
    }
    log = (place / "log").read_text()
    assert [name for name, code in codes.items() if code] == failed, log
    assert len(codes) == 6
    assert is_over(place)
    errors = [line for line in log.splitlines() if line.startswith("::error")]
    assert [" title=kafkascope%3A message-too-large::" in line for line in errors] == [True] * len(
        failed
    )
    (uploaded,) = (
        step["with"]["sarif_file"] for step in job["steps"] if "sarif" in step.get("uses", "")
    )
    (scan,) = orjson.loads((place / uploaded).read_bytes())["runs"]
    assert [each["ruleId"] for each in scan["results"]] == ["message-too-large"]
    assert "1 batch from generous for topic small" in (place / "summary.md").read_text()


@pytest.mark.parametrize(
    ("known", "tests", "code"), [(KNOWN, "0", 0), (KNOWN, "2", 2), ("", "0", 1), ("", "2", 2)]
)
def test_gitlab(place: Path, known: str, tests: str, code: int) -> None:
    (place / "kafka-known.jsonl").write_text(known)
    (job,) = GITLAB.values()
    lines = [*job["before_script"], *job["script"]]
    assert run("\n".join(lines), place, TESTS_FAIL=tests) == code, (place / "log").read_text()
    assert is_over(place)
    suite = ElementTree.parse(place / job["artifacts"]["reports"]["junit"]).getroot()[0]
    assert len(suite.findall("testcase/failure")) == (not known)
    assert (place / job["artifacts"]["paths"][0]).exists()


def test_commands_of_the_page(place: Path) -> None:
    commands = [
        line.strip().partition("  #")[0]
        for line in PAGE.splitlines()
        if line.startswith("    kafkascope check")
    ]
    assert len(commands) == 3
    (place / "kafka-known.jsonl").write_text("")
    (place / "kafka.pcap").write_bytes(SAMPLE.read_bytes())
    assert [run(command, place) for command in commands] == [1, 1, 0]
    assert (place / "kafka-known.jsonl").read_text().count("\n") == 1
