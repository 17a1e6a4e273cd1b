"""Each binding does all scenarios with a client of its language, before a broker and a capture."""

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.proxy.answers import PROTOCOL
from tests.interop import bound
from tests.interop.brokers import KRaftCluster
from tests.interop.needs import need
from tests.interop.processes import run
from tests.kit.samples import ROOT

pytestmark = pytest.mark.interop

OWN = {**os.environ, "KAFKASCOPE": str(bound.KAFKASCOPE)}
SPOKE_PROTOCOL_1 = "873aa21c9ae676a53e5c5f251c1e23b0e1b93c16"


@pytest.fixture(scope="module")
def broker(java: None) -> Iterator[str]:
    """The address of a real broker."""
    with KRaftCluster("4.4.0") as cluster:
        yield cluster.bootstrap()


@pytest.mark.parametrize(
    "scenarios",
    [bound.once(), pytest.param(bound.SCENARIOS, marks=pytest.mark.soak)],
    ids=["once", "all"],
)
@pytest.mark.parametrize("language", bound.LANGUAGES)
def test_a_binding_does_what_the_scenarios_say(
    language: str, scenarios: dict[str, dict[str, Any]], broker: str, tmp_path: Path
) -> None:
    """With `make soak` what may be before a broker and a capture is before both."""
    binding = bound.LANGUAGES[language]
    need(*binding.needs)
    run = bound.Conformance(binding, broker, tmp_path, scenarios)
    done = run.run()
    assert done.returncode == 0, done.stdout
    assert run.reported() == bound.expected(scenarios), done.stdout
    assert run.left_behind() == []
    kept = run.run("kept")
    assert kept.returncode != 0, kept.stdout
    capture = run.kept_capture(kept.stdout)
    listed = subprocess.run(
        [bound.KAFKASCOPE, "ls", capture, "-Y", "api == Produce"], capture_output=True, text=True
    )
    assert "Produce v" in listed.stdout, listed.stderr
    lines = run.check_lines()
    assert lines > 2 * len(scenarios)
    killed = run.run("killed")
    assert killed.returncode != 0, killed.stdout
    assert run.left_behind() == []
    assert run.check_lines() > lines, killed.stdout
    assert ("killed", "capture") not in run.reported()
    cells = bound.column(run.reported() | {("kept", "broker"), ("killed", "capture")})
    whole = scenarios is bound.SCENARIOS
    if whole and os.environ.get("UPDATE_GOLDEN"):
        bound.update(binding.language, cells)
    for name, row in bound.table().items():
        told = row.get(binding.language, "")
        right = told == cells[name] if whole else cells[name] in told
        assert right, f"{name}: UPDATE_GOLDEN=1 writes docs/bindings.md (make soak)"
    assert set(bound.table()) == set(bound.SCENARIOS)


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kafkascope whose control channel spoke protocol 1, out of the history of this one."""
    folder = tmp_path_factory.mktemp("older")
    archive = ["git", "archive", SPOKE_PROTOCOL_1, "--", ".", ":!captures/samples"]
    packed = subprocess.run(archive, cwd=ROOT, capture_output=True)
    if packed.returncode:
        pytest.skip("the history is not here")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as files:
        files.extraction_filter = getattr(tarfile, "tar_filter", None)  # Since 3.11.4.
        files.extractall(folder)
    command = folder / "older"
    # Modules are found where it starts first.
    command.write_text(f'#!/bin/sh\ncd {folder} && exec {sys.executable} -m kafkascope "$@"\n')
    command.chmod(0o700)
    return command


@pytest.mark.soak
@pytest.mark.parametrize("language", bound.LANGUAGES)
def test_a_kafkascope_of_old_is_too_old(
    language: str, older: Path, broker: str, tmp_path: Path
) -> None:
    binding = bound.LANGUAGES[language]
    need(*binding.needs)
    scenario = {"round-trip": {**bound.SCENARIOS["round-trip"], "before": ["broker"]}}
    run = bound.Conformance(binding, broker, tmp_path, scenario, older)
    done = run.run("round-trip")
    assert done.returncode != 0
    assert "this kafkascope speaks protocol 1 of its control channel, and" in done.stdout
    assert f"{PROTOCOL} is needed: update kafkascope" in done.stdout
    assert run.reported() == set()
    assert run.left_behind() == []


def test_what_is_documented_for_node_runs_in_every_runner(broker: str, tmp_path: Path) -> None:
    need("node", "npm")
    tests = str(tmp_path / "conformance" / "runners.test.js")
    binding = bound.LANGUAGES["node"]._replace(command=lambda _: ["node", "--test", tests])
    run = bound.Conformance(binding, broker, tmp_path)
    done = run.run()
    assert done.returncode == 0, done.stdout
    assert "skipped 0" in done.stdout, done.stdout
    assert run.left_behind() == []


# --- the tests that bindings have of their own


@pytest.mark.parametrize("module", ["go", "go/conformance"])
def test_go_is_formatted_and_vetted(module: str) -> None:
    need("go", "gofmt")
    assert run("gofmt", "-l", "-s", ".", cwd=bound.BINDINGS / module, env=OWN) == ""
    run("go", "vet", "./...", cwd=bound.BINDINGS / module, env=OWN)


def test_the_module_for_go_has_no_dependencies() -> None:
    assert "require" not in (bound.BINDINGS / "go" / "go.mod").read_text()


def test_go_passes_its_own_tests() -> None:
    need("go")
    said = run(
        "go", "test", "-count=1", "-timeout=9m", "-v", ".", cwd=bound.BINDINGS / "go", env=OWN
    )
    skipped = [line for line in said.splitlines() if line.startswith("--- SKIP")]
    assert [line.split()[2] for line in skipped] == ["TestEndless"], said


def test_node_passes_its_own_tests() -> None:
    """`npm test` lets Node read each file before."""
    need("node", "npm")
    said = run("npm", "test", cwd=bound.BINDINGS / "node", env=OWN)
    assert "skipped 0" in said, said
