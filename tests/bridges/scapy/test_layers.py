"""The layer of scapy: the same bytes as the library's, fields that read and build, and fuzz."""

import doctest
import pickle
import random
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.fields import RawVal
from scapy.layers.inet import IP, TCP
from scapy.packet import Packet, Raw, fuzz

import kafkascope as ks
from kafkascope.analyzer.bodies.standalone import write_frame
from kafkascope.bridges.scapy.fields import RENAMED
from kafkascope.bridges.scapy.layers import KafkaStruct, of_request, of_response
from kafkascope.dissectors.layout import ArrayWire, StructWire
from kafkascope.dissectors.registry import APIS, Api, layout_of, write_layout
from kafkascope.scapy import Kafka, KafkaMessage, KafkaUndecoded, layer_of
from tests.kit.samples import ROOT
from tests.strategies import bodies

MESSAGES = [
    (api.name, version, kind)
    for api in APIS.values()
    for version in range(api.versions.low, api.versions.high + 1)
    for kind in ("request", "response")
]


def whole(packet: Any) -> bytes:
    """The bytes of a packet, built from its fields."""
    packet.clear_cache()
    return bytes(packet)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_version_is_built_as_the_library_does(api: Api) -> None:
    for version in range(api.versions.low, api.versions.high + 1):
        for kind in ("request", "response"):
            packet = Kafka(api=api.name, version=version, kind=kind, correlation_id=7)
            header: dict[str, Any] = {"correlation_id": 7}
            if kind == "request":
                header["client_id"] = ""
            name = f"{api.name}{kind.capitalize()}"
            data = bytes(packet)
            assert data == write_frame(name, version, header, {}), (name, version)
            assert data.endswith(ks.encode(name, version))
            read = type(packet)(data)
            assert (read.api, read.version, read.correlation_id) == (api.key, version, 7)
            assert whole(read) == data
            assert name.removesuffix("Request").removesuffix("Response") in read.show(dump=True)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_what_is_read_is_built_again_from_its_fields(data: st.DataObject) -> None:
    api, version, kind = data.draw(st.sampled_from(MESSAGES))
    layout = layout_of(f"{api}{kind.capitalize()}", version)
    body = data.draw(bodies(layout))
    made = Kafka(api=api, version=version, kind=kind, correlation_id=1)
    made.fill(body)
    frame = bytes(made)
    assert frame.endswith(write_layout(layout, body))
    read = type(made)(frame)
    if read.size is None:
        return  # a variant of other releases fits these bytes as well
    assert bytes(read) == frame
    assert whole(read) == frame
    assert whole(read.copy()) == frame
    assert read.body() == body


def test_structs_are_given_as_dicts_or_packets() -> None:
    topics = [{"topic": "orders", "partitions": [{"partition": 3, "fetch_offset": 42}]}]
    packet = Kafka(api="Fetch", version=12, max_wait_ms=500, topics=topics)
    body = {"max_wait_ms": 500, "topics": topics}
    assert bytes(packet).endswith(ks.encode("Fetch", 12, "request", body))
    assert packet.topics[0].partitions[0].fetch_offset == 42
    packet.topics[0].partitions[0].fetch_offset = 43
    packet.topics.append(packet.topics[0].copy())
    read = Kafka(bytes(packet))
    assert [each.partitions[0].fetch_offset for each in read.topics] == [43, 43]
    read.topics[1].topic = "other"
    assert b"other" in bytes(read)
    assert whole(packet.topics[0]) == bytes(packet.topics[0])
    assert type(packet.topics[0])(bytes(packet.topics[0])).topic == "orders"


def test_null_stays_null() -> None:
    packet = Kafka(api="Metadata", version=12, topics=None)
    read = Kafka(bytes(packet))
    for each in (packet, read, read.copy(), packet.copy()):
        assert list(each.topics) == []
        assert "null" in repr(each.topics)
        assert each.body()["topics"] is None
        assert whole(each) == bytes(packet)
    assert Kafka(api="Metadata", version=12, topics=[]).body()["topics"] == []


def test_names_of_fields_do_not_hide_those_of_packets() -> None:
    taken = {*dir(Packet), *Packet.__all_slots__, *dir(KafkaStruct)}
    seen = set()

    def look(wire: StructWire, names: set[str]) -> None:
        for slot in (*wire.slots, *wire.tags):
            if slot.name in names and slot.name not in RENAMED:
                seen.add(slot.name)
            inner = slot.wire.element if isinstance(slot.wire, ArrayWire) else slot.wire
            if isinstance(inner, StructWire):
                look(inner, taken)

    header = {"size", "api", "version", "correlation_id", "client_id", "header_tags", "kind"}
    for api, version, kind in MESSAGES:
        look(
            layout_of(f"{api}{kind.capitalize()}", version).body,
            taken | set(dir(KafkaMessage)) | header,
        )
    assert seen == set()
    assert Kafka(api="Metadata", version=12, topics=[{"name": "t"}]).topics[0].name_ == "t"


def test_a_packet_of_ip_carries_it() -> None:
    packet = IP(bytes(IP() / TCP() / Kafka(api="Fetch", version=12, correlation_id=9)))
    assert Kafka in packet
    assert packet[TCP].dport == 9092
    assert packet[Kafka].correlation_id == 9
    assert packet.summary() == "IP / TCP / Kafka Fetch request v12 #9 of ''"
    answer = IP() / TCP(dport=5000) / Kafka(api="Fetch", version=12, kind="response")
    assert answer[TCP].sport == 9092


def test_a_response_answers_its_request() -> None:
    request = Kafka(api="Heartbeat", version=3, correlation_id=4)
    response = Kafka(api="Heartbeat", version=3, kind="response", correlation_id=4, error_code=27)
    assert response.answers(request)
    assert not request.answers(response)
    assert not Kafka(api="Heartbeat", kind="response", correlation_id=5).answers(request)
    assert request.hashret() == response.hashret()
    assert "27 (REBALANCE_IN_PROGRESS)" in response.show(dump=True)


def test_layers_are_found_by_name_and_pickled() -> None:
    from kafkascope.scapy import FetchRequest12

    assert FetchRequest12 is layer_of("fetch", 12)
    assert layer_of("Fetch") is layer_of(1, APIS[1].versions.high)
    packet = Kafka(api="Fetch", version=12, kind="response", throttle_time_ms=3)
    assert pickle.loads(pickle.dumps(packet)).throttle_time_ms == 3
    with pytest.raises(ImportError):
        from kafkascope.scapy import FetchRequest99  # noqa: F401
    with pytest.raises(ks.DissectError, match='no API "Fetsch"'):
        Kafka(api="Fetsch")
    with pytest.raises(ks.DissectError, match="has versions"):
        Kafka(api="Fetch", version=99)
    with pytest.raises(AttributeError, match="max_wait"):
        Kafka(api="Fetch", version=12, max_wait=1)


def test_a_value_that_does_not_fit_names_its_field() -> None:
    with pytest.raises(ks.DissectError, match="does not fit int32") as caught:
        bytes(Kafka(api="Fetch", version=12, max_wait_ms=2**40))
    assert "max_wait_ms" in str(caught.value)


def test_raw_bytes_take_the_place_of_a_field() -> None:
    packet = Kafka(api="Heartbeat", version=3, group_id=RawVal(b"\xff\xff\xff"))
    usual = Kafka(api="Heartbeat", version=3)
    assert len(bytes(packet)) == len(bytes(usual)) + 1
    assert b"\xff\xff\xff" in bytes(packet)


def test_secrets_are_not_shown() -> None:
    packet = Kafka(api="SaslAuthenticate", version=2, auth_bytes=b"\0alice\0secret")
    assert "secret, 13 bytes" in packet.show(dump=True)
    assert "alice" not in packet.show(dump=True) + repr(packet)
    assert packet.auth_bytes == b"\0alice\0secret"


@pytest.mark.parametrize("message", MESSAGES[::7], ids=str)
def test_fuzzed_messages_can_be_built_and_read(message: tuple[str, int, str]) -> None:
    random.seed(1)
    api, version, kind = message
    fuzzed = fuzz(Kafka(api=api, version=version, kind=kind))
    for _ in range(3):
        frame = bytes(fuzzed)
        read = type(fuzzed)(frame)
        assert read.size is None or bytes(read) == frame


def test_given_elements_are_fuzzed() -> None:
    elements = fuzz(Kafka(api="Fetch", version=12, topics=[{"partitions": [{}]}]))
    assert len({bytes(elements) for _ in range(5)}) == 5
    assert len(Kafka(bytes(elements)).topics[0].partitions) == 1


def test_bytes_that_are_no_message_say_why() -> None:
    cases = {
        b"": "a part of a message",
        b"\0\0": "a part of a message",
        bytes(Kafka(api="Fetch", version=12))[:-3]: "a part of a message",
        b"GET / HTTP/1.1\r\n\r\n": "HTTP, not Kafka",
        b"\xff\xff\xff\xff": "frame size -1",
        bytes(Kafka(api="Fetch", version=12, kind="response")): "TCPSession",
    }
    for data, why in cases.items():
        packet = Kafka(data)
        assert isinstance(packet, KafkaUndecoded)
        assert why in (packet.reason if data else why), data
        assert bytes(packet) == data or not data
        assert bytes(packet.copy()) == data or not data


def test_what_is_left_of_a_frame_and_behind_it_is_kept() -> None:
    frame = bytearray(bytes(Kafka(api="Heartbeat", version=3)) + b"abc")
    struct.pack_into(">i", frame, 0, len(frame) - 4)
    packet = Kafka(bytes(frame) + b"behind")
    assert packet[Raw].load == b"abc"
    assert bytes(packet) == bytes(frame) + b"behind"
    assert packet.lastlayer().load == b"behind"


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(MESSAGES), st.integers(0, 255))
def test_hostile_bytes_never_raise(noise: bytes, message: tuple[str, int, str], cut: int) -> None:
    api, version, kind = message
    good = bytes(Kafka(api=api, version=version, kind=kind, correlation_id=1))
    for data in (
        noise,
        good[:cut],
        good[: cut // 2] + noise,
        struct.pack(">i", len(noise)) + noise,
    ):
        for cls in (Kafka, KafkaUndecoded, layer_of(api, version, kind)):
            packet = cls(data)
            packet.show(dump=True)
            packet.summary()
            assert bytes(packet) == data or not data


def test_answers_of_old_versions_to_new_requests_are_read() -> None:
    body = {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}]}
    frame = write_frame("ApiVersionsResponse", 0, {"correlation_id": 1}, body)
    packet = of_response(frame, 18, 4)(frame)
    assert packet.error_code == 35
    assert packet.api_keys[0].max_version == 3
    assert whole(packet) == frame


def test_layouts_of_some_releases_are_classes_of_their_own() -> None:
    message = next(
        (layout, api)
        for api in APIS.values()
        for layout in [layout_of(f"{api.name}Request", api.versions.low)]
        if layout.message.variants
    )
    api = message[1]
    from kafkascope.dissectors.registry import variants_of

    for version in range(api.versions.low, api.versions.high + 1):
        for variant in variants_of(f"{api.name}Request", version):
            from kafkascope.bridges.scapy.layers import made

            cls = made(variant, version)
            assert variant.message.releases in cls.__doc__
            assert of_request(bytes(cls())) in (cls, layer_of(api.name, version))


# --- the examples of docs/scapy.md give what they say ---------------------------------------------


def test_the_examples_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    # The fences of Markdown are no part of what is expected.
    text = (
        (ROOT / "docs" / "scapy.md")
        .read_text("utf-8")
        .replace("```python\n", "")
        .replace("```", "")
    )
    test = doctest.DocTestParser().get_doctest(text, {}, "scapy.md", "docs/scapy.md", 0)
    assert len(test.examples) > 12
    said: list[str] = []
    doctest.DocTestRunner().run(test, out=said.append)
    assert "".join(said) == ""
