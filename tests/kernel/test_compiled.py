"""Which kernel runs: the compiled one, if it was made of these sources; else the sources."""

import importlib
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
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


def stamped(folder: Path) -> None:
    (folder / STAMP).write_text(stamp(folder))


def changed(folder: Path) -> None:
    stamped(folder)
    (folder / "walker.py").write_text("RUNS = 1\n# another\n")


def grown(folder: Path) -> None:
    stamped(folder)
    (folder / "more.py").touch()


@pytest.mark.parametrize(
    ("change", "reason"), [(None, NOT_COMPILED), (changed, CHANGED), (grown, CHANGED)]
)
def test_an_extension_of_other_sources_or_of_none_does_not_run(
    folder: Path, change: Callable[[Path], None] | None, reason: str
) -> None:
    if change is not None:
        change(folder)
    assert chosen() == reason


@pytest.mark.parametrize(
    ("value", "reason"),
    [(value, f"{SWITCH} is set") for value in ("1", "yes")]
    + [(value, "cannot be loaded: ") for value in ("", "0")],
)
def test_the_switch_and_a_broken_extension_force_plain_python(
    folder: Path, value: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamped(folder)
    monkeypatch.setenv(SWITCH, value)
    assert chosen().startswith(reason)


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
