"""What once took minutes or gigabytes, through the commands; `test_growth` measures everything."""

import csv
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

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
from tests.explosion.bodies import empty_topics, produced_topics
from tests.explosion.many import clients, producers, rejoins, returns, sessions, tiny_frames, tokens
from tests.explosion.measuring import assert_fits, measured
from tests.explosion.packets import hellos
from tests.explosion.records import bomb, scram_records
from tests.explosion.turns import (
    Turn,
    batch_of,
    exchange,
    fetch,
    produce,
    record,
    write_capture,
    write_packets,
)
from tests.kit.run import run


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


def escaped(*sizes_mb: int) -> list[list[Turn]]:
    """Records of characters that JSON spells with six bytes."""
    values = [Record(n, 1, None, b"\x01" * (mb << 20), ()) for n, mb in enumerate(sizes_mb)]
    return [fetch(1, encode_batch(values, codec=4))]


PIECES: Final = ("records", "records --json", "records --format csv", "export --full -o OUT.jsonl")
CURED: Final[dict[str, tuple[Callable[[], list[list[Turn]]], Sequence[str]]]] = {
    "empty topics": (
        lambda: [empty_topics(750_000)],
        ("show 1", "show 1 --hex", "cut --anonymize -o OUT.pcapng"),
    ),
    # More clients than are kept are judged together.
    "clients": (lambda: [clients(10_000)], ("report -o OUT.md", "clients --for 4.0")),
    # A batch is not made as one piece of JSON: it took a gigabyte.
    "large record": (lambda: escaped(64), PIECES),
    "large records": (lambda: escaped(7, 50), PIECES),
    # 525 MB: its expanded, hidden and encoded forms stood side by side.
    "very large record": (
        lambda: [bomb(2)(110_000_000)],
        ("cut --anonymize -o OUT.pcapng", "fixture --redact all -o OUT"),
    ),
    # 20 MB in requests of 300 KB: their bodies, while they waited, took gigabytes.
    "waiting requests": (lambda: [[produced_topics(50_000)[0]] * 66], ("ls",)),
    # Each looked at all batches: 20,000 took 54 seconds.
    "producers": (lambda: [producers(40_000)], ("producers",)),
    # Each library of a client was held against all others: check of 6,000 took 5 seconds, a report
    # 27.
    "libraries": (
        lambda: [
            exchange("ApiVersions", 3, {"client_software_name": f"library {number}"}, {})
            for number in range(20_000)
        ],
        ("clients",),
    ),
    # Layers of a packet are a circle, each with its data: 20,000 exchanges took 2 GB.
    "shown packets": (lambda: [tiny_frames(4_000)], ("show -Y number>0 --packets",)),
}
LESS: Final[dict[str, dict[str, int]]] = {
    "producers": {"timeout": 30},
    "libraries": {"timeout": 40},
    "shown packets": {"megabytes": 200},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "command"), [(name, each) for name, (_, many) in CURED.items() for each in many]
)
def test_little_that_is_much_takes_little(name: str, command: str, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "in.pcapng", CURED[name][0]())
    first, *options = command.replace("OUT", str(tmp_path / "out")).split()
    assert_fits([first, path, *options], **LESS.get(name, {}))


def test_a_large_session_is_counted_not_listed_with_each_request(tmp_path: Path) -> None:
    for count, listed in ((LISTED, True), (LISTED + 1, False)):
        path, out = tmp_path / f"{count}.pcapng", tmp_path / f"{count}.jsonl"
        write_capture(path, [sessions(count)[:8]])
        run("export", path, "--full", "-o", out, codes=(0,))
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
    write_capture(path, [scram_records(count)])
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
    value = batch_of(4, 1, record(b"\0\0\0\x01" + varint(2 << 20) + b"x" * (2 << 20) + b"\0"))
    path, out = write_capture(tmp_path / "a.pcapng", [fetch(1, *[value] * 5)]), tmp_path / "a.jsonl"
    result = run("export", path, "--full", "-o", out)
    assert "records omitted" in result.output
    (line,) = map(json.loads, out.read_text().splitlines())
    parts = [each["records"] for each in line["response"]["responses"][0]["partitions"]]
    assert [len(each["batches"]) for each in parts] == [1, 1, 0, 0, 0]
    assert ["left_out" in each for each in parts] == [False] * 2 + [True] * 3
    assert all(each["base64"] for each in parts)


def test_what_is_too_long_of_a_record_is_told_as_left_out(tmp_path: Path) -> None:
    path, size = tmp_path / "a.pcapng", 5 << 20
    made = [
        Record(0, 1, b"key", b"v" * size, [("h", b"x" * size), ("i", None)]),
        Record(1, 1, b"key", b"v" * size, [("h", b"x")]),
        Record(2, 1, b"k" * (9 << 20), None, [("h", b"x")]),
    ]
    write_capture(path, [fetch(1, encode_batch(made))])
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


def test_requests_of_all_connections_that_wait_are_limited(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    asked = [produce(1, bytes(10_000))[0]]
    write_capture(path, [asked] * 50)

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


def test_tokens_that_wait_are_limited(tmp_path: Path) -> None:
    limits = ConversationLimits(tokens=20)
    count = limits.tokens + 5
    first, answer, *rest = tokens(count)
    path = write_capture(
        tmp_path / "a.pcapng", [[first, answer, *(turn for turn in rest if turn[0] == 0)]]
    )
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
    write_capture(path, [attack(count)])
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
    path, out = write_capture(tmp_path / "a.pcapng", [late_names(8_000)]), tmp_path / "a.csv"
    taken = measured(["export", path, "-o", out], timeout=10)
    assert taken.code == 0, taken.errors
    names = {row["topics"] for row in cells(out) if row["api"] == "Produce"}
    assert names == {f"topic{number}" for number in range(8_000)}


def test_late_names_beyond_those_that_are_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(late, "MOST_IDS", 3)
    path, out = write_capture(tmp_path / "a.pcapng", [late_names(10)]), tmp_path / "a.jsonl"
    run("export", path, "-o", out, codes=(0,))
    rows = list(map(json.loads, out.read_text().splitlines()))
    assert [row["topics"] for row in rows[:10]] == [[f"topic{number}"] for number in range(10)]


def test_a_large_cell_gets_its_name_late(tmp_path: Path) -> None:
    # Python reads cells of 128 KB: it ended with an error.
    path, out = tmp_path / "a.pcapng", tmp_path / "a.csv"
    write_capture(path, [late_names(2, size=200_000)])
    run("export", path, "--table", "records", "-o", out, codes=(0,))
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
    parts = [{"records": encode_batch([Record(0, 1, None, b"x" * size, ())])}]
    turns: list[Turn] = []
    for number in range(count):
        topics = [{"topic_id": topic_id(number), "partition_data": parts}]
        turns += exchange("Produce", 13, {"acks": 1, "topic_data": topics}, {}, number)
    told = [{"name": f"topic{number}", "topic_id": topic_id(number)} for number in range(count)]
    return turns + exchange("Metadata", 12, {"topics": None}, {"topics": told}, count)


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
