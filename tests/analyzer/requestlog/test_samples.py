"""Real lines of all forms and containers, against an independent parser and against captures."""

from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from kafkascope.analyzer.requestlog.model import Address, Completed, LoggedBody
from kafkascope.analyzer.requestlog.parsing import parse
from kafkascope.analyzer.requestlog.times import LogClock
from kafkascope.captures.formats.text import is_log
from kafkascope.dissectors.codec import jsonform
from kafkascope.dissectors.registry import APIS, write_layout
from tests.analyzer.requestlog.samples import expected_rows, lines_of, sample_files, without

FILES = sorted(expected_rows())


def completed_of(name: str) -> list[Completed]:
    zone = ZoneInfo(expected_rows()[name][0]["zone"])
    clock = LogClock(zone)
    out = []
    for line in lines_of(sample_files()[name]):
        request = parse(line, clock)
        assert isinstance(request, Completed), request
        out.append(request)
    return out


def address(value: Address | None) -> str | None:
    if value is None:
        return None
    host, port = value
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def error_codes(value: Any) -> Iterator[int]:
    if isinstance(value, dict):
        for name, field in value.items():
            if name.endswith("error_code") and field:
                yield field
            else:
                yield from error_codes(field)
    elif isinstance(value, list):
        for element in value:
            yield from error_codes(element)


@pytest.mark.parametrize("name", FILES)
def test_lines_say_what_an_independent_parser_reads(name: str) -> None:
    rows = expected_rows()[name]
    found = completed_of(name)
    assert len(found) == len(rows)
    for row, request in zip(rows, found, strict=True):
        assert row | {"errors": None, "request": None, "response": None} == {
            "file": name,
            "zone": row["zone"],
            "form": request.form,
            "api": row["api"],
            "version": request.api_version,
            "correlation_id": request.correlation_id,
            "client_id": request.client_id,
            "broker": address(request.connection.broker),
            "client": address(request.connection.client),
            "principal": request.principal,
            "listener": request.listener,
            "protocol": request.security_protocol,
            "software": [request.software_name, request.software_version],
            "forwarded": request.forwarded,
            "deprecated": request.deprecated,
            "time_ms": request.written_ns // 1_000_000,
            "total_ms": request.total_ns / 1_000_000,
            "level": request.level,
            "errors": None,
            "request": None,
            "response": None,
        }
        assert APIS[request.api_key].name.lower() == row["api"]
        if row["errors"] is not None:
            assert sorted(error_codes(request.response.body)) == row["errors"]


@pytest.mark.parametrize("name", FILES)
def test_bodies_are_those_of_the_capture(name: str) -> None:
    for row, request in zip(expected_rows()[name], completed_of(name), strict=True):
        for side in ("request", "response"):
            logged: LoggedBody = getattr(request, side)
            if side in row:
                body = without(logged.body, set(logged.unknown))
                expected = row[side]
                if row["api"] == "produce" and "topic_data" in set(body) - set(row[side]):
                    # At DEBUG the partitions of a text form are those of its response.
                    expected = {"topic_data": _partitions(row["response"]), **expected}
                assert jsonform.loads(jsonform.dumps(body)) == expected


def _partitions(response: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": topic["name"],
            "partition_data": [{"index": each["index"]} for each in topic["partition_responses"]],
        }
        for topic in response["responses"]
    ]


@pytest.mark.parametrize("name", FILES)
def test_every_body_is_complete(name: str) -> None:
    for request in completed_of(name):
        for logged in (request.request, request.response):
            assert (logged.body is None) == (logged.layout is None) == (logged.gap != "")
            if logged.body is not None and logged.layout is not None:
                write_layout(logged.layout, logged.body)


@pytest.mark.parametrize("name", FILES)
def test_blocks_make_no_difference(name: str) -> None:
    data = sample_files()[name]
    assert lines_of(data, 997) == lines_of(data)


@pytest.mark.parametrize("name", FILES)
def test_lines_are_where_they_say(name: str) -> None:
    data = sample_files()[name]
    for line in lines_of(data):
        raw = data[line.offset : line.offset + line.size]  # type: ignore[union-attr]
        assert b"Completed request:" in raw
        assert raw.endswith(b"\n")
        assert data[: line.offset].count(b"\n") == line.number - 1


@pytest.mark.parametrize("name", FILES)
def test_logs_are_recognised(name: str) -> None:
    assert is_log(sample_files()[name][: 64 << 10], sure=False)
    assert is_log(sample_files()[name][:2000], sure=False)


def test_container_formats_hold_the_same_requests() -> None:
    names = [name for name in FILES if name.startswith("k440-container")]
    assert len(names) == 6
    first, *others = [completed_of(name) for name in names]
    for other in others:
        assert other == first


def test_a_container_says_the_zone_of_its_broker() -> None:
    for form in ("cri.log", "docker.json", "kubectl.log"):
        clock = LogClock()
        for line in lines_of(sample_files()[f"k440-container-{form}"]):
            request = parse(line, clock)
            assert isinstance(request, Completed)
            assert clock.source == "container"
        assert completed_of(f"k440-container-{form}")[-1] == request


def test_sizes_of_records_are_in_json_and_trace_and_file_records() -> None:
    def sizes(name: str, api: str) -> dict[Any, int]:
        out: dict[Any, int] = {}
        for request in completed_of(name):
            if request.api_name == api:
                out |= request.record_sizes
        return out

    assert sizes("k272-trace-kafka-request.log", "PRODUCE")["tram", 1] == 1547
    assert sizes("k272-trace-kafka-request.log", "FETCH")["tram", 0] == 1866
    assert all(size > 0 for size in sizes("k440-debug-kafka-request.log", "PRODUCE").values())
    assert sizes("k282-zk-kafka-request.log", "FETCH")
