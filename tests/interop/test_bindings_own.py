"""The tests that the bindings for Go and Node have of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.interop.bound import BINDINGS, KAFKASCOPE
from tests.interop.needs import need

pytestmark = pytest.mark.interop

PATIENCE_S = 580.0


def done(*command: str, at: Path, **environment: str) -> str:
    """What a command says; the test fails when it does."""
    env = {**os.environ, "KAFKASCOPE": str(KAFKASCOPE), **environment}
    ran = subprocess.run(
        command,
        cwd=at,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


@pytest.mark.parametrize("module", ["go", "go/conformance"])
def test_go_is_formatted_and_vetted(module: str) -> None:
    need("go", "gofmt")
    assert done("gofmt", "-l", "-s", ".", at=BINDINGS / module) == ""
    done("go", "vet", "./...", at=BINDINGS / module)


def test_the_module_for_go_has_no_dependencies() -> None:
    assert "require" not in (BINDINGS / "go" / "go.mod").read_text()


def test_go_passes_its_own_tests() -> None:
    need("go")
    said = done("go", "test", "-count=1", "-timeout=9m", "-v", ".", at=BINDINGS / "go")
    skipped = [line for line in said.splitlines() if line.startswith("--- SKIP")]
    assert [line.split()[2] for line in skipped] == ["TestEndless"], said


def test_node_passes_its_own_tests() -> None:
    """`npm test` lets Node read each file before."""
    need("node", "npm")
    said = done("npm", "test", at=BINDINGS / "node")
    assert "skipped 0" in said, said
