"""Log directories of every release: records as its tool reads them, and the verdict that its broker
gives when it starts on damaged ones."""

import re
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.logdir.opening import AtRest, open_at_rest
from kafkascope.times import iso_ms
from tests.analyzer.logdir.verdicts import compared, family, records_in, undecided, verdicts_on
from tests.interop.at_rest import COUNT, RELEASES, Folders, dumped, recovered, topics, written
from tests.interop.damages import chance, damaged
from tests.interop.zookeeper import older

pytestmark = pytest.mark.interop

QUICK = ("0.8.0", "1.1.1")
"""Of the releases that recover in one of three ways; the others are long."""
READ = (*QUICK, "3.9.2", "4.4.0")
BEFORE_TRANSACTIONS = ("0.8.0", "0.8.2.2", "0.9.0.1", "0.10.2.2")
BY_CHANCE = 60

Logs = Callable[[str], Folders]


def each_release(quick: tuple[str, ...], *others: str) -> pytest.MarkDecorator:
    """Each release but some; most in `make soak`."""
    return pytest.mark.parametrize(
        "release",
        [
            pytest.param(each, marks=() if each in quick else pytest.mark.soak)
            for each in RELEASES
            if each not in others
        ],
    )


def opened(path: Path) -> AtRest:
    found = open_at_rest(path)
    assert found is not None, path
    return found


@pytest.fixture(scope="module")
def logs(java: None, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """What a broker of a release left, written at first use."""
    return cache(lambda release: written(RELEASES[release], tmp_path_factory.mktemp("log")))


@each_release(READ)
def test_records_are_those_that_were_produced(logs: Logs, release: str) -> None:
    folders = logs(release)
    made = topics(folders.release)
    for topic, rows in folders.rows.items():
        found = opened(folders.clean[topic])
        read = list(records_in(found))
        shown = [(each["key"], each["value"], each["headers"], each["time"]) for each in read]
        assert shown == [(k, v, h, iso_ms(t)) for k, v, h, t in rows], topic
        assert [each["offset"] for each in read] == list(range(COUNT))
        seen = {(batch.codec, batch.magic) for batch, _ in found.batches()}
        # A client sends a message alone as it is, where that is no larger.
        assert made[topic] in seen, topic
        assert seen <= {made[topic], ("none", made[topic][1])}, topic


@each_release(READ)
def test_records_are_those_that_kafkas_own_tool_sees(logs: Logs, release: str) -> None:
    folders = logs(release)
    files = [path for folder in folders.clean.values() for path in folder.glob("*.log")]
    compared_records = 0
    for path, lines in dumped(folders.release, files).items():
        found = opened(path)
        if not older(release, "2.0"):
            assert [fields_of(batch) for batch, _ in found.batches()] == [
                fields_told(each) for each in lines if "position" in each
            ]
        if path.parent.name.startswith("__"):
            continue
        said = [
            (int(each["offset"]), each.get("key") or None, each["payload"])
            for each in lines
            if "offset" in each and "payload" in each
        ]
        ours = [
            (each["offset"], each["key"], each["value"])
            for each in records_in(found)
            if not each["control"] and each["value"] is not None
        ]
        assert ours == said, path
        compared_records += len(said)
    print(f"\n{release}: {compared_records} records of {len(files)} segments compared")
    assert compared_records > 300


def fields_of(row: Any) -> tuple[object, ...]:
    """What `fields_told` has of a batch."""
    about = (row.position, row.size, row.last_offset, row.magic, row.codec, row.crc, row.crc_ok)
    return *about, row.transactional, row.control, row.producer_id, row.base_sequence


def fields_told(words: dict[str, str]) -> tuple[object, ...]:
    """What Kafka's DumpLogSegments says of a batch; of old formats it says less."""
    last = words.get("lastOffset", words.get("offset", "-1"))
    numbers = (int(words["position"]), int(words["size"]), int(last), int(words["magic"]))
    codec = words["compresscodec"].lower()
    flags = (words.get(name) == "true" for name in ("isTransactional", "isControl"))
    producer = (int(words.get(name, -1)) for name in ("producerId", "baseSequence"))
    return *numbers, codec, int(words["crc"]), words["isvalid"] == "true", *flags, *producer


@each_release(READ)
def test_every_file_of_a_broker_is_known_and_sound(logs: Logs, release: str) -> None:
    for path in sorted(logs(release).home.rglob("data*/**/*")):
        if path.is_file() and not path.name.startswith("."):
            for verdict in verdicts_on(opened(path)):
                assert verdict.sound, verdict.lines()
                assert verdict.notes == (), verdict.lines()


@each_release(READ, *BEFORE_TRANSACTIONS)
def test_internal_topics_are_decoded_whole(logs: Logs, release: str) -> None:
    folders = logs(release)
    internal = [opened(each) for each in folders.home.rglob("__*/0*.log")]
    decoded = [record["decoded"] for found in internal for record in records_in(found)]
    assert not [each for each in decoded if "error" in each]
    assert len(decoded) > (50 if folders.release.kraft else 3)


@each_release(READ, *BEFORE_TRANSACTIONS)
def test_transactions_and_compaction_leave_their_traces(logs: Logs, release: str) -> None:
    clean = logs(release).clean
    assert sum(row.control for row, _ in opened(clean["tx"]).batches()) == 4
    aborted = [opened(each).small().entries for each in clean["tx"].glob("*.txnindex")]
    assert sum(map(len, aborted)) == 2
    offsets = [record["offset"] for record in records_in(opened(clean["compact"]))]
    assert offsets == sorted(offsets)
    assert len(offsets) < offsets[-1] + 1


@each_release(QUICK)
def test_verdicts_are_those_of_the_recovering_broker(
    logs: Logs, release: str, tmp_path: Path
) -> None:
    folders, bad = logs(release), tmp_path / "bad"
    begin = time.monotonic()
    copies = {}
    chosen = ["c-none"] if release in QUICK else ["c-none", "c-gzip", "f0-gzip", "f1-gzip"]
    count = 0 if release in QUICK else BY_CHANCE
    for topic in chosen:
        if topic in folders.clean:
            copies |= {copy.name: copy for _, copy in damaged(folders.clean[topic], bad)}
            copies |= {copy.name: copy for _, copy in chance(folders.clean[topic], bad, 7, count)}
    whole = [folder for name, folder in folders.clean.items() if not name.startswith("__")]
    copies |= {folder.name: folder for folder in (*whole, folders.killed)}

    theirs = recovered(folders.release, copies, tmp_path / "recovery")

    differing, unknown = [], set()
    for name, told in theirs.items():
        verdicts = list(verdicts_on(opened(copies[name])))
        if undecided(verdicts):
            unknown.add(name)
        if wrong := compared(verdicts, family(release), told.files if told.started else None):
            differing.append(f"{name}: {wrong}\n  broker: {told.log[:6]}")
    stopped = sum(not each.started for each in theirs.values())
    print(
        f"\n{release}: {len(theirs)} folders, {stopped} of which keep the broker from"
        f" starting, {len(unknown)} undecided; {time.monotonic() - begin:.0f} s"
    )
    assert not differing, "\n".join(differing)
    # Where offsets go back, and the files do not show the interval of the index.
    assert all(re.search(r"offset|twice|swapped|chance|magic", name) for name in unknown), unknown
    assert len(unknown) < len(theirs) / 5
