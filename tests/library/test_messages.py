"""Messages of the library: bytes to bodies and back, by both ways of naming them."""

import construct
import pytest

import kafkascope as ks
from kafkascope.dissectors.registry import APIS, Api, example, message_names
from kafkascope.library.messages import Kind
from tests.kit.samples import SAMPLES


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_version_is_encoded_and_decoded(api: Api) -> None:
    kinds: tuple[Kind, Kind] = ("request", "response")
    for kind in kinds:
        name = f"{api.name}{kind.capitalize()}"
        for version in range(api.versions.low, api.versions.high + 1):
            body = example(name, version)
            data = ks.encode(api.name, version, kind, body)
            assert data == ks.encode(name, version, body)
            assert ks.decode(data, name, version) == body
            assert ks.decode(data, api.name, version, kind) == body


def test_fields_that_are_missing_have_their_defaults() -> None:
    data = ks.encode("Fetch", 12, "request", {"max_wait_ms": 500})
    assert ks.decode(data, "Fetch", 12, "request")["max_wait_ms"] == 500
    assert ks.encode("FetchRequest", 12) == ks.encode("FetchRequest", 12, {})


def test_bytes_and_uuids_may_be_bytes() -> None:
    topic = {"topic_id": b"\1" * 16, "partition_data": [{"index": 0, "records": b"abc"}]}
    data = ks.encode("Produce", 13, "request", {"acks": 1, "topic_data": [topic]})
    read = ks.decode(data, "Produce", 13, "request")["topic_data"][0]
    assert (read["topic_id"], read["partition_data"][0]["records"]) == (b"\1" * 16, b"abc")


def test_a_struct_parses_what_was_encoded() -> None:
    data = ks.encode("FetchRequest", 12, {"min_bytes": 7})
    fetch = ks.struct("FetchRequest", 12)
    assert fetch.parse(data)["min_bytes"] == 7
    assert fetch.build({"min_bytes": 7}) == data


def test_a_struct_is_a_part_of_others() -> None:
    data = ks.encode("HeartbeatResponse", 1, {"error_code": 27})
    twice = construct.Struct(
        "before" / construct.Byte,
        "first" / ks.struct("HeartbeatResponse", 1),
        "second" / ks.struct("HeartbeatResponse", 1),
        "after" / construct.Byte,
    )
    read = twice.parse(b"\1" + data + data + b"\2")
    assert (read.before, read.first["error_code"], read.after) == (1, 27, 2)
    assert twice.build(read) == b"\1" + data + data + b"\2"


def test_what_does_not_fit_has_a_path() -> None:
    data = ks.encode("Metadata", 1, "request", {"topics": [{"name": "orders"}]})
    with pytest.raises(ks.DissectError) as cut:
        ks.decode(data[:-2], "Metadata", 1, "request")
    assert cut.value.path == "topics[0].name"
    with pytest.raises(ks.DissectError) as wrong:
        ks.encode("Metadata", 1, "request", {"topics": [{"name": 7}]})
    assert wrong.value.path == "topics[0].name"
    with pytest.raises(ks.DissectError, match="no such field"):
        ks.encode("Metadata", 1, "request", {"topic": []})


def test_bytes_behind_the_end_are_told() -> None:
    data = ks.encode("HeartbeatResponse", 0, {"error_code": 27})
    with pytest.raises(ks.SurplusBytes, match="3 bytes are left after its 2") as surplus:
        ks.decode(data + b"abc", "HeartbeatResponse", 0)
    assert (surplus.value.body, surplus.value.end) == ({"error_code": 27}, 2)


def test_unknown_names_and_versions_are_errors_of_ours() -> None:
    for name, version in (("Fetsch", 1), ("FetchRequest", 99)):
        with pytest.raises(ks.Error):
            ks.decode(b"", name, version)
        with pytest.raises(ks.Error):
            ks.struct(name, version)


def test_data_structures_have_names_too() -> None:
    assert "OffsetCommitValue" in message_names()
    data = ks.encode("OffsetCommitValue", 3, {"offset": 12})
    assert ks.decode(data, "OffsetCommitValue", 3)["offset"] == 12


# --- messages of ZooKeeper in the library ---------------------------------------------------------


SAMPLE = SAMPLES / "zookeeper.pcap"


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
