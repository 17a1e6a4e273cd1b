"""What an index is given: both distributions, checked as it checks them, installed as users do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from tests.interop.needs import CI
from tests.kit.samples import ROOT

pytestmark = pytest.mark.interop

SOURCES = {"kafkascope": ROOT, "pytest_kafkascope": ROOT / "bindings" / "python"}
TOOLS = ("twine", "readme-renderer[md]", "pipx", "uv")
RENDER = (
    "import sys; from readme_renderer import markdown; print(markdown.render(sys.stdin.read()))"
)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment of their own."""
    place = tmp_path_factory.mktemp("tools")
    venv.create(place, with_pip=True)
    done = subprocess.run(
        [place / "bin" / "python", "-m", "pip", "install", "--quiet", *TOOLS],
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        reason = f"needs {', '.join(TOOLS)} from a package index: {done.stderr[-200:]}"
        if CI:
            pytest.fail(reason)
        pytest.skip(reason)
    return place / "bin"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and an sdist of each."""
    folder = tmp_path_factory.mktemp("dist")
    for source in SOURCES.values():
        command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
        subprocess.run(command, cwd=source, check=True, capture_output=True)
    return folder


def wheel(dist: Path, name: str) -> Path:
    (found,) = dist.glob(f"{name}-*.whl")
    return found


def metadata(dist: Path, name: str) -> Message:
    with zipfile.ZipFile(wheel(dist, name)) as archive:
        (place,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(place))


def test_an_index_takes_the_files(tools: Path, dist: Path) -> None:
    files = sorted(dist.iterdir())
    assert len(files) == 4
    done = subprocess.run(
        [tools / "twine", "check", "--strict", *files], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 4


@pytest.mark.parametrize("name", SOURCES)
def test_the_page_of_an_index_leads_somewhere(tools: Path, dist: Path, name: str) -> None:
    """Links of the page as the index renders it; whether their targets exist is told by
    `tests/test_links.py`."""
    text = metadata(dist, name).get_payload()
    done = subprocess.run(
        [tools / "python", "-c", RENDER],
        input=str(text),
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(rf"<h1[^>]*>{name.replace('_', '-')}<", done.stdout)
    found = re.findall(r'(?:href|src)="([^"]*)"', done.stdout)
    outside = [link for link in found if not link.startswith("#")]
    assert outside
    assert [link for link in outside if not link.startswith("https://")] == []


@pytest.mark.parametrize("name", SOURCES)
def test_the_metadata_is_whole(dist: Path, name: str) -> None:
    told = metadata(dist, name)
    for field in ("Name", "Version", "Summary", "Keywords", "Requires-Python", "Project-URL"):
        assert told[field]
    assert told["License-Expression"] == "Apache-2.0"
    assert told["License-File"] == "LICENSE"
    assert told["Metadata-Version"] == "2.4"
    assert told["Description-Content-Type"] == "text/markdown"
    licence = (ROOT / "LICENSE").read_bytes()
    with zipfile.ZipFile(wheel(dist, name)) as archive:
        (place,) = (each for each in archive.namelist() if each.endswith("licenses/LICENSE"))
        assert archive.read(place) == licence
    (sdist,) = dist.glob(f"{name}-*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/LICENSE")
        assert held is not None
        assert held.read() == licence


def test_pipx_installs_the_wheel(tools: Path, dist: Path, tmp_path: Path) -> None:
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    command = [tools / "pipx", "install", "--python", sys.executable, wheel(dist, "kafkascope")]
    subprocess.run(command, env={**os.environ, **places}, check=True, capture_output=True)
    assert is_demo([tmp_path / "bin" / "kafkascope", "demo"], tmp_path)


def test_uvx_runs_the_wheel(tools: Path, dist: Path, tmp_path: Path) -> None:
    command = [tools / "uvx", "--python", sys.executable, "--from", wheel(dist, "kafkascope")]
    assert is_demo([*command, "kafkascope", "demo"], tmp_path)


def is_demo(command: list[str | Path], folder: Path) -> bool:
    """Whether a command prints what `demo` does without a terminal, outside of the repository."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return "orders-svc" in done.stdout and "kafkascope demo --save demo.pcap" in done.stdout
