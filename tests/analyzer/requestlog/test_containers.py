"""Lines of the request logger in what containers, layouts and operators' patterns make of them."""

import json
from datetime import UTC
from typing import Any

import pytest

from kafkascope.analyzer.requestlog import model
from kafkascope.analyzer.requestlog.containers import LineReader
from kafkascope.analyzer.requestlog.limits import LIMITS
from kafkascope.analyzer.requestlog.parsing import parse
from kafkascope.analyzer.requestlog.times import LogClock
from kafkascope.captures.formats.text import is_log
from kafkascope.dissectors.registry import layout_of
from tests.analyzer.requestlog.kafka_json import line as printed_line
from tests.analyzer.requestlog.samples import lines_of

HEARTBEAT = layout_of("HeartbeatRequest", 3)
BODY = {"group_id": "g", "generation_id": 4, "member_id": "m", "group_instance_id": None}
PLAIN = printed_line(HEARTBEAT, BODY)
STAMP, LEVEL, MESSAGE = (
    PLAIN[:25].decode(),
    "DEBUG",
    PLAIN[32 : PLAIN.index(b" (kafka.request.logger)")].decode(),
)
ARRIVED = "2026-11-28T12:48:52.137215518Z"
LOCAL = STAMP[1:-1]


INSTANT = {"epochSecond": 1795889932, "nanoOfSecond": 136000000}
UTC_STAMP = "2026-11-28T18:18:52.136000000Z"


def doc(**fields: Any) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def docker(text: str, stream: str = "stdout") -> bytes:
    return doc(log=text, stream=stream, time=ARRIVED)


def only(data: bytes) -> model.LogLine:
    (line,) = lines_of(data)
    assert isinstance(line, model.LogLine), line
    request = parse(line, LogClock())
    assert isinstance(request, model.Completed), request
    assert request.request.body == BODY
    return line


def ecs(**more: Any) -> bytes:
    event = {"@timestamp": "2026-11-28T18:18:52.136Z", "log.level": "DEBUG", "message": MESSAGE}
    return json.dumps(event | more).encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "time", "level", "arrived"),
    [
        (PLAIN, LOCAL, "DEBUG", ""),
        (PLAIN.replace(b"\n", b"\r\n"), LOCAL, "DEBUG", ""),
        (PLAIN[:-1], LOCAL, "DEBUG", ""),
        (docker(PLAIN.decode()), LOCAL, "DEBUG", ARRIVED),
        (docker(PLAIN[:90].decode()) + docker(PLAIN[90:].decode()), LOCAL, "DEBUG", ARRIVED),
        (f"{ARRIVED} stdout F ".encode() + PLAIN, LOCAL, "DEBUG", ARRIVED),
        (
            f"{ARRIVED} stdout P ".encode()
            + PLAIN[:90]
            + f"\n{ARRIVED} stderr F other\n{ARRIVED} stdout F ".encode()
            + PLAIN[90:],
            LOCAL,
            "DEBUG",
            ARRIVED,
        ),
        (f"{ARRIVED} ".encode() + PLAIN, LOCAL, "DEBUG", ARRIVED),
        (b"[pod/kafka-0/kafka] " + PLAIN, LOCAL, "DEBUG", ""),
        (f"[pod/kafka-0/kafka] {ARRIVED} ".encode() + PLAIN, LOCAL, "DEBUG", ARRIVED),
        (b"kafka-0-1  | " + PLAIN, LOCAL, "DEBUG", ""),
        (ecs(), "2026-11-28T18:18:52.136Z", "DEBUG", ""),
        (docker(ecs().decode()), "2026-11-28T18:18:52.136Z", "DEBUG", ARRIVED),
        (f"{ARRIVED} stdout F ".encode() + ecs(), "2026-11-28T18:18:52.136Z", "DEBUG", ARRIVED),
        (doc(instant=INSTANT, level="DEBUG", message=MESSAGE), UTC_STAMP, "DEBUG", ""),
        (doc(timeMillis=1795889932136, level="INFO", message=MESSAGE), UTC_STAMP, "INFO", ""),
        (doc(ts=ARRIVED, line=PLAIN.decode()), LOCAL, "DEBUG", ARRIVED),
        (
            f"2026-11-28 18:18:52 DEBUG {MESSAGE} (kafka.request.logger) [data-plane-kafka-network-"
            "thread-1-ListenerName(PLAINTEXT)-PLAINTEXT-0] {}\n".encode(),
            "2026-11-28 18:18:52",
            "DEBUG",
            "",
        ),
        (f"2026-11-28 18:18:52.136 debug msg={json.dumps(MESSAGE)[1:-1]} logger=x\n".encode(),
         "2026-11-28 18:18:52.136", "DEBUG", ""),
        (f"DEBUG  [2026-11-28T18:18:52,136+0530] kafka.request.logger - {MESSAGE}\n".encode(),
         "2026-11-28T18:18:52,136+0530", "DEBUG", ""),
    ],
)  # fmt: skip
def test_what_surrounds_a_line_is_undone(data: bytes, time: str, level: str, arrived: str) -> None:
    line = only(data)
    assert (line.time, line.level, line.arrived) == (time, level, arrived)
    assert (line.offset, line.number, line.size) == (0, 1, len(data))


LATER = "2026-11-28T18:18:52.139Z"
BERLIN = "[2026-11-28 19:18:52,136] DEBUG " + MESSAGE + " (kafka.request.logger)"


@pytest.mark.parametrize(
    "data",
    [
        # shippers, whose stamps say how far the broker's zone is from UTC
        doc(date=1795889932.139, log=BERLIN),
        doc(date=LATER, message=BERLIN),
        doc(date=1795889932.1, time=LATER, stream="stdout", _p="F", log=BERLIN, kubernetes={}),
        doc(stream="stdout", log=BERLIN + "\n", time=LATER, docker={"id": "1"}),
        doc(__REALTIME_TIMESTAMP="1795889932139512", PRIORITY="6", MESSAGE=BERLIN),
        doc(timestamp=1795889932139, message=BERLIN, ingestionTime=1795889933000),
        doc(TimeGenerated=LATER, LogMessage=BERLIN),
        doc(_index="i", _source={"@timestamp": LATER, "message": BERLIN}),
        doc(timestamp="x", content={"service": "kafka", "timestamp": LATER, "message": BERLIN}),
        f'{LATER} {{app="kafka"}} {BERLIN}\n'.encode(),
        f"{LATER}\tkube.kafka\t".encode() + doc(stream="stdout", log=BERLIN),
        f'"{LATER}","'.encode() + BERLIN.replace('"', '""').encode() + b'"\n',
        # layouts
        doc(
            version="1.1",
            short_message=MESSAGE[:250],
            full_message=MESSAGE,
            timestamp=1795889932.136,
        ),
        doc(
            timestampSeconds=1795889932, timestampNanos=136000000, severity="DEBUG", message=MESSAGE
        ),
        doc(timestamp=LATER[:-2] + "6Z", jsonPayload={"level": "DEBUG", "message": MESSAGE}),
        doc(timestamp=LATER[:-2] + "6Z", log={"level": "DEBUG"}, message=MESSAGE),
        b"[pod/kafka-0/kafka] " + ecs(),
        f"{LATER} ".encode() + ecs(),
        b"kafka-0-1  | " + ecs(),
        b"[0] kube: [[1795889932.139, {}], " + ecs()[:-1] + b"]\n",
        doc(log=ecs().decode()[:-1], log_processed=json.loads(ecs()), stream="stdout"),
        f"ts=2026-11-28T18:18:52.136Z level=debug msg={json.dumps(MESSAGE)}\n".encode(),
        # patterns
        f"\x1b[30m2026-11-28T18:18:52,136+00\x1b[m \x1b[36mDEBUG\x1b[m {MESSAGE}\n".encode(),
        f"2026-11-28 06:18:52.136 PM DEBUG {MESSAGE}\n".encode(),
        f"2026-11-28 18:18:52.136 UTC debug {MESSAGE}\n".encode(),
        f"28/11/2026 18:18:52.136 DEBUG {MESSAGE}\n".encode(),
        f"11/28/2026 18:18:52,136 DEBUG {MESSAGE}\n".encode(),
        f"28.11.2026 18:18:52.136 DEBUG {MESSAGE}\n".encode(),
        f"28/Nov/2026:18:18:52.136 +0000 DEBUG {MESSAGE}\n".encode(),
        f"28 Nov 2026 18:18:52.136 DEBUG {MESSAGE}\n".encode(),
        f"Nov 28, 2026 18:18:52.136 DEBUG {MESSAGE}\n".encode(),
        b"\xef\xbb\xbf" + PLAIN,
        "kafka-0 › ".encode() + PLAIN,
    ],
)
def test_times_of_shippers_and_patterns_are_those_of_the_line(data: bytes) -> None:
    assert is_log(data)
    line = only(data)
    request = parse(line, LogClock(None if line.arrived else UTC))
    assert isinstance(request, model.Completed)
    assert request.written_ns == 1795889932_136_000_000
    assert line.level in {"DEBUG", ""}


@pytest.mark.parametrize("date", ["11/12/2026 18:18:52", "18:18:52,136", "DEBUG 1234567890"])
def test_dates_that_may_be_two_days_are_none(date: str) -> None:
    (line,) = lines_of(f"{date} DEBUG {MESSAGE}\n".encode())
    assert parse(line, LogClock()) == model.Unparsed(0, 1, model.NO_TIME)


def test_a_stamp_of_ctime() -> None:
    line = only(f"Sat Nov 28 18:18:52 UTC 2026 DEBUG {MESSAGE}\n".encode())
    assert line.time == "2026-11-28T18:18:52UTC"
    assert LogClock().at(line.time) == 1795889932_000_000_000


def test_a_document_with_several_messages_is_counted() -> None:
    events = doc(logEvents=[{"timestamp": 1795889932139, "message": BERLIN}] * 2)
    assert lines_of(events) == [model.Unparsed(0, 1, model.SEVERAL)]
    array = json.dumps([{"message": BERLIN}] * 2).encode()
    assert lines_of(array) == [model.Unparsed(0, 1, model.SEVERAL)]


def test_a_broker_that_was_killed_within_a_line_writes_on_behind_it() -> None:
    cut, line = lines_of(PLAIN[:300] + PLAIN)
    assert cut == model.Unparsed(0, 1, model.CUT)
    assert isinstance(line, model.LogLine)
    assert (line.offset, line.size, line.number) == (300, len(PLAIN), 1)
    assert line[3:] == only(PLAIN)[3:]


def test_a_client_may_have_the_name_of_a_line() -> None:
    line = only(PLAIN.replace(b'"clientId":"', b'"clientId":"Completed request:'))
    assert line.offset == 0


def test_lines_of_other_loggers_are_skipped() -> None:
    trace = b"java.io.IOException: Broken pipe\n\tat sun.nio.ch.Net.write(Net.java:1)\n"
    other = b"[2026-11-28 18:18:52,136] INFO Completed load of log (kafka.log.UnifiedLog)\n"
    line = only(other + trace + PLAIN + trace)
    assert (line.offset, line.number) == (len(other + trace), 4)


def test_parts_of_two_streams_are_not_mixed() -> None:
    text = PLAIN.decode()
    pieces = docker(text[:60]) + docker(text[:70], "stderr") + docker(text[60:])
    first, second = lines_of(pieces + docker(text[70:], "stderr"))
    assert isinstance(first, model.LogLine)
    assert first[3:] == second[3:]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (PLAIN[:300] + b"\n", model.CUT),
        (PLAIN[:300], model.CUT),
        (docker(PLAIN[:300].decode()), model.CUT),
        (docker(PLAIN[:300].decode()) + docker("[2026-11-28 18:18:53,000] INFO x\n"), model.CUT),
        (docker(PLAIN.decode())[:400], model.CUT),
        (PLAIN.replace(b'"localTimeMs":', b'"localTimeMs"'), model.NOT_UNDERSTOOD),
        (PLAIN.replace(b'"requestApiKey":12', b'"requestApiKey":"12"'), model.NOT_UNDERSTOOD),
        (PLAIN.replace(b"35.264", b"1e300"), model.NOT_UNDERSTOOD),
        (b"[2026-11-28 18:18:52,136] DEBUG Completed request:what\n", model.CUT),
        (f"DEBUG {MESSAGE}\n".encode(), model.NO_TIME),
        (PLAIN.replace(b'"response":""', b'"response":' + b"[" * 200_000), "nested too deep"),
    ],
)
def test_lines_that_cannot_be_used_have_a_reason(data: bytes, reason: str) -> None:
    clock = LogClock()
    found = [parse(line, clock) for line in lines_of(data)]
    assert found == [model.Unparsed(0, 1, reason)]


SHORT = LIMITS._replace(line_bytes=5000)


def test_a_line_has_a_largest_size() -> None:
    long = PLAIN[:-1] + b"x" * 9000 + b"\n"
    for block in (100, 1 << 20):
        found = lines_of(long + b"y" * 20_000 + b"\n" + PLAIN, block, SHORT)
        if block == 100:
            assert found[0] == model.Unparsed(0, 1, model.TOO_LONG)
        assert isinstance(found[-1], model.LogLine)
        assert (found[-1].offset, found[-1].number) == (len(long) + 20_001, 3)


def test_parts_have_a_largest_size() -> None:
    reader = LineReader(SHORT)
    found = reader.feed(docker(PLAIN[:200].decode()) + docker("x" * 900) * 9)
    assert found == [model.Unparsed(0, 1, model.TOO_LONG)]
    assert reader.feed(docker("\n") + PLAIN)[-1].number == 12


def test_streams_are_bounded() -> None:
    pieces = b"".join(docker(PLAIN[:90].decode(), f"s{n}") for n in range(100))
    found = lines_of(pieces)
    assert [line.number for line in found] == list(range(1, 101))
    assert {line.reason for line in found} == {model.CUT}  # type: ignore[union-attr]


def test_a_container_writes_its_time_in_ascii() -> None:
    """Other bytes there are no time of a container runtime, and the line is read all the same."""
    wrong = ARRIVED[:-1].encode() + b"\xeb"
    assert only(wrong + b" stdout F " + PLAIN).arrived == ""


def test_texts_of_old_releases_may_hold_line_feeds() -> None:
    head = b"[2026-11-28 18:18:52,136] DEBUG Completed request:"
    tail = b" from connection 1.2.3.4:9092-1.2.3.5:4000-0;totalTime:1.0,sendTime:0.1"
    tail += b",securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT\n"
    text = b"RequestHeader(apiKey=FETCH, apiVersion=4, clientId=a\n\nb, correlationId=1) -- {}"
    first, second = lines_of(head + text + tail + PLAIN)
    request = parse(first, LogClock())
    assert isinstance(request, model.Completed)
    assert request.client_id == "a\n\nb"
    assert first.size == len(head + text + tail)  # type: ignore[union-attr]
    assert second.number == 4
    cut, whole = lines_of(head + text + b"\nmore\n" + PLAIN)
    assert parse(cut, LogClock()) == model.Unparsed(0, 1, model.CUT)
    assert isinstance(whole, model.LogLine)


@pytest.mark.parametrize(
    "head",
    [
        PLAIN,
        PLAIN[:200],
        docker(PLAIN.decode()),
        ecs(),
        b"[2026-11-28 18:37:29,284] INFO starting (kafka.server.KafkaServer)\n" * 4,
        docker("[2026-11-28 18:37:29,284] INFO up (org.apache.kafka.raft.KafkaRaftClient)\n"),
        b"===> User\nuid=1000(appuser)\n===> Configuring ...\n"
        b"[2026-11-28 18:37:29,284] INFO [ControllerServer id=1] Starting (kafka.server.X)\n",
    ],
)
def test_logs_of_brokers_are_recognised(head: bytes) -> None:
    assert is_log(head, sure=False)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"Completed request: nothing of ours\n",
        b"a,b,c\n1,2,3\n",
        b'{"time": "2026-11-28T18:37:29Z", "api": "Fetch"}\n',
        b"[2026-11-28 18:37:29,284] INFO x (org.apache.kafka.clients.consumer.KafkaConsumer)\n",
        b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + PLAIN,
        b"\x0a\x0d\x0d\x0a" + bytes(24) + PLAIN,
        b"\x1f\x8b\x08\x00" + PLAIN,
        b"PK\x03\x04" + PLAIN,
        bytes(61) + PLAIN,
        b"CLIENT_RANDOM 00 11\n",
    ],
)
def test_other_inputs_are_none(head: bytes) -> None:
    assert not is_log(head)
