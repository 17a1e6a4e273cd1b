"""Request logs of brokers as inputs: numbers, merging, sessions, statistics."""

import gzip
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.logs.joining import Joining
from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.exchanges.rows import row_of, to_json
from kafkascope.analyzer.findings import Findings
from kafkascope.analyzer.findings.outcomes import outcomes
from kafkascope.analyzer.model import Exchange
from kafkascope.analyzer.requestlog.printing import printed
from kafkascope.analyzer.statistics.accumulators import STATISTICS
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.feed import Feed
from kafkascope.analyzer.statistics.journeys.drawing import map_lines
from kafkascope.analyzer.topics import TopicNames
from kafkascope.captures.errors import NotACapture
from kafkascope.dissectors.registry import APIS, example, layout_of
from tests.analyzer.requestlog.kafka_json import line as printed_line
from tests.kit.captures import session_of
from tests.kit.samples import SAMPLES
from tests.kit.wire import Wire, request, response, told

PRODUCE, METADATA, FETCH, CREATE_TOPICS, API_VERSIONS, OFFSET_COMMIT = 0, 3, 1, 19, 18, 8


def line(
    second: float,
    key: int,
    *,
    version: int = 7,
    took_ms: float = 2.0,
    client: int = 4000,
    number: int = 0,
    broker: int = 1,
    request: Any = None,
    response: Any = None,
    **more: Any,
) -> str:
    """A line whose request began at a second of a minute and took so long."""
    (layout, asked), (other, given) = (
        (layout_of(name, version), example(name, version) | (body or {}))
        for side, body in (("Request", request), ("Response", response))
        for name in [f"{APIS[key].name}{side}"]
    )
    end_ms = round(second * 1000 + took_ms)
    about: dict[str, Any] = {
        "requestHeader": {"correlationId": number, "clientId": "app"},
        "connection": f"10.0.0.{broker}:9092-10.0.0.9:{client}-0-1",
        "totalTimeMs": took_ms,
        "requestQueueTimeMs": 0.5,
        "localTimeMs": took_ms - 0.5,
        "responseQueueTimeMs": 0.0,
        "sendTimeMs": 0.0,
        "principal": "User:alice",
        "listener": "INTERNAL",
        "clientInformation": {"softwareName": "kgo", "softwareVersion": "1.2"},
    }
    stamp = f"[2026-11-28 18:18:{end_ms // 1000:02},{end_ms % 1000:03}]"
    answer = printed(other, given)
    return printed_line(layout, asked, response=answer, stamp=stamp, **about | more).decode()


def text_line(begin: str, *, connection: str, times: str, rest: str = "") -> str:
    """A line of a text form, at second 1."""
    tail = f" from {connection};{times}{rest}"
    return f"[2026-11-28 18:18:01,000] DEBUG Completed request:{begin}{tail}\n"


PLAINTEXT = ",securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT"
OF_0_11 = "connection 10.0.0.1:9092-10.0.0.9:4000"


def written(path: Path, *lines: str) -> Path:
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def exchanges(*paths: Path) -> tuple[list[Exchange], OpenInput]:
    with open_capture(paths, zone="UTC") as capture:
        return list(capture.exchanges()), capture


def test_numbers_follow_begins_though_lines_follow_ends(tmp_path: Path) -> None:
    log = written(
        tmp_path / "a.log",
        line(2, METADATA, number=2),
        line(1, FETCH, version=12, took_ms=1500, client=4001, number=1),
    )
    found, _ = exchanges(log)
    assert [(each.number, each.api) for each in found] == [(1, "Fetch"), (2, "Metadata")]


def test_a_row_says_what_a_line_says(tmp_path: Path) -> None:
    found, capture = exchanges(written(tmp_path / "a.log", line(1, METADATA, took_ms=4.25)))
    row = to_json(row_of(found[0], capture.context.names))
    assert row["time"] == "2026-11-28T18:18:00.999750Z"
    assert (row["latency_ms"], row["source"], row["listener"]) == (4.25, "request-log", "INTERNAL")
    assert (row["user"], row["software"]) == ("alice", "kgo 1.2")
    assert row["broker_times"]["request_queue_ms"] == 0.5
    assert row["request_bytes"] is row["response_bytes"] is row["records"] is None


def test_files_of_brokers_are_merged_by_time_and_copies_count_once(tmp_path: Path) -> None:
    one = written(tmp_path / "1.log", line(1, METADATA), line(3, METADATA, number=1))
    two = written(tmp_path / "2.log.gz", line(2, METADATA, broker=2))
    copy = written(tmp_path / "copy.log", line(3, METADATA, number=1))
    found, capture = exchanges(one, two, copy)
    assert [each.broker.host[-1] for each in found] == ["1", "2", "1"]
    assert capture.logs.copies == 1


def test_copies_may_have_whole_seconds(tmp_path: Path) -> None:
    lines = [line(at, METADATA, number=number) for number, at in enumerate((1.2, 1.4, 3.7))]
    one = written(tmp_path / "file.log", *lines)
    whole = [re.sub(r",\d+]", "]", each, count=1) for each in lines]
    found, capture = exchanges(one, written(tmp_path / "stdout.log", *whole))
    assert len(found) == 3
    assert capture.logs.copies == 3


def test_lines_of_one_file_are_no_copies(tmp_path: Path) -> None:
    other = written(tmp_path / "a", line(9, METADATA))
    same = written(tmp_path / "b", line(1, METADATA), line(1, METADATA))
    assert len(exchanges(other, same)[0]) == 3


def test_lines_of_other_loggers_and_cut_ones_end_nothing(tmp_path: Path) -> None:
    log = written(
        tmp_path / "server.log",
        "[2026-11-28 18:18:00,000] INFO started (kafka.server.KafkaServer)\n",
        line(1, METADATA)[:200] + "\n",
        line(2, METADATA),
    )
    found, capture = exchanges(log)
    assert len(found) == 1
    assert sum(capture.logs.unparsed.values()) == 1
    assert any("1 line" in each for each in capture.logs.remarks())


def test_a_text_that_is_no_log_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(NotACapture):
        open_capture([written(tmp_path / "a.txt", "hello\nworld\n")])


def test_sessions_give_back_exchanges_of_compressed_logs(tmp_path: Path) -> None:
    log = written(tmp_path / "a.log.gz", line(1, METADATA), line(2, API_VERSIONS, version=3))
    with open_capture([log], zone="UTC") as capture:
        session = session_of(capture)
        names = capture.context.names
        again = [session.exchange(index) for index in range(len(session))]
    first = exchanges(log)[0]
    assert [each.request_body for each in again] == [each.request_body for each in first]
    assert [to_json(row_of(each, names)) for each in again] == [
        to_json(row_of(each, names)) for each in first
    ]


def captured(version: int) -> Exchange:
    """A Metadata exchange as packets have it."""
    wire = Wire()
    wire.client(request("Metadata", version, 1))
    wire.broker(response("Metadata", version, 1))
    (exchange,) = told(wire.events, Context())
    return exchange


def test_a_line_gives_its_exchange_of_the_capture_the_times_of_the_broker(tmp_path: Path) -> None:
    ends: Any = {"connection": "10.0.1.2:9092-10.0.0.4:51422-0-1"}
    log = written(
        tmp_path / "a.log",
        line(1, METADATA, number=1, took_ms=4.0, **ends),
        line(2, METADATA, number=9, **ends),
    )
    with open_capture([log], zone="UTC") as capture:
        joining = Joining([list(capture.exchanges())])
    exchange = captured(7)
    latency_ns = exchange.latency_ns
    assert joining.join(exchange) is exchange
    row = row_of(exchange, TopicNames())
    assert (row.source, row.listener, row.latency_ns) == ("packets", "INTERNAL", latency_ns)
    assert row.broker_local_ns == 3_500_000
    assert row.request_bytes is not None
    assert [each.correlation_id for each in joining.rest()] == [9]


@pytest.mark.parametrize(
    ("zone", "remark"), [("UTC", ""), ("Asia/Kolkata", "5.5 h behind those of the")]
)
def test_a_capture_tells_that_the_zone_of_a_log_is_another(
    tmp_path: Path, zone: str, remark: str
) -> None:
    sample = SAMPLES / "java-codecs.pcap"
    with open_capture([sample]) as capture:
        first = next(each for each in capture.exchanges() if each.api_key == API_VERSIONS)
    stamp = datetime.fromtimestamp(first.time_ns / 10**9, UTC).strftime("[%Y-%m-%d %H:%M:%S,000]")
    ends = {"connection": f"{first.broker}-{first.client}-0-1"}
    number, version = first.correlation_id, first.api_version
    assert number is not None
    assert version is not None
    about = line(1, API_VERSIONS, version=version, number=number, **ends)
    log = written(tmp_path / "a.log", re.sub(r"^\[.*?\]", stamp, about))
    with open_capture([sample, log], zone=zone) as capture:
        assert sum(each.logged is not None for each in capture.exchanges()) == 1
        remarks = list(capture.logs.remarks())
    assert [remark in each for each in remarks] == [True] * bool(remark)


def test_lines_beyond_a_limit_are_not_held(tmp_path: Path) -> None:
    lines = [line(at, METADATA, number=at) for at in range(1, 6)]
    found, _ = exchanges(written(tmp_path / "a.log", *lines))
    unread = iter([[each] for each in found])
    joining = Joining(unread, most=2)
    assert [each.correlation_id for each in next(unread)] == [3]
    assert [each.correlation_id for each in joining.rest()] == [1, 2, 4, 5]


def test_a_log_does_not_move_the_numbers_of_packets(tmp_path: Path) -> None:
    sample = SAMPLES / "java-codecs.pcap"
    log = written(tmp_path / "a.log", line(1, METADATA), line(2, METADATA))
    with open_capture([sample, log], zone="UTC") as both, open_capture([sample]) as alone:
        frames = [row_of(each, both.context.names).frames for each in both.exchanges()]
        expected = [row_of(each, alone.context.names).frames for each in alone.exchanges()]
    assert frames[: len(expected)] == expected
    assert len(frames) == len(expected) + 2


def forwarded_lines() -> tuple[str, str]:
    more: Any = {"isForwarded": True, "connection": "10.0.0.1:9093-10.0.0.2:5000-0-1"}
    controller = line(1.001, CREATE_TOPICS, took_ms=10, number=5, **more)
    return controller, line(1, CREATE_TOPICS, took_ms=20, number=5, remoteTimeMs=12.0)


def test_both_lines_of_a_forwarded_request_name_each_other_and_count_once(tmp_path: Path) -> None:
    found, capture = exchanges(written(tmp_path / "a.log", *forwarded_lines()))
    rows = [row_of(each, capture.context.names) for each in found]
    assert [row.forwarded for row in rows] == [False, True]
    assert [row.counterpart for row in rows] == [rows[1].id, rows[0].id]
    apis: Any = STATISTICS["apis"]()
    feed = Feed((apis,))
    for row, exchange in zip(rows, found, strict=True):
        feed.add(row, exchange)
    feed.settle()
    assert [each["requests"] for each in apis.rows()] == [1]


def fetch(offset: int) -> dict[str, Any]:
    partition = example("FetchRequest", 12)
    asked = {"partition": 0, "fetch_offset": offset}
    template = {"current_leader_epoch": -1, "last_fetched_epoch": -1, "log_start_offset": -1}
    asked |= template | {"partition_max_bytes": 1 << 20}
    return partition | {"topics": [{"topic": "orders", "partitions": [asked]}]}


def fetched(high: int) -> dict[str, Any]:
    given = {"partition_index": 0, "error_code": 0, "high_watermark": high, "records": b"x" * 99}
    given |= {"last_stable_offset": high, "log_start_offset": 0, "aborted_transactions": None}
    tags = {"diverging_epoch": {"epoch": -1, "end_offset": -1}}
    tags |= {"current_leader": {"leader_id": -1, "leader_epoch": -1}}
    tags |= {"snapshot_id": {"end_offset": -1, "epoch": -1}}
    given |= {"preferred_read_replica": -1, **tags}
    return {"responses": [{"topic": "orders", "partitions": [given]}]}


def test_the_next_fetch_tells_which_records_came(tmp_path: Path) -> None:
    log = written(
        tmp_path / "a.log",
        line(1, FETCH, version=12, number=1, request=fetch(10), response=fetched(90)),
        line(2, FETCH, version=12, number=2, request=fetch(25), response=fetched(90)),
    )
    (first, last), _ = exchanges(log)
    assert first.logged is not None
    assert last.logged is not None
    assert first.logged.reads == {("orders", 0): (10, 25)}
    assert last.logged.reads == {("orders", 0): (25, None)}
    assert first.logged.record_sizes == {("orders", 0): 99}


def counted(statistic: Any, *paths: Path) -> Any:
    """The statistic, or the findings, with all lines of some logs."""
    found, capture = exchanges(*paths)
    feed = Feed((statistic,))
    for exchange in found:
        feed.add(row_of(exchange, capture.context.names), exchange)
    feed.settle()
    return statistic


@pytest.mark.parametrize("name", ["apis", "rates", "connections", "clients"])
def test_sizes_that_no_line_has_are_unknown(tmp_path: Path, name: str) -> None:
    statistic = counted(STATISTICS[name](), written(tmp_path / "log", line(1.0, METADATA)))
    (row,) = statistic.rows()
    sizes = [row[each] for each in row if each.endswith("_bytes") or each == "records"]
    assert sizes == [None] * len(sizes) != []


def read_twice() -> tuple[str, str]:
    """Two fetches of 15 records each, which end in the same millisecond."""
    some: Any = {"version": 12, "response": fetched(90)}
    one = line(1.0, FETCH, number=8, took_ms=0.3, request=fetch(10), **some)
    return one, line(1.0, FETCH, number=9, took_ms=0.4, request=fetch(25), **some)


def test_requests_of_a_connection_keep_their_order_within_a_millisecond(tmp_path: Path) -> None:
    found, _ = exchanges(written(tmp_path / "a.log", *read_twice()))
    assert [each.correlation_id for each in found] == [8, 9]
    assert found[1].time_ns == found[0].time_ns + 301_000


def test_a_clock_that_was_set_back_moves_no_later_requests(tmp_path: Path) -> None:
    log = written(tmp_path / "a.log", line(30, METADATA, number=1), line(10, METADATA, number=2))
    assert [each.time_ns // 10**9 % 60 for each in exchanges(log)[0]] == [10, 30]


def test_the_map_has_the_bytes_that_lines_tell_and_no_records(tmp_path: Path) -> None:
    (row,) = counted(STATISTICS["map"](), written(tmp_path / "a.log", *read_twice())).rows()
    found = row["way"], row["topic"], row["records"], row["bytes"]
    assert found == ("reads", "orders", None, 198)


def test_writers_are_unknown_where_lines_name_no_topics(tmp_path: Path) -> None:
    produce = text_line(
        "RequestHeader(apiKey=PRODUCE, apiVersion=5, clientId=web, correlationId=1) -- "
        "{acks=0,timeout=30,numPartitions=1},response:",
        connection=f"{OF_0_11}-0",
        times="totalTime:1.0,sendTime:1.0",
        rest=PLAINTEXT,
    )
    log = written(tmp_path / "a.log", *read_twice(), produce)
    shown = counted(STATISTICS["map"](), log).map_of()
    assert shown.unnamed_requests == 1
    assert "<- writers unknown" in "".join(text for text, _ in map_lines(shown, None))


def test_what_was_fetched_is_unknown_without_responses(tmp_path: Path) -> None:
    text = text_line(
        "{api_key=1,api_version=3,correlation_id=1,client_id=c} -- {replica_id=-1,max_wait_time=5,"
        "min_bytes=1,max_bytes=9,topics=[{topic=t,partitions=[{partition=0,fetch_offset=5,"
        "max_bytes=8}]}]}",
        connection=OF_0_11,
        times="totalTime:2,requestQueueTime:0,localTime:0,remoteTime:2,responseQueueTime:0,"
        "sendTime:0,securityProtocol:PLAINTEXT,principal:User:a",
    )
    (row,) = counted(STATISTICS["map"](), written(tmp_path / "a.log", text)).rows()
    assert (row["way"], row["records"], row["bytes"]) == ("reads", None, None)


def test_connections_that_only_a_log_has_did_not_begin_before_the_capture(tmp_path: Path) -> None:
    log = written(tmp_path / "a.log", line(1, METADATA, number=7))
    found = counted(Findings(), SAMPLES / "java-codecs.pcap", log).reported()
    assert "capture-midstream" not in {each.name for each in found}


def test_the_size_of_a_refused_batch_is_that_of_the_line(tmp_path: Path) -> None:
    part = {"index": 0, "records": b"x" * 99_000}
    sent = {"topic_data": [{"name": "orders", "partition_data": [part]}], "acks": -1}
    told = {"index": 0, "error_code": 10, "base_offset": -1, "log_append_time_ms": -1}
    told |= {"log_start_offset": -1}
    given = {"responses": [{"name": "orders", "partition_responses": [told]}]}
    lines = [line(1, PRODUCE, request=sent, response=given)]
    lines.append(lines[0].replace('"recordsSizeInBytes":99000', '"recordsSizeInBytes":0'))
    texts = []
    for number, each in enumerate(lines):
        reported = counted(Findings(), written(tmp_path / f"{number}", each)).reported()
        texts += [one.text for one in reported if one.name == "message-too-large"]
    with_size, without = texts
    assert with_size.endswith("MESSAGE_TOO_LARGE; most bytes of records in a request: 99 KB")
    assert without.endswith("MESSAGE_TOO_LARGE")


@pytest.mark.parametrize("fraction", [True, False])
def test_a_commit_is_not_ahead_of_a_fetch_within_what_a_time_lacks(
    tmp_path: Path, fraction: bool
) -> None:
    topics = [{"name": "orders", "partitions": [committed(40)]}]
    body = {"group_id": "billing", "member_id": "m", "topics": topics}
    body |= {"generation_id_or_member_epoch": 1, "retention_time_ms": -1, "group_instance_id": None}
    first = line(0.5, FETCH, version=12, number=7, request=fetch(5), response=fetched(90))
    last = line(1.004, FETCH, version=12, number=10, request=fetch(40), response=fetched(90))
    commit = line(1.0, OFFSET_COMMIT, took_ms=0.35, client=4001, number=3, request=body)
    lines = (first, *read_twice(), commit, last)
    if not fraction:
        lines = tuple(re.sub(r",\d+]", "]", each, count=1) for each in lines)
    log = written(tmp_path / "a.log", *lines)
    found = counted(Findings(), log).reported()
    assert "commit-ahead" not in {each.name for each in found}


def committed(offset: int) -> dict[str, Any]:
    given = {"partition_index": 0, "committed_offset": offset, "committed_leader_epoch": -1}
    return given | {"committed_metadata": ""}


def test_an_aborted_transaction_has_no_number_of_records(tmp_path: Path) -> None:
    who = {"transactional_id": "pay", "producer_id": 7, "producer_epoch": 0}
    old = {f"v3_and_below_{name}": value for name, value in who.items()}
    topics = [{"name": "orders", "partitions": [0]}]
    log = written(
        tmp_path / "a.log",
        line(1, 24, version=3, request=old | {"v3_and_below_topics": topics}),
        line(2, 26, version=3, number=1, request=who | {"committed": False}),
    )
    findings = counted(Findings(only=["transaction-aborted"]), log)
    (found,) = findings.reported()
    assert found.text == "1 transaction of pay was aborted"
    (row,) = findings.base.producers.rows()
    assert (row["aborted"], row["batches"], row["records"], row["bytes"]) == (1, None, None, None)


@pytest.mark.parametrize(("size", "told"), [(0, True), (99, False)])
def test_fetches_are_eager_where_lines_tell_that_they_got_nothing(
    tmp_path: Path, size: int, told: bool
) -> None:
    body = fetched(90)
    body["responses"][0]["partitions"][0]["records"] = b"x" * size or None
    lines = (
        line(at / 100, FETCH, version=12, number=at, request=fetch(10), response=body)
        for at in range(100, 500)
    )
    findings = counted(Findings(only=["eager-fetches"]), written(tmp_path / "a.log", *lines))
    assert bool(findings.reported()) is told


def test_no_line_tells_whether_a_client_is_still_connected(tmp_path: Path) -> None:
    log = written(tmp_path / "a.log", line(1, METADATA), line(41, METADATA, client=4001, broker=2))
    other = written(tmp_path / "b.log", line(1, METADATA, client=4002).replace('"app"', '"shop"'))
    found = outcomes(counted(Findings(), log, other))
    reasons = {str(who.client_id): each.reason for who, each in found.items()}
    assert reasons["shop"] == "last request 40 s before the end of the log"


_FETCH = (
    "{api_key=1,api_version=5,correlation_id=3,client_id=slow} -- {replica_id=-1,max_wait_time=500,"
    "min_bytes=1,max_bytes=100,isolation_level=0,topics=[]}"
)
_FIRST = "{api_key=18,api_version=0,correlation_id=1,client_id=c} -- {}"


@pytest.mark.parametrize(
    ("begin", "total", "local", "held", "throttle_ms"),
    [
        (_FETCH, "900,5", "1,5", "812,5", 812),
        (_FETCH, "900,5", "1,5", "8,5", 0),
        (_FIRST, "219,6", "204,5", "204,0", 0),  # of a JVM, without a quota: it is local time
    ],
)
def test_a_line_of_0_11_tells_for_how_long_a_quota_held_its_response(
    tmp_path: Path, begin: str, total: str, local: str, held: str, throttle_ms: int
) -> None:
    times = f"totalTime:{total},requestQueueTime:0,1,localTime:{local},remoteTime:0,0,throttleTime:"
    times += f"{held},responseQueueTime:0,1,sendTime:0,2"
    text = text_line(begin, connection=OF_0_11, times=times, rest=PLAINTEXT)
    (found,), capture = exchanges(written(tmp_path / "a.log", text))
    assert (row_of(found, capture.context.names).throttle_ms or 0) == throttle_ms


def test_a_line_of_a_connection_in_tls_need_not_be_its_first(tmp_path: Path) -> None:
    wire = Wire()
    ends = {"connection": "10.0.1.2:9092-10.0.0.4:51422-0-1", "securityProtocol": "SASL_SSL"}
    log = written(tmp_path / "a.log", *(line(at, METADATA, number=at, **ends) for at in (5, 6)))
    (first, last), capture = exchanges(log)
    findings, names = Findings(only=["no-api-versions"]), capture.context.names
    for each in (first, last):
        each.connection = wire.connection
        findings.add(ExchangeBatch.of(row_of(each, names), each))
    assert findings.reported(names) == []


def test_lines_of_0_8_that_name_no_broker_join_by_the_client(tmp_path: Path) -> None:
    text = text_line(
        "Name: TopicMetadataRequest; Version: 0; CorrelationId: 1; ClientId: app",
        connection="client /10.0.0.4:51422",
        times="totalTime:4,requestQueueTime:0,localTime:3,remoteTime:0,responseQueueTime:0,"
        "sendTime:1",
    )
    with open_capture([written(tmp_path / "a.log", text)], zone="UTC") as capture:
        joining = Joining([list(capture.exchanges())])
    assert row_of(joining.join(captured(0)), TopicNames()).broker_local_ns == 3_000_000
    assert not list(joining.rest())
