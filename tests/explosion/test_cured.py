"""What once took minutes or gigabytes, through the commands; `test_growth` measures everything."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kafkascope.analyzer.bodies.fetch_sessions import LISTED
from kafkascope.analyzer.conversation.limits import ConversationLimits
from kafkascope.analyzer.exchanges import full, records
from kafkascope.analyzer.exchanges.offline import OpenInput, open_capture
from kafkascope.analyzer.exchanges.records import fields_of, shareable
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.export import late
from kafkascope.analyzer.render.records import BYTES_SHOWN, HEADERS_SHOWN, lines_inside
from kafkascope.analyzer.statistics.accumulators import STATISTICS
from kafkascope.analyzer.statistics.cluster.cluster import Cluster
from kafkascope.analyzer.statistics.connections import Connections
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.analyzer.statistics.limits import LIMITS
from kafkascope.captures.merge.groups import Sketch, groups
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Resolved
from kafkascope.dissectors.codec.jsonform import loads
from kafkascope.dissectors.codec.tree import Node
from kafkascope.dissectors.records.records import Batch, Header, Record, batches, open_batch
from kafkascope.dissectors.records.redaction import redacted_records
from kafkascope.dissectors.records.writer import encode_batch, varint
from kafkascope.library import capture as library_capture
from tests.explosion.again import SAMPLES, write_again
from tests.explosion.attacks import write_attack
from tests.explosion.bodies import produced_topics
from tests.explosion.many import producers, rejoins, returns, sessions, tiny_frames, tokens
from tests.explosion.measuring import MEMORY_MB, measured
from tests.explosion.packets import hellos, write_packets
from tests.explosion.records import bomb, scram_records
from tests.explosion.turns import Turn, batch_of, exchange, fetch, produce, record, write_capture
from tests.kit.run import run
from tests.kit.wire import request, response


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_record_with_very_many_headers_is_redacted() -> None:
    # Written header by header into a new text each time it took four minutes.
    count = 1_000_000
    body = b"\0\0\0\x01\x01" + varint(count) + b"\0\x01" * count
    data = batch_of(4, 1, record(body))
    assert len(data) < 2_000
    (batch,) = batches(redacted_records(data, keys=True, names=lambda layout, body: body))
    assert isinstance(batch, Batch)


@pytest.mark.slow
@pytest.mark.parametrize("command", [("show", "1"), ("show", "1", "--hex"), ("cut", "--anonymize")])
def test_very_many_empty_topics_take_no_gigabyte(command: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    write_attack("empty topics", path, factor=3)
    name, *options = command
    if name == "cut":
        options += ["-o", str(tmp_path / "b.pcapng")]
    taken = measured([name, path, *options])
    assert not taken.crashed, taken.errors
    assert taken.megabytes < MEMORY_MB


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "clients"])
def test_more_clients_than_are_kept_are_judged_together(command: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    write_attack("clients", path)
    options = ["-o", str(tmp_path / "a.md")] if command == "report" else ["--for", "4.0"]
    taken = measured([command, path, *options])
    assert taken.code == 0, taken.errors


def test_a_large_session_is_counted_not_listed_with_each_request(tmp_path: Path) -> None:
    for count, listed in ((LISTED, True), (LISTED + 1, False)):
        path, out = tmp_path / f"{count}.pcapng", tmp_path / f"{count}.jsonl"
        write_capture(path, iter([sessions(count)[:8]]))
        result = run("export", path, "--full", "-o", out)
        assert result.exit_code == 0, result.output
        *_, last = map(json.loads, out.read_text().splitlines())
        told = last["fetch_session"]
        assert (told["partitions"] is not None) == listed
        assert told.get("partition_count") == (None if listed else count)
        shown = run("show", path, "3").output
        assert (f"{count:,} partitions, not listed" in shown) != listed


def test_very_large_values_are_shown_in_part() -> None:
    whole = "ü" * (BYTES_SHOWN // 2)
    (line,) = _lines(whole.encode())
    assert line.endswith(f'"{whole}"')
    (line,) = _lines(b"x" + whole.encode())
    assert line.endswith('ü"... 2 more bytes (records --json has all)')
    (line,) = _lines(b"", [("h", None)] * (HEADERS_SHOWN + 5))
    assert line.endswith("... 5 more}")


def _lines(value: bytes, headers: list[Header] | None = None) -> list[str]:
    data = encode_batch([Record(0, 1, None, value, headers or [])])
    return list(lines_inside(Node("records", 0, len(data), data)))[1:]


def test_very_many_secrets_are_masked_in_one_pass(tmp_path: Path) -> None:
    path, count = tmp_path / "a.pcapng", 5_000
    write_capture(path, iter([scram_records(count)]))
    with open_capture([path]) as capture:
        (exchange,) = capture.exchanges()
        names = capture.context.names
    (field,) = fields_of(exchange, names)
    clean = shareable(field)
    assert clean is not None
    assert len(clean) == len(field.data)
    (batch,) = batches(clean)
    assert isinstance(batch, Batch)
    hidden = [record.value or b"" for record in open_batch(clean, batch).records]
    assert len(hidden) == count
    assert all(value.count(b"*" * 8) == 3 for value in hidden)


def test_records_of_an_exchange_beyond_the_limit_are_left_out_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(full, "RECORDS_LIMIT", 5 << 20)
    path, out = tmp_path / "a.pcapng", tmp_path / "a.jsonl"
    value = batch_of(4, 1, record(b"\0\0\0\x01" + varint(2 << 20) + b"x" * (2 << 20) + b"\0"))
    write_capture(path, iter([fetch(1, *[value] * 5)]))
    result = run("export", path, "--full", "-o", out)
    assert "records omitted" in result.output
    (line,) = map(json.loads, out.read_text().splitlines())
    parts = [each["records"] for each in line["response"]["responses"][0]["partitions"]]
    assert [len(each["batches"]) for each in parts] == [1, 1, 0, 0, 0]
    assert ["left_out" in each for each in parts] == [False] * 2 + [True] * 3
    assert all(each["base64"] for each in parts)


@pytest.mark.slow
@pytest.mark.parametrize("sizes_mb", [[64], [7, 50]])
@pytest.mark.parametrize("command", ["records", "records --json", "records --csv", "export --full"])
def test_a_batch_is_not_made_as_one_piece_of_json(
    command: str, sizes_mb: list[int], tmp_path: Path
) -> None:
    # Characters that JSON spells with six bytes: it took a gigabyte.
    path = tmp_path / "a.pcapng"
    values = [Record(n, 1, None, b"\x01" * (mb << 20), ()) for n, mb in enumerate(sizes_mb)]
    write_capture(path, iter([fetch(1, encode_batch(values, codec=4))]))
    name, *options = command.replace("--csv", "--format csv").split()
    if name == "export":
        options += ["-o", str(tmp_path / "a.jsonl")]
    taken = measured([name, path, *options])
    assert taken.code == 0, taken.errors
    assert taken.megabytes < MEMORY_MB


def test_what_is_too_long_of_a_record_is_told_as_left_out(tmp_path: Path) -> None:
    path, size = tmp_path / "a.pcapng", 5 << 20
    made = [
        Record(0, 1, b"key", b"v" * size, [("h", b"x" * size), ("i", None)]),
        Record(1, 1, b"key", b"v" * size, [("h", b"x")]),
        Record(2, 1, b"k" * (9 << 20), None, [("h", b"x")]),
    ]
    write_capture(path, iter([fetch(1, encode_batch(made))]))
    result = run("records", path, "--json")
    first, whole, last = map(json.loads, result.output.splitlines())
    assert first["key"] == "key"
    assert first["value"] == {"left_out": f"{size} bytes of a record with more than 8 MB"}
    assert first["headers"] == {"left_out": f"{size + 2} bytes of a record with more than 8 MB"}
    assert whole["value"] == "v" * size
    assert last["value"] is None
    assert last["headers"] == [["h", "x"]]
    for form in (["--headers", "--value"], ["--format", "csv"]):
        shown = run("records", path, *form).output
        assert f"(left out: {size} bytes of a record with more than 8 MB)" in shown


def test_records_come_some_of_them_at_a_time() -> None:
    made = [Record(n, 1, None, b"v" * 100_000, ()) for n in range(50)]
    data = encode_batch(made)
    (batch,) = batches(data)
    assert isinstance(batch, Batch)
    field = records.RecordField("fetch", "t", None, 0, data, None)
    pieces = list(records.batch_objects(1, field, batch, made, None, b"\n"))
    assert max(map(len, pieces)) < records.PIECE + 200_000
    assert [loads(line)["offset"] for line in b"".join(pieces).splitlines()] == list(range(50))


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("cut", "--anonymize", "-o", "a.pcapng"), ("fixture", "--redact", "all", "-o", "a")]
)
def test_a_very_large_record_is_redacted_in_little_memory(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    # 525 MB: its expanded, hidden and encoded forms stood side by side.
    path = tmp_path / "in.pcapng"
    write_capture(path, iter([bomb(2)(110_000_000)]))
    name, *options, out = command
    taken = measured([name, path, *options, tmp_path / out])
    assert taken.code == 0, taken.errors
    assert taken.megabytes < MEMORY_MB


def test_requests_of_all_connections_that_wait_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    asked = [produce(1, bytes(10_000))[0]]
    write_capture(path, iter([asked] * 50))

    def states(limits: ConversationLimits) -> list[tuple[str, str]]:
        with OpenInput(open_inputs([str(path)]), limits=limits) as capture:
            told = list(capture.exchanges())
        assert sorted(each.number for each in told) == list(range(1, 51))
        return [(each.state, each.reason) for each in sorted(told, key=lambda each: each.number)]

    given_up = ("lost", "none was seen while many later requests were sent")
    assert given_up not in states(ConversationLimits())
    found = states(ConversationLimits(waiting_bytes=400_000))
    first, last = found[:20], found[-10:]
    assert set(first) == {given_up}
    assert given_up not in last


@pytest.mark.slow
def test_what_a_waiting_request_makes_of_its_bytes_is_counted(tmp_path: Path) -> None:
    # 20 MB in requests of 300 KB, each of 50 000 empty topics: bodies that wait took gigabytes.
    path = tmp_path / "a.pcapng"
    asked = produced_topics(50_000)[0]
    write_capture(path, iter([[asked] * 66]))
    taken = measured(["ls", path])
    assert taken.code == 0, taken.errors
    assert taken.megabytes < MEMORY_MB


def test_tokens_that_wait_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    limits = ConversationLimits(tokens=20)
    count = limits.tokens + 5
    first, answer, *rest = tokens(count)
    write_capture(path, iter([[first, answer, *(turn for turn in rest if turn[0] == 0)]]))
    with open_inputs([path]) as source:
        told = list(OpenInput(source, limits=limits).exchanges())
    reasons = [each.reason for each in told if each.api == "SaslToken"]
    assert len(reasons) == count
    assert sum("many later requests" in each for each in reasons) == 5


def test_connections_that_are_counted_together_are_no_connection_to_tell_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Their line has no number: the rule about failed handshakes ended with a TypeError.
    def few() -> Connections:
        connections = Connections()
        connections.values.limit = 5
        return connections

    monkeypatch.setitem(STATISTICS, "connections", few)
    path = tmp_path / "a.pcapng"
    write_packets(path, hellos(8))
    result = run("check", path, "--json")
    assert result.exit_code == 1, result.output
    told = [json.loads(line) for line in result.output.splitlines() if line.startswith("{")]
    # One trouble of many hosts is one finding.
    assert [each["count"] for each in told if each["name"] == "tls-failed"] == [5]
    assert "more than 5 connections" in result.output


def test_names_of_hosts_are_limited_as_each_stands_for_many() -> None:
    # 80,000 DNS answers of 60 addresses took 450 MB, with addresses of IPv6 more.
    cluster = Cluster()
    for number in range(LIMITS.host_names + 50):
        cluster.named(Resolved(f"h{number}", ("10.0.0.1",), "dns"))
    assert json.dumps(cluster.dump()).count('"10.0.0.1"') == LIMITS.host_names + 1  # the others


def test_why_a_group_rebalances_is_not_searched_for(tmp_path: Path) -> None:
    # 30,000 joins under as many names took more than eight minutes.
    for attack in (rejoins, returns):
        once, twice = (calls(story_work(attack, count, tmp_path)) for count in (200, 400))
        assert twice < 2.3 * once


@pytest.mark.slow
def test_very_many_producers_of_one_request_are_told_apart_in_one_pass(tmp_path: Path) -> None:
    # Each looked at all batches: 20,000 took 54 seconds.
    path = tmp_path / "a.pcapng"
    write_capture(path, iter([producers(40_000)]))
    taken = measured(["producers", path], 30)
    assert taken.code == 0, taken.errors


@pytest.mark.slow
def test_a_client_with_very_many_libraries_is_not_compared_with_itself(tmp_path: Path) -> None:
    # Each of them was held against all others: check of 6,000 took 5 seconds, a report 27.
    path = tmp_path / "a.pcapng"
    said = ({"client_software_name": f"library {number}"} for number in range(20_000))
    write_capture(path, (exchange("ApiVersions", 3, each, {}) for each in said))
    taken = measured(["clients", path], 40)
    assert taken.code == 0, taken.errors


def test_files_that_are_rotated_at_two_places_are_compared_with_few() -> None:
    # 2000 at each took 14 s, twice as many a minute.
    once, twice = (calls(grouping_work(count)) for count in (200, 400))
    assert twice < 2.3 * once


def grouping_work(count: int) -> Callable[[], object]:
    """What finding out which files hold the same packets is, where two programs rotate them."""
    sketches, names = [], []
    for place in range(2):
        for file in range(count):
            # Each begins with the last packet of the one before it.
            times = {
                10 * file + at: (10 * file + at) * 1_000_000 + 3000 * place for at in range(11)
            }
            begin = min(times.values())
            sketches.append(Sketch(times, begin, begin + 9_000_000, []))
            names.append(f"{place} {file:06d}")
    (group,) = groups(sketches, names)
    assert [len(each) for each in group.places] == [count, count]
    return lambda: groups(sketches, names)


def story_work(
    attack: Callable[[int], list[Turn]], count: int, folder: Path
) -> Callable[[], object]:
    """What telling the story of a group is, for these exchanges."""
    path = folder / f"{count}.pcapng"
    write_capture(path, iter([attack(count)]))
    groups = Groups()
    with open_capture([path]) as capture:
        for exchange in capture.exchanges():
            groups.add(ExchangeBatch.of(row_of(exchange, capture.context.names), exchange))
    return lambda: groups.story("g")


def calls(work: Callable[[], object]) -> int:
    """How many functions of Python are called, or gone on with: those of generators, too."""
    count = 0

    def saw(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(saw)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_very_many_names_that_come_late_are_not_looked_for_one_by_one(tmp_path: Path) -> None:
    # 16,000 took 63 s of CPU time, twice as many four times as much.
    path, out = tmp_path / "a.pcapng", tmp_path / "a.csv"
    write_capture(path, iter([late_names(8_000)]))
    taken = measured(["export", path, "-o", out], timeout=10)
    assert taken.code == 0, taken.errors
    names = {row["topics"] for row in cells(out) if row["api"] == "Produce"}
    assert names == {f"topic{number}" for number in range(8_000)}


def test_late_names_beyond_those_that_are_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(late, "MOST_IDS", 3)
    path, out = tmp_path / "a.pcapng", tmp_path / "a.jsonl"
    write_capture(path, iter([late_names(10)]))
    result = run("export", path, "-o", out)
    assert result.exit_code == 0, result.output
    rows = list(map(json.loads, out.read_text().splitlines()))
    assert [row["topics"] for row in rows[:10]] == [[f"topic{number}"] for number in range(10)]


def test_a_large_cell_gets_its_name_late(tmp_path: Path) -> None:
    # Python reads cells of 128 KB: it ended with an error.
    path, out = tmp_path / "a.pcapng", tmp_path / "a.csv"
    write_capture(path, iter([late_names(2, size=200_000)]))
    arguments = ["export", str(path), "--table", "records", "-o", str(out)]
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    rows = cells(out)
    assert [row["topic"] for row in rows] == ["topic0", "topic1"]
    assert all(len(row["value"]) >= 200_000 for row in rows)


def cells(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file, whatever their size."""
    before = csv.field_size_limit(1 << 30)
    try:
        with path.open() as file:
            return list(csv.DictReader(file))
    finally:
        csv.field_size_limit(before)


def late_names(count: int, size: int = 1) -> list[Turn]:
    """A Produce for each of so many topics, by id, and behind them all their names."""
    data = encode_batch([Record(0, 1, None, b"x" * size, ())])
    turns: list[Turn] = []
    for number in range(count):
        parts = [{"index": 0, "records": data}]
        topics = [{"topic_id": topic_id(number), "partition_data": parts}]
        turns.append((0, request("Produce", 13, number, acks=1, topic_data=topics)))
        turns.append((1, response("Produce", 13, number, responses=[])))
    told = [
        {"error_code": 0, "name": f"topic{number}", "topic_id": topic_id(number)}
        | {"is_internal": False, "partitions": [], "topic_authorized_operations": 0}
        for number in range(count)
    ]
    turns.append((0, request("Metadata", 12, count, topics=None)))
    return [*turns, (1, response("Metadata", 12, count, brokers=[], topics=told))]


def topic_id(number: int) -> bytes:
    return (number + 1_000).to_bytes(6) + bytes.fromhex("40008000000000000000")


@pytest.mark.parametrize("renamed", [False, True])
def test_what_happens_again_happens_to_the_same_or_to_others(renamed: bool, tmp_path: Path) -> None:
    path = tmp_path / "again.pcapng"
    write_again(path, SAMPLES["rebalance"], 3, renamed=renamed)
    with library_capture.open([path]) as capture:
        groups = {name for each in capture.exchanges() for name in each.groups}
        joins = sum(each.api == "JoinGroup" for each in capture.exchanges())
    with library_capture.open([SAMPLES["rebalance"]]) as capture:
        once = {name for each in capture.exchanges() for name in each.groups}
        assert joins == 3 * sum(each.api == "JoinGroup" for each in capture.exchanges())
    assert len(groups) == len(once) * (3 if renamed else 1)


@pytest.mark.slow
def test_packets_that_are_shown_go_again(tmp_path: Path) -> None:
    # Layers of a packet are a circle, each with its data: 20,000 exchanges took 2 GB.
    path = tmp_path / "a.pcapng"
    write_capture(path, iter([tiny_frames(4_000)]))
    taken = measured(["show", path, "-Y", "number > 0", "--packets"])
    assert taken.code == 0, taken.errors
    assert taken.megabytes < 200
