"""Hostile lines: whatever a file holds, a line is a completed request or has a reason."""

import random
import re
import time
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.requestlog.model import Completed, Unparsed
from kafkascope.analyzer.requestlog.parsing import parse
from kafkascope.analyzer.requestlog.times import LogClock
from kafkascope.captures.formats.text import is_log
from kafkascope.dissectors.registry import layout_of, write_layout
from tests.analyzer.requestlog.kafka_json import line as printed_line
from tests.analyzer.requestlog.samples import expected_rows, lines_of, sample_files

TOKENS = [
    *(b"{", b"}", b"[", b"]", b",", b";", b":", b"=", b'"', b"\\", b"\n", b"\r", b"null", b"true"),
    *(b"-1", b"1E999", b"99999999999999999999", b"\xff", b"\x00", b"\\ud800", b"NaN", b"{}", b"[]"),
    *(b" from connection ", b";totalTime:", b",response:", b"Completed request:", b"[" * 3000),
    *(b" -- ", b"java.nio.HeapByteBuffer[", b"FileRecords(", b"Name:", b"partitionSizes=["),
]


@cache
def short_lines() -> list[bytes]:
    """Real lines of all forms, with what surrounds them."""
    lines = [
        line + b"\n"
        for name in expected_rows()
        for line in sample_files()[name].splitlines()
        if b"Completed request:" in line and len(line) < 3000
    ]
    return random.Random(7).sample(lines, 150)


def check(data: bytes) -> None:
    is_log(data, sure=False)
    clock = LogClock()
    for line in lines_of(data):
        request = parse(line, clock)
        assert isinstance(request, Completed | Unparsed)
        if isinstance(request, Completed):
            for side in (request.request, request.response):
                if side.layout is not None and side.body is not None:
                    write_layout(side.layout, side.body)  # its types and ranges are right


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_lines_that_were_changed(data: st.DataObject) -> None:
    line = bytearray(data.draw(st.sampled_from(short_lines())))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(line)))
        cut = data.draw(st.integers(0, 30))
        line[at : at + cut] = data.draw(st.sampled_from(TOKENS) | st.binary(max_size=4))
    check(bytes(line))


def test_lines_that_were_cut() -> None:
    randomness = random.Random(3)
    for line in short_lines():
        for _ in range(4):
            check(line[: randomness.randrange(len(line))])


def test_lines_that_were_cut_are_counted() -> None:
    for line in short_lines()[:60]:
        marker = line.index(b"Completed request:")
        end = max(line.rfind(b"clientInformation"), line.rfind(b";totalTime:"))
        found = lines_of(line[: random.Random(len(line)).randrange(marker + 18, end)])
        assert len(found) == 1
        request = parse(found[0], LogClock())
        assert isinstance(request, Unparsed)
        assert request.reason in ("cut", "not understood")


HEARTBEAT = {"group_id": "g", "generation_id": 4, "member_id": "m"}

_HEAD = b"[2026-11-28 18:18:52,136] DEBUG Completed request:"
_PRODUCE = _HEAD + (
    b"RequestHeader(apiKey=PRODUCE, apiVersion=4, clientId=c, correlationId=1) -- "
    b"{acks=1,timeout=1,partitionSizes=["
)
_SCALA = _HEAD + b"Name: ProducerRequest; Version: 0; CorrelationId: 1"
_SOFTWARE = b",clientInformation:ClientInformation(softwareName="
_STRUCT = _HEAD + b"{api_key=1,api_version=0,correlation_id=1,client_id="
_TAIL = b" from connection 1.2.3.4:1-1.2.3.4:2;totalTime:1,sendTime:1\n"
_TEXT = _HEAD + b"RequestHeader(apiKey=FETCH, apiVersion=4, clientId=c, correlationId=1) -- "
_JSON = _HEAD + b'{"isForwarded":false,"request":'


@pytest.mark.parametrize(
    "make",
    [
        lambda n: _JSON + b"[" * n + b"\n",
        lambda n: _JSON + b'{"a":' * n + b"\n",
        lambda n: _JSON + b"[{}," * n + b"{}]}\n",
        lambda n: _JSON + b"9" * n + b"}\n",
        lambda n: _JSON + b'"' + b"\\\\" * n + b"\n",
        lambda n: _TEXT + b"{" * n + _TAIL,
        lambda n: _TEXT + b"{a=" * n + _TAIL,
        lambda n: _TEXT + b"{replica_id=" + b"1" * n + _TAIL,
        lambda n: _TEXT + b",a=" * n + _TAIL,
        lambda n: _TEXT + b"{coordinator=" * n + _TAIL,
        lambda n: _TEXT + b"{coordinator={" * n + _TAIL,
        lambda n: _TEXT + b",response:" * n + _TAIL,
        lambda n: _TEXT[:-5] + b", correlationId=1" * n + _TAIL,
        lambda n: _STRUCT + b"} -- " * n + _TAIL,
        lambda n: _TEXT + b" from connection a;" * n + _TAIL,
        lambda n: _TEXT + _TAIL[:-1] + b",securityProtocol:A,principal:" * n + b"\n",
        lambda n: _TEXT + _TAIL[:-1] + _SOFTWARE * n + b"\n",
        lambda n: _TEXT + _TAIL[:-1] + b",listener:" * n + b" [" * n + b"\n",
        lambda n: _TEXT + _TAIL[:-1] + b",totalTime:" + b"1" * n + b"\n",
        lambda n: _SCALA + b"; TopicAndPartition: " + b"[a" * n + _TAIL,
        lambda n: _SCALA + b"; ClientId: " * n + _TAIL,
        lambda n: _PRODUCE + b"a" * n + b"]}" + _TAIL,
        lambda n: _PRODUCE + b"a-1=1," * n + b"]}" + _TAIL,
        lambda n: b"2026-11-28 18:18:52,136 " * n + _HEAD + b"x\n",
        lambda n: b"20261128" * n + _HEAD + b"x\n",
        lambda n: b"2026-11-28 18:18:52 DEBUG " * n + b"kafka.\n",
        lambda n: b'{"log":"' * n + b"Completed request:\n",
        lambda n: _HEAD + b"RequestHeader(\n" + b"x\n" * n,
        lambda n: b'{"log":"Completed request:","stream":"a"}\n' * (n // 40),
        lambda n: b"2026-11-28T18:18:52.136Z stdout P Completed request:\n" * (n // 40),
    ],
)  # fmt: skip
def test_time_is_linear(make: Callable[[int], bytes]) -> None:
    def seconds(count: int) -> float:
        data = make(count)
        begin = time.process_time()
        check(data)
        return time.process_time() - begin

    # Ten times the input: a quadratic step would take a hundred times as long.
    short = min(seconds(20_000) for _ in range(2))
    assert seconds(200_000) < 30 * max(short, 0.02)


def test_many_objects_are_refused_before_they_take_memory() -> None:
    (line,) = lines_of(_JSON + b"[" + b"{}," * (1 << 21) + b"{}]}\n")
    assert parse(line, LogClock()) == Unparsed(0, 1, "not understood")


@pytest.mark.parametrize("topic", [b"A" * 22, b"A", b"\xff" * 22, b"{a=1}"])
def test_uuids_of_text_forms(topic: bytes) -> None:
    # No release writes topic ids in a text form.
    head = _TEXT.replace(b"apiVersion=4", b"apiVersion=13")
    check(
        head + b"{replica_id=1,max_wait_ms=1,min_bytes=1,max_bytes=1,isolation_level=0,"
        b"session_id=0,session_epoch=0,topics=[{topic_id=" + topic + b",partitions=[]}]" + _TAIL
    )


def test_integers_beyond_doubles() -> None:
    quotas = next(
        line
        for line in sample_files()["k362-quota-kafka-request.log"].splitlines()
        if b'"ALTER_CLIENT_QUOTAS"' in line
    )
    assert b'"value":' in quotas
    check(re.sub(rb'"value":[0-9.]+', b'"value":' + b"9" * 400, quotas))


def test_half_of_a_surrogate_pair_and_bytes_that_are_no_utf_8() -> None:
    line = printed_line(layout_of("HeartbeatRequest", 0), HEARTBEAT)
    (half,) = lines_of(line.replace(b'"groupId":"g"', b'"groupId":"\\ud800"'))
    assert parse(half, LogClock()) == Unparsed(0, 1, "not understood")
    (raw,) = lines_of(line.replace(b'"groupId":"g"', b'"groupId":"\xff"'))
    request = parse(raw, LogClock())
    assert isinstance(request, Completed)
    assert request.request.body == HEARTBEAT | {"group_id": "\udcff"}


def test_a_class_without_fields() -> None:
    (line,) = lines_of(_HEAD + b"Name: FetchRequest; Version: 0" + _TAIL)
    assert parse(line, LogClock()) == Unparsed(0, 1, "not understood")
