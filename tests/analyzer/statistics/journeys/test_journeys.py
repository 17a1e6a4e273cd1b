"""Journeys of records in traffic made by hand: what Kafka does to offsets, one case each."""

import json
import struct
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.merging.integer_rows import IntegerRows
from kafkascope.analyzer.render.times import Times
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.journeys.facts import Sent
from kafkascope.analyzer.statistics.journeys.joins import Joins
from kafkascope.analyzer.statistics.journeys.journeys import Journeys
from kafkascope.analyzer.statistics.journeys.model import Journey
from kafkascope.analyzer.statistics.journeys.printed import journey_lines
from kafkascope.tui.cli import main
from tests.analyzer.statistics.journeys.shop import TRANSACTIONAL, Shop, marker, records
from tests.kit.batches import batch
from tests.kit.wire import MS, START

TOPIC_ID = bytes(range(16))


def ms(time_ns: int | None) -> float | None:
    """Milliseconds since the first packet."""
    return None if time_ns is None else (time_ns - START) / MS


def fetched(one: Journey) -> list[tuple[Any, ...]]:
    return [
        (each.client_id, each.group, ms(each.time_ns), ms(each.committed_ns), each.again)
        for each in one.fetched
    ]


def lines(shop: Shop) -> dict[tuple[str, str, str | None], dict[str, Any]]:
    rows = shop.journeys().rows()
    return {(line["producer"], line["topic"], line["group"]): line for line in rows}


def test_a_record_is_sent_acknowledged_fetched_and_committed() -> None:
    shop = Shop().produce("web", 10, records(3)).fetch("bill", 10, records(3, 10))
    one = shop.commit("bill", "g", 13).journey(11)
    assert (one.produced.client_id, one.produced.application) == ("web", "web")
    assert (ms(one.produced.sent_ns), ms(one.produced.acknowledged_ns)) == (1, 2)
    assert fetched(one) == [("bill", "g", 4, 5, 0)]
    assert (one.key, one.created_ms) == ("k1", 1_700_000_000_124)
    line = lines(shop)["web", "t", "g"]
    assert (line["records"], line["lag"]) == (3, 0)
    assert (line["produce_p50"], line["deliver_p95"]) == (MS, 3 * MS)
    assert line["commit_p50"] == MS


def test_a_client_that_asks_from_the_middle_of_a_batch_gets_the_rest() -> None:
    shop = Shop().produce("web", 10, records(5)).fetch("bill", 13, records(5, 10))
    assert fetched(shop.journey(12)) == []
    assert len(shop.journey(13).fetched) == 1
    assert lines(shop)["web", "t", None]["records"] == 2
    assert [each.records for each in shop.journeys().map_of().applications[0].edges] == [2]


def test_within_a_session_the_partition_is_not_named_again() -> None:
    shop = Shop().produce("web", 0, records(4)).fetch("bill", 0, records(2))
    # The broker sends the whole batch that the client is in the middle of.
    shop.fetch("bill", None, records(4))
    assert fetched(shop.journey(3)) == [("bill", None, 6, None, 0)]
    assert fetched(shop.journey(1)) == [("bill", None, 4, None, 0)]


def test_an_offset_stays_in_effect_within_a_session(tmp_path: Path) -> None:
    """A response that is full leaves a partition out, and the next request does not list it."""
    shop = Shop().produce("web", 0, records(5)).fetch("bill", 3, b"", epoch=0)
    shop.fetch("bill", None, records(5), epoch=1)
    assert fetched(shop.journey(2)) == []
    assert fetched(shop.journey(3)) == [("bill", None, 6, None, 0)]
    assert [each.records for each in shop.journeys().map_of().applications[0].edges] == [2]
    capture = shop.capture(tmp_path / "session.pcapng", {9092})
    lines = CliRunner().invoke(main, ["map", str(capture), "--format", "csv"]).stdout.splitlines()
    assert [line.split(",")[:5] for line in lines[1:2]] == [["bill", "reads", "t", "", "2"]]


def test_records_of_a_compacted_batch_are_those_that_are_left() -> None:
    blob = bytearray(records(2, 10))
    blob[23:27] = (9).to_bytes(4)  # offsets 10 and 11 of 10 to 19
    shop = Shop().produce("web", 10, records(10)).fetch("bill", 10, bytes(blob))
    assert lines(shop)["web", "t", None]["records"] == 2
    late = Shop().produce("web", 10, records(10)).fetch("bill", 11, bytes(blob))
    assert lines(late)["web", "t", None]["records"] == 1


def test_a_record_that_was_compacted_within_its_batch_is_not_fetched() -> None:
    shop = Shop().produce("web", 10, records(3)).fetch("bill", 10, records(3, 10))
    blob = bytearray(records(2, 10))
    blob[23:27] = (2).to_bytes(4)  # offsets 10 and 11 of 10 to 12
    shop.fetch("late", 10, bytes(blob))
    found = Joins(shop.journeys([(0, 11), (0, 12)]))
    (there,), (gone,) = found.journeys("t", 0, 11), found.journeys("t", 0, 12)
    assert [each.client_id for each in there.fetched] == ["bill", "late"]
    assert [each.client_id for each in gone.fetched] == ["bill"]


def test_a_client_that_rewinds_fetches_again() -> None:
    shop = Shop().produce("web", 0, records(2))
    for _ in range(3):
        shop.fetch("bill", 0, records(2))
    shop.commit("bill", "g", 2)
    assert fetched(shop.journey(0)) == [("bill", "g", 4, 9, 2)]
    assert lines(shop)["web", "t", "g"]["records"] == 2


def test_only_commits_beyond_the_record_after_the_fetch_count() -> None:
    shop = Shop().commit("bill", "g", 100).produce("web", 0, records(2))
    shop.fetch("bill", 0, records(2)).commit("bill", "g", 1)
    shop.commit("bill", "g", 2, error=25).commit("bill", "g", 2)
    assert [each.committed_ns for each in shop.journey(0).fetched] == [START + 7 * MS]
    assert [each.committed_ns for each in shop.journey(1).fetched] == [START + 11 * MS]
    assert lines(shop)["web", "t", "g"]["commit_p95"] == 5 * MS


def test_followers_are_no_readers_but_replicate() -> None:
    shop = (
        Shop().produce("web", 0, records(1)).fetch("broker-2-fetcher-0", 0, records(1), replica=2)
    )
    shop.fetch("broker-2-fetcher-0", 1, b"", replica=2, high=1)
    one = shop.journey(0)
    assert one.fetched == ()
    assert one.replicated == ((2, START + 5 * MS),)
    assert [each.name for each in shop.journeys().map_of().applications] == ["web"]


def test_a_follower_that_waits_within_a_session_has_replicated() -> None:
    """The response to its Fetch beyond the record leaves the partition out."""
    name = "broker-2-fetcher-0"
    shop = Shop().produce("web", 0, records(1)).fetch(name, 0, records(1), replica=2, epoch=0)
    shop.fetch(name, 1, b"", replica=2, epoch=1).fetch(name, None, b"", replica=2, epoch=2)
    assert shop.journey(0).replicated == ((2, START + 5 * MS),)
    assert [each.name for each in shop.journeys().map_of().applications] == ["web"]


def test_consumers_may_fetch_from_a_follower() -> None:
    shop = Shop().produce("web", 0, records(1)).fetch("bill", 0, records(1), port=9192)
    assert fetched(shop.journey(0)) == [("bill", None, 4, None, 0)]


def test_a_record_is_visible_with_the_high_watermark() -> None:
    shop = Shop().produce("web", 5, records(1)).fetch("other", 5, b"", high=5, stable=5)
    one = shop.fetch("other", 5, b"", high=6, stable=5).fetch("other", 5, b"", high=6, stable=6)
    assert (ms(one.journey(5).visible_ns), ms(one.journey(5).stable_ns)) == (6, 8)


def test_without_a_response_the_checksum_finds_the_offset() -> None:
    blob = records(2)
    shop = Shop().produce("web", 0, blob, acks=0, answered=False)
    shop.fetch("bill", 40, b"".join((int.to_bytes(40, 8), blob[8:])))
    one = shop.journey(41)
    assert (one.produced.client_id, one.produced.acknowledged_ns) == ("web", None)
    assert lines(shop)["web", "t", None]["records"] == 2
    assert shop.journeys().map_of().applications[1].edges[0].records == 2


def test_records_without_a_response_that_were_written_anew_are_left_out_with_a_word() -> None:
    shop = Shop().produce("web", 0, records(2), acks=0, answered=False)
    shop.fetch("bill", 40, batch([(b"k", b"anew")] * 2, base_offset=40))
    shop.produce("late", 0, records(3), acks=0, answered=False)
    one, found = shop.journey(41), shop.journeys()
    assert (one.produced, one.possible_producers) == (None, ("web",))
    assert "Those of web have no offset" in list(journey_lines(one, Times()))[-1]
    assert found.rows() == []
    (remark,) = found.remarks([])
    assert remark.startswith("5 produced records left out")


def test_a_record_that_was_fetched_before_it_was_created_shows_that_clocks_disagree() -> None:
    blob = batch([(b"k", b"v")], base_offset=5, time_ms=START // MS + 3_000)
    text = "\n".join(journey_lines(Shop().fetch("bill", 5, blob).journey(5), Times()))
    assert "ms after it was visible: the clocks disagree" in text


def test_a_client_that_reads_for_one_group_after_the_other_reads_for_both() -> None:
    shop = Shop().produce("web", 5, records(2))
    for group in ("run-1", "run-2"):
        shop.commit("bill", group, 5).fetch("bill", 5, records(2, 5)).commit("bill", group, 7)
    assert fetched(shop.journey(5)) == [("bill", "run-1", 6, 7, 0), ("bill", "run-2", 12, 13, 0)]
    assert set(lines(shop)) == {("web", "t", "run-1"), ("web", "t", "run-2")}
    (read,) = shop.journeys().map_of().applications[0].edges
    assert (read.group, read.groups, read.records) == (None, ("run-1", "run-2"), 4)
    # At the same time they cannot be told apart.
    assert set(lines(shop.commit("bill", "run-1", 7))) == {("web", "t", None)}


def test_offsets_of_records_that_were_lost_with_their_leader_are_given_again() -> None:
    shop = Shop().produce("lost", 5, records(4)).produce("lost", 9, records(1))
    shop.produce("web", 5, records(3)).produce("web", 8, records(1))
    shop.fetch("bill", 5, records(3, 5) + records(1, 8))
    producers = [shop.journey(offset).produced for offset in (5, 7, 8, 9)]
    assert [each and each.client_id for each in producers] == ["web", "web", "web", "lost"]
    assert [line["records"] for line in lines(shop).values()] == [4]
    # The second record of a batch, and the first of another.
    assert [shop.journey(offset).key for offset in (6, 8)] == ["k1", "k0"]


def test_duplicates_of_idempotent_producers_are_one() -> None:
    blob = records(2, 0, (7, 0, 0))
    shop = Shop().produce("web", 5, blob).produce("web", 5, blob)
    shop.produce("web", -1, blob, error=46).fetch("bill", 5, records(2, 5, (7, 0, 0)))
    one = shop.journey(5)
    assert ms(one.produced.sent_ns) == 1
    assert lines(shop)["web", "t", None]["records"] == 2


def test_a_topic_that_was_created_again_has_offsets_anew() -> None:
    first, second = records(4), records(2)
    shop = Shop().produce("web", 0, first).fetch("bill", 0, first).commit("bill", "g", 4)
    shop.produce("shop", 0, second).fetch("audit", 0, second).commit("audit", "h", 2)
    found = {key: line["records"] for key, line in lines(shop).items()}
    assert found == {("web", "t", "g"): 4, ("shop", "t", "h"): 2}
    old, new = shop.ways(1)
    assert [one.produced and one.produced.application for one in (old, new)] == ["web", "shop"]
    assert (fetched(old), fetched(new)) == (
        [("bill", "g", 4, 5, 0)],
        [("audit", "h", 10, 11, 0)],
    )
    # One high watermark was seen beyond both: the first record is known to be visible.
    assert (ms(old.visible_ns), new.visible_ns) == (4, None)
    assert fetched(shop.journey(3)) == [("bill", "g", 4, 5, 0)]


def test_a_batch_that_is_sent_again_begins_no_other_log() -> None:
    first, second = records(4), records(2)
    shop = Shop().produce("web", 0, first, answered=False).produce("shop", 4, second)
    shop.produce("web", 0, first).fetch("bill", 0, first).fetch("bill", 4, records(2, 4))
    found = {key: line["records"] for key, line in lines(shop).items()}
    assert found == {("web", "t", None): 4, ("shop", "t", None): 2}


def transactions(isolation: int, *, late: bool = False) -> Shop:
    """Two records of an aborted transaction and one of a committed one."""
    shop = Shop().produce("pay", 0, records(2, 0, (7, 0, 0), TRANSACTIONAL))
    shop.end("pay", 7, commit=False)
    shop.produce("pay", 3, records(1, 0, (7, 0, 2), TRANSACTIONAL)).end("pay", 7, commit=True)
    blobs = [records(2, 0, (7, 0, 0), TRANSACTIONAL), marker(2, 7, commit=False)]
    if not late:
        blobs += [records(1, 3, (7, 0, 2), TRANSACTIONAL), marker(4, 7, commit=True)]
    return shop.fetch("bill", 0, b"".join(blobs), isolation=isolation)


def test_read_committed_clients_do_not_see_aborted_records() -> None:
    shop = transactions(1)
    aborted, committed = shop.journey(1), shop.journey(3)
    assert (aborted.transaction, committed.transaction) == ("aborted", "committed")
    assert aborted.fetched == ()
    assert [each.client_id for each in aborted.hidden] == ["bill"]
    assert [each.client_id for each in committed.fetched] == ["bill"]
    assert lines(shop)["pay", "t", None]["records"] == 1
    assert shop.journeys().map_of().applications[0].edges[0].records == 1


@pytest.mark.parametrize(("isolation", "lag"), [(0, 2), (1, 0)])
def test_aborted_records_are_no_lag_of_who_does_not_see_them(isolation: int, lag: int) -> None:
    shop = Shop().produce("pay", 0, records(1)).fetch("bill", 0, records(1), isolation=isolation)
    shop.commit("bill", "g", 1)
    shop.produce("pay", 1, records(2, 0, (7, 0, 0), TRANSACTIONAL)).end("pay", 7, commit=False)
    line = lines(shop)["pay", "t", "g"]
    assert (line["lag"], line["lag_time"] > 0) == (lag, lag > 0)


def test_read_uncommitted_clients_see_them() -> None:
    shop = transactions(0)
    assert [each.client_id for each in shop.journey(1).fetched] == ["bill"]
    assert lines(shop)["pay", "t", None]["records"] == 3
    assert shop.journeys().map_of().applications[0].edges[0].records == 3


def test_the_request_that_ends_a_transaction_decides_without_a_marker() -> None:
    shop = Shop().produce("pay", 0, records(2, 0, (7, 0, 0), TRANSACTIONAL))
    shop.end("pay", 7, commit=False)
    shop.fetch("bill", 0, records(2, 0, (7, 0, 0), TRANSACTIONAL), isolation=1)
    one = shop.journey(0)
    assert (one.transaction, one.fetched) == ("aborted", ())
    assert shop.journeys().map_of().applications[0].edges[0].records == 0


def test_a_response_lists_aborted_transactions() -> None:
    aborted = [{"producer_id": 7, "first_offset": 0}]
    shop = Shop().fetch(
        *("bill", 0, records(2, 0, (7, 0, 0), TRANSACTIONAL)), isolation=1, aborted=aborted
    )
    assert shop.journey(0).transaction == "aborted"
    assert shop.journeys().map_of().applications[0].edges[0].records == 0


def test_commits_in_transactions_count_when_these_are_committed() -> None:
    shop = Shop().produce("web", 0, records(2)).fetch("app-consumer", 0, records(2))
    shop.commit("app-consumer", "g", 0)
    shop.commit_in_transaction("app-producer", "g", 1, 7).end("app-producer", 7, commit=False)
    shop.commit_in_transaction("app-producer", "g", 2, 7).end("app-producer", 7, commit=True)
    assert fetched(shop.journey(0)) == [("app-consumer", "g", 4, 11, 0)]


def message(offset: int, magic: int, attributes: int, value: bytes) -> bytes:
    stamp = struct.pack(">q", 1_700_000_000_000) if magic else b""
    body = (
        struct.pack(">bb", magic, attributes) + stamp + struct.pack(">ii", -1, len(value)) + value
    )
    body = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", offset, len(body)) + body


def old_set(first: int, count: int) -> bytes:
    """A compressed message set of magic 1: inner offsets are relative to the last one."""
    inner = b"".join(message(number, 1, 0, b"v") for number in range(count))
    packed = zlib.compressobj(wbits=31)
    return message(first + count - 1, 1, 1, packed.compress(inner) + packed.flush())


def test_message_sets_have_relative_offsets() -> None:
    shop = Shop().produce("old", 20, old_set(0, 5), version=2)
    plain = b"".join(message(25 + number, 1, 0, b"v") for number in range(3))
    shop.produce("old", 25, b"".join(message(n, 0, 0, b"v") for n in range(3)), version=2)
    shop.fetch("bill", 22, old_set(20, 5) + plain)
    assert fetched(shop.journey(21)) == []
    for offset in (22, 24, 25, 27):
        one = shop.journey(offset)
        assert [each.client_id for each in one.fetched] == ["bill"]
        assert one.produced is not None
    assert lines(shop)["old", "t", None]["records"] == 6


def test_members_of_share_groups_get_what_they_acquired_and_accept_it() -> None:
    shop = Shop()
    topics = [{"topic_id": TOPIC_ID, "partition_data": [{"index": 0, "records": records(4)}]}]
    parts: list[dict[str, Any]] = [
        {
            "index": 0,
            "error_code": 0,
            "base_offset": 0,
            "log_append_time_ms": -1,
            "log_start_offset": 0,
            "record_errors": [],
            "error_message": None,
            "current_leader": {"leader_id": 1, "leader_epoch": 0},
        }
    ]
    shop.exchange(
        *("web", "Produce", 13, {"acks": -1, "topic_data": topics, "transactional_id": None}),
        {"responses": [{"topic_id": TOPIC_ID, "partition_responses": parts}]},
    )
    for client_id, first, last in (("run-1", 0, 1), ("run-2", 2, 3)):
        acquired = [{"first_offset": first, "last_offset": last, "delivery_count": 1}]
        part = {
            "partition_index": 0,
            "error_code": 0,
            "error_message": None,
            "acknowledge_error_code": 0,
            "acknowledge_error_message": None,
            "current_leader": {"leader_id": 1, "leader_epoch": 0},
            "records": records(4),
            "acquired_records": acquired,
        }
        one = {"partition_index": 0, "acknowledgement_batches": []}
        asked = {"group_id": "s", "member_id": client_id, "share_session_epoch": 0}
        shop.exchange(
            *(client_id, "ShareFetch", 1),
            {**asked, "topics": [{"topic_id": TOPIC_ID, "partitions": [one]}]},
            {"error_code": 0, "responses": [{"topic_id": TOPIC_ID, "partitions": [part]}]},
        )
    done = {"first_offset": 0, "last_offset": 1, "acknowledge_types": [2, 1]}
    one = {"partition_index": 0, "acknowledgement_batches": [done]}
    shop.exchange(
        *("run-1", "ShareAcknowledge", 1),
        {
            "group_id": "s",
            "member_id": "run-1",
            "share_session_epoch": 1,
            "topics": [{"topic_id": TOPIC_ID, "partitions": [one]}],
        },
        {"error_code": 0, "responses": []},
    )
    label = "AAECAwQF?"
    assert fetched(shop.journey(0, label)) == [("run-1", "s", 4, None, 0)]
    assert fetched(shop.journey(1, label)) == [("run-1", "s", 4, 7, 0)]
    assert fetched(shop.journey(2, label)) == [("run-2", "s", 6, None, 0)]
    assert lines(shop)["web", label, "s"]["records"] == 4


def test_what_came_before_the_capture_has_no_producer() -> None:
    one = Shop().fetch("bill", 0, records(1)).journey(0)
    assert (one.produced, one.created_ms) == (None, 1_700_000_000_123)
    assert Shop().fetch("bill", 0, records(1)).journeys().rows() == []


def test_lag_is_in_records_and_in_time() -> None:
    shop = Shop().produce("web", 0, records(2)).fetch("bill", 0, records(2))
    shop.commit("bill", "g", 2).produce("web", 2, records(3)).later(1_000)
    shop.fetch("bill", 2, b"")
    line = lines(shop)["web", "t", "g"]
    assert (line["records"], line["lag"]) == (2, 3)
    assert line["lag_time"] == (2 + 1_000 + 1) * MS


def test_a_trace_is_named_by_its_header() -> None:
    parent = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    blob = batch([(b"k", b"v")], headers=[("traceparent", parent)])
    assert Shop().produce("web", 0, blob).journey(0).traceparent == parent.decode()


# --- laws


MIXED = [
    *transactions(1).commit("bill", "g", 5).pairs(),
    *Shop().produce("web", 9, records(3), acks=0, answered=False).pairs(),
]


@settings(max_examples=30)
@given(st.permutations(range(len(MIXED))), st.integers(0, len(MIXED)))
def test_neither_order_nor_division_matters(order: list[int], cut: int) -> None:
    def counted(places: list[int]) -> Journeys:
        out = Journeys()
        for place in places:
            out.add(ExchangeBatch.of(*MIXED[place]))
        return out

    whole = counted(list(range(len(MIXED))))
    one, other = counted(order[:cut]), counted(order[cut:])
    one.merge(Journeys().load(json.loads(json.dumps(other.dump()))))
    assert one.rows() == whole.rows()
    assert one.dump() == whole.dump()


class Pair(NamedTuple):
    time_ns: int
    value: int


@given(st.lists(st.tuples(st.integers(0, 9), st.integers()), max_size=40), st.integers(0, 40))
def test_rows_are_bounded_and_the_latest_stay(rows: list[tuple[int, int]], cut: int) -> None:
    whole, one, other = (IntegerRows(Pair, 5) for _ in range(3))
    for place, row in enumerate(rows):
        whole.add(*row)
        (one if place < cut else other).add(*row)
    one.merge(other)
    assert list(one.rows()) == list(whole.rows())
    assert len(list(whole.rows())) <= 5
    assert (len(whole) + whole.dropped, one.dump()) == (len(rows), whole.dump())


def test_evicted_batches_are_counted() -> None:
    found = Journeys()
    found.sent = IntegerRows(Sent, 10)
    found.sent.add_all(*(range(100) for _ in Sent._fields))
    assert found.sent.dropped == 90
    # The topics of the other ten are not known.
    assert found.dropped == 100
    assert found.rows() == []
