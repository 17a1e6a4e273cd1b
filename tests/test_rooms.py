"""The rooms of the code, counted from its own files: no circle of imports, no hall in the place of
a room, one name for one thing."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.kit.samples import ROOT

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
CATALOGUES = {"messages", "commands", "findings", "screens"}
"""Flat lists of equals."""
MOST = 18
"""Modules in a room."""
TWICE = {"Uuid"}
"""The schema language calls its types what Kafka calls the values."""


def modules() -> Iterator[tuple[str, Path]]:
    """Dotted names, without `kafkascope`, and files."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), path


FILES = dict(modules())


def for_types(tree: ast.Module) -> set[int]:
    """The nodes below `if TYPE_CHECKING`."""
    return {
        id(each)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in node.body
        for each in ast.walk(child)
    }


def imported(name: str) -> Iterator[str]:
    """The modules of ours that a module imports, wherever in it, but for type checkers."""
    tree = ast.parse(FILES[name].read_text("utf-8"))
    skipped = for_types(tree)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        found: Iterable[str] = ()
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found = [f"{node.module}.{alias.name}" for alias in node.names]
        for each in found:
            module = each.removeprefix("kafkascope.")
            while module and module not in FILES:
                module = module.rpartition(".")[0]
            if module and module != name:
                yield module


def circles(arrows: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Groups of modules that reach each other (Tarjan's strongly connected components)."""
    found: list[list[str]] = []
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in arrows.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            group = stack[at:]
            del stack[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in arrows:
        if name not in index:
            visit(name)
    return found


def test_no_circle_of_imports() -> None:
    assert circles({"a": "b", "b": "c", "c": "b"}) == [["b", "c"]]
    assert circles({name: sorted(set(imported(name))) for name in FILES}) == []


def test_no_room_is_a_hall() -> None:
    sizes = Counter(path.parent for path in FILES.values() if path.name != "__init__.py")
    halls = [room for room, size in sizes.items() if size > MOST and room.name not in CATALOGUES]
    assert halls == []


@pytest.mark.parametrize("path", sorted({path.parent for path in FILES.values()}), ids=str)
def test_each_room_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse((path / "__init__.py").read_text("utf-8"))
    assert ast.get_docstring(tree)


@pytest.mark.parametrize("package", PACKAGES)
def test_one_name_is_one_class(package: str) -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for name, path in FILES.items():
        if name.partition(".")[0] != package:
            continue
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert twice.keys() <= TWICE, twice


# --- how tests are laid out -----------------------------------------------------------------------


TESTS = ROOT / "tests"
MODULES = sorted(TESTS.rglob("test_*.py"))
APART = {"explosion", "facts", "interop", "kit", "spark"}
"""Folders that mirror no package: attacks, tables of the protocol, real brokers, what tests share,
a cluster."""


def imports_of_tests(path: Path) -> set[str]:
    """Return the modules of tests that a module imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
    return {name for name in names if name.startswith("tests.")}


def test_no_module_imports_a_test_module() -> None:
    """What two modules share is a module of its own: `tests/kit`, or a helper beside them."""
    tests = {".".join(path.relative_to(ROOT).with_suffix("").parts) for path in MODULES}
    leaning = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in TESTS.rglob("*.py")
        for name in imports_of_tests(path) & tests
    }
    assert not leaning


def test_folders_mirror_rooms() -> None:
    folders = {path.parent.relative_to(TESTS) for path in MODULES}
    rooms = {each for each in folders if each.parts and each.parts[0] not in APART}
    assert not {each for each in rooms if not (ROOT / each).is_dir()}
