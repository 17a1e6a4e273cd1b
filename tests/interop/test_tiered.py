"""Tiered storage: what a broker leaves of a topic whose segments it moved, what they are where they
went to, and what it notes of that."""

import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from kafkascope.analyzer.logdir.model import RecoveryVerdict
from kafkascope.analyzer.logdir.opening import AtRest, open_all_at_rest, open_at_rest
from kafkascope.times import iso_ms
from tests.analyzer.logdir.verdicts import records_in, verdicts_on
from tests.interop.at_rest import make, produce, transact
from tests.interop.processes import until
from tests.interop.tiered import TieredCluster

pytestmark = pytest.mark.interop

SECONDS = 90
COUNT = 300
TURNS = 6
EACH = 20


class Tiered(NamedTuple):
    """A broker that has stopped, and what was produced to it."""

    cluster: TieredCluster
    rows: list[tuple[Any, ...]]

    def local(self, topic: str) -> AtRest:
        return opened(self.cluster.data / f"{topic}-0")

    def remote(self, topic: str) -> AtRest:
        (folder,) = self.cluster.remote.glob(f"{topic}-0-*")
        return opened(folder)


def opened(path: Path) -> AtRest:
    found = open_at_rest(path)
    assert found is not None, path
    return found


@pytest.fixture(scope="module", params=[pytest.param("3.9.2", marks=[pytest.mark.soak]), "4.4.0"])
def tiered(
    java: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tiered]:
    home = tmp_path_factory.mktemp("tiered")
    with TieredCluster(request.param, home=home) as cluster:
        # 4.x takes small segments under this name alone.
        size = "segment.bytes" if request.param < "4" else "internal.segment.bytes"
        moving = {"remote.storage.enable": "true", "local.retention.bytes": "1"}
        small = {**moving, size: "2000"}
        bootstrap = cluster.bootstrap()
        make(cluster, {"orders": small, "gone": small, "tx": {**moving, size: "6000"}})
        rows = produce(cluster, "orders", "gzip", count=COUNT)
        produce(cluster, "gone", "lz4", headers=False, count=COUNT)
        transact(cluster, TURNS, EACH, 20)
        until(lambda: begins(cluster, "orders") > 0 and begins(cluster, "tx") > 0)
        until(lambda: any(cluster.remote.glob("gone-0-*/*.log")))
        consume(bootstrap)
        remove(bootstrap, "gone")
        until(lambda: not any(cluster.remote.glob("gone-0-*/*.log")))
        cluster.nodes[0].stop(seconds=120)  # in order: else files are as after a crash
        yield Tiered(cluster, rows)


def begins(cluster: TieredCluster, topic: str) -> int:
    """Where the local log begins, once nothing but its last segment is there."""
    names = [path.stem for path in (cluster.data / f"{topic}-0").glob("*.log")]
    return int(names[0]) if len(names) == 1 else 0


def consume(bootstrap: str) -> None:
    """Read from the begin of the topic, for which the broker fetches indexes of what it moved."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    read = consumer.consume(1, SECONDS)
    consumer.close()
    assert [each.error() for each in read] == [None]


def remove(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.delete_topics([topic]).values():
        done.result(SECONDS)


def test_records_of_both_places_are_those_that_were_produced(tiered: Tiered) -> None:
    remote, local = (
        list(records_in(each)) for each in (tiered.remote("orders"), tiered.local("orders"))
    )
    assert local[0]["offset"] > 0
    assert {each["topic_id"] for each in (*remote, *local)} == {local[0]["topic_id"]}
    # Until the last segments are deleted they are in both places.
    read = {each["offset"]: each for each in (*remote, *local)}
    shown = [(r["key"], r["value"], r["headers"], r["time"]) for r in read.values()]
    # A topic that is new may refuse a batch, which then comes behind the next one.
    shown.sort(key=lambda row: str(row[3]))
    assert shown == [(k, v, h, iso_ms(t)) for k, v, h, t in tiered.rows]
    assert list(read) == list(range(COUNT))


def test_a_log_that_begins_where_the_moved_segments_end_is_sound(tiered: Tiered) -> None:
    for topic in ("orders", "tx"):
        places = (tiered.remote(topic), tiered.local(topic))
        assert len(places[0].files) > 1
        verdicts = [each for place in places for each in place.walk()]
        for verdict in verdicts:
            if isinstance(verdict, RecoveryVerdict):
                assert verdict.sound, verdict.lines()
                assert verdict.notes == (), verdict.lines()


def test_every_file_is_known_and_sound(tiered: Tiered) -> None:
    kinds: Counter[str] = Counter()
    for place in (tiered.cluster.data, tiered.cluster.remote):
        for path in place.rglob("*"):
            if not path.is_file() or path.name.startswith("."):
                continue
            found = opened(path)
            assert not (found.topic or "").startswith("remote-log-index"), path
            kinds[found.kind] += 1
            for verdict in verdicts_on(found):
                assert verdict.sound, verdict.lines()
                assert verdict.notes == (), verdict.lines()
    assert kinds["txnindex"] > 2
    assert kinds["producer-snapshot"] > 4


def test_aborted_transactions_went_with_their_segments(tiered: Tiered) -> None:
    entries = [
        entry
        for place in (tiered.remote("tx").path, tiered.local("tx").path)
        for path in sorted(place.glob("*.txnindex"))
        for entry in opened(path).small().entries
    ]
    aborted = {entry["first_offset"] for entry in entries}
    # Each transaction ends with a marker.
    assert aborted == {turn * (EACH + 1) for turn in range(TURNS) if turn % 2}


def test_what_the_broker_notes_is_decoded_by_name(tiered: Tiered) -> None:
    """Segments in `__remote_log_metadata` are those that are in the other place."""
    noted: dict[str, dict[str, Any]] = {}
    states: dict[str, list[int]] = {}
    for place in open_all_at_rest(tiered.cluster.data):
        if place.topic != "__remote_log_metadata":
            continue
        for record in records_in(place):
            told = record["decoded"]["value"]
            body = told["body"]
            which = body["remote_log_segment_id"]["id"]
            states.setdefault(which, []).append(body["remote_log_segment_state"])
            if told["message"] == "RemoteLogSegmentMetadataRecord":
                noted[which] = body
    kept = {}
    for topic in ("orders", "tx"):
        for path in tiered.remote(topic).files:
            (verdict,) = verdicts_on(opened(path))
            which = path.stem.partition("-")[2]
            kept[which] = (
                topic,
                verdict.first_offset,
                verdict.last_valid_offset,
                path.stat().st_size,
            )
    told_kept = {
        which: (
            body["remote_log_segment_id"]["topic_id_partition"]["name"],
            body["start_offset"],
            body["end_offset"],
            body["segment_size_in_bytes"],
        )
        for which, body in noted.items()
        if states[which] == [0, 1]
    }
    assert told_kept == kept
    gone = [states[which] for which in noted if which not in kept]
    assert gone
    assert all(each == [0, 1, 2, 3] for each in gone)


def test_a_damaged_segment_is_cut_where_the_broker_cuts_it(tiered: Tiered) -> None:
    """The last one: it changes what the others look at."""
    local = tiered.local("orders")
    path = local.files[-1]
    *_, (batch, _) = local.batches()
    data = bytearray(path.read_bytes())
    data[batch.position + 70] ^= 1
    path.write_bytes(data)
    verdict = list(verdicts_on(tiered.local("orders")))[-1]
    assert not verdict.sound
    for name in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
        (tiered.cluster.data / name).unlink()

    node = tiered.cluster.nodes[0]
    node.start()
    node.wait(tiered.cluster.listeners)
    until(lambda: path.stat().st_size < len(data))
    node.stop(signal.SIGKILL)  # in order it waits for a minute for its own listeners

    assert path.stat().st_size == verdict.valid_bytes == batch.position
