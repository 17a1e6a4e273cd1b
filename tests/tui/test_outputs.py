"""Every command that writes traffic to a file makes it anew, for its owner alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.tui.cli import main
from tests.hostile import hostile
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "libraries.pcap"

COMMANDS = {
    "ls": ["ls", SAMPLE],
    "records": ["records", SAMPLE],
    "show": ["show", SAMPLE, "1"],
    "check": ["check", SAMPLE],
    "stats": ["stats", "apis", SAMPLE],
    "clients": ["clients", SAMPLE],
    "groups": ["groups", SAMPLE],
    "cluster": ["cluster", SAMPLE],
    "delivery": ["groups", SAMPLE, "--delivery"],
    "export.jsonl": ["export", SAMPLE],
    "export.csv": ["export", SAMPLE],
    "export.parquet": ["export", SAMPLE],
    "cut.pcapng": ["cut", SAMPLE],
    "report.html": ["report", SAMPLE],
    "report.md": ["report", SAMPLE],
    "fixture.jsonl": ["fixture", SAMPLE],
}


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("before", ["nothing", "open file", "link"])
def test_an_output_is_new_and_for_its_owner(tmp_path: Path, name: str, before: str) -> None:
    path, victim = tmp_path / name, tmp_path / "victim"
    victim.write_bytes(b"theirs")
    victim.chmod(0o666)
    if before == "open file":
        path.hardlink_to(victim)
    elif before == "link":
        path.symlink_to(victim)
    arguments = [*map(str, COMMANDS[name]), "-o", str(path)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code in (0, 1), done.output
    told = path.lstat()
    assert stat.S_ISREG(told.st_mode)
    assert (stat.S_IMODE(told.st_mode), told.st_nlink) == (0o600, 1)
    assert told.st_size > 0
    assert victim.read_bytes() == b"theirs"
    assert set(tmp_path.iterdir()) == {path, victim}


def test_a_fixture_folder_follows_no_links(tmp_path: Path) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "fixtures"
    arguments = ["fixture", str(SAMPLE), "-o", str(folder)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    victim.write_bytes(b"theirs")
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    assert written
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o600}
    for path in written[:3]:
        path.unlink()
        path.symlink_to(victim)
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert victim.read_bytes() == b"theirs"
    assert sorted(path for path in folder.rglob("*") if path.is_file()) == written
    assert not any(path.is_symlink() for path in written)


@pytest.mark.parametrize("mask", [0, 0o22, 0o77, 0o777])
def test_folders_and_baselines_are_for_their_owner_under_any_umask(
    tmp_path: Path, mask: int
) -> None:
    folder, baseline = tmp_path / "new" / "fixtures", tmp_path / "known.jsonl"
    os.umask(mask)
    done = CliRunner().invoke(main, ["fixture", str(SAMPLE), "-o", str(folder)])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(main, ["check", str(SAMPLE), "--write-baseline", str(baseline)])
    assert done.exit_code == 0, done.output
    os.umask(0)
    folders = [folder.parent, folder, *(path for path in folder.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    files = [baseline, *(path for path in folder.rglob("*") if path.is_file())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_manifest_of_fixtures_has_no_controls_of_c1(tmp_path: Path) -> None:
    evil = hostile(SAMPLE, tmp_path / "evil.pcapng", "\x9b31m\x85\u202e")
    folder = tmp_path / "fixtures"
    done = CliRunner().invoke(main, ["fixture", str(evil), "-o", str(folder), "--redact", "none"])
    assert done.exit_code == 0, done.output
    for path in folder.rglob("*.json"):
        text = path.read_text("utf-8")
        assert not [char for char in text if not char.isprintable() and char != "\n"]
