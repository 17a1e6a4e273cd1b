"""The wheel: the same from the tree and from the sdist, and a good neighbour of PyPI's proxy.py."""

import os
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest

from tests.interop.wheels import build
from tests.kit.samples import ROOT

pytestmark = pytest.mark.interop

SAMPLE = ROOT / "captures" / "samples" / "sasl-old.pcap"
PACKAGES = (
    "analyzer",
    "bridges",
    "captures",
    "dissectors",
    "kernel",
    "library",
    "proxy",
    "schemas",
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
    subprocess.run(["tar", "-xzf", sdist, "-C", tmp_path], check=True)
    unpacked = tmp_path / sdist.name.removesuffix(".tar.gz")
    again = contents(build("wheel", unpacked, tmp_path / "wheel"))
    assert again == contents(wheel)
    tracked = subprocess.run(
        ["git", "ls-files", *(f"{package}/*.py" for package in PACKAGES), "kafkascope/*.py"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    modules = {name if name.startswith("kafkascope/") else f"kafkascope/{name}" for name in tracked}
    assert modules == {name for name in again if name.endswith(".py")}


def test_the_wheel_lives_beside_proxy_py(wheel: Path, tmp_path: Path) -> None:
    """PyPI's `proxy.py` installs a package `proxy`: both work, whichever came last."""
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for wanted in ("proxy.py", str(wheel), "--force-reinstall --no-deps proxy.py"):
        subprocess.run([*pip, *wanted.split()], check=True, cwd=tmp_path)
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
    out = subprocess.PIPE
    return subprocess.run(command, cwd=folder, check=True, stdout=out, text=True, env=env).stdout
