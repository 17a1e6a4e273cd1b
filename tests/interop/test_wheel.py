"""The wheel: the same from the tree and from the sdist, a good neighbour of proxy.py of PyPI. And
what an index is given: distributions, checked as it checks them, installed as users do."""

import os
import re
import sys
import tarfile
import venv
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

from tests.interop.needs import absent
from tests.interop.processes import run
from tests.interop.wheels import build
from tests.kit.samples import ROOT

pytestmark = pytest.mark.interop

SAMPLE = ROOT / "captures" / "samples" / "sasl-old.pcap"
PACKAGES = (
    *("analyzer", "bridges", "captures", "dissectors", "kernel", "library", "proxy", "schemas"),
    "tui",
)


def contents(wheel: Path) -> dict[str, bytes]:
    """Files of a wheel; RECORD lists them with hashes and needs no comparison of its own."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if "/RECORD" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheels") / "tree")


def test_tree_and_sdist_make_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    sdist = build("sdist", ROOT, tmp_path / "sdist")
    run("tar", "-xzf", sdist, "-C", tmp_path)
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    again = contents(build("wheel", unpacked, tmp_path / "wheel"))
    assert again == contents(wheel)
    patterns = [f"{package}/*.py" for package in (*PACKAGES, "kafkascope")]
    tracked = run("git", "ls-files", *patterns, cwd=ROOT).split()
    modules = {name if name.startswith("kafkascope/") else f"kafkascope/{name}" for name in tracked}
    assert modules == {name for name in again if name.endswith(".py")}


def test_the_wheel_lives_beside_proxy_py(wheel: Path, tmp_path: Path) -> None:
    """PyPI's `proxy.py` installs a package `proxy`: both work, whichever came last."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for wanted in ("proxy.py", str(wheel), "--force-reinstall --no-deps proxy.py"):
        run(*pip, *wanted.split(), cwd=tmp_path)
        if wanted == "proxy.py":
            continue
        listed = printed([python.with_name("kafkascope"), "ls", SAMPLE], tmp_path)
        assert "SaslHandshake" in listed
        other = printed([python, "-c", "import proxy; print(proxy.Proxy.__module__)"], tmp_path)
        assert other.startswith("proxy.")


def printed(command: list[str | Path], folder: Path) -> str:
    """What a command prints that sees its own environment only; its errors are shown."""
    # A Spark session in this process has put the repository on the path of its workers.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return run(*command, cwd=folder, env=env)


# --- what an index is given


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
    try:
        run(place / "bin" / "python", "-m", "pip", "install", "--quiet", *TOOLS)
    except RuntimeError as error:
        absent(f"needs {', '.join(TOOLS)} from a package index: {str(error)[-200:]}")
    return place / "bin"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and an sdist of each."""
    folder = tmp_path_factory.mktemp("dist")
    for source in SOURCES.values():
        run(sys.executable, "-m", "hatchling", "build", "--directory", folder, cwd=source)
    return folder


def wheel_of(dist: Path, name: str) -> Path:
    (found,) = dist.glob(f"{name}-*.whl")
    return found


def metadata(dist: Path, name: str) -> Message:
    with zipfile.ZipFile(wheel_of(dist, name)) as archive:
        (place,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(place))


def test_an_index_takes_the_files(tools: Path, dist: Path) -> None:
    files = sorted(dist.iterdir())
    assert len(files) == 4
    assert run(tools / "twine", "check", "--strict", *files).count("PASSED") == 4


@pytest.mark.parametrize("name", SOURCES)
def test_the_page_of_an_index_leads_somewhere(tools: Path, dist: Path, name: str) -> None:
    """Links of the page as the index renders it; whether their targets exist is told by
    `tests/test_links.py`."""
    text = metadata(dist, name).get_payload()
    page = run(tools / "python", "-c", RENDER, input=str(text))
    assert re.search(rf"<h1[^>]*>{name.replace('_', '-')}<", page)
    found = re.findall(r'(?:href|src)="([^"]*)"', page)
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
    with zipfile.ZipFile(wheel_of(dist, name)) as archive:
        (place,) = (each for each in archive.namelist() if each.endswith("licenses/LICENSE"))
        assert archive.read(place) == licence
    (sdist,) = dist.glob(f"{name}-*.tar.gz")
    with tarfile.open(sdist) as archive:
        held = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/LICENSE")
        assert held is not None
        assert held.read() == licence


def test_pipx_installs_the_wheel(tools: Path, dist: Path, tmp_path: Path) -> None:
    places = {"PIPX_HOME": str(tmp_path / "home"), "PIPX_BIN_DIR": str(tmp_path / "bin")}
    command = [tools / "pipx", "install", "--python", sys.executable, wheel_of(dist, "kafkascope")]
    run(*command, env={**os.environ, **places})
    assert is_demo([tmp_path / "bin" / "kafkascope", "demo"], tmp_path)


def test_uvx_runs_the_wheel(tools: Path, dist: Path, tmp_path: Path) -> None:
    command = [tools / "uvx", "--python", sys.executable, "--from", wheel_of(dist, "kafkascope")]
    assert is_demo([*command, "kafkascope", "demo"], tmp_path)


def is_demo(command: list[str | Path], folder: Path) -> bool:
    """Whether a command prints what `demo` does without a terminal, outside of the repository."""
    said = run(*command, cwd=folder)
    return "orders-svc" in said and "kafkascope demo --save demo.pcap" in said
