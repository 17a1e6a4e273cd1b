"""Log directories of every release: records as its tool reads them, and the verdict that its broker
gives when it starts on damaged ones."""

import re
import time
from pathlib import Path

import pytest

from kafkascope.analyzer.logdir.opening import AtRest, open_at_rest
from tests.analyzer.logdir.verdicts import compared, family, records_in, undecided, verdicts_on
from tests.interop.at_rest import (
    RELEASES,
    Folders,
    Recovered,
    Release,
    dumped,
    recovered,
    topics,
    written,
)
from tests.interop.damages import chance, damaged

pytestmark = pytest.mark.interop

QUICK = ("0.8.0", "1.1.1")
"""Of the releases that recover in one of three ways; the others are long."""
BY_CHANCE = 60


def opened(folder: Path) -> AtRest:
    found = open_at_rest(folder)
    assert found is not None
    return found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=() if each in QUICK else pytest.mark.soak) for each in RELEASES
    ],
)
def log(
    java: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Release, Folders, Path]:
    release = RELEASES[request.param]
    home = tmp_path_factory.mktemp("log")
    return release, written(release, home), home


def test_records_are_those_that_were_produced(log: tuple[Release, Folders, Path]) -> None:
    release, folders, _ = log
    made = topics(release)
    for topic, rows in folders.rows.items():
        found = opened(folders.clean[topic])
        assert [(each["key"], each["value"]) for each in records_in(found)] == rows, topic
        seen = {(batch.codec, batch.magic) for batch, _ in found.batches()}
        # A client sends a message alone as it is, where that is no larger.
        assert made[topic] in seen, topic
        assert seen <= {made[topic], ("none", made[topic][1])}, topic


def test_records_are_those_that_kafkas_own_tool_sees(log: tuple[Release, Folders, Path]) -> None:
    release, folders, _ = log
    files = [path for folder in folders.clean.values() for path in folder.glob("*.log")]
    theirs = dumped(release, files)
    compared_records = 0
    for path, lines in theirs.items():
        if path.parent.name.startswith("__"):
            continue
        said = [
            (int(each["offset"]), each.get("key") or None, each["payload"])
            for each in lines
            if "offset" in each and "payload" in each
        ]
        ours = [
            (each["offset"], each["key"], each["value"])
            for each in records_in(opened(path))
            if not each["control"]
        ]
        assert ours == said, path
        compared_records += len(said)
    print(f"\n{release.version}: {compared_records} records of {len(files)} segments compared")
    assert compared_records > 300


def test_verdicts_are_those_of_the_recovering_broker(log: tuple[Release, Folders, Path]) -> None:
    release, folders, home = log
    begin = time.monotonic()
    bad = home / "bad"
    copies = {}
    chosen = ["c-none"] if release.version in QUICK else ["c-none", "c-gzip", "f0-gzip", "f1-gzip"]
    count = 0 if release.version in QUICK else BY_CHANCE
    for topic in chosen:
        if topic in folders.clean:
            copies |= {copy.name: copy for _, copy in damaged(folders.clean[topic], bad)}
            copies |= {copy.name: copy for _, copy in chance(folders.clean[topic], bad, 7, count)}
    whole = [folder for name, folder in folders.clean.items() if not name.startswith("__")]
    for folder in (*whole, folders.killed):
        if folder is not None:
            copies[folder.name] = folder

    theirs = recovered(release, copies, home / "recovery")

    differing, unknown = [], set()
    for name, told in theirs.items():
        verdicts = list(verdicts_on(opened(copies[name])))
        if undecided(verdicts):
            unknown.add(name)
        if wrong := compared(verdicts, family(release.version), _truth(told)):
            differing.append(f"{name}: {wrong}\n  broker: {told.log[:6]}")
    stopped = sum(not each.started for each in theirs.values())
    print(
        f"\n{release.version}: {len(theirs)} folders, {stopped} of which keep the broker from"
        f" starting, {len(unknown)} undecided; {time.monotonic() - begin:.0f} s"
    )
    assert not differing, "\n".join(differing)
    # Where offsets go back, and the files do not show the interval of the index.
    assert all(re.search(r"offset|twice|swapped|chance|magic", name) for name in unknown), unknown
    assert len(unknown) < len(theirs) / 5


def _truth(told: Recovered) -> dict[str, int] | None:
    return told.files if told.started else None
