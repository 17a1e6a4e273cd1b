"""Messages that are broken on the wire: headers, layouts of other versions, first requests."""

import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.detect import look
from kafkascope.analyzer.exchanges.embedded import may_hide
from kafkascope.analyzer.exchanges.outcome import result
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.transform.secrets import masked_response
from kafkascope.dissectors.misfits import lacks_client_id, misfit_of
from kafkascope.dissectors.registry import APIS, encode_body, example
from tests.analyzer.findings.judging import found, states
from tests.kit.batches import batch
from tests.kit.wire import Wire, beat, framed, heartbeat, request, response, told

PORT = 10092
"""Not one of Kafka's own."""


def without_client_id(api: str, version: int, correlation_id: int) -> bytes:
    whole = request(api, version, correlation_id, None)[4:]
    return framed(whole[:8] + whole[10:])


def result_of(wire: Wire) -> str:
    names = Context().names
    return result(row_of(told(wire.events)[-1], names))


def test_what_cannot_be_decoded_behind_a_gap_is_no_fault_of_a_side() -> None:
    wire = Wire().client(heartbeat(1)).broker(framed(struct.pack(">i", 1) + b"\1"))
    assert "undecodable" in found([wire])
    wire.connection.gap_bytes = (0, 9)
    assert "undecodable" not in found([wire])


@pytest.mark.parametrize(
    ("api", "version"),
    [("ApiVersions", 0), ("Metadata", 1), ("Metadata", 12), ("ListGroups", 3), ("Fetch", 4)],
)
def test_a_client_id_that_is_missing(api: str, version: int) -> None:
    wire = Wire(port=PORT).exchange("ApiVersions", 3, 1)
    finding = found([wire.client(without_client_id(api, version, 2)).close("broker")])
    told = finding["request-header"]
    parts = ("1 request", "app", f"10.0.1.2:{PORT}", f"{api} v{version}", "client_id", "missing")
    assert states(told.text, *parts)
    assert told.severity == "error"
    assert "client_id" in told.advice


@pytest.mark.parametrize(
    ("length", "rest"), [(-2, b""), (300, b"app"), (-32768, b"app")], ids=["-2", "300", "low"]
)
def test_a_client_id_of_an_impossible_length(length: int, rest: bytes) -> None:
    bad = framed(struct.pack(">hhih", 12, 3, 2, length) + rest)
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(bad).close("broker")
    assert states(found([wire])["request-header"].text, "Heartbeat v3", "client_id")


def test_what_is_nothing_like_a_header_names_no_field() -> None:
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(framed(b"\x7f\xff" * 9))
    assert "request-header" not in found([wire.close("broker")])


@pytest.mark.parametrize(("version", "tags"), [(3, "without"), (2, "with")])
def test_tagged_fields_that_a_header_lacks_or_should_not_have(version: int, tags: str) -> None:
    """Flexible versions have them behind the client id (KIP-482), others have none."""
    names = {"client_software_name": "kc", "client_software_version": "1"}
    whole = request("ApiVersions", version, 1, "app", **(names if version > 2 else {}))
    at = 4 + 10 + 3
    sent = whole[4:at] + (whole[at + 1 :] if version > 2 else b"\0" + whole[at:])
    if version == 2:  # its body is empty: another one is needed
        whole = request("Metadata", 8, 1, "app", topics=[{"name": "orders"}])
        sent = whole[4:at] + b"\0" + whole[at:]
    findings = found([Wire(port=PORT).client(framed(sent)).close("broker")])
    texts = [each.text for each in findings.values() if each.severity == "error"]
    assert any(states(text, "header", tags, "tagged fields") for text in texts), texts


@pytest.mark.parametrize(
    "first",
    [
        framed(struct.pack(">hhih", 18, 3, 0, -1) + bytes(4)),  # client_software_name is null
        framed(struct.pack(">hhih3s", 3, 1, 1, 3, b"app") + b"\x7f\xff\xff\xff"),
        framed(struct.pack(">hhih", 18, 3, 0, 0) + b"\0\xff"),
        framed(struct.pack(">hhih3s", 0, 3, 1, 3, b"app") + b"\0\1\xff"),
        without_client_id("Metadata", 1, 0),
        without_client_id("ApiVersions", 0, 7),
    ],
    ids=["null name", "many topics", "open name", "Produce", "no client id", "ApiVersions"],
)
def test_a_malformed_first_request_is_kafka(first: bytes) -> None:
    assert look(first, kafka_port=False) == "kafka"
    assert look(first, kafka_port=True) == "kafka"
    wires = [Wire(port=PORT, number=number).client(first).close("broker") for number in range(3)]
    for wire in wires:
        wire.connection.bytes = [len(first), 0]
    names = found(wires).keys()
    assert {"undecodable", "request-header"} & names
    assert "version-refused" not in names  # it is not the version that a broker minds


@pytest.mark.parametrize(
    "first",
    [
        b"\0\0\0\x25\0\3\0\0user\0postgres\0database\0postgres\0\0",
        b"\0\0\0\x2c" + bytes(10) + b"\0\0\x75\x30" + bytes(8) + b"\0\0\0\x10" + bytes(17),
        b"\0\0\0\x08\x04\xd2\x16\x2f",
        beat(3),
        response("Metadata", 1, 5),
    ],
    ids=["PostgreSQL", "ZooKeeper", "SSLRequest", "Heartbeat", "Metadata"],
)
def test_what_is_no_first_request(first: bytes) -> None:
    assert look(first, kafka_port=False) in ("other", "short")


@pytest.mark.parametrize(
    ("api", "version", "other"),
    [
        ("ApiVersions", 3, 0),
        ("Metadata", 9, 8),
        ("Heartbeat", 0, 1),
        ("Heartbeat", 3, 0),
        ("FindCoordinator", 4, 0),
        ("OffsetFetch", 7, 5),
        ("InitProducerId", 1, 4),
    ],
)
def test_an_answer_in_another_layout(api: str, version: int, other: int) -> None:
    whole = response(api, other, 1)
    wire = Wire().client(request(api, version, 1)).broker(whole).close("client")
    finding = found([wire])["other-layout"]
    parts = ("10.0.1.2:9092", f"{api} v{version}", "app", f"v{other}")
    assert states(finding.text, *parts)
    assert finding.severity == "error"
    words = result_of(wire)
    assert words.startswith("?")
    assert f"v{other}" in words
    assert "ok" not in words.split()


def test_a_request_in_another_layout() -> None:
    old = request("Heartbeat", 0, 1, group_id="g", member_id="m")
    sent = framed(old[4:6] + struct.pack(">h", 3) + old[8:])
    wire = Wire().client(sent).close("broker")
    finding = found([wire])["other-layout"]
    assert states(finding.text, "app", "Heartbeat v3", "10.0.1.2:9092", "v0")
    assert "client" in finding.advice


@pytest.mark.parametrize(("version", "tags"), [(9, True), (8, False)])
def test_a_header_of_the_other_form(version: int, tags: bool) -> None:
    body = encode_body("MetadataResponse", version, example("MetadataResponse", version))
    payload = struct.pack(">i", 1) + (b"" if tags else b"\0") + body
    misfit = misfit_of(payload, 3, version, "response")
    assert version in misfit.versions
    assert misfit.header_tags is not tags


@pytest.mark.parametrize("key", sorted(APIS))
def test_good_messages_are_never_asked_what_else_they_are(key: int) -> None:
    """Their own layout fits, and they have a client id."""
    api = APIS[key]
    for version in (api.versions.low, api.versions.high):
        sent, answer = request(api.name, version, 1), response(api.name, version, 1)
        exchange = told(Wire().client(sent).broker(answer).events)[0]
        assert exchange.undecoded == ()


def test_a_refused_version_is_answered_in_v0() -> None:
    wire = Wire().client(request("ApiVersions", 3, 1))
    wire.broker(response("ApiVersions", 0, 1, error_code=35)).close("client")
    assert "other-layout" not in found([wire])


@pytest.mark.parametrize(("client", "told"), [("broker-12-fetcher-0", False), ("broker", True)])
def test_a_follower_is_known_by_its_name_where_its_request_is_cut(client: str, told: bool) -> None:
    cut = framed(request("Fetch", 12, 1, client)[4:48])
    wire = Wire().client(cut).broker(response("Fetch", 12, 1))
    assert ("no-api-versions" in found([wire])) is told


def test_a_response_that_cannot_be_read_is_not_ok() -> None:
    answer = framed(struct.pack(">i", 1) + b"\0\0\0\0\0\x1b\7")
    wire = Wire().client(heartbeat(1)).broker(framed(struct.pack(">i", 1) + b"\0\0\0"))
    assert "ok" not in result_of(wire).split()
    assert "truncated" not in result_of(wire)
    wire = Wire().client(heartbeat(1)).broker(answer)
    assert "surplus" in result_of(wire)  # what it says is read all the same


@pytest.mark.parametrize("payload", [b"", b"\0\3", struct.pack(">hhi", 999, 0, 1)])
def test_what_has_no_other_form(payload: bytes) -> None:
    assert not lacks_client_id(payload)
    assert misfit_of(payload, 3, 1, "request") is None
    assert misfit_of(payload, 999, 1, "response") is None
    assert misfit_of(payload, 3, 999, "response") is None


def message(magic: int, value: bytes = b"one") -> bytes:
    """An entry of a message set, without compression."""
    body = struct.pack(">bb", magic, 0) + (struct.pack(">q", 1_700_000_000_000) if magic else b"")
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    rest = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(rest)) + rest


RECORDS = {0: message(0), 1: message(1), 2: batch([(None, b"one")])}
"""By magic."""


def fetched(version: int, records: bytes, **asked: Any) -> Wire:
    return Wire().fetch(1, 0, records, version=version, asked=asked).close("client")


def produced(version: int, records: bytes) -> Wire:
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
    return Wire().exchange("Produce", version, 1, acks=1, topic_data=topics).close("client")


@pytest.mark.parametrize(("newest", "old"), [(3, False), (4, True)])
def test_brokers_without_record_batches_leave_no_choice(newest: int, old: bool) -> None:
    """Neither to clients that ask for versions, nor to others."""
    asking, silent = Wire(), fetched(3, RECORDS[1])
    silent.connection.number = 2
    asking.client(request("ApiVersions", 0, 1, "other"))
    keys = [{"api_key": 1, "min_version": 0, "max_version": newest}]
    asking.broker(response("ApiVersions", 0, 1, error_code=0, api_keys=keys))
    assert ("batch-old-format" in found([asking, silent])) is old


def test_replicas_copy_old_formats() -> None:
    assert "batch-old-format" not in found([fetched(3, RECORDS[1], replica_id=2)])


@pytest.mark.parametrize(
    ("version", "magic", "wrong"),
    [
        *((0, magic, magic > 0) for magic in range(3)),
        *((2, magic, magic > 1) for magic in range(3)),
        *((3, magic, magic > 1) for magic in range(3)),
        *((4, magic, False) for magic in range(3)),
        *((11, magic, False) for magic in range(3)),
    ],
)
def test_a_fetch_has_formats_that_its_version_knows(version: int, magic: int, wrong: bool) -> None:
    findings = found([fetched(version, RECORDS[magic])])
    assert ("batch-format" in findings) is wrong
    old = "batch-old-format" in findings
    assert old is (not wrong and (version < 4 or magic < 2))
    if wrong:
        assert findings["batch-format"].severity == "error"
        parts = (f"Fetch v{version}", "app", f"magic {magic}", "magic 0")
        assert states(findings["batch-format"].text, *parts)


@pytest.mark.parametrize(
    ("version", "magic", "severity"),
    [
        *((0, magic, "warning" if magic == 2 else "") for magic in range(3)),
        *((2, magic, "warning" if magic == 2 else "") for magic in range(3)),
        *((3, magic, "" if magic == 2 else "error") for magic in range(3)),
        *((9, magic, "" if magic == 2 else "error") for magic in range(3)),
    ],
)
def test_a_produce_has_formats_that_its_version_takes(
    version: int, magic: int, severity: str
) -> None:
    findings = found([produced(version, RECORDS[magic])])
    assert ("batch-format" in findings) is bool(severity)
    if severity:
        assert findings["batch-format"].severity == severity
        assert states(findings["batch-format"].text, f"Produce v{version}", "app", f"magic {magic}")


def test_the_format_is_that_of_each_batch() -> None:
    findings = found([fetched(2, RECORDS[1] + RECORDS[2])])
    assert states(findings["batch-format"].text, "magic 2")
    assert "batch-format" not in found([fetched(4, RECORDS[1] + RECORDS[2])])


def rdkafka(wire: Wire, software: str) -> Wire:
    names = {"client_software_name": software, "client_software_version": "2.12.0"}
    return wire.exchange("ApiVersions", 3, 0, **names)


def empty(records: bytes | None, error_code: int = 0, software: str = "") -> Wire:
    wire = rdkafka(Wire(), software) if software else Wire()
    return wire.fetch(1, 0, records, error_code=error_code).close("client")


@pytest.mark.parametrize(
    ("software", "error_code", "severity"),
    [
        ("librdkafka", 0, "error"),
        ("confluent-kafka-go-rdkafka", 6, "error"),
        ("apache-kafka-java", 0, "note"),
        ("apache-kafka-java", 6, ""),
        ("", 0, "warning"),
        ("", 76, ""),
    ],
)
def test_null_in_place_of_records(software: str, error_code: int, severity: str) -> None:
    findings = found([empty(None, error_code, software)])
    assert ("records-null" in findings) is bool(severity)
    if severity:
        finding = findings["records-null"]
        assert finding.severity == severity
        parts = ("1 Fetch v11 response", "10.0.1.2:9092", "app", "null", "1 partition")
        assert states(finding.text, *parts)
    assert "records-null" not in found([empty(b"", error_code, software)])


ASSIGNED = encode_body(
    "ConsumerProtocolAssignment",
    0,
    {"assigned_partitions": [{"topic": "orders", "partitions": [0]}], "user_data": None},
)
WANTED = encode_body("ConsumerProtocolSubscription", 0, {"topics": ["orders"], "user_data": None})
GOOD = b"\0\0" + ASSIGNED


def group(
    assigned: bytes = GOOD,
    wanted: bytes = b"\0\0" + WANTED,
    *,
    kind: str = "consumer",
    leads: bool = True,
    joins: bool = True,
    version: int = 3,
) -> Wire:
    """A leader `app` that joins and assigns; or a member that is assigned something."""
    wire, me = Wire(), "app-1"
    asked: dict[str, Any] = {"group_id": "g", "member_id": me}
    if joins:
        protocols = [{"name": "range", "metadata": wanted}]
        members = [{"member_id": me, "metadata": wanted}] if leads else []
        told = {"member_id": me, "leader": me if leads else "other", "members": members}
        wire.exchange("JoinGroup", 4, 1, told, **asked, protocol_type=kind, protocols=protocols)
    mine = [{"member_id": me, "assignment": assigned}] if leads else []
    more = {"protocol_type": kind, "protocol_name": "range"} if version >= 5 else {}
    asked |= {"assignments": mine, **more}
    wire.exchange("SyncGroup", version, 2, {"assignment": assigned, **more}, **asked)
    return wire.close("client")


@pytest.mark.parametrize("version", [0, 3, 5])
@pytest.mark.parametrize("joins", [True, False])
def test_an_assignment_without_its_version(version: int, joins: bool) -> None:
    finding = found([group(ASSIGNED, version=version, joins=joins)])["group-unreadable"]
    assert states(finding.text, "assignment", "group g", "version is missing", "leader app", "1")
    assert finding.severity == "error"
    assert ("group", "g") in finding.entities


@pytest.mark.parametrize(
    "bad", [b"\0", b"\xff\xff" + ASSIGNED, GOOD[:-6], b"\0\0\xff\xff\xff\xff" + bytes(4), b"{}"]
)
def test_an_assignment_that_is_damaged(bad: bytes) -> None:
    text = found([group(bad)])["group-unreadable"].text
    assert states(text, "assignment", "g", "leader app", "app")


def test_a_subscription_whose_leader_assigns_all_the_same_is_no_finding() -> None:
    """kafka-go declares version 1 without owned_partitions, and does not read them."""
    wanted = b"\0\1" + WANTED
    joins: dict[str, Any] = {"group_id": "g", "protocol_type": "consumer", "member_id": ""}
    joins |= {"protocols": [{"name": "range", "metadata": wanted}]}
    lost = Wire(number=1).client(request("JoinGroup", 2, 1, **joins)).close("broker")
    assert "group-unreadable" not in found([lost, group(GOOD, wanted=wanted)])


@pytest.mark.parametrize(("factor", "shown"), [(3, " (replication_factor 3)"), (-1, "")])
def test_a_value_that_a_broker_refuses_is_named_with_its_reason(factor: int, shown: str) -> None:
    topic = {"name": "t", "num_partitions": 2, "replication_factor": factor}
    wire = Wire().client(request("CreateTopics", 7, 1, topics=[topic]))
    refusal = {"name": "t", "error_code": 38, "error_message": "Only 1 broker(s)."}
    finding = found([wire.broker(response("CreateTopics", 7, 1, topics=[refusal]))])["error-broken"]
    assert finding.text.endswith(f"returned INVALID_REPLICATION_FACTOR{shown}: Only 1 broker(s)")


def described() -> Wire:
    """What an administrator sees of a group."""
    member = {"member_id": "app-1", "client_id": "app", "member_assignment": ASSIGNED}
    answer = {"groups": [{"group_id": "g", "protocol_type": "consumer", "members": [member]}]}
    return Wire().exchange("DescribeGroups", 0, 1, answer, client="admin", groups=["g"])


MISSING = "version is missing"


@pytest.mark.parametrize(
    ("wire", "parts"),
    [
        (group(ASSIGNED, leads=False), ("assignment", "group g", MISSING, "1 member", "app")),
        (group(b"", wanted=WANTED), ("subscription", "app", "group g", MISSING, "leader")),
        (described(), ("assignment", "group g", MISSING, "1 member", "app")),
    ],
    ids=["the leader was not captured", "it breaks the leader", "an administrator"],
)
def test_what_cannot_be_read_of_a_group(wire: Wire, parts: tuple[str, ...]) -> None:
    assert states(found([wire])["group-unreadable"].text, *parts)


@pytest.mark.parametrize("assigned", [GOOD, b"", b"\0\7" + ASSIGNED, GOOD + b"\1"])
def test_what_members_can_read_is_no_finding(assigned: bytes) -> None:
    """A newer version is read as the newest that is known, and what is left over is ignored."""
    assert "group-unreadable" not in found([group(assigned)])


@pytest.mark.parametrize("kind", ["sr", "my-protocol"])
def test_other_protocols_have_other_bytes(kind: str) -> None:
    for joins in (True, False):
        version = 3 if joins else 5
        wire = group(b'{"version":1}', b"{}", kind=kind, joins=joins, version=version)
        assert "group-unreadable" not in found([wire])


SENT = b"hello" * 40


def write(correlation_id: int) -> bytes:
    records = batch([(None, SENT)])
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
    return request("Produce", 7, correlation_id, acks=1, topic_data=topics)


def misframed(*sent: bytes, answers: int = 1) -> Wire:
    """A client that begins well."""
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(*sent)
    for number in range(2, 2 + answers):
        wire.broker(response("Produce", 7, number))
    return wire.close("broker")


@pytest.mark.parametrize("missing", [20, 57, 130])
def test_a_request_that_the_next_ones_fill(missing: int) -> None:
    whole = write(2)
    wire = misframed(whole[:-missing] + write(3) + write(4))
    findings = found([wire])
    begins = len(heartbeat(1)) + len(whole) - missing
    finding = findings["framing-lost"]
    parts = ("app", "10.0.1.2:9092", "1 connection", f"byte {begins}", "Produce v7", len(whole) - 4)
    assert states(finding.text, *parts)
    assert states(finding.text, "broker closed")
    assert finding.severity == "error"
    assert "batch-damaged" not in findings


def test_a_request_that_others_fill_to_its_last_byte() -> None:
    """All sizes fit, and two requests are gone."""
    filling = heartbeat(3) + heartbeat(4)
    wire = misframed(write(2)[: -len(filling)] + filling + heartbeat(5))
    findings = found([wire])
    assert states(findings["framing-lost"].text, "app", "another request begins", "Produce v7")
    assert "batch-damaged" not in findings


def test_a_request_that_others_fill_in_part() -> None:
    """The broker waits for the rest, and so does the client."""
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(write(2)[:100], heartbeat(3))
    assert states(found([wire.close("client")])["framing-lost"].text, "app", "Produce v7")


@pytest.mark.parametrize(
    ("sent", "stands"),
    [
        (b"hello world, hello" + heartbeat(2), "68 65 6c 6c"),
        (b"\xff\xff\xff\xff" + heartbeat(2), "-1"),
        (b"GET / HTTP/1.1\r\n\r\n", "HTTP"),
        (framed(b"hello world") + heartbeat(2), "api_key"),
    ],
    ids=["text", "negative", "HTTP", "frame"],
)
def test_bytes_between_requests(sent: bytes, stands: str) -> None:
    text = found([misframed(sent, answers=0)])["framing-lost"].text
    assert states(text, "app", f"byte {len(heartbeat(1))}", stands)


@pytest.mark.parametrize("change", [-30, 40])
def test_a_size_field_that_is_wrong(change: int) -> None:
    whole = write(2)
    size = struct.pack(">i", len(whole) - 4 + change)
    assert "framing-lost" in found([misframed(size + whole[4:] + write(3) + write(4))])


def test_the_records_of_a_request_without_its_size_are_no_request() -> None:
    """Their size and base offset look like Produce v0, up to the end of the stream."""
    wire = misframed(b"\xff\xff\xff\xf0" + write(2)[4:], answers=0)
    assert "undecodable" not in found([wire])
    assert [each.api for each in told(wire.events) if each.api] == ["Heartbeat"]


@pytest.mark.parametrize(
    ("size", "how"),
    [
        (lambda size: struct.pack(">i", size + 4), "counts itself"),
        (lambda size: struct.pack("<i", size), "little-endian"),
        (lambda size: struct.pack(">i", size + 1), ""),
    ],
)
@pytest.mark.parametrize("sent", [request("ApiVersions", 2, 1), request("Metadata", 9, 1)])
@pytest.mark.parametrize("side", ["client", "broker"])
def test_a_size_field_above_the_whole_request(
    size: Callable[[int], bytes], how: str, sent: bytes, side: str
) -> None:
    """The broker waits for bytes that never come, or refuses such a size."""
    wire = Wire().client(size(len(sent) - 4) + sent[4:])
    finding = found([wire.close(side)])["framing-lost"]
    assert states(finding.text, "app", "10.0.1.2:9092", "byte 0", f"with {len(sent) - 4}")
    assert how in finding.text
    assert "framing-lost" not in found([Wire().client(sent[:-1]).close(side)])


def test_a_broker_whose_stream_loses_its_framing() -> None:
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(heartbeat(2), heartbeat(3))
    wire.broker(b"\x7f\xff\xff\xff" + bytes(40)).close("client", "rst")
    findings = found([wire])
    text = findings["framing-lost"].text
    assert states(text, "10.0.1.2:9092", "responses to app", f"byte {len(beat(1))}", "7f ff ff ff")
    assert "answer-to-nothing" not in findings
    lost = [each for each in told(wire.events) if each.state == "lost"]
    assert len(lost) == 2
    assert not any("gap" in each.reason for each in lost)
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(heartbeat(2)).gap("broker", 500)
    assert "framing-lost" not in found([wire.broker(b"\x7f\xff\xff\xff" + bytes(40))])


@pytest.mark.parametrize("surplus", [bytes(3), bytes(4), b"\0\0\0\3abc"])
def test_a_response_that_is_too_short(surplus: bytes) -> None:
    """Bytes behind a response: the next size is too small for a correlation id."""
    wire = Wire().client(heartbeat(1)).broker(beat(1) + surplus).client(heartbeat(2))
    findings = found([wire.broker(beat(2)).close("client", "rst")])
    text = findings["framing-lost"].text
    assert states(text, "10.0.1.2:9092", "responses to app", f"byte {len(beat(1))}", "00 00 00")
    assert "answer-to-nothing" not in findings


def test_http_amid_the_responses_is_a_balancers() -> None:
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(heartbeat(2))
    wire.broker(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n").close("broker")
    finding = found([wire])["framing-lost"]
    assert states(finding.text, "10.0.1.2:9092", "app", f"byte {len(beat(1))}", "HTTP")
    assert "load balancer" in finding.advice


def test_nothing_is_claimed_behind_a_gap_or_in_the_middle() -> None:
    wire = Wire().client(heartbeat(1)).broker(beat(1)).gap("client", 500)
    assert "framing-lost" not in found([wire.client(b"hello world, hello").client(heartbeat(3))])
    wire = Wire(handshake=False).client(heartbeat(1)).broker(beat(1))
    assert "framing-lost" not in found([wire.client(b"hello world, hello").client(heartbeat(3))])


def test_a_damaged_batch_alone_keeps_the_framing() -> None:
    bad = bytearray(write(2))
    bad[-20] ^= 0xFF
    findings = found([misframed(bytes(bad), heartbeat(3))])
    assert "batch-damaged" in findings
    assert "framing-lost" not in findings


ODD = ["a\x1b[31mred", "a\0b", "x\ny", "\x85", "a\udcffb", "x" * 5000, "::error::x"]


@pytest.mark.parametrize("client_id", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize("port", [9092, PORT])
@pytest.mark.parametrize("first", [0, 1, 2], ids=["ApiVersions", "Metadata", "Produce"])
def test_a_client_id_may_be_any_bytes(client_id: str, port: int, first: int) -> None:
    calls: list[tuple[str, int, dict[str, Any]]] = [
        ("ApiVersions", 3, {}),
        ("Metadata", 1, {}),
        ("Produce", 7, {"acks": 1, "topic_data": [{"name": "orders", "partition_data": []}]}),
        ("Heartbeat", 3, {"group_id": "g", "member_id": "m"}),
    ]
    wire = Wire(port=port)
    for number, (api, version, fields) in enumerate(calls[first:], 1):
        wire.exchange(api, version, number, client=client_id, **fields)
    exchanges = told(wire.events)
    assert [each.api for each in exchanges] == [api for api, _, _ in calls[first:]]
    assert {each.client_id for each in exchanges} == {client_id}


@pytest.mark.parametrize("client_id", ["a\x1b[31mred", "a\0b"])
def test_such_a_client_is_found_again_behind_a_gap(client_id: str) -> None:
    wire = Wire().client(heartbeat(1, client_id)).broker(beat(1)).gap("client", 700)
    wire.client(b"rest of a body" + heartbeat(3, client_id) + heartbeat(4, client_id))
    wire.broker(beat(3), beat(4))
    assert [each.correlation_id for each in told(wire.events)] == [1, 3, 4]


def test_a_large_first_request_of_such_a_client() -> None:
    records = batch([(None, bytes(70_000))])
    topics = [{"name": "orders", "partition_data": [{"index": 0, "records": records}]}]
    sent = request("Produce", 7, 1, "a\nb", acks=1, topic_data=topics)
    wire = Wire().client(sent[:1400]).client(sent[1400:]).broker(response("Produce", 7, 1))
    assert [each.api for each in told(wire.events)] == ["Produce"]


@pytest.mark.parametrize(
    ("api", "version", "hides"),
    [
        ("Envelope", 0, True),
        ("SaslAuthenticate", 2, True),
        ("CreateDelegationToken", 3, True),
        ("Heartbeat", 3, False),
    ],
)
def test_bytes_behind_a_message_with_secrets_are_masked(
    api: str, version: int, hides: bool
) -> None:
    sent, answer = request(api, version, 1), response(api, version, 1)
    longer = framed(answer[4:] + b"hunter2")
    exchange = told(Wire().client(sent).broker(longer).events)[0]
    assert [each.reason for each in exchange.undecoded] == ["surplus"]
    assert exchange.response is not None
    assert may_hide(exchange, exchange.response) is hides
    key = exchange.api_key or 0
    assert (b"hunter2" in masked_response(longer, key, version)) is not hides
    assert len(masked_response(longer, key, version)) == len(longer)


@pytest.mark.parametrize(
    ("sent", "hides"),
    [
        (without_client_id("SaslAuthenticate", 0, 2), True),
        (without_client_id("ListGroups", 3, 2), False),
        (b"hello hunter2 hello", True),
    ],
    ids=["login", "ListGroups", "framing"],
)
def test_what_follows_a_broken_header_is_masked(sent: bytes, hides: bool) -> None:
    wire = Wire().client(heartbeat(1)).broker(beat(1)).client(sent).close("broker")
    exchange = told(wire.events)[-1]
    assert exchange.request is not None
    assert may_hide(exchange, exchange.request) is hides


def test_an_exchange_with_two_damaged_partitions_is_one_exchange() -> None:
    """One has a wrong checksum, and another one cannot be read: that makes two notes."""
    whole = batch([(None, b"value")])
    wrong = whole[:-1] + bytes([whole[-1] ^ 1])
    parts = [{"index": 0, "records": wrong}, {"index": 1, "records": b"\xff" * 70}]
    topics = [{"name": "orders", "partition_data": parts}]
    wire = Wire().exchange("Produce", 7, 1, acks=1, topic_data=topics).close("client")
    (exchange,) = told(wire.events, Context())
    row = row_of(exchange, Context().names)
    assert len([note for note in row.notes if note.severity == "error"]) == 2
    assert found([wire])["batch-damaged"].count == 1
