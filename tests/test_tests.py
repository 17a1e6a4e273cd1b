"""How tests are laid out: folders as the code's, and no test module that others lean on."""

import ast
from pathlib import Path

from tests.kit.samples import ROOT

TESTS = ROOT / "tests"
MODULES = sorted(TESTS.rglob("test_*.py"))
APART = {"explosion", "facts", "interop", "kit", "spark"}
"""Folders that mirror no package: attacks, tables of the protocol, real brokers, what tests share,
a cluster."""


def imported(path: Path) -> set[str]:
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
        for name in imported(path) & tests
    }
    assert not leaning


def test_folders_mirror_rooms() -> None:
    folders = {path.parent.relative_to(TESTS) for path in MODULES}
    rooms = {each for each in folders if each.parts and each.parts[0] not in APART}
    assert not {each for each in rooms if not (ROOT / each).is_dir()}
