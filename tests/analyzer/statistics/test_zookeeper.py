"""What statistics say of ZooKeeper's traffic."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.statistics.errors import Errors
from kafkascope.analyzer.statistics.traffic import Throughput
from kafkascope.analyzer.statistics.zookeeper.model import is_below
from kafkascope.analyzer.statistics.zookeeper.zookeeper import ZooKeeper
from tests.analyzer.statistics.laws import counted, traffic


def test_watch_events_are_counted_beside_requests() -> None:
    pairs, names = traffic("zookeeper.pcap")
    lines = {line["api"]: line for line in counted(Throughput(), pairs).rows(names)}
    events = lines["zk.event"]
    assert (events["requests"], events["unpaired"], events["failed"]) == (21, 21, 0)
    assert lines["zk.getData"]["unpaired"] == 0


def test_errors_have_the_names_that_zookeeper_gives_them() -> None:
    pairs, names = traffic("zookeeper.pcap")
    errors = counted(Errors(), pairs)
    by_api = {(line["api"], line["error"]): line["count"] for line in errors.rows(names)}
    assert by_api["zk.exists", "NONODE"] == 6
    assert by_api["zk.auth", "AUTHFAILED"] == 1
    by_code = {line["error"]: line["count"] for line in errors.rows(names, ("code",))}
    assert by_code["NONODE"] == sum(
        count for (_, name), count in by_api.items() if name == "NONODE"
    )


def test_a_node_has_its_history_whoever_told_of_it() -> None:
    pairs, _ = traffic("zookeeper.pcap")
    zookeeper = counted(ZooKeeper(), pairs)
    lines = {line["path"]: line for line in zookeeper.rows()}
    gone = next(line for line in lines.values() if line["state"] == "gone" and line["lives"] == 1)
    kinds = [each["change"] for each in zookeeper.history(gone["path"])]
    assert (kinds[0], kinds[-1]) == ("created", "deleted")
    times = [each["time"] for each in zookeeper.history()]
    assert times == sorted(times)


def test_sessions_end_by_closing_them() -> None:
    pairs, _ = traffic("zookeeper.pcap")
    lines = counted(ZooKeeper(), pairs).session_lines()
    assert [line["user"] for line in lines] == ["alice", "", ""]
    assert [line["state"] for line in lines] == ["closed", "open", "closed"]
    assert [line["attached"] for line in lines] == [0, 0, 1]


@pytest.mark.parametrize(
    ("path", "top", "expected"),
    [("/a", "/", True), ("/a", "/a", True), ("/ab", "/a", False), ("/a/b", "/a", True)],
)
def test_below(path: str, top: str, expected: bool) -> None:
    assert is_below(path, top) is expected
