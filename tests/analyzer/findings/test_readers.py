"""Groups that get no further, lose commits, fall behind, or begin at the end: on both sides of each
limit."""

import struct
from typing import Any

import pytest

from kafkascope.analyzer.findings import Finding
from tests.analyzer.findings.judging import ask, capture_of, ends, found, judged, states, wire_of
from tests.analyzer.findings.sides_data import (
    AGAIN,
    SMALL,
    STUCK,
    circling,
    cut_off,
    fetch,
    reading,
)
from tests.analyzer.findings.sides_groups import Readers, failing, sharing, zstd
from tests.kit.batches import batch
from tests.kit.members import subscribed
from tests.kit.samples import CAPTURES
from tests.kit.wire import MS, SECOND, Wire

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@pytest.mark.parametrize("commits", [True, False])
def test_who_comes_back_to_one_offset_is_stuck(commits: bool) -> None:
    told = failing(6, commits=commits).reported()
    assert told["reader-stuck"].severity == "error"
    assert states(told["reader-stuck"].text, "stuck", "fetched 6 times")
    assert told.get("redelivered") is None or told["redelivered"].because


@pytest.mark.parametrize("commits", [True, False])
def test_who_is_evicted_and_comes_back_is_slow_and_not_stuck(commits: bool) -> None:
    """A handler of kafkajs that takes longer than the session: heartbeats come between messages."""
    group = Readers()
    for life in range(4):
        name, at = f"a#{life}", 20 * life
        group.join(name, at, 1 + 2 * life, (name,))
        group.start(name, at + 1, 5 if commits else -1)
        group.fetch(name, at + 2, 5 if commits else 0)
        if commits and life == 0:
            group.commit(name, at + 3, 5)
        group.beat(name, at + 19, 1 + 2 * life, 25)
    told = group.reported()
    assert not {"reader-stuck", "commits-lost"} & told.keys()
    assert states(told["rebalance-expired"].advice, "kafkajs")


@pytest.mark.parametrize(("apart", "stuck"), [(1, False), (6, True)])
def test_who_goes_on_at_once_was_not_stuck(apart: int, stuck: bool) -> None:
    """Rebalances follow each other: librdkafka fetches again what it keeps of its partitions."""
    group = Readers()
    group.join("a", 0, 1, ("a",))
    for number in range(3):
        group.fetch("a", 1 + number * apart, 0, high_watermark=20)
    group.commit("a", 20, 6)
    assert ("reader-stuck" in group.reported()) == stuck


@pytest.mark.parametrize(("version", "old"), [(4, True), (9, True), (10, False), (11, False)])
@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_who_is_stuck_on_a_codec_that_is_younger(codec: str, version: int, old: bool) -> None:
    """The version of Fetch tells the age of any client."""
    group = failing(4, commits=True, version=version, attributes=CODECS[codec])
    finding = group.reported()["reader-stuck"]
    text = finding.text
    assert f"compressed with {codec}" in text
    assert finding.advice.startswith("Check whether the consumer has the codec")
    assert ("its Fetch is older than v10" in text) == (old and codec == "zstd")


@pytest.mark.parametrize(("version", "fails"), [(4, False), (8, True), (10, False)])
def test_who_leaves_at_once_with_a_fetch_that_is_older_than_zstd(version: int, fails: bool) -> None:
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", 1, 0, version=version, attributes=4)
    group.leave("a", 1.1)
    finding = group.reported().get("batch-codec")
    assert (finding is not None and finding.severity == "error") == fails
    assert finding is None or not fails or "left its group" in finding.text


@pytest.mark.parametrize("polls", [True, False])
def test_kafkajs_leaves_when_its_long_polls_have_ended(polls: bool) -> None:
    group = Readers()
    protocols = [{"name": "RoundRobinAssigner", "metadata": subscribed("orders")}]
    group.join("a", 0, 1, ("a",), protocols=protocols)
    group.fetch("a", 1, 0, attributes=4)
    if polls:
        group.fetch("a", 6, 0, count=0, topic="others")
    group.leave("a", 6.1)
    assert ("batch-codec" in group.reported()) == polls


@pytest.mark.parametrize(
    ("version", "code", "early"), [(5, -1, True), (7, -1, False), (7, 76, True)]
)
def test_zstd_that_a_broker_does_not_know(version: int, code: int, early: bool) -> None:
    parts = [{"index": 0, "records": batch([(None, b"v")], attributes=4)}]
    done = {"name": "t", "partition_responses": [{"index": 0, "error_code": code}]}
    asked = {"acks": -1, "topic_data": [{"name": "t", "partition_data": parts}]}
    wire = Wire().exchange("Produce", version, 1, {"responses": [done]}, **asked)
    assert ("batch-codec" in found([wire])) == early


def test_a_response_whose_rest_never_comes() -> None:
    """As where large packets are lost: a client that refuses its size closes at once."""
    told = found([cut_off(number, "client", 150_000, after_ns=6 * SECOND) for number in range(3)])
    assert "response-too-large" not in told
    assert states(
        told["unanswered"].text, "3 Fetch requests", "at most 1.0 KB of a response of 150 KB"
    )
    assert "MTU" in told["unanswered"].advice


@pytest.mark.parametrize("grows", [True, False])
def test_a_member_that_stops_fetching_lags(grows: bool) -> None:
    """A paused one, say."""
    group = Readers()
    group.join("a", 0, 1, ("a",))
    for number in range(4):
        group.fetch("a", 1 + number, 10 * number, high_watermark=10 * number + 10)
        group.list_end("b", 1.5 + number, 10 * number + 10)
    group.list_end("b", 10, 200 if grows else 42)
    group.list_end("b", 19, 500 if grows else 44)
    group.beat("a", 20, 1)
    assert ("lag" in group.reported()) == grows


@pytest.mark.parametrize(("high_watermark", "ends_before"), [(25, True), (45, False), (-1, False)])
def test_a_log_that_ends_before_what_was_read(high_watermark: int, ends_before: bool) -> None:
    """-1: the response does not have it."""
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", 1, 0, count=40, high_watermark=40)
    group.fetch("a", 2, 20, count=5, high_watermark=high_watermark)
    finding = group.reported().get("log-truncated")
    assert (finding is not None) == ends_before
    if finding is not None:
        assert states(finding.text, "at least 15 records", "orders-0: the log ends at 25", "39 was")


def test_who_left_after_max_poll_interval_counts_from_the_join_to_the_leave() -> None:
    """Its last heartbeat comes sooner; another finding is that nothing was committed."""
    group = Readers()
    for number in (1, 2):
        name, at = f"a#{number}", 10 * number
        group.join(name, at, 1, (name,), rebalance_timeout_ms=3_000)
        group.fetch(name, at + 1, 0)
        group.beat(name, at + 2.5, 1)
        group.leave(name, at + 3.4)
    told = group.reported()
    assert states(told["rebalance-poll"].text, "left group g", "6.6 s later", "3 s")
    assert "rebalance-slow" not in told


@pytest.mark.parametrize("answered", [True, False])
def test_a_commit_that_was_lost_is_no_offset_to_fall_behind(answered: bool) -> None:
    """librdkafka sends what was not answered again, the oldest first."""
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", 0.5, 0, count=40)
    group.commit("a", 1, 10)
    group.commit("a", 2, 30)
    if not answered:
        group.wires["a"].events.pop()
    group.commit("a", 3, 16)
    group.commit("a", 4, 40)
    assert ("commit-back" in group.reported()) == answered


@pytest.mark.parametrize("lost", [False, True])
def test_fetches_that_the_capture_lacks_are_no_skipped_records(lost: bool) -> None:
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", 1, 0)
    if lost:
        group.wires["a"].gap("broker", 100).connection.gap_bytes = (0, 100)
    group.commit("a", 2, 30)
    assert ("commit-ahead" in group.reported()) != lost


@pytest.mark.parametrize(("begin", "skips"), [(30, True), (5, False), (2, False)])
def test_who_goes_on_where_the_log_begins(begin: int, skips: bool) -> None:
    """sarama sees that the committed offset is gone, and sends no Fetch that is refused."""
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.start("a", 0.5, 5)
    group.list_end("a", 0.7, 100)
    group.fetch("a", 1, max(begin, 5), log_start_offset=begin)
    finding = group.reported().get("offset-out-of-range")
    assert (finding is not None) == skips
    if finding is not None:
        assert states(finding.text, "offset 30 of orders-0", "25 records skipped")
        assert ("group", "g") in finding.entities


def test_who_commits_nothing_and_stays_is_not_stuck() -> None:
    told = failing(4, commits=False, stays=5).reported()
    assert "reader-stuck" not in told
    assert "commits-lost" in told
    assert states(told["commits-lost"].text, "read 30 records", "orders-0", "twice")


def test_who_got_beyond_it_was_stuck() -> None:
    group = failing(4, commits=True)
    group.join("b", 50, 1, ("b",))
    group.commit("b", 52, 15)
    told = group.reported()
    assert told["reader-stuck"].severity == "warning"
    assert states(told["reader-stuck"].text, "Group g was stuck", "continued")


@pytest.mark.parametrize("grows", [True, False])
def test_one_offset_that_is_committed_while_the_log_grows(grows: bool) -> None:
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", 0.2, 0, high_watermark=20)
    for number in range(1, 5):
        group.commit("a", number * 5, 6)
        group.fetch("b", number * 5 + 0.1, 0, high_watermark=20 + 9 * number * grows)
    stuck = group.reported().get("reader-stuck")
    assert (stuck.severity if stuck else None) == ("warning" if grows else None)


def test_a_rebalance_is_no_restart() -> None:
    """Another member is there all the time."""
    group = Readers()
    group.join("b", 0, 1, ("a", "b"))
    group.join("a", 0.1, 1)
    group.fetch("a", 1, 0)
    group.start("b", 5, -1)
    group.fetch("b", 6, 0)
    group.beat("b", 9, 1)
    told = group.reported()
    assert "commits-lost" not in told
    assert "redelivered" in told


@pytest.mark.parametrize(
    ("error", "again", "text"),
    [
        (0, 10, ""),
        (22, -1, "because all its 2 commits failed"),
        (0, -1, "orders-0: no committed offset any more, 10 before"),
    ],
)
def test_commits_that_fail_or_expire_are_lost(error: int, again: int, text: str) -> None:
    group = Readers()
    for life in (0, 10):
        name = f"a#{life}"
        group.join(name, life, 1, (name,))
        group.start(name, life + 1, again if life else -1)
        group.fetch(name, life + 2, 0)
        group.commit(name, life + 5, 10, error)
        group.leave(name, life + 6)
    told = group.reported()
    assert ("commits-lost" in told) == bool(text)
    if text:
        assert text in told["commits-lost"].text


@pytest.mark.parametrize(
    ("start", "end", "first", "skips"),
    [(-1, 100, 100, True), (-1, 0, 0, False), (-1, 100, 0, False), (100, 100, 100, False)],
    ids=["skips", "empty log", "reads from the beginning", "has a commit"],
)
def test_groups_that_begin_at_the_end(start: int, end: int, first: int, skips: bool) -> None:
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.start("a", 1, start)
    group.list_end("a", 2, end)
    group.fetch("a", 3, first, 0)
    told = group.reported()
    assert ("latest-skips" in told) == skips
    if skips:
        assert states(told["latest-skips"].text, "skipping 100 records")
        assert told["latest-skips"].severity == "note"


def refused(offset: int, *, start: int, before: int | None) -> dict[str, Finding]:
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.start("a", 1, start)
    if before is not None:
        group.fetch("a", 2, before, offset - before)
    more = {"error_code": 1, "high_watermark": -1, "log_start_offset": -1}
    group.fetch("a", 3, offset, 0, **more)
    group.list_end("a", 4, 60, stamp=-2)
    group.fetch("a", 5, 60, log_start_offset=60)
    return group.reported()


def test_offsets_that_are_gone() -> None:
    told = refused(5, start=5, before=None)
    assert "retention-overtook" not in told
    text = told["offset-out-of-range"].text
    assert states(text, "offset 5 of orders-0", "60 to 100", "at 60 (earliest)")


def test_records_that_were_deleted_before_they_were_read() -> None:
    told = refused(40, start=30, before=30)
    assert "offset-out-of-range" not in told
    assert told["retention-overtook"].severity == "error"
    assert told["retention-overtook"].text.startswith("20 records of orders were deleted before")


def test_a_first_start_that_resets_is_no_finding() -> None:
    told = refused(0, start=-1, before=None)
    assert not {"offset-out-of-range", "retention-overtook"} & told.keys()


@pytest.mark.parametrize(
    ("version", "further", "severity"), [(7, False, "error"), (7, True, "note"), (11, False, None)]
)
def test_zstd_for_clients_that_do_not_know_it(
    version: int, further: bool, severity: str | None
) -> None:
    told = zstd(version, beats=15, further=further)
    assert (told["batch-codec"].severity if "batch-codec" in told else None) == severity


@pytest.mark.parametrize(
    ("deliveries", "types", "severity"),
    [
        ([1] * 30, [1] * 30, None),
        ([1] * 29 + [4], [2], "note"),
        ([1] * 30, [3], "note"),
    ],
)
def test_share_groups_that_get_records_again(
    deliveries: list[int], types: list[int], severity: str | None
) -> None:
    told = sharing(deliveries, types)
    finding = told.get("share-redelivery")
    assert (finding.severity if finding else None) == severity


def test_what_comes_back_by_itself_is_told() -> None:
    text = sharing([1] * 10 + [2] * 3, [2])["share-redelivery"].text
    assert states(text, "3 of 13 deliveries", "2 were delivered again without a release")
    told = sharing([1] * 10 + [2], [1], 121)
    late = told["share-redelivery"]
    assert late.severity == "warning"
    assert states(late.text, "1 acknowledgement came after the lock had expired")
    assert "share.record.lock.duration.ms" in late.advice
    assert told["error-seen"].because


@pytest.mark.parametrize(
    ("capture", "parts"),
    [
        ("growing-lag-librdkafka", ("94.9 records/s written", "11.7 records/s read")),
        (
            "poison-librdkafka",
            ("stuck at offset 5 of xml-in-0", "5 times within 3.3 s", "xml-load"),
        ),
        ("codec-zstd-java11", ("zold-java", "zonly", "zstd", "never read past")),
        ("codec-zstd-kafkajs", ("97 ms later",)),
        ("share-released-java", ("28 of 88 deliveries of tasks",)),
        ("latest-skips-librdkafka", ("leads-0, leads-1 (latest)", "300 records")),
        ("retention-ahead-of-reader-java", ("420 records of cdrs", "deleted before cdr-bill")),
    ],
)
def test_numbers_of_real_traffic(capture: str, parts: tuple[str, ...]) -> None:
    findings, _ = judged(capture_of(capture, CAPTURES / "causes"))
    assert any(states(each.text, *parts) for each in findings)


@pytest.mark.parametrize("by_hand", [True, False])
def test_what_is_fetched_again_after_offsets_were_reset_follows_from_that(by_hand: bool) -> None:
    group = Readers()
    group.join("a", 0, 1, ("a",))
    group.fetch("a", 1, 0)
    group.commit("a", 2, 10)
    group.leave("a", 3)
    group.commit("tool" if by_hand else "a", 4, 5, by_hand=by_hand)
    group.join("a#2", 5, 1, ("a#2",))
    group.start("a#2", 6, 5)
    group.fetch("a#2", 7, 5, 5)
    told = group.reported()
    back = told["commit-back"]
    assert (back.severity, "--reset-offsets" in back.advice) == (
        ("note", True) if by_hand else ("warning", False)
    )
    assert back.id in told["redelivered"].because


@pytest.mark.parametrize("replica", [-1, 2])
def test_who_reads_across_racks_is_not_to_set_what_the_brokers_have(replica: int) -> None:
    wire = wire_of(0)
    host, port = wire.connection.b
    broker = {"node_id": 1, "host": str(host), "port": port, "rack": "r1"}
    ask(wire, 1, 0, MS, brokers=[broker])
    for number, blob in enumerate((None, batch([(None, b"v")])), 2):
        preferred = -1 if blob else replica
        to: dict[str, Any] = {"client": "app-0", "asked": {"rack_id": "r2"}}
        wire.fetch(number, 0, blob, preferred_read_replica=preferred, **to)
    finding = found([wire], "reads-across-racks")["reads-across-racks"]
    assert finding.text == f"app-0 in rack r2 read 145 B from {host}:{port} in rack r1"
    assert ("replica.selector.class" in finding.advice) == (replica < 0)


def starving(count: int = 5, records: bytes = b"", **how: Any) -> Wire:
    wire = Wire()
    for number in range(count):
        fetch(wire, number, 3, records, **how)
    return wire


def test_a_real_reader_with_a_fetch_size_that_is_too_small() -> None:
    path = capture_of("fetch-too-small", CAPTURES)
    names = {each.name: each for each in judged(path)[0]}
    finding = names[SMALL]
    assert states(finding.text, "photo-index", "offset 3 of photos-0", "99 Fetch responses")
    assert states(finding.text, "offset 9", "larger than the fetch size", "100,000 bytes")
    assert "max.partition.fetch.bytes" in finding.advice
    assert ends(path)["photo-index"].word == "stuck"


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("size", [0, 500, 5], ids=["nothing", "a part", "less than a head"])
def test_nothing_or_a_part_of_a_batch(version: int, size: int) -> None:
    blob = (struct.pack(">qi", 3, 299_988) + bytes(500))[:size]
    finding = circling(starving(records=blob, version=version))[SMALL]
    assert states(finding.text, "5 Fetch responses within", f"Fetch v{version}")
    assert ("300,000 bytes" in finding.text) == (size == 500)


@pytest.mark.parametrize(
    "wire",
    [
        starving(high=3),
        starving(version=4),
        starving(throttle_time_ms=500),
        starving(records=batch([(None, b"v")], base_offset=3)),
    ],
    ids=["the end of the log", "a version that gives one batch", "throttled", "records"],
)
def test_what_is_no_small_fetch(wire: Wire) -> None:
    assert SMALL not in circling(wire)


def test_a_reader_that_went_on() -> None:
    wire = starving()
    fetch(wire, 9, 4, batch([(None, b"v")], base_offset=4))
    assert SMALL not in circling(wire)


def test_a_real_reader_that_fetches_all_four_times() -> None:
    path = capture_of("fetched-four-times", CAPTURES)
    names = {each.name: each for each in judged(path)[0]}
    finding = names[AGAIN]
    assert states(finding.text, "influx-sink", "240 of 320 records", "every offset", "4.0 times")
    assert STUCK not in names
    assert names["redelivered"].because == (finding.id,)
    assert ends(path)["influx-sink"].word == "open"


@pytest.mark.parametrize("times", [2, 3, 5, 12])
def test_each_offset_so_often(times: int) -> None:
    names = circling(
        reading(*(5 * at for at in range(10) for _ in range(times)), gap_ns=2 * SECOND)
    )
    again, records = 50 * (times - 1), 50 * times
    assert states(names[AGAIN].text, f"{again} of {records} records", f"{times}.0 times")
    assert STUCK not in names, "the last offset is read no more often than others"


def test_a_window_that_is_fetched_ahead_and_thrown_away() -> None:
    offsets = [5 * (at + ahead) for at in range(12) for ahead in range(3)]
    names = circling(reading(*offsets))
    assert states(names[AGAIN].text, "110 of 180 records", "12 of 14 offsets")


def test_one_offset_among_circles_is_stuck_all_the_same() -> None:
    offsets = [5 * at for at in range(6) for _ in range(2)] + [30] * 20
    assert STUCK in circling(reading(*offsets, gap_ns=SECOND))


@pytest.mark.parametrize(
    "offsets",
    [
        range(0, 100, 5),
        [*range(0, 100, 5), *range(0, 100, 5), *range(0, 100, 5)],
        [0, 5, 10, 15] + [20] * 30,
    ],
    ids=["straight", "read again from the beginning", "one offset"],
)
def test_what_is_no_circle(offsets: list[int]) -> None:
    assert AGAIN not in circling(reading(*offsets))
