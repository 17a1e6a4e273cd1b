"""Which kernel runs: the compiled one, if it was made of these sources; else the sources."""

from __future__ import annotations

import importlib
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import kafkascope.kernel
from kafkascope.kernel import PLAIN, compiled, pairs, walker
from kafkascope.kernel.compiled import CHANGED, NOT_COMPILED, STAMP, SUFFIX, SWITCH, stamp

NAME = "kernel_of_a_test"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that chooses as the kernel does. Its compiled module cannot be loaded."""
    package = tmp_path / NAME
    package.mkdir()
    shutil.copy(compiled.__file__, package)
    lines = f"from {NAME}.compiled import choose", "PLAIN = choose(__name__, __path__)"
    (package / "__init__.py").write_text("\n".join(lines))
    (package / "walker.py").write_text("RUNS = 1\n")
    (package / f"walker{SUFFIX}").write_bytes(b"no module")
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield package
    for name in [each for each in sys.modules if each.partition(".")[0] == NAME]:
        del sys.modules[name]
    sys.path_importer_cache.pop(str(package), None)


def chosen() -> str:
    """Why the package is plain Python; its module is there then."""
    package = importlib.import_module(NAME)
    assert importlib.import_module(f"{NAME}.walker").RUNS == 1
    return str(package.PLAIN)


def test_this_kernel_is_what_it_says() -> None:
    ends = {Path(str(module.__file__)).name.partition(".")[2] for module in (pairs, walker)}
    assert ends == {"py" if PLAIN else SUFFIX[1:]}
    assert compiled.reason_for_plain(Path(kafkascope.kernel.__path__[0])) == PLAIN


def test_an_extension_without_a_stamp_does_not_run(folder: Path) -> None:
    assert chosen() == NOT_COMPILED


def test_an_extension_of_other_sources_does_not_run(folder: Path) -> None:
    (folder / STAMP).write_text(stamp(folder))
    with (folder / "walker.py").open("a") as source:
        source.write("# another\n")
    assert chosen() == CHANGED


def test_a_module_more_makes_another_kernel(folder: Path) -> None:
    (folder / STAMP).write_text(stamp(folder))
    (folder / "more.py").touch()
    assert chosen() == CHANGED


@pytest.mark.parametrize("value", ["1", "yes"])
def test_the_switch_forces_plain_python(
    folder: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / STAMP).write_text(stamp(folder))
    monkeypatch.setenv(SWITCH, value)
    assert chosen() == f"{SWITCH} is set"


@pytest.mark.parametrize("value", ["", "0"])
def test_an_extension_that_cannot_be_loaded_is_left(
    folder: Path, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / STAMP).write_text(stamp(folder))
    monkeypatch.setenv(SWITCH, value)
    assert chosen().startswith("cannot be loaded: ")


def test_the_sources_run_from_a_zip(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "kernel.zip"
    with zipfile.ZipFile(archive, "w") as out:
        for path in folder.glob("*.py"):
            out.write(path, f"{NAME}/{path.name}")
    shutil.rmtree(folder)
    monkeypatch.syspath_prepend(str(archive))
    assert chosen() == NOT_COMPILED
