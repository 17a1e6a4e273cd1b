"""Kafka's own files: what is in them, and where a recovering broker would cut them."""

import io
import random
import struct
import tracemalloc
from pathlib import Path

import google_crc32c
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.logdir.model import RecoveryVerdict
from kafkascope.analyzer.logdir.opening import AtRest, open_all_at_rest, open_at_rest
from kafkascope.analyzer.logdir.releases import sound_at
from kafkascope.dissectors import registry
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch, encode_message_set
from tests.analyzer.logdir.segments import SEGMENT, TIME, batch, log
from tests.analyzer.logdir.verdicts import records_in, verdicts_on


def verdict(found: AtRest) -> RecoveryVerdict:
    (only,) = verdicts_on(found)
    return only


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    folder = tmp_path / "orders-7"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: KWi75OKBTsmLA8uTl4S1FA\n")
    return folder


# --- segments


def test_batches_and_records_come_with_their_place(partition: Path) -> None:
    first = batch(0, producer_id=5, producer_epoch=1, base_sequence=2**31 - 2, attributes=16)
    found = log(partition, first, batch(3, 2, codec=4))

    rows = [row for row, _ in found.batches()]

    assert [(r.number, r.position, r.size, r.base_offset, r.last_offset) for r in rows] == [
        (1, 0, len(first), 0, 2),
        (2, len(first), rows[1].size, 3, 4),
    ]
    assert [(r.codec, r.records, r.transactional, r.crc_ok) for r in rows] == [
        ("none", 3, True, True),
        ("zstd", 2, False, True),
    ]
    assert rows[0].last_sequence == 0  # wrapped around
    records = list(records_in(found))
    assert [r["offset"] for r in records] == [0, 1, 2, 3, 4]
    assert [r["sequence"] for r in records] == [2**31 - 2, 2**31 - 1, 0, None, None]
    assert records[3] == {
        "schema": "record/1",
        "exchange": None,
        "source": "log",
        "topic": "orders",
        "topic_id": "KWi75OKBTsmLA8uTl4S1FA",
        "partition": 7,
        "offset": 3,
        "time": "2023-11-14T22:13:20.000Z",
        "key": "k0",
        "value": "value 3",
        "headers": [],
        "codec": "zstd",
        "magic": 2,
        "producer_id": None,
        "producer_epoch": None,
        "sequence": None,
        "transactional": False,
        "control": False,
    }


def test_a_sound_segment_is_kept_whole(partition: Path) -> None:
    found = verdict(log(partition, batch(0), batch(3)))
    assert found.sound
    assert (found.valid_bytes, found.last_valid_offset) == (found.total_bytes, 5)
    assert found.lines() == [f"{SEGMENT}: 2 batches, 6 records, offsets 0 to 5; sound"]


def test_an_empty_segment_is_sound(partition: Path) -> None:
    found = verdict(log(partition))
    assert found.sound
    assert (found.batches, found.last_valid_offset) == (0, None)


@pytest.mark.parametrize("cut", [1, 5, 16, 17, 30, 60])
def test_a_cut_tail_is_dropped(partition: Path, cut: int) -> None:
    whole = batch(0)
    found = verdict(log(partition, whole, batch(3)[:cut]))
    assert not found.sound
    assert (found.valid_bytes, found.last_valid_offset) == (len(whole), 2)
    assert found.total_bytes == len(whole) + cut


def test_a_wrong_checksum_cuts_off_all_that_follows(partition: Path) -> None:
    damaged = bytearray(batch(3))
    damaged[-1] ^= 0x40
    found = log(partition, batch(0), bytes(damaged), batch(6), batch(9))

    rows = [row for row, _ in found.batches()]
    assert [(r.crc_ok, r.lost) for r in rows] == [
        (True, False),
        (False, True),
        (True, True),
        (True, True),
    ]
    told = verdict(found)
    assert (told.valid_bytes, told.last_valid_offset) == (len(batch(0)), 2)
    assert (told.lost_batches, told.lost_first, told.lost_last) == (2, 6, 11)
    assert told.lines()[1:] == [
        f"  a batch with a checksum mismatch at position {len(batch(0))}",
        f"  a broker that recovers this file keeps records up to offset 2 ({len(batch(0))} bytes)"
        f" and truncates {told.total_bytes - told.valid_bytes} bytes",
        "  including 2 intact batches after the damage, offsets 6 to 11",
    ]


def test_sound_batches_behind_nonsense_are_found(partition: Path) -> None:
    noise = random.Random(1).randbytes(5000)
    found = log(partition, batch(0), noise, batch(6))
    told = verdict(found)
    assert told.valid_bytes == len(batch(0))
    assert (told.lost_batches, told.lost_first, told.lost_last) == (1, 6, 8)
    assert [r.base_offset for r, _ in found.batches()] == [0, 6]
    assert [r["offset"] for r in records_in(found, lost=False)] == [0, 1, 2]


def test_sound_batches_inside_a_damaged_length_are_found(partition: Path) -> None:
    damaged = bytearray(batch(3))
    # So long that it ends in the middle of the third one behind it.
    damaged[8:12] = struct.pack(">i", len(damaged) + len(batch(6)) + 40)
    told = verdict(log(partition, batch(0), bytes(damaged), batch(6), batch(9)))
    assert told.valid_bytes == len(batch(0))
    assert (told.lost_batches, told.lost_first, told.lost_last) == (2, 6, 11)


def test_bytes_that_look_like_heads_everywhere_take_no_time(partition: Path) -> None:
    head = struct.pack(">qi", 5, 400_000) + bytes(4) + b"\2"
    told = verdict(log(partition, batch(0), b"x" + head * 60_000))
    assert told.valid_bytes == len(batch(0))


def test_zeros_at_the_end_are_space_set_aside(partition: Path) -> None:
    told = verdict(log(partition, batch(0), bytes(3_000_000)))
    assert told.sound
    assert told.padding == 3_000_000
    assert told.valid_bytes == len(batch(0))  # recovery cuts them off


def test_zeros_in_the_middle_are_damage(partition: Path) -> None:
    told = verdict(log(partition, batch(0), bytes(100), batch(3)))
    assert not told.sound
    assert told.lost_batches == 1


def test_a_magic_that_no_release_has_is_taken_for_the_newest(partition: Path) -> None:
    odd = bytearray(batch(3))
    odd[16] = 6
    found = log(partition, batch(0), bytes(odd), batch(6))
    told = verdict(found)
    assert told.sound
    assert "magic 6, which no release writes: brokers read it as 2" in told.notes[0]
    assert [row.magic for row, _ in found.batches()] == [2, 6, 2]
    assert len(list(records_in(found))) == 9
    odd[30] ^= 1
    told = verdict(log(partition, batch(0), bytes(odd), batch(6)))
    assert told.valid_bytes == len(batch(0))
    assert "magic 6, which no release writes," in told.problem


def test_recovery_empties_a_segment_whose_index_would_go_back(partition: Path) -> None:
    parts = [batch(0), batch(1000), batch(6), batch(9), batch(12)]
    size = len(parts[0])
    index = struct.pack(">iiii", 8, 2 * size, 14, 4 * size)
    # An entry at the third and at the fifth: the odd one between them goes unnoticed.
    (partition / SEGMENT).with_suffix(".index").write_bytes(index)
    told = verdict(log(partition, *parts))
    assert told.sound
    parts = [batch(0), batch(3), batch(1000), batch(9), batch(12)]
    # An entry at each: the fourth is not behind the third.
    entries = [(5, size), (1002, 2 * size)]
    index = b"".join(struct.pack(">ii", *entry) for entry in entries)
    (partition / SEGMENT).with_suffix(".index").write_bytes(index)
    told = verdict(log(partition, *parts))
    assert (told.valid_bytes, told.batches, told.lost_batches) == (0, 0, 5)
    assert "offset 11 is not greater than 1002" in told.problem
    # With the usual interval there is no entry at all.
    (partition / SEGMENT).with_suffix(".index").unlink()
    assert verdict(log(partition, *parts)).sound


def test_damage_before_that_cuts_first(partition: Path) -> None:
    parts = [batch(0), bytearray(batch(3)), batch(1000), batch(9)]
    size = len(parts[0])
    parts[1][40] ^= 1  # type: ignore[index]
    index = struct.pack(">iiii", 5, size, 1002, 2 * size)
    (partition / SEGMENT).with_suffix(".index").write_bytes(index)
    told = verdict(log(partition, *map(bytes, parts)))
    assert told.valid_bytes == size


def test_what_stands_behind_a_cut_segment_is_deleted(partition: Path) -> None:
    first, second = "00000000000000000000.log", "00000000000000000006.log"
    log(partition, batch(0), batch(3)[:-1], name=first)
    log(partition, batch(6), name=second)
    found = open_at_rest(partition)
    one, two = verdicts_on(found)
    assert (one.valid_bytes, one.sound) == (len(batch(0)), False)
    assert (two.valid_bytes, two.sound, two.lost_batches) == (0, False, 1)
    assert f"follows {first}" in two.problem
    assert [row.lost for row, _ in found.batches()] == [False, True]


def test_offsets_that_no_segment_has_are_noted(partition: Path) -> None:
    log(partition, batch(0), name="00000000000000000000.log")
    log(partition, batch(9), name="00000000000000000009.log")
    found = open_at_rest(partition)
    one, two = verdicts_on(found)
    assert (one.notes, two.notes) == (
        (),
        (
            "no batch before it has the offsets 3 to 8: they were compacted,"
            " or a segment is missing",
        ),
    )
    assert two.sound


@pytest.mark.parametrize(
    ("parts", "name", "note"),
    [
        ([batch(5), batch(3)], SEGMENT, "not after 7"),
        ([batch(0)], "00000000000000000100.log", "starts at 100"),
        ([batch(0, leader_epoch=4), batch(3, leader_epoch=2)], SEGMENT, "leader epoch 2 follows 4"),
        ([batch(10), batch(500)], SEGMENT, ""),  # compacted
    ],
)
def test_what_is_odd_is_noted_not_cut(
    partition: Path, parts: list[bytes], name: str, note: str
) -> None:
    told = verdict(log(partition, *parts, name=name))
    # Brokers 2.0 and later do not start with a file of another name.
    assert told.sound == (name == SEGMENT)
    assert bool(told.notes) == bool(note)
    assert all(note in each for each in told.notes)


def test_the_folder_of_a_partition_is_all_its_segments(partition: Path) -> None:
    log(partition, batch(3), name="00000000000000000003.log")
    log(partition, batch(0))
    log(partition, batch(99), name="00000000000000000099.log.deleted")
    found = open_at_rest(partition)
    assert [r["offset"] for r in records_in(found)] == [0, 1, 2, 3, 4, 5]
    assert [row.number for row, _ in found.batches()] == [1, 2]
    assert [told.file for told in verdicts_on(found)] == [SEGMENT, "00000000000000000003.log"]


def test_records_that_cannot_be_read_do_not_hide_the_others(partition: Path) -> None:
    bad = bytearray(batch(3))
    bad[61] = 0x7F  # the length of the first record
    bad[17:21] = struct.pack(">I", google_crc32c.value(bytes(bad[21:])))
    found = log(partition, batch(0), bytes(bad), batch(6))
    assert verdict(found).sound
    assert [r["offset"] for r in records_in(found)] == [0, 1, 2, 6, 7, 8]


def test_a_copy_under_another_name_is_known_by_its_first_batch(tmp_path: Path) -> None:
    found = log(tmp_path, batch(7), name="copy.bin")
    assert (found.kind, found.topic) == ("log", None)
    assert [r["offset"] for r in records_in(found)] == [7, 8, 9]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xd4\xc3\xb2\xa1" + bytes(40),
        b"2024-01-01 12:00:00 INFO started\n" * 10,
        bytes(100),
        batch(0)[:-1],
    ],
    ids=["empty", "pcap", "text", "zeros", "cut"],
)
def test_other_files_are_none_of_ours(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.bin"
    path.write_bytes(content)
    assert open_at_rest(path) is None


def test_a_folder_without_segments_is_none_of_ours(tmp_path: Path) -> None:
    assert open_at_rest(tmp_path) is None
    assert open_at_rest(tmp_path / "missing") is None


def test_internal_topics_are_decoded_and_their_secrets_masked(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    body = {"name": "alice", "mechanism": 1, "iterations": 4096}
    body |= {"salt": b"saltsalt", "stored_key": b"stored", "server_key": b"server"}
    value = bytes([1, 11, 0]) + registry.encode_body("UserScramCredentialRecord", 0, body)
    (record,) = records_in(log(folder, encode_batch([Record(0, TIME, None, value, ())])))
    assert len(record["value"]) == len(value)
    assert "***" in record["value"]
    assert not [word for word in ("saltsalt", "stored", "server") if word in record["value"]]
    assert record["decoded"]["value"]["message"] == "UserScramCredentialRecord"
    assert record["decoded"]["value"]["body"]["name"] == "alice"
    assert "c3RvcmVk" not in str(record)


def test_strings_that_are_not_utf_8_are_shown_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    body = registry.example("TopicRecord", 0) | {"name": "a\udcff"}
    value = bytes([1, 2, 0]) + registry.encode_body("TopicRecord", 0, body)
    (record,) = records_in(log(folder, encode_batch([Record(0, TIME, None, value, ())])))
    assert record["decoded"]["value"]["body"]["name"] == "a\udcff"


def test_control_records_say_what_they_are(partition: Path) -> None:
    marker = Record(0, TIME, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 3), ())
    found = log(partition, encode_batch([marker], attributes=48, producer_id=1, producer_epoch=0))
    (record,) = records_in(found)
    assert record["decoded"]["value"]["body"] == {"coordinator_epoch": 3}


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_damaged_segments_give_batches_and_a_verdict(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    sound = b"".join(batch(3 * i, codec=i % 5) for i in range(4))
    content = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    content = content[: data.draw(st.integers(0, len(content)))]
    found = log(tmp_path_factory.mktemp("log"), bytes(content))
    told = verdict(found)
    # The checksum covers neither offset nor leader epoch: what is kept is sound from there on.
    kept = [row for row, _ in found.batches() if not row.lost]
    assert sum(row.size for row in kept) == told.valid_bytes
    assert all(row.crc_ok for row in kept)
    list(records_in(found))


# --- small files


def small(
    folder: Path, name: str, content: bytes
) -> tuple[list[dict[str, object]], RecoveryVerdict]:
    path = folder / name
    path.write_bytes(content)
    found = open_at_rest(path)
    read = found.small()
    return read.entries, read.verdict


BASE = "00000000000000000100"


def test_an_offset_index(tmp_path: Path) -> None:
    content = struct.pack(">iiii", 5, 400, 9, 900)
    entries, told = small(tmp_path, f"{BASE}.index", content + bytes(80))
    assert [(e["offset"], e["position"]) for e in entries] == [(105, 400), (109, 900)]
    assert (told.sound, told.padding) == (True, 80)


def test_a_time_index(tmp_path: Path) -> None:
    entries, told = small(tmp_path, f"{BASE}.timeindex", struct.pack(">qi", TIME, 9))
    assert entries == [
        {
            "schema": "timeindex/1",
            "time": "2023-11-14T22:13:20.000Z",
            "time_ms": TIME,
            "offset": 109,
        }
    ]
    assert told.sound


def test_a_transaction_index(tmp_path: Path) -> None:
    entries, told = small(tmp_path, f"{BASE}.txnindex", struct.pack(">hqqqq", 0, 7, 105, 109, 110))
    assert entries[0]["producer_id"] == 7
    assert entries[0]["last_stable_offset"] == 110
    assert told.sound


def producers(*, crc: int | None = None) -> bytes:
    body = struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 7, 1, 23, 28, 3, TIME, 0, -1)
    right = google_crc32c.value(body)
    return struct.pack(">hI", 1, right if crc is None else crc) + body


def test_a_producer_snapshot(tmp_path: Path) -> None:
    entries, told = small(tmp_path, f"{BASE}.snapshot", producers())
    assert (entries[0]["producer_id"], entries[0]["last_sequence"]) == (7, 23)
    assert told.sound
    _, told = small(tmp_path, f"{BASE}.snapshot", producers(crc=5))
    assert "checksum" in told.problem


def test_checkpoints(tmp_path: Path) -> None:
    entries, told = small(tmp_path, "leader-epoch-checkpoint", b"0\n2\n0 0\n4 17\n")
    assert [(e["epoch"], e["start_offset"]) for e in entries] == [(0, 0), (4, 17)]
    entries, told = small(tmp_path, "recovery-point-offset-checkpoint", b"0\n1\na.b 3 99\n")
    assert entries == [{"schema": "offset/1", "topic": "a.b", "partition": 3, "offset": 99}]
    assert told.sound
    _, told = small(tmp_path, "cleaner-offset-checkpoint", b"")
    assert told.sound


def test_properties(tmp_path: Path) -> None:
    entries, _ = small(tmp_path, "meta.properties", b"#Sat\ncluster.id=abc\nnode.id=1\n")
    assert [(e["name"], e["value"]) for e in entries] == [("cluster.id", "abc"), ("node.id", "1")]
    entries, _ = small(tmp_path, "quorum-state", b'{"leaderId":1,"data_version":1}')
    assert entries[0]["leaderId"] == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (f"{BASE}.index", struct.pack(">iiii", 5, 400, 4, 900)),
        (f"{BASE}.index", struct.pack(">iii", 5, 400, 7)),
        (f"{BASE}.timeindex", struct.pack(">qiqi", TIME, 5, TIME - 1, 6)),
        (f"{BASE}.txnindex", struct.pack(">hqqqq", 3, 7, 105, 109, 110)),
        (f"{BASE}.txnindex", struct.pack(">hqqqq", 0, 7, 110, 109, 110)),
        (f"{BASE}.snapshot", b"\0"),
        (f"{BASE}.snapshot", struct.pack(">h", 9) + bytes(20)),
        (f"{BASE}.snapshot", producers()[:-1]),
        ("leader-epoch-checkpoint", b"0\n3\n0 0\n"),
        ("leader-epoch-checkpoint", b"0\n1\nx y\n"),
        ("leader-epoch-checkpoint", b"\xff\xfe"),
        ("replication-offset-checkpoint", b"1\n0\n"),
        ("replication-offset-checkpoint", b"0\n1\na b c\n"),
        ("meta.properties", b"\0\0"),
        ("quorum-state", b"[1]"),
        ("quorum-state", b"{"),
    ],
)
def test_damage_of_small_files_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    _, told = small(tmp_path, name, content)
    assert not told.sound
    assert told.lines()[0].endswith("damaged")


@given(st.binary(max_size=200))
@settings(max_examples=50, suppress_health_check=list(HealthCheck))
def test_any_bytes_in_a_small_file_give_a_verdict(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("small")
    for name in (f"{BASE}.index", f"{BASE}.timeindex", f"{BASE}.txnindex", f"{BASE}.snapshot"):
        assert small(folder, name, content)[1].total_bytes == len(content)
    for name in ("leader-epoch-checkpoint", "recovery-point-offset-checkpoint", "quorum-state"):
        assert small(folder, name, content)[1].total_bytes == len(content)


# --- as JSON


def test_json_of_a_batch_and_a_verdict(partition: Path) -> None:
    found = log(partition, batch(0), b"\0" * 5 + b"x")
    ((row, _),) = found.batches()
    assert row.to_json()["schema"] == "batch/1"
    assert row.to_json()["producer_id"] is None
    told = verdict(found).to_json()
    assert told["schema"] == "verdict/1"
    assert told["sound"] is False
    assert told["last_valid_offset"] == 2


# --- large ones


def test_a_damaged_length_is_not_read_into_memory(partition: Path) -> None:
    whole = batch(0)
    far = bytearray(batch(3))
    struct.pack_into(">i", far, 8, 200 << 20)
    path = partition / SEGMENT
    with path.open("wb") as file:
        file.write(whole + bytes(far) + batch(6))
        file.truncate(len(whole) + (300 << 20))  # a hole, no disk
    found = open_at_rest(path)
    tracemalloc.start()
    told = verdict(found)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (told.valid_bytes, told.lost_batches) == (len(whole), 1)
    assert "with a checksum mismatch" in told.problem
    assert most < 32 << 20


@given(st.binary(max_size=200), st.integers(0, 2), st.booleans())
def test_sums_of_windows_are_those_of_whole_batches(value: bytes, magic: int, flip: bool) -> None:
    rows = [Record(0, TIME if magic else None, b"k", value, ())]
    data = bytearray(encode_batch(rows) if magic == 2 else encode_message_set(magic, rows))
    if flip:
        data[-1] ^= 1
    with io.BytesIO(bytes(data)) as file:
        assert sound_at(file, 0, len(data)) == (not flip)


# --- tiered storage


def test_remote_segments_are_read_in_order_of_their_offsets(tmp_path: Path) -> None:
    folder = tmp_path / "tiered" / "orders-3-KWi75OKBTsmLA8uTl4S1FA"
    folder.mkdir(parents=True)
    for begin, count in ((0, 9), (9, 91), (100, 3)):
        name = f"{begin}-oAtiIQ95REujbuzNd_lkLQ"
        (folder / f"{name}.log").write_bytes(batch(begin, count))
        (folder / f"{name}.leader_epoch_checkpoint").write_text("0\n1\n0 0\n")
        (folder / f"{name}.index").write_bytes(b"")
    (found,) = open_all_at_rest(folder.parent)
    assert (found.topic, found.partition) == ("orders", 3)
    assert found.topic_id == "KWi75OKBTsmLA8uTl4S1FA"
    records = list(records_in(found))
    assert [each["offset"] for each in records] == list(range(103))
    assert {each["topic_id"] for each in records} == {found.topic_id}
    assert all(each.sound and not each.notes for each in verdicts_on(found))
    for path in folder.iterdir():
        assert all(each.sound for each in verdicts_on(open_at_rest(path))), path.name
    epochs = open_at_rest(folder / "9-oAtiIQ95REujbuzNd_lkLQ.leader_epoch_checkpoint")
    assert epochs.small().entries[0]["epoch"] == 0


def test_a_cached_remote_index_has_the_offset_of_its_name(tmp_path: Path) -> None:
    path = tmp_path / "500_oAtiIQ95REujbuzNd_lkLQ.index"
    path.write_bytes(struct.pack(">ii", 7, 4200))
    found = open_at_rest(path)
    assert found.small().entries == [{"schema": "index/1", "offset": 507, "position": 4200}]
