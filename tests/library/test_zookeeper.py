"""Messages of ZooKeeper in the library."""

from __future__ import annotations

from pathlib import Path

import kafkascope as ks

SAMPLE = Path(__file__).parents[2] / "captures" / "samples" / "zookeeper.pcap"


def test_exchanges_say_what_they_speak_and_what_node_they_are_about() -> None:
    with ks.open(SAMPLE) as capture:
        found = {each.number: each for each in capture}
    read, event = found[23], next(each for each in found.values() if each.event)
    assert (read.protocol, read.path, read.event) == ("zookeeper", "/tour/binary", None)
    assert read.request == {"path": "/tour/binary", "watch": False}
    assert list(read.records()) == []
    assert repr(read) == "<Exchange 23: zk.getData /tour/binary of 127.0.0.1:52906>"
    assert (event.state, event.request) == ("event", None)
    assert repr(found[1]).startswith("<Exchange 1: zk.connect of 127.0.0.1")


def test_exchanges_of_kafka_have_no_node() -> None:
    with ks.open(SAMPLE.with_name("java-old.pcap")) as capture:
        first = next(iter(capture))
    assert (first.protocol, first.path, first.event) == ("kafka", None, None)


def test_records_of_zookeeper_are_read_and_written_by_name() -> None:
    body = {"path": "/a", "watch": True}
    data = ks.encode("zk.GetDataRequest", 0, body)
    assert data == b"\0\0\0\2/a\1"
    assert ks.decode(data, "zk.GetDataRequest", 0) == body
    assert ks.struct("zk.GetDataRequest", 0).parse(data) == body
