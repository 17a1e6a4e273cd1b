"""Locks of dependencies have hashes, and workflows name actions by commit."""

import re
from pathlib import Path

import pytest

from tests.kit.samples import ROOT

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
