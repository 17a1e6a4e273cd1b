"""Files, folders, modules and names of the code that documents name are there, and the map of the
code in docs/architecture.md has every room."""

import importlib
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest

from kafkascope.analyzer.findings.rules import THRESHOLDS
from tests.kit.samples import DOCUMENTS, ROOT

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
FOLDERS = (
    *PACKAGES,
    "bindings",
    "kafkascope",
    "tests",
    "docs",
    "benchmarks",
    "requirements",
    ".ci",
    ".github",
)
# Decisions say what was true when they were made.
CURRENT = [path for path in DOCUMENTS if "decisions" not in path.parts]
EXAMPLES = {"dissectors/messages/close_account.py", "FILE.py", "slow_leader.py"}
"""Files that a reader is told to make."""
MAP = ROOT / "docs" / "architecture.md"

CODE = re.compile(r"```.*?```|`[^`]+`|^    .*$", re.DOTALL | re.MULTILINE)
PLACE = re.compile(rf"(?<![\w./<-])(?:{'|'.join(map(re.escape, FOLDERS))})(?:/[\w.<>*-]+)+")
MODULE = re.compile(r"(?<![\w./<*-])(?:\w+/)*\w+\.py(?!\w)")
DOTTED = re.compile(
    rf"(?<![\w./-])kafkascope\.(?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)*(?![\w/])"
)
SHORT = re.compile(rf"`((?:{'|'.join(PACKAGES)})(?:\.[A-Za-z_]\w*)+)`")
"""A dotted name without `kafkascope`, alone between backticks."""
NO_MODULES = {"json", "md", "pcap", "pcapng", "py", "toml", "zst"}
"""Endings of file names that look like dotted names."""


def code(path: Path) -> str:
    return "\n".join(CODE.findall(path.read_text("utf-8")))


def resolves(name: str) -> bool:
    """Whether a dotted name is a module, or something that a module has."""
    parts = name.removeprefix("kafkascope.").split(".")
    for end in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(("kafkascope", *parts[:end])))
        except ModuleNotFoundError:
            continue
        try:
            reduce(getattr, parts[end:], module)
        except AttributeError:
            return False
        return True
    return False


@pytest.fixture(scope="module")
def files() -> set[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a repository")
    return {f"/{name}" for name in listed.stdout.split("\n")}


@pytest.mark.parametrize("path", CURRENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_names_of_code_in_documents_are_there(path: Path, files: set[str]) -> None:
    text = code(path)
    for place in {*PLACE.findall(text)} - EXAMPLES:
        if "<" not in place:
            assert any(ROOT.glob(place.rstrip("."))), place
    for module in {*MODULE.findall(text)} - EXAMPLES:
        assert any(name.endswith(f"/{module}") for name in files), module
    for dotted in (*DOTTED.findall(text), *SHORT.findall(text)):
        if dotted.rpartition(".")[2] not in NO_MODULES and dotted not in THRESHOLDS:
            assert resolves(dotted), dotted


def test_a_name_that_is_not_there_is_seen() -> None:
    assert resolves("kafkascope.captures.streams.reassembly")
    assert resolves("analyzer.exchanges.rows.Row.latency_beyond_wait_ns")
    assert not resolves("kafkascope.captures.reassembly")
    assert not resolves("analyzer.exchanges.rows.RowColumn.nothing")
    assert PLACE.findall("`captures/reassembly.py`, in `x/docs/y`") == ["captures/reassembly.py"]
    assert MODULE.findall("`rows.py`, `a/b.py:3`, `*.pyc`, `made/<name>.py`") == [
        "rows.py",
        "a/b.py",
    ]


def rooms() -> set[str]:
    folders = (path.parent for each in PACKAGES for path in (ROOT / each).rglob("__init__.py"))
    return {folder.relative_to(ROOT).as_posix() for folder in folders}


def mapped() -> Iterator[tuple[str, str]]:
    """Rooms of the map, each with the module to read first."""
    row = re.compile(r"^\| `([\w/]+)` \| [^|]+ \| `(\w+)` \|$", re.MULTILINE)
    yield from row.findall(MAP.read_text("utf-8"))


def test_the_map_has_every_room_with_a_module_to_read_first() -> None:
    found = dict(mapped())
    assert set(found) == rooms()
    for room, first in found.items():
        assert (ROOT / room / f"{first}.py").is_file(), f"{room}: {first}"


def test_every_room_says_what_it_is_for() -> None:
    for room in rooms():
        module = importlib.import_module(f"kafkascope.{room.replace('/', '.')}")
        assert (module.__doc__ or "").strip(), room


def test_the_map_has_the_layers_of_the_contracts() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    text = MAP.read_text("utf-8")
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if "containers" in contract:
            layers = "\n".join(contract["layers"])
            assert f"```\n{contract['name']}\n\n{layers}\n```\n" in text, contract["name"]
