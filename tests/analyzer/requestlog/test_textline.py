"""Text forms: what is ambiguous because nothing is quoted, and what no sample has."""

from contextlib import suppress

import pytest

from kafkascope.analyzer.requestlog.fields import NotUnderstood
from kafkascope.analyzer.requestlog.model import NO_RESPONSES, NOT_LOGGED, Completed
from kafkascope.analyzer.requestlog.textline import parse_text

TAIL = (
    " from connection 10.0.0.1:9092-10.0.0.2:57810-3;totalTime:48.498,requestQueueTime:1.733,"
    "localTime:33.279,remoteTime:11.961,throttleTime:0,responseQueueTime:0.14,sendTime:1.383,"
    "securityProtocol:SASL_SSL,principal:{principal},listener:CLIENTS{more} (kafka.request.logger)"
)
COMMIT = (
    "{{group_id=g,generation_id=1,member_id=m,group_instance_id=null,topics=[{{name=t,"
    "partitions=[{{partition_index=0,committed_offset=21,committed_leader_epoch=0,"
    "committed_metadata={metadata}}}]}}]}}"
)


def parsed(
    api: str,
    version: int,
    request: str,
    response: str = "",
    *,
    client: str = "c",
    principal: str = "User:alice",
    more: str = "",
) -> Completed:
    header = (
        f"RequestHeader(apiKey={api}, apiVersion={version}, clientId={client}, correlationId=7)"
    )
    body = f"{header} -- {request},response:{response}"
    text = "Completed request:" + body + TAIL.format(principal=principal, more=more)
    return parse_text(text.encode(), 0, "DEBUG")


@pytest.mark.parametrize(
    "client",
    ["", "a, b", "x, correlationId=3", "}) -- {", "a,response:b", " from connection x;", "é\t(1)"],
)
def test_client_ids_may_look_like_anything(client: str) -> None:
    found = parsed("HEARTBEAT", 0, "{group_id=g,generation_id=1,member_id=m}", client=client)
    assert found.client_id == client
    assert found.correlation_id == 7
    assert found.request.body == {"group_id": "g", "generation_id": 1, "member_id": "m"}


@pytest.mark.parametrize(
    "principal",
    [
        "User:CN=app-client,OU=Orders,O=Example",
        "User:a b",
        "User:x,listener:y",
        "Role:totalTime:1,sendTime",
    ],
)
def test_principals_may_hold_commas_and_blanks(principal: str) -> None:
    found = parsed("LIST_GROUPS", 0, "{}", principal=principal)
    assert (found.principal, found.listener) == (principal, "CLIENTS")


@pytest.mark.parametrize(
    "metadata",
    ["", "plain", '{"a":1}', "a,b", "a=b", "x}y", ",x=1", "[1,2]", "},{", "a,response:b"],
)
def test_texts_may_hold_what_structs_are_made_of(metadata: str) -> None:
    found = parsed(
        "OFFSET_COMMIT", 7, COMMIT.format(metadata=metadata), "{throttle_time_ms=0,topics=[]}"
    )
    if metadata == "},{":  # this says what a broker may say as well: not guessed
        assert found.request.gap
        return
    body = found.request.body
    (partition,) = body["topics"][0]["partitions"]
    assert partition["committed_metadata"] == metadata
    assert found.response.body == {"throttle_time_ms": 0, "topics": []}


def test_names_of_fields_do_not_matter_but_their_order() -> None:
    found = parsed(
        "FETCH",
        3,
        "{replica_id=-1,max_wait_time=500,min_bytes=1,max_bytes=9,topics=[{topic=t,partitions=["
        "{partition=0,fetch_offset=5,max_bytes=8}]}]}",
    )
    partitions = [{"partition": 0, "fetch_offset": 5, "partition_max_bytes": 8}]
    limits = {"replica_id": -1, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 9}
    assert found.request.body == limits | {"topics": [{"topic": "t", "partitions": partitions}]}
    assert found.response.gap == NOT_LOGGED


@pytest.mark.parametrize(
    ("records", "size"),
    [
        ("FileRecords(size=2653, file=/a (b)/t-0/0.log, start=0, end=2653)", 2653),
        ("FileRecords(file= /a/t-0/0.log, start=100, end=350)", 250),
        ("FileRecords(file= /a/t-0/0.log, start=0, end=2147483647)", None),
        ("MemoryRecords(size=0, buffer=java.nio.HeapByteBuffer[pos=0 lim=0 cap=0])", 0),
        ("org.apache.kafka.common.record.FileRecords@24f66d97", None),
        ("[(record=LegacyRecordBatch(offset=0, Record(magic=1, key=2 bytes)))]", None),
        ("[]", 0),
        ("null", None),
    ],
)
def test_records_have_sizes_in_some_releases(records: str, size: int | None) -> None:
    response = (
        "{throttle_time_ms=0,responses=[{topic=t,partition_responses=[{partition_header={"
        "partition=4,error_code=0,high_watermark=7,last_stable_offset=-1,"
        f"aborted_transactions=null}},record_set={records}}}]}}]}}"
    )
    request = "{replica_id=-1,max_wait_time=1,min_bytes=1,max_bytes=9,isolation_level=0,topics=[]}"
    found = parsed("FETCH", 4, request, response)
    assert found.response.gap == ""
    (partition,) = found.response.body["responses"][0]["partitions"]
    assert (partition["high_watermark"], partition["records"]) == (7, None)
    assert found.response.unknown == ("responses.partitions.records",)
    assert found.record_sizes == ({} if size is None else {("t", 4): size})


def test_produce_has_no_topics_at_debug() -> None:
    found = parsed("PRODUCE", 5, "{acks=-1,timeout=30000,numPartitions=2}")
    body = {"transactional_id": None, "acks": -1, "timeout_ms": 30000, "topic_data": []}
    assert found.request.body == body
    assert found.request.unknown == ("transactional_id", "topic_data")


def test_a_response_names_the_partitions_of_a_produce_at_debug() -> None:
    answered = "base_offset=4,log_append_time=-1,log_start_offset=0"
    answered = f"{{partition=2,error_code=0,{answered}}},{{partition=0,error_code=10,{answered}}}"
    found = parsed(
        "PRODUCE",
        5,
        "{acks=-1,timeout=30000,numPartitions=2}",
        f"{{responses=[{{topic=a,partition_responses=[{answered}]}}],throttle_time_ms=0}}",
    )
    assert found.request.body is not None
    partitions = [{"index": 2, "records": None}, {"index": 0, "records": None}]
    assert found.request.body["topic_data"] == [{"name": "a", "partition_data": partitions}]
    assert found.request.unknown == ("transactional_id", "topic_data.partition_data.records")


def test_produce_has_sizes_at_trace() -> None:
    found = parsed("PRODUCE", 2, "{acks=1,timeout=3,partitionSizes=[a-b-0=9,c-1=8,a-b-2=7]}")
    assert found.record_sizes == {("a-b", 0): 9, ("c", 1): 8, ("a-b", 2): 7}
    assert [topic["name"] for topic in found.request.body["topic_data"]] == ["a-b", "c"]


def test_produce_of_0_10_0_is_a_struct() -> None:
    buffers = (
        "java.nio.HeapByteBuffer[pos=0 lim=259 cap=556]",
        "java.nio.Bits[pos=9 lim=12 cap=12]",
    )
    data = ",".join(f"{{partition={n},record_set={each}}}" for n, each in enumerate(buffers))
    text = (
        "Completed request:{api_key=0,api_version=2,correlation_id=5,client_id=java} -- "
        f"{{acks=-1,timeout=30000,topic_data=[{{topic=t,data=[{data}]}}]}}"
        " from connection 10.0.0.1:9092-10.0.0.2:40206;totalTime:24,requestQueueTime:0,"
        "localTime:23,remoteTime:0,responseQueueTime:0,sendTime:1,securityProtocol:PLAINTEXT,"
        "principal:User:ANONYMOUS (kafka.request.logger)"
    )
    found = parse_text(text.encode(), 0, "TRACE")
    partitions = [{"index": 0, "records": None}, {"index": 1, "records": None}]
    topics = [{"name": "t", "partition_data": partitions}]
    assert found.request.body == {"acks": -1, "timeout_ms": 30000, "topic_data": topics}
    assert found.record_sizes == {("t", 0): 259, ("t", 1): 3}


def test_a_line_that_ends_within_its_last_fields_is_cut() -> None:
    tail = TAIL.format(
        principal="User:alice",
        more=",clientInformation:ClientInformation(softwareName=kgo, softwareVersion=1.2.3)",
    ).removesuffix(" (kafka.request.logger)")
    head = "Completed request:RequestHeader(apiKey=LIST_GROUPS, apiVersion=0, clientId=c, "
    line = f"{head}correlationId=7) -- {{}},response:{tail}"
    assert parse_text(line.encode(), 0, "DEBUG").software_name == "kgo"
    for end in range(len(head), len(line)):
        with suppress(NotUnderstood):
            found = parse_text(line[:end].encode(), 0, "DEBUG")
            # The name of a listener has no end of its own.
            assert line[:end].endswith(f",listener:{found.listener}")
            assert (found.principal, found.software_name) == ("User:alice", "")


def test_decimal_commas_of_0_11() -> None:
    text = (
        "Completed request:{api_key=12,api_version=0,correlation_id=3,client_id=c} -- {group_id=g,"
        "generation_id=1,member_id=m} from connection 10.0.0.1:9092-10.0.0.2:57810;"
        "totalTime:8,352000,requestQueueTime:0,310000,localTime:1.23E7,remoteTime:0,"
        "throttleTime:1,responseQueueTime:2,5,sendTime:0,000001,securityProtocol:PLAINTEXT,"
        "principal:User:ANONYMOUS,listener:PLAINTEXT (kafka.request.logger)"
    )
    found = parse_text(text.encode(), 0, "TRACE")
    assert found.total_ns == 8_352_000
    assert found.times == (310_000, 12_300_000_000_000, 0, 2_500_000, 1, 1_000_000)
    assert found.response.gap == NO_RESPONSES
    assert found.connection == (("10.0.0.1", 9092), ("10.0.0.2", 57810), "")


def test_software_and_conversions_behind_the_listener() -> None:
    more = (
        ",clientInformation:ClientInformation(softwareName=kgo, softwareVersion=v1.22.2),"
        "temporaryMemoryBytes:84,messageConversionsTime:6.504"
    )
    found = parsed("HEARTBEAT", 0, "{group_id=g,generation_id=1,member_id=m}", more=more)
    assert (found.software_name, found.software_version) == ("kgo", "v1.22.2")
    assert (found.temporary_bytes, found.conversions_ns) == (84, 6_504_000)


@pytest.mark.parametrize(
    ("connection", "ends"),
    [
        ("0:0:0:0:0:0:0:1:9092-0:0:0:0:0:0:0:1:60340-0-0", (("::1", 9092), ("::1", 60340), "0-0")),
        ("[fe80:0:0:0:0:0:0:2]:9092-10.0.0.2:1-3", (("fe80::2", 9092), ("10.0.0.2", 1), "3")),
        ("broker-1.x:9092-10.0.0.2:1", (("broker-1.x", 9092), ("10.0.0.2", 1), "")),
    ],
)
def test_connections(connection: str, ends: tuple[object, ...]) -> None:
    text = "Completed request:{api_key=16,api_version=0,correlation_id=1,client_id=c} -- {}"
    tail = f" from connection {connection};totalTime:1,sendTime:0"
    tail += ",securityProtocol:PLAINTEXT,principal:User:ANONYMOUS"
    assert parse_text((text + tail).encode(), 0, "").connection == ends


def test_an_unknown_version_and_an_unknown_api_have_no_body() -> None:
    found = parsed("FETCH", 99, "{a=1}", "{b=2}")
    assert found.request.gap == found.response.gap == "unknown version 99 of Fetch"
    found = parsed("NEW_API", 0, "{a=1}", "{b=2}")
    assert (found.api_key, found.api_name) == (-1, "NEW_API")
    assert found.request.gap == "unknown API NEW_API"


_STRUCT = "{api_key=1,api_version=0,correlation_id=9,client_id=} -- {}"
_ENDS = " from connection 1.2.3.4:1-1.2.3.4:2;totalTime:"


@pytest.mark.parametrize(
    "text",
    [
        "",
        f"x{_ENDS}1,sendTime:1",
        _STRUCT.replace("9", "99999999999") + f"{_ENDS}1,sendTime:1",
        f"{_STRUCT} from connection nowhere;totalTime:1,sendTime:1",
        f"{_STRUCT}{_ENDS}1E999,sendTime:1",
        f"{_STRUCT}{_ENDS}x",
    ],
)
def test_what_is_no_line(text: str) -> None:
    with pytest.raises(NotUnderstood):
        parse_text(f"Completed request:{text}".encode(), 0, "")


@pytest.mark.parametrize("group", ["g,a=1", "g}", "a,b", "x,member_id=y"])
def test_the_name_of_the_next_field_ends_a_text(group: str) -> None:
    found = parsed("HEARTBEAT", 0, f"{{group_id={group},generation_id=1,member_id=m}}")
    assert found.request.body == {"group_id": group, "generation_id": 1, "member_id": "m"}


@pytest.mark.parametrize(
    ("api", "version", "request_text", "gap"),
    [
        ("PRODUCE", 3, "{acks=1}", "not a Produce request"),
        ("PRODUCE", 3, "{acks=1,timeout=1,partitionSizes=[a-x=1]}", "not a size of a partition"),
        ("PRODUCE", 3, "{acks=99999,timeout=1,numPartitions=1}", "does not fit"),
        ("HEARTBEAT", 0, "{group_id=g,generation_id=x,member_id=m}", "a value of another kind"),
        ("HEARTBEAT", 0, "{group_id=g,generation_id=2147483648,member_id=m}", "does not fit"),
        ("HEARTBEAT", 0, "{group_id=g", "a text has no end"),
        ("METADATA", 9, "{topics=[],allow_auto_topic_creation=maybe", "a value of another kind"),
        ("LIST_GROUPS", 3, "{_tagged_fields={1={", "tagged fields have no end"),
    ],
)
def test_a_body_that_is_not_understood_has_a_reason(
    api: str, version: int, request_text: str, gap: str
) -> None:
    found = parsed(api, version, request_text)
    assert found.request.body is None
    assert gap in found.request.gap


@pytest.mark.parametrize(("text", "value"), [("1.5E7", 1.5e7), ("-Infinity", float("-inf"))])
def test_doubles(text: str, value: float) -> None:
    quotas = (
        "{entries=[{entity=[{entity_type=user,entity_name=alice}],ops=[{key=producer_byte_rate,"
        f"value={text},remove=false}}]}}],validate_only=false}}"
    )
    body = parsed("ALTER_CLIENT_QUOTAS", 0, quotas).request.body
    assert body["entries"][0]["ops"][0]["value"] == value


def test_structs_inside_that_the_wire_does_not_show() -> None:
    new = "{count=5,assignment=[[Ljava.lang.Object;@1b2c,[Ljava.lang.Object;@3d]}"
    text = f"{{topic_partitions=[{{topic=t,new_partitions={new}}}],timeout=1,validate_only=true}}"
    found = parsed("CREATE_PARTITIONS", 0, text)
    assert found.request.body == {
        "topics": [{"name": "t", "count": 5, "assignments": [{"broker_ids": []}] * 2}],
        "timeout_ms": 1,
        "validate_only": True,
    }
    assert found.request.unknown == ("topics.assignments.broker_ids",)
    token = (
        "{error_code=0,owner={principal_type=User,name=al}ice},issue_timestamp=1,"
        "expiry_timestamp=2,max_timestamp=3,token_id=x,"
        "hmac=java.nio.HeapByteBuffer[pos=0 lim=64 cap=64],throttle_time_ms=0}"
    )
    body = parsed(
        "CREATE_DELEGATION_TOKEN", 0, "{renewers=[],max_life_time=-1}", token
    ).response.body
    assert (body["principal_type"], body["principal_name"]) == ("User", "al}ice")
    assert (body["token_id"], body["hmac"]) == ("x", b"")
    found = parsed(
        "FIND_COORDINATOR",
        0,
        "{group_id=g}",
        "{error_code=0,coordinator={node_id=1,host=127.0.0.1,port=9092}}",
    )
    assert found.response.body == {"error_code": 0, "node_id": 1, "host": "127.0.0.1", "port": 9092}
