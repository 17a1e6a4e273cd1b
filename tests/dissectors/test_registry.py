"""Headers, names and versions: from frames to bodies, and which layout is taken."""

import pytest
from hypothesis import Phase, assume, given, settings

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.dissectors import errors, registry
from kafkascope.dissectors.codec import structs
from kafkascope.dissectors.codec.reader import reader
from kafkascope.dissectors.codec.writer import writer
from kafkascope.dissectors.errors import DissectError, Malformed, Truncated
from kafkascope.dissectors.keyed import api_name, decode, error_name, read_header
from kafkascope.dissectors.layout import resolve
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.zookeeper.types import BY_NAME
from tests.kit.samples import SAMPLES
from tests.kit.wire import full_body
from tests.matrix import mostly_slow
from tests.strategies import bodies

# A metadata answer of Kafka 0.8 as somebody printed it byte by byte while learning the protocol:
# https://github.com/bosky101/ekafka
PRINTED = """
0,0,0,0,0,0,0,3,0,0,0,3,0,25,118,97,103,114,97,110,116,
45,117,98,117,110,116,117,45,112,114,101,99,105,115,101,
45,54,52,0,0,35,133,0,0,0,1,0,25,118,97,103,114,97,110,
116,45,117,98,117,110,116,117,45,112,114,101,99,105,115,
101,45,54,52,0,0,35,131,0,0,0,2,0,25,118,97,103,114,97,
110,116,45,117,98,117,110,116,117,45,112,114,101,99,105,
115,101,45,54,52,0,0,35,132,0,0,0,3,0,0,0,2,97,49,0,0,0,
2,0,0,0,0,0,0,0,0,0,3,0,0,0,1,0,0,0,3,0,0,0,1,0,0,0,3,0,
0,0,0,0,1,0,0,0,1,0,0,0,1,0,0,0,1,0,0,0,1,0,0,0,1,0,0,0,
2,97,50,0,0,0,2,0,0,0,0,0,0,0,0,0,1,0,0,0,1,0,0,0,1,0,0,
0,1,0,0,0,1,0,0,0,0,0,1,0,0,0,2,0,0,0,1,0,0,0,2,0,0,0,1,
0,0,0,2,0,0,0,2,97,51,0,0,0,2,0,0,0,0,0,0,0,0,0,3,0,0,0,
2,0,0,0,3,0,0,0,1,0,0,0,2,0,0,0,3,0,0,0,1,0,0,0,0,0,1,0,
0,0,1,0,0,0,2,0,0,0,1,0,0,0,2,0,0,0,2,0,0,0,1,0,0,0,2
"""


def test_a_metadata_answer_printed_byte_by_byte_is_what_its_author_found() -> None:
    payload = bytes(int(number) for number in PRINTED.split(","))

    decoded = registry.decode_response(payload, 3, 0)

    assert decoded.header == {"correlation_id": 0}
    assert decoded.end == len(payload)
    assert [tuple(broker.values()) for broker in decoded.body["brokers"]] == [
        (3, "vagrant-ubuntu-precise-64", 9093),
        (1, "vagrant-ubuntu-precise-64", 9091),
        (2, "vagrant-ubuntu-precise-64", 9092),
    ]
    found = {
        topic["name"]: [tuple(partition.values()) for partition in topic["partitions"]]
        for topic in decoded.body["topics"]
    }
    # error, partition, leader, replicas, in-sync replicas
    assert found == {
        "a1": [(0, 0, 3, [3], [3]), (0, 1, 1, [1], [1])],
        "a2": [(0, 0, 1, [1], [1]), (0, 1, 2, [2], [2])],
        "a3": [(0, 0, 3, [3, 1], [3, 1]), (0, 1, 1, [1, 2], [1, 2])],
    }


# --- headers


@pytest.mark.parametrize(
    ("key", "version", "asked", "answered"),
    [
        (7, 0, 0, 0),  # ControlledShutdown 0 has no client id
        *((7, 1, 1, 0), (7, 3, 2, 1), (1, 11, 1, 0), (1, 12, 2, 1), (58, 0, 2, 1)),
        *((18, 0, 1, 0), (18, 2, 1, 0), (18, 3, 2, 0), (18, 5, 2, 0)),
        (17, 1, 1, 0),  # SaslHandshake never became flexible
        (999, 5, 1, 0),  # what we do not know
    ],
)
def test_versions_of_headers(key: int, version: int, asked: int, answered: int) -> None:
    assert registry.request_header_version(key, version) == asked
    assert registry.response_header_version(key, version) == answered


def test_controlled_shutdown_0_has_neither_client_id_nor_tags() -> None:
    decoded = registry.decode_request(bytes.fromhex("0007 0000 0000002a 00000003"))
    assert "client_id" not in decoded.header
    assert decoded.header["correlation_id"] == 42
    assert decoded.body == {"broker_id": 3}


def test_the_client_id_keeps_its_plain_encoding_in_header_2() -> None:
    # Heartbeat 4: api, version, correlation, int16 length and "me", then an unknown tag 5.
    head = bytes.fromhex("000c 0004 00000007 0002 6d65 01 05 02 beef")
    body = bytes.fromhex("0267 00000001 026d 00 00")
    decoded = registry.decode_request(head + body)
    assert decoded.header["client_id"] == "me"
    assert decoded.header["_tagged_fields"] == [{"tag": 5, "data": b"\xbe\xef"}]
    assert decoded.body["group_id"] == "g"
    assert decoded.end == len(head + body)
    header = registry.read_request_header(head + body)
    assert (header.client_id, header.end) == ("me", len(head))
    assert header.tagged_fields == [{"tag": 5, "data": b"\xbe\xef"}]


def test_a_null_client_id_is_none() -> None:
    header = registry.read_request_header(bytes.fromhex("0003 0001 00000001 ffff"))
    assert header.client_id is None
    assert header.end == 10


@pytest.mark.parametrize(
    ("payload", "offset"),
    [
        ("", 0),
        ("0003 0001 000000", 0),
        ("0003 0001 00000001 00", 8),
        ("0003 0001 00000001 0004 6d65", 8),
        ("0003 0001 00000001 fffe", 8),
        ("0003 0009 00000001 ffff", 10),
        ("0003 0009 00000001 ffff 01 05 03 be", 13),
    ],
)
def test_a_header_that_is_not_whole_is_refused_with_its_place(payload: str, offset: int) -> None:
    with pytest.raises((Truncated, Malformed)) as caught:
        registry.read_request_header(bytes.fromhex(payload))
    assert caught.value.offset == offset


def test_what_all_headers_have_in_common_is_read_of_unknown_apis() -> None:
    header = registry.read_request_header(bytes.fromhex("7fff 0003 00000009 0001 61 ffff"))
    assert (header.api_key, header.api_version, header.client_id) == (0x7FFF, 3, "a")


# --- unknown apis and versions


def test_an_unknown_api_says_so() -> None:
    with pytest.raises(errors.UnknownApi, match="999"):
        registry.decode_request(bytes.fromhex("03e7 0000 00000001 ffff"))
    for call, *words in (
        (registry.decode_response, bytes(4), 999, 0),
        (registry.api_named, "Fetsh"),
        (registry.message, "FetshRequest"),
    ):
        with pytest.raises(errors.UnknownApi):
            call(*words)


def test_a_version_that_no_release_had_says_which_there_are() -> None:
    with pytest.raises(errors.UnknownVersion, match=r"Fetch has versions 0-18, not 99"):
        registry.decode_request(bytes.fromhex("0001 0063 00000001 ffff 00"))
    with pytest.raises(errors.UnknownVersion):
        registry.layout_of("FetchRequest", -1)


def test_names_of_apis_are_found_whatever_their_case() -> None:
    assert registry.api_named("fetch").key == registry.api_named("FETCH").key == 1


# --- the answer to an ApiVersions request that the broker is too old for (KIP-511)


def test_an_api_versions_answer_with_error_35_is_read_as_version_0() -> None:
    body = {"error_code": 35, "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}]}
    payload = bytes(4) + registry.encode_body("ApiVersionsResponse", 0, body)
    decoded = registry.decode_response(payload, 18, 4)
    assert (decoded.version, decoded.body, decoded.end) == (0, body, len(payload))


def test_an_empty_list_of_apis_is_how_brokers_before_2_4_fall_back() -> None:
    decoded = registry.decode_response(bytes.fromhex("00000001 0023 00000000"), 18, 3)
    assert (decoded.version, decoded.body["api_keys"]) == (0, [])


def test_error_35_in_the_version_that_was_asked_for_is_read_in_it() -> None:
    body = registry.example("ApiVersionsResponse", 3) | {"error_code": 35}
    payload = bytes(4) + registry.encode_body("ApiVersionsResponse", 3, body)
    decoded = registry.decode_response(payload, 18, 3)
    assert (decoded.version, decoded.body) == (3, body)


# --- layouts that only some releases had


def all_variants() -> list[tuple[str, int, int]]:
    found = []
    for name in registry.message_names():
        message = registry.message(name)
        for at, variant in enumerate(message.variants):
            found.append((name, variant.versions.low, at))
    return found


def test_a_variant_is_taken_when_the_main_layout_does_not_fit() -> None:
    # ConsumerGroupHeartbeat 0 of the early access releases: a regex and client side assignors.
    main, variant = _heartbeat_layouts()
    early = {"group_id": "g", "member_id": "m", "member_epoch": 1, "instance_id": None}
    early |= {"rack_id": None, "rebalance_timeout_ms": 1000, "subscribed_topic_names": ["t"]}
    early |= {"subscribed_topic_regex": "a.*", "server_assignor": None, "client_assignors": []}
    early |= {"topic_partitions": None}
    head = bytes.fromhex("0044 0000 00000001 ffff 00")
    decoded = registry.decode_request(head + writer(variant)(early))
    assert decoded.body == early
    assert decoded.layout is variant
    assert decoded.note == "layout of Kafka 3.5.0-3.6.2"

    today = registry.example("ConsumerGroupHeartbeatRequest", 0)
    decoded = registry.decode_request(head + writer(main)(today))
    assert (decoded.body, decoded.layout, decoded.note) == (today, main, "")


def _heartbeat_layouts() -> tuple[registry.Layout, registry.Layout]:
    message = registry.message("ConsumerGroupHeartbeatRequest")
    return resolve(message, 0), resolve(message.variants[0], 0)


def test_the_main_layout_explains_when_no_variant_fits_either() -> None:
    main, _ = _heartbeat_layouts()
    data = writer(main)(registry.example("ConsumerGroupHeartbeatRequest", 0))
    with pytest.raises(DissectError):
        registry.read_best(main.message, 0, data[:-1])
    _, end, layout = registry.read_best(main.message, 0, data + b"surplus")
    assert (end, layout) == (len(data), main)


def test_a_hostile_body_does_not_keep_us_for_minutes() -> None:
    """The reference explains what the fast reader refuses, and takes a thousand times as long."""
    body = registry.example("FetchRequest", 12)
    topic = {"topic": "t", "partitions": []}
    body["topics"] = [topic] * (LIMITS.explained_values // 3)
    data = registry.encode_body("FetchRequest", 12, body)
    with pytest.raises(Malformed, match="after this place") as found:
        registry.decode_body("FetchRequest", 12, data[:-1])
    assert 0 < found.value.offset < len(data) - 1
    assert found.value.path.startswith("topics[")


@pytest.mark.parametrize(
    ("name", "version", "at"), mostly_slow(all_variants(), all_variants()[::3].__contains__)
)
def test_every_variant_is_chosen_where_it_is_the_only_one_to_fit(
    name: str, version: int, at: int
) -> None:
    message = registry.message(name)
    variant = resolve(message.variants[at], version)
    earlier = [resolve(message, version), *(resolve(v, version) for v in message.variants[:at])]
    chosen = 0

    @settings(max_examples=40, database=None, phases=(Phase.generate,))
    @given(bodies(variant))
    def law(body: registry.Body) -> None:
        nonlocal chosen
        assume(not registry.has_unknown_tags(body))
        data = writer(variant)(body)
        read, end, layout = registry.read_best(registry.message(name), version, data)
        assert end == len(data)
        if layout is variant:
            chosen += 1
            assert read == body
        else:
            # One that comes first takes the very same bytes: nothing tells them apart.
            assert layout in earlier
            assert reader(layout)(data, 0) == (read, len(data))

    law()
    assert chosen > 0


# --- what is wrong, and where


def test_the_reference_says_where_and_why() -> None:
    partition = {"leader_id": 1, "replica_nodes": [1, 2], "isr_nodes": [1]}
    body = full_body("MetadataResponse", 1, {"topics": [{"name": "t", "partitions": [partition]}]})
    data = registry.encode_body("MetadataResponse", 1, body)
    with pytest.raises(Truncated) as caught:
        registry.decode_body("MetadataResponse", 1, data[:-2])
    assert caught.value.path == "topics[0].partitions[0].isr_nodes"
    assert caught.value.offset == len(data) - 8
    assert str(caught.value).startswith(
        f"topics[0].partitions[0].isr_nodes at byte {len(data) - 8}: "
    )


@pytest.mark.parametrize(
    ("name", "version", "data", "path", "offset"),
    [
        # A count of two thousand million topics in nine bytes.
        ("MetadataRequest", 1, "7fffffff 0000000000", "topics", 0),
        # A topic list may not be null before version 1.
        ("MetadataRequest", 0, "ffffffff", "topics", 0),
        ("HeartbeatRequest", 0, "0001 67 00000001 fffe", "member_id", 7),
        ("HeartbeatRequest", 4, "0267 00000001 ffffffffff7f", "member_id", 6),
        # Tags that go down.
        ("HeartbeatRequest", 4, "0267 00000001 0261 00 02 0900 0500", "", 12),
    ],
)
def test_what_the_protocol_does_not_allow_is_named(
    name: str, version: int, data: str, path: str, offset: int
) -> None:
    with pytest.raises(DissectError) as caught:
        registry.decode_body(name, version, bytes.fromhex(data))
    assert path in caught.value.path
    assert caught.value.offset >= offset


def test_a_body_that_does_not_fit_is_refused_with_its_path() -> None:
    layout = registry.layout_of("HeartbeatRequest", 0)
    group = {"group_id": "g"}
    for body, path in (
        (group | {"generation_id": 2**31, "member_id": "m"}, "generation_id"),
        (group | {"generation_id": 1, "member_id": None}, "member_id"),
        (group | {"generation_id": 1}, "member_id"),
    ):
        with pytest.raises(DissectError, match=path):
            registry.write_layout(layout, body)
    with pytest.raises(DissectError, match="group_id"):
        structs.build(layout, {"group_id": 5, "generation_id": 1, "member_id": "m"})


@pytest.mark.parametrize(
    ("api", "version"), [("ControlledShutdown", 0), ("Fetch", 4), ("Fetch", 12)]
)
@pytest.mark.parametrize("client_id", ["app", "", None])
@pytest.mark.parametrize("tags", [[], [{"tag": 5, "data": b"x"}]])
def test_a_header_that_was_read_already_changes_nothing(
    api: str, version: int, client_id: str | None, tags: list[dict[str, object]]
) -> None:
    key = registry.api_named(api).key
    kind = registry.request_header_version(key, version)
    header: dict[str, object] = {"request_api_key": key, "request_api_version": version}
    header["correlation_id"] = 7
    if kind:
        header["client_id"] = client_id
    if kind == 2 and tags:
        header["_tagged_fields"] = tags
    head = registry.encode_body("RequestHeader", kind, header)
    name = f"{api}Request"
    payload = head + registry.encode_body(name, version, registry.example(name, version))
    decoded = registry.decode_request(payload, registry.read_request_header(payload))
    assert decoded == registry.decode_request(payload)
    assert decoded.header == registry.read_layout(decoded.header_layout, payload)[0] == header
    assert decoded.body_at == len(head)


# --- messages by their keys -----------------------------------------------------------------------


GET_DATA = BY_NAME["zk.getdata"]


@pytest.mark.parametrize("name", ["libraries.pcap", "zookeeper.pcap"])
def test_equals_what_the_capture_decodes(name):
    seen = 0
    with open_capture([SAMPLES / name]) as capture:
        for exchange in capture.exchanges():
            key, version = exchange.api_key, exchange.api_version
            for side in ("request", "response"):
                half = getattr(exchange, side)
                if half is None or half.decoded is None or key is None:
                    continue
                assert decode(half.frame.payload, key, version or 0, side) == half.decoded
                seen += 1
            if exchange.request is not None and exchange.request.header is not None:
                payload = exchange.request.frame.payload
                assert read_header(payload, key) == exchange.request.header
                assert api_name(key) == exchange.api
    assert seen > 50


def test_names_by_protocol():
    assert (api_name(1), api_name(GET_DATA), api_name(9999)) == ("Fetch", "zk.getData", "Api 9999")
    assert error_name(-101, GET_DATA) == "NONODE"
    assert error_name(3, 1) == error_name(3, None) == "UNKNOWN_TOPIC_OR_PARTITION"


@pytest.mark.parametrize("key", [None, 1, GET_DATA])
def test_what_is_too_short(key):
    with pytest.raises(DissectError):
        read_header(b"\0", key)
