"""Formats inside bytes fields: what is written reads back, garbage is a remark, secrets stay
inside."""

import base64
import ipaddress
import json
import struct
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors import registry
from kafkascope.dissectors.embedded import Around, Embedded, decode, embedded_in, groups
from kafkascope.dissectors.embedded.groups import CONNECT_ASSIGNMENT, CONNECT_SUBSCRIPTION
from kafkascope.dissectors.embedded.masking import masked
from kafkascope.dissectors.embedded.table import FORMATS
from kafkascope.dissectors.embedded.values import json_or_text, schema_id_of
from kafkascope.dissectors.layout import resolve
from kafkascope.dissectors.limits import LIMITS
from kafkascope.dissectors.records.compression import compress
from kafkascope.dissectors.schema import Message
from tests.strategies import bodies


def packed(message: Message, version: int, body: dict[str, object]) -> bytes:
    return registry.write_layout(resolve(message, version), body)


def versioned(message: Message, version: int, body: dict[str, object]) -> bytes:
    return struct.pack(">h", version) + packed(message, version, body)


def subscription(user_data: bytes | None = None) -> bytes:
    body = registry.example("ConsumerProtocolSubscription", 1)
    body |= {"topics": ["orders"], "user_data": user_data}
    return versioned(registry.message("ConsumerProtocolSubscription"), 1, body)


def metadata(raw: bytes, **fields: str) -> Any:
    return decode("JoinGroupRequest", "metadata", raw, Around(fields))


def assignment(raw: bytes, **fields: str) -> Any:
    return decode("SyncGroupResponse", "assignment", raw, Around(fields))


def user_data_of(assignor: str, raw: bytes) -> Any:
    """A subscription of a consumer with this assignor."""
    return metadata(subscription(raw), protocol_type="consumer", name=assignor)


def streams_user_data(raw: bytes) -> Any:
    body = registry.example("ConsumerProtocolAssignment", 0) | {"user_data": raw}
    value = versioned(registry.message("ConsumerProtocolAssignment"), 0, body)
    return assignment(value, protocol_type="consumer", protocol_name="stream").body["user_data"]


def calls(api: int, version: int) -> tuple[bytes, bytes]:
    """The default request of an API as an envelope has it, and the response."""
    name = registry.APIS[api].name
    header = {"request_api_key": api, "request_api_version": version, "correlation_id": 3}
    asked = registry.encode_body("RequestHeader", 2, {**header, "client_id": "admin"})
    asked += registry.encode_body(
        f"{name}Request", version, registry.example(f"{name}Request", version)
    )
    body = registry.example(f"{name}Response", version)
    return asked, registry.encode_response(api, version, 3, body)


def test_a_subscription_and_the_user_data_of_the_sticky_assignors() -> None:
    owned = [{"topic": "orders", "partitions": [0, 2]}]
    sticky = packed(groups.STICKY_USER_DATA, 1, {"previous_assignment": owned, "generation": 7})
    found = user_data_of("sticky", sticky)
    assert found.kind == "ConsumerProtocolSubscription"
    assert found.body["user_data"] == {"previous_assignment": owned, "generation": 7}

    first_form = packed(groups.STICKY_USER_DATA, 0, {"previous_assignment": owned})
    found = user_data_of("sticky", first_form)
    assert found.body["user_data"] == {"previous_assignment": owned}

    found = user_data_of(
        "cooperative-sticky", packed(groups.COOPERATIVE_USER_DATA, 0, {"generation": 9})
    )
    assert found.body["user_data"] == {"generation": 9}


def test_user_data_of_somebody_else_stays_bytes() -> None:
    found = user_data_of("my-own", b"\1\2\3")
    assert found.body["user_data"] == b"\1\2\3"
    assert found.note == "user data of my-own that cannot be read"
    found = user_data_of("my-own", b'{"zone": 1}')
    assert (found.body["user_data"], found.note) == ({"zone": 1}, "")


def test_members_of_other_protocols_write_json() -> None:
    around = {"protocol_type": "sr", "protocol_name": "v0"}
    body = {"error": 0, "master": "sr-1"}
    assert assignment(json.dumps(body).encode(), **around) == Embedded("sr", body)
    assert assignment(b"\0\1\2", **around) is None


@given(st.data())
@settings(max_examples=60)
def test_an_assignment_tells_its_protocol_where_the_message_does_not(data: st.DataObject) -> None:
    # SyncGroup names the protocol from version 5 on (KIP-559).
    version = data.draw(st.integers(0, 2))
    body = {
        "error": data.draw(st.integers(0, 1)),
        "leader": "connect-1-8d6c1a54-5d1c-4b6e-9d0b-1c3f5a1d2e3f",
        "leader_url": "http://10.0.0.7:8083/",
        "config_offset": data.draw(st.integers(-1, 1 << 40)),
        "assigned": [{"connector": "sink", "tasks": data.draw(st.lists(st.integers(-1, 9)))}],
    }
    if version:
        body |= {"revoked": None, "delay": 0}
    raw = versioned(CONNECT_ASSIGNMENT, version, body)
    found = assignment(raw)
    assert found == Embedded("ConnectAssignment", {"version": version, **body})
    declared = registry.message("ConsumerProtocolAssignment")
    number = data.draw(st.integers(0, 3))
    body = data.draw(bodies(resolve(declared, number)).filter(lambda each: not each["user_data"]))
    found = assignment(versioned(declared, number, body))
    assert found == Embedded("ConsumerProtocolAssignment", {"version": number, **body})


def test_an_allocation_that_does_not_fit_leaves_the_rest_readable() -> None:
    body = {"url": "http://w1", "config_offset": 4, "allocation": b"\0"}
    raw = versioned(CONNECT_SUBSCRIPTION, 1, body)
    found = metadata(raw, protocol_type="connect")
    assert found.body["url"] == "http://w1"
    assert found.note.startswith("allocation: ")


def test_what_a_streams_member_says_of_itself() -> None:
    info = registry.example("SubscriptionInfoData", 11)
    info |= {"version": 11, "user_end_point": b"h1:8080"}
    info["client_tags"] = [{"key": b"zone", "value": b"eu"}]
    raw = registry.encode_body("SubscriptionInfoData", 11, info)
    shown = user_data_of("stream", raw).body["user_data"]
    assert shown["user_end_point"] == "h1:8080"
    assert shown["client_tags"] == [{"key": "zone", "value": "eu"}]


def test_a_newer_version_is_read_as_the_newest_known() -> None:
    body = registry.example("ConsumerProtocolSubscription", 3) | {"topics": ["orders"]}
    data = packed(registry.message("ConsumerProtocolSubscription"), 3, body)
    newer = struct.pack(">h", 9) + data + b"more"
    found = metadata(newer)
    assert (found.body["version"], found.body["topics"]) == (9, ["orders"])
    assert found.note == "version 9, read as 3, 4 bytes left over"


def test_the_layout_of_the_first_version_with_the_number_of_a_later_one() -> None:
    """kafka-go writes version 1 without owned_partitions."""
    body = registry.example("ConsumerProtocolSubscription", 0) | {"topics": ["orders"]}
    data = packed(registry.message("ConsumerProtocolSubscription"), 0, body)
    found = metadata(b"\0\1" + data)
    assert (found.body["version"], found.body["topics"]) == (1, ["orders"])
    assert found.note == "version 1, in the layout of version 0"


@pytest.mark.parametrize("version", [0, 1, 2])
@given(st.data())
@settings(max_examples=30)
def test_connect(version: int, data: st.DataObject) -> None:
    given_ = data.draw(bodies(resolve(CONNECT_ASSIGNMENT, version)))
    raw = versioned(CONNECT_ASSIGNMENT, version, given_)
    found = assignment(raw, protocol_type="connect")
    assert found.body == {"version": version, **given_}
    body: dict[str, object] = {"url": "http://w1", "config_offset": 4}
    if version:
        body["allocation"] = raw
    raw = versioned(CONNECT_SUBSCRIPTION, version, body)
    found = metadata(raw, protocol_type="connect")
    assert found.body["url"] == "http://w1"
    if version:
        assert found.body["allocation"] == {"version": version, **given_}


def streams_assignment(version: int) -> bytes:
    utf = lambda text: struct.pack(">H", len(text)) + text.encode()  # noqa: E731
    task = struct.pack(">ii", 0, 1) + (struct.pack(">i", 0) if version >= 10 else b"")
    out = struct.pack(">i", version)
    if version >= 3:
        out += struct.pack(">i", version)
    out += struct.pack(">i", 1) + task
    out += struct.pack(">i", 1) + task + struct.pack(">i", 1) + utf("orders")
    out += struct.pack(">i", 1)
    topic = utf("orders")
    if version >= 5:
        out_hosts = struct.pack(">ii", 1, 4) + utf("orders")
        topic = struct.pack(">i", 4)
    else:
        out_hosts = b""
    host = struct.pack(">i", 1) + utf("h1") + struct.pack(">ii", 8080, 1)
    host += topic + struct.pack(">i", 3)
    if version >= 2:
        out += out_hosts + host
    if version >= 6:
        out += host
    if version >= 4:
        out += struct.pack(">i", 0)
    if version >= 7:
        out += struct.pack(">q", 99)
    return out


@pytest.mark.parametrize("version", range(1, 12))
def test_streams_assignments_of_every_version(version: int) -> None:
    data = streams_user_data(streams_assignment(version))
    assert data["active_tasks"] == [{"subtopology": 0, "partition": 1}]
    standby = {"topic": "orders", "partition": 1}
    assert data["standby_tasks"][0]["partitions"] == [standby]
    if version >= 2:
        (host,) = data["partitions_by_host"]
        assert host["partitions"] == [{"topic": "orders", "partition": 3}]
    assert data.get("next_rebalance_ms") == (99 if version >= 7 else None)


def token_of(mechanism: str, side: str, token: bytes) -> Any:
    return decode(f"SaslAuthenticate{side}", "auth_bytes", token, Around(mechanism=mechanism))


SECRETS = ["hunter2", "cHJvb2Y=", "c2FsdA==", "dmVyaWZpZXI=", "ya29.token"]


@pytest.mark.parametrize(
    ("mechanism", "side", "token", "shown"),
    [
        ("PLAIN", "Request", b"\0alice\0hunter2", {"username": "alice"}),
        ("", "Request", b"\0alice\0hunter2", {"username": "alice"}),
        ("SCRAM-SHA-256", "Request", b"n,,n=alice,r=abc", {"username": "alice", "nonce": "abc"}),
        ("SCRAM-SHA-512", "Response", b"r=abc,s=c2FsdA==,i=4096", {"iterations": 4096}),
        ("", "Request", b"c=biws,r=abc,p=cHJvb2Y=", {"proof": "***"}),
        ("SCRAM-SHA-256", "Response", b"v=dmVyaWZpZXI=", {"verifier": "***"}),
        ("SCRAM-SHA-256", "Response", b"e=unknown-user", {"error": "unknown-user"}),
        ("OAUTHBEARER", "Request", b"n,,\1auth=Bearer ya29.token\1x=y\1\1", {"auth": "Bearer ***"}),
        ("OAUTHBEARER", "Request",
         b"n,,\1auth=Bearer ya29.token\1host=b-1\1logicalCluster=lkc-1\1traceId=hunter2\1\1",
         {"host": "b-1", "logicalCluster": "lkc-1", "traceId": "***"}),
        ("GSSAPI", "Request", b"\x60\x82\1\2", {"kind": "initial context token", "bytes": 4}),
        ("FOO", "Request", b"hunter2", {"bytes": 7}),
        ("", "Request", b"n,,\1auth=Bearer ya29.token\1\1", {"auth": "Bearer ***"}),
        ("OAUTHBEARER", "Request", b"n,,\1auth=ya29.token\1\1", {"auth": "***"}),
        ("OAUTHBEARER", "Request", b"n,,\1AUTH=bearer ya29.token\1\1", {"auth": "bearer ***"}),
        ("OAUTHBEARER", "Request", b"n,,\1x=Bearer ya29.token\1\1", {}),
        ("OAUTHBEARER", "Request", b"ya29.token", {"bytes": 10}),
        ("OAUTHBEARER", "Response", b'{"status":"invalid_token"}', {}),
        ("SCRAM-SHA-256", "Request", b"\0alice\0hunter2", {"bytes": 14}),
        ("SCRAM-SHA-256", "Request", b"p=tls-unique,a=bob,n=a=2Cb,r=x", {"username": "a,b"}),
        ("PLAIN", "Request", b"hunter2", {"bytes": 7}),
        ("AWS_MSK_IAM", "Request",
         b'{"host":"b-1","x-amz-credential":"hunter2/x/y","x-amz-signature":"ya29.token"}',
         {"host": "b-1", "x-amz-credential": "***/x/y", "x-amz-signature": "***"}),
    ],
)  # fmt: skip
def test_sasl_tokens_without_their_secrets(
    mechanism: str, side: str, token: bytes, shown: dict[str, object]
) -> None:
    found = token_of(mechanism, side, token)
    assert shown.items() <= found.body.items()
    assert not [secret for secret in SECRETS if secret in repr(found)]


def test_the_claims_of_a_token_without_its_signature() -> None:
    payload = base64.urlsafe_b64encode(b'{"sub":"alice","exp":1700000000,"x":"hunter2"}').rstrip(
        b"="
    )
    token = b"n,,\1auth=Bearer eyJh." + payload + b".c2ln\1\1"
    found = token_of("OAUTHBEARER", "Request", token)
    assert found.body == {"auth": "Bearer ***", "claims": {"sub": "alice", "exp": 1700000000}}


def test_secrets_inside_an_envelope_are_masked() -> None:
    header = {"request_api_key": 51, "request_api_version": 0, "correlation_id": 3}
    raw = registry.encode_body("RequestHeader", 2, {**header, "client_id": None})
    upsertion = {"name": "alice", "mechanism": 1, "iterations": 4096}
    upsertion |= {"salt": b"pepper", "salted_password": b"hunter2"}
    body = {"deletions": [], "upsertions": [upsertion]}
    raw += registry.encode_body("AlterUserScramCredentialsRequest", 0, body)
    found = decode("EnvelopeRequest", "request_data", raw, Around())
    assert found.kind == "AlterUserScramCredentialsRequest v0"
    assert "hunter2" not in repr(found)
    envelope = registry.example("EnvelopeRequest", 0) | {"request_data": raw}
    shown = masked(registry.layout_of("EnvelopeRequest", 0), envelope)
    assert b"hunter2" not in shown["request_data"]


def test_a_request_inside_an_envelope_and_its_answer() -> None:
    asked, answer = calls(19, 7)
    found = decode("EnvelopeRequest", "request_data", asked, Around())
    assert found.kind == "CreateTopicsRequest v7"
    assert found.body["header"]["client_id"] == "admin"
    found = decode("EnvelopeResponse", "response_data", answer, Around(request=(19, 7)))
    assert found.body["body"] == registry.example("CreateTopicsResponse", 7)


def test_principals_and_addresses() -> None:
    body = {"type": "User", "name": "alice", "token_authenticated": False}
    raw = versioned(registry.message("DefaultPrincipalData"), 0, body)
    found = decode("EnvelopeRequest", "request_principal", raw, Around())
    assert found.body == body
    for text in ("10.0.0.7", "2001:db8::7"):
        raw = ipaddress.ip_address(text).packed
        found = decode("EnvelopeRequest", "client_host_address", raw, Around())
        assert found.body == text


@pytest.mark.parametrize("codec", range(5))
def test_pushed_metrics(codec: int) -> None:
    metrics = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")
    data = metrics.MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.name = "org.apache.kafka.producer.connection.creation.total"
    around = Around({"compression_type": codec})
    raw = compress(codec, data.SerializeToString())
    found = decode("PushTelemetryRequest", "metrics", raw, around)
    assert metric.name in repr(found.body)


@pytest.mark.parametrize("place", sorted(FORMATS), ids="-".join)
@given(st.binary(min_size=1, max_size=60), st.sampled_from(["consumer", "connect", ""]))
@settings(max_examples=40)
def test_garbage_is_a_remark(place: tuple[str, str], value: bytes, protocol: str) -> None:
    fields = {"protocol_type": protocol, "name": "stream", "protocol_name": "sticky"}
    for mechanism in ("", "PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "GSSAPI"):
        decode(*place, value, Around(fields, mechanism=mechanism, request=(19, 7)))


def test_the_walk_finds_each_field_with_its_path() -> None:
    body = registry.example("JoinGroupRequest", 9) | {"protocol_type": "consumer"}
    body["protocols"] = [{"name": name, "metadata": subscription()} for name in ("range", "sticky")]
    layout = registry.layout_of("JoinGroupRequest", 9)
    assert [path for path, _ in embedded_in(layout, body)] == [
        "protocols[0].metadata",
        "protocols[1].metadata",
    ]


@pytest.mark.parametrize(
    ("data", "value", "schema_id"),
    [
        (b"", None, None),
        (b'{"a": 1}', {"a": 1}, None),
        (b"{not json", "{not json", None),
        ("é€".encode(), "é€", None),
        (b"\xff\xfe", None, None),
        (b"a\0b", None, None),
        (b'\0\0\0\0\x2a{"a": 1}', {"a": 1}, 42),
        (b"\0\0\0\0\x2a\x02\x08", None, 42),
        (struct.pack(">q", 1), None, None),
        (b"\0\0\0\0\1" * 20_000, None, 1),
    ],
)
def test_json_and_text_are_recognized_behind_framing(
    data: bytes, value: object, schema_id: int | None
) -> None:
    assert (json_or_text(data), schema_id_of(data)) == (value, schema_id)


def test_metrics_that_expand_to_too_much_are_a_remark() -> None:
    raw = compress(1, bytes(LIMITS.metrics_bytes + 1))
    found = decode("PushTelemetryRequest", "metrics", raw, Around({"compression_type": 1}))
    assert (found.kind, found.body) == ("undecoded", {"bytes": len(raw)})
    assert found.note


def test_metrics_without_the_package_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto", None)
    found = decode("PushTelemetryRequest", "metrics", b"\x0a\0", Around({"compression_type": 0}))
    assert found.body == {"bytes": 2}
    assert "kafkascope[telemetry]" in found.note


def test_json_that_is_nested_too_deep_is_text() -> None:
    deep = b"[" * 500 + b"]" * 500
    assert json_or_text(deep) == deep.decode()


@pytest.mark.parametrize("version", range(1, 12))
def test_a_streams_assignment_that_is_cut_or_too_long_stays_bytes(version: int) -> None:
    whole = streams_assignment(version)
    assert isinstance(streams_user_data(whole), dict)
    for raw in (*(whole[:end] for end in range(1, len(whole))), whole + b"\0"):
        assert streams_user_data(raw) == raw


def test_newer_streams_versions_tell_their_number_only() -> None:
    newer = struct.pack(">i", 12) + b"whatever comes then"
    assert streams_user_data(newer) == {"version": 12}
    assert user_data_of("stream", newer).body["user_data"] == {"version": 12}


def test_a_task_of_a_named_topology() -> None:
    name = "größe".encode("utf-16-be")
    raw = struct.pack(">iiiii", 10, 10, 1, 0, 1) + struct.pack(">i", len(name) // 2) + name
    raw += struct.pack(">iiiiiq", 0, 0, 0, 0, 0, 5)
    task = {"subtopology": 0, "partition": 1, "named_topology": "größe"}
    assert streams_user_data(raw)["active_tasks"] == [task]


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky", "stream"])
def test_user_data_that_does_not_fit_its_assignor_is_a_remark(assignor: str) -> None:
    for raw in (b"\xff\xff", b"\0\0\0\0\0\0\0\x01\xff", b"\0\0\0\1\xff\0"):
        found = user_data_of(assignor, raw)
        assert found.body["user_data"] == raw
        assert assignor in found.note


def test_a_negative_version_is_a_remark() -> None:
    for raw, reason in ((b"\xff\xff", "no version -1"), (b"\0", "version is missing")):
        assert reason in metadata(raw, protocol_type="consumer").note


def test_bytes_behind_a_nested_message_are_told() -> None:
    asked, answer = calls(19, 7)
    found = decode("EnvelopeRequest", "request_data", asked + b"\0\0", Around())
    assert found.note == "2 bytes left over"
    found = decode("EnvelopeResponse", "response_data", answer + b"\0", Around(request=(19, 7)))
    assert found.note == "1 bytes left over"
    found = decode("EnvelopeResponse", "response_data", answer, Around())
    assert found.note == "the request inside is not known"
    found = decode("EnvelopeRequest", "request_principal", b"\0", Around())
    assert found.note


@pytest.mark.parametrize(
    ("mechanism", "side", "token", "body"),
    [
        ("", "Request", b"\x60\x01", {"kind": "initial context token", "bytes": 2}),
        ("GSSAPI", "Response", b"\5\4", {"kind": "token", "bytes": 2}),
        ("", "Response", b"\0\1\2", {"bytes": 3}),
        ("OAUTHBEARER", "Request", b"\1", {"kind": "the error is acknowledged"}),
        ("OAUTHBEARER", "Request", b"n,a=al=2Cice,\1auth=Bearer x.!!!!.y\1\1",
         {"authzid": "al,ice", "auth": "Bearer ***"}),
        ("OAUTHBEARER", "Request", b"n,,\1auth=Bearer x.eA.y\1\1", {"auth": "Bearer ***"}),
        ("OAUTHBEARER", "Request", b"n,,\1auth=Bearer x.WzFd.y\1\1", {"auth": "Bearer ***"}),
        ("OAUTHBEARER", "Request", b"n,,\1auth=Bearer x.eyJhIjoxfQ.y\1\1",
         {"auth": "Bearer ***"}),
        ("OAUTHBEARER", "Response", b"eyJzdGF0dXMiOjF9", {"error": '{"status":1}'}),
        ("OAUTHBEARER", "Response", b"\xff", {"bytes": 1}),
        ("AWS_MSK_IAM", "Request", b"[1]", {"bytes": 3}),
        ("AWS_MSK_IAM", "Request", b"{", {"bytes": 1}),
        ("AWS_MSK_IAM", "Response", b'{"request-id":"x"}', {"request-id": "***"}),
    ],
)  # fmt: skip
def test_odd_tokens(mechanism: str, side: str, token: bytes, body: dict[str, object]) -> None:
    assert token_of(mechanism, side, token).body == body
