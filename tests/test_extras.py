"""Each use of an extra, without the extra: one message, exit code 5, no traceback.

Modules are hidden here, which costs no installation; tests/interop/test_extras.py installs.
"""

import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from kafkascope.extras import EXTRAS, MissingExtra, installed, missing
from tests.kit.run import run
from tests.kit.samples import ROOT
from tests.missing_extras import CAPTURE, COMMANDS, NOTES, PYTHON, USES, message

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
DECLARED = SETTINGS["project"]["optional-dependencies"]


def test_the_wheel_has_every_module_of_the_package() -> None:
    listed = SETTINGS["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    modules = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("kafkascope/*.py")}
    assert modules <= {*listed}


def test_the_table_has_the_extras_of_the_package_and_a_test_for_each_use() -> None:
    assert {*EXTRAS} == {*DECLARED} - {"all", "test"}
    assert sorted([*COMMANDS, *PYTHON, *NOTES]) == sorted(use for _, use in USES)


def test_the_table_is_documented() -> None:
    page = (ROOT / "docs" / "commands.md").read_text("utf-8")
    for name, extra in EXTRAS.items():
        assert f"| `{name}` | {', '.join(extra.uses)} |\n" in page


def test_all_is_made_of_other_extras() -> None:
    assert DECLARED["all"] == ["kafkascope[tui,web,proxy,tls,schemas,parquet]"]


@pytest.mark.parametrize(("name", "use"), USES, ids=lambda value: value)
def test_without_the_extra_one_message_says_what_to_install(
    name: str, use: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert installed(name), "the environment of the tests has all extras"
    monkeypatch.setitem(sys.modules, EXTRAS[name].modules[0], None)
    monkeypatch.chdir(tmp_path)
    wanted = message(name, use)
    if use in COMMANDS:
        (tmp_path / "stored" / "_manifest").mkdir(parents=True)
        before = sorted(tmp_path.rglob("*"))
        done = run(*COMMANDS[use])
        text = done.output.partition(". Without it: kafkascope ")[0].rstrip("\n")
        assert (text, done.exit_code) == (wanted, 5)
        assert sorted(tmp_path.rglob("*")) == before, "nothing was written"
    elif use in PYTHON:
        monkeypatch.delitem(sys.modules, "kafkascope.spark", raising=False)
        with pytest.raises(MissingExtra) as caught:
            exec(PYTHON[use], {})
        assert str(caught.value) == wanted
    else:
        names: dict[str, object] = {}
        exec(NOTES[use], names)
        assert wanted in str(names["notes"])


WITHOUT_TEXTUAL = """
import sys
sys.modules["textual"] = None
from kafkascope.tui.cli import main
main()
"""


def test_a_capture_on_a_terminal_without_the_terminal_ui_is_one_message(tmp_path: Path) -> None:
    """Not a thousand rows."""
    ours, theirs = os.openpty()
    path = tmp_path / "my capture.pcap"
    path.write_bytes(Path(CAPTURE).read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TEXTUAL, str(path)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)},
        check=False,
    )
    os.close(theirs)
    screen = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 5
    hint = f". Without it: kafkascope ls '{path}'"
    assert screen.replace("\r\n", "") == message("tui", "kafkascope open") + hint


def test_the_demo_on_a_terminal_lists_and_names_the_extra() -> None:
    ours, theirs = os.openpty()
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TEXTUAL, "demo"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1", "PYTHONPATH": str(ROOT)},
        check=False,
    )
    os.close(theirs)
    screen = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    *listed, last = screen.replace("\r\n", "\n").splitlines()
    assert last == message("tui", "kafkascope open")
    assert max(map(len, listed)) <= 80


def test_a_capture_off_a_terminal_is_listed_without_the_terminal_ui() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TEXTUAL, CAPTURE],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1 + 32


@pytest.mark.parametrize("use", NOTES)
def test_with_the_extra_there_is_no_such_note(use: str) -> None:
    names: dict[str, object] = {}
    exec(NOTES[use], names)
    assert not names["notes"]


@pytest.mark.parametrize(
    ("name", "module"), [(name, module) for name in EXTRAS for module in EXTRAS[name].modules]
)
def test_each_module_of_an_extra_counts(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert missing(EXTRAS[name].uses[0])


def test_a_mere_folder_of_the_name_is_no_module(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "no_such_library").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert find_spec("no_such_library") is not None
    monkeypatch.setitem(EXTRAS, "mcp", EXTRAS["mcp"]._replace(modules=("no_such_library",)))
    assert missing("kafkascope integrations mcp")


def test_doctor_lists_missing_extras_and_what_they_enable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mitmproxy", None)
    done = run("doctor", "--format", "tsv")
    lines = {line.split("\t")[0]: line.split("\t")[1:] for line in done.stdout.splitlines()}
    assert {f"extra {name}" for name in EXTRAS} <= lines.keys()
    state, found, advice = lines["extra proxy"]
    assert (state, advice) == ("note", "pip install 'kafkascope[proxy]'")
    assert ", ".join(EXTRAS["proxy"].uses) in found
    assert lines["extra tui"][0] == "ok"


# --- locks of dependencies, and actions by commit -------------------------------------------------


LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"([a-z0-9-]+)==(\S+)( ; [^\\]+)? \\")
HASH = re.compile(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?")
SOUND = {"h11": (0, 16), "h2": (4, 3), "tornado": (6, 5), "brotli": (1, 2)}
"""The first releases without known faults."""


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_every_release_of_a_lock_has_hashes(lock: Path) -> None:
    versions: dict[str, str] = {}
    hashes = 0
    for line in lock.read_text("ascii").splitlines():
        if found := PINNED.fullmatch(line):
            assert hashes or not versions
            versions[found[1]], hashes = found[2], 0
        else:
            assert HASH.fullmatch(line), line
            hashes += 1
    assert hashes
    assert len(versions) > 50
    for name, least in SOUND.items():
        if name in versions:
            assert tuple(map(int, versions[name].split(".")[:2])) >= least, name
    assert "mitmproxy" in versions


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda workflow: workflow.stem)
def test_actions_are_named_by_commit(workflow: Path) -> None:
    used = re.findall(r"uses: *(\S+)", workflow.read_text("utf-8"))
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", each)] == []
