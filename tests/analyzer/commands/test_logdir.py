"""`ls`, `show` and `records` of Kafka's own files, as they are typed."""

import json
from pathlib import Path

import pytest

from kafkascope.dissectors import registry
from kafkascope.dissectors.records.records import Record
from kafkascope.dissectors.records.writer import encode_batch
from tests.kit.run import lines_of, objects, run

TIME = 1_700_000_000_000


def batch(offset: int, **options: int) -> bytes:
    rows = [Record(offset + i, TIME, b"k", f"v{offset + i}".encode(), ()) for i in range(2)]
    return encode_batch(rows, leader_epoch=0, **options)


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    path = folder / "00000000000000000000.log"
    path.write_bytes(batch(0, producer_id=9, producer_epoch=0, base_sequence=4) + batch(2))
    return path


@pytest.fixture
def damaged(segment: Path) -> Path:
    content = bytearray(segment.read_bytes())
    content[-2] ^= 1  # in the last value
    segment.write_bytes(bytes(content))
    return segment


def test_ls_lists_batches_and_says_that_all_is_sound(segment: Path) -> None:
    done = run("ls", segment)
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[0].split("\t")[:4] == ["No.", "Position", "Offsets", "Records"]
    assert lines[1].split("\t")[2:5] == ["0-1", "2", str(len(batch(0)))]
    assert "9/0 seq 4" in lines[1]
    assert done.stderr == (
        "kafkascope: 00000000000000000000.log: 2 batches, 4 records, offsets 0 to 3; sound\n"
    )


def test_ls_of_damage_ends_with_4(damaged: Path) -> None:
    done = run("ls", damaged, "-q")
    assert done.exit_code == 4
    assert "! checksum mismatch, would be cut" in done.stdout
    assert "keeps records up to offset 1" in done.stderr


def test_ls_json_ends_with_the_verdict(damaged: Path) -> None:
    done = run("ls", damaged, "--json")
    found = lines_of(done)
    assert [each["schema"] for each in found] == ["batch/1", "batch/1", "verdict/1"]
    assert [each["lost"] for each in found[:2]] == [False, True]
    assert found[2]["last_valid_offset"] == 1
    whole = run("ls", damaged, "--format", "json")
    assert json.loads(whole.stdout) == found


def test_ls_csv_has_one_header(segment: Path) -> None:
    lines = run("ls", segment, "--format", "csv").stdout.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("number,file,position")


def test_ls_of_small_files(segment: Path) -> None:
    checkpoint = segment.parent / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n1\n0 0\n")
    assert run("ls", checkpoint).stdout == "epoch\tstart_offset\n0\t0\n"
    checkpoint.write_text("0\n2\n0 0\n")
    assert run("ls", checkpoint).exit_code == 4


def test_ls_stops_after_so_many(segment: Path) -> None:
    assert len(run("ls", segment, "-n", 1).stdout.splitlines()) == 2


def test_records_are_those_of_the_segments(segment: Path) -> None:
    found = objects("records", segment.parent, "--json")
    assert [(r["topic"], r["offset"], r["value"]) for r in found] == [
        ("orders", number, f"v{number}") for number in range(4)
    ]
    assert {r["source"] for r in found} == {"log"}
    assert len(run("records", segment, "--json", "-n", 3).stdout.splitlines()) == 3
    assert json.loads(run("records", segment, "--format", "json").stdout) == found


def test_records_of_damage_are_shown_and_told(damaged: Path) -> None:
    done = run("records", damaged, "--json")
    assert done.exit_code == 4
    assert len(done.stdout.splitlines()) == 4
    assert "checksum mismatch" in done.stderr


def test_show_opens_a_batch(segment: Path) -> None:
    done = run("show", segment, "2", "--hex")
    assert done.exit_code == 0
    assert done.stdout.startswith("batch 2 of orders-0 in 00000000000000000000.log\nbatch: magic 2")
    assert '3: 2023-11-14T22:13:20.000Z key "k" value "v3"' in done.stdout
    assert f"{len(batch(0)) + 0:08x}"[:6] in done.stdout
    one = json.loads(run("show", segment, "1", "--json").stdout)
    assert [r["value"] for r in one["content"]] == ["v0", "v1"]


def test_show_needs_a_number_that_exists(segment: Path) -> None:
    assert run("show", segment).exit_code == 2
    done = run("show", segment, "7")
    assert (done.exit_code, done.stderr) == (2, "kafkascope: there is no batch 7\n")


def test_show_prints_no_secrets(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    body = registry.example("UserScramCredentialRecord", 0) | {"stored_key": b"classified"}
    value = bytes([1, 11, 0]) + registry.encode_body("UserScramCredentialRecord", 0, body)
    path = folder / "00000000000000000000.log"
    path.write_bytes(encode_batch([Record(0, TIME, None, value, ())]))
    for options in ([], ["--hex"], ["--json"]):
        done = run("show", path, "1", *options)
        assert done.exit_code == 0
        assert "classified" not in done.stdout
        assert "63 6c 61 73 73" not in done.stdout


@pytest.mark.parametrize("options", [("-Y", "api == Fetch"), ("-Y", '"v1"'), ("--sort", "latency")])
def test_options_of_captures_are_refused(segment: Path, options: tuple[str, ...]) -> None:
    done = run("ls", segment, *options)
    assert done.exit_code == 2
    assert "Kafka's own files" in done.stderr


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("offset == 1", [1]),
        ("record.value == v3", [2]),
        ("producer.id == 9", [1]),
        ("not producer.id", [2]),
        ("topic == orders and partition == 0", [1, 2]),
        ("time < 2000-01-01", []),
        ("time > 2023-11-01", [1, 2]),
        ("sequence == 4 or number == 2", [1, 2]),
        ("all record.key == k", [1, 2]),
    ],
)
def test_filters_choose_batches(segment: Path, text: str, numbers: list[int]) -> None:
    found = objects("ls", segment, "-Y", text, "--json")
    # What a broker would say of the whole file does not depend on what is shown.
    assert [each["number"] for each in found if "number" in each] == numbers


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("record.value == v3", ["v3"]),
        ("offset in {1..2}", ["v1", "v2"]),
        ("record.sequence == 5", ["v1"]),
        ("record.value ~ [02]$", ["v0", "v2"]),
        ("record.header or lag", None),
    ],
)
def test_filters_choose_records(segment: Path, text: str, values: list[str] | None) -> None:
    done = run("records", segment, "-Y", text, "--json")
    if values is None:
        assert done.exit_code == 2
        assert "lag is a field of exchanges" in done.stderr
        return
    assert [each["value"] for each in lines_of(done)] == values


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (("--from", "1"), [2, 3]),
        (("--to", "1"), [0, 1]),
        (("--from", "-1s"), [2, 3]),
        (("--from", "2023-11-14T22:13:22Z"), [2, 3]),
        (("--from", "2023-11-14T22:13:20Z", "--to", "2023-11-14T22:13:21Z"), [0, 1]),
    ],
)
def test_times_choose_records(tmp_path: Path, options: tuple[str, ...], offsets: list[int]) -> None:
    path = tmp_path / "00000000000000000000.log"
    stamps = (TIME, TIME + 500, TIME + 2000, TIME + 2500)
    rows = [Record(i, stamp, b"k", b"v", ()) for i, stamp in enumerate(stamps)]
    path.write_bytes(encode_batch(rows[:2]) + encode_batch(rows[2:]))
    read = objects("records", path, *options, "--json")
    assert [each["offset"] for each in read] == offsets
    shown = objects("ls", path, *options, "--json")
    assert [each["base_offset"] for each in shown if "base_offset" in each] == offsets[:1]


def test_small_files_have_nothing_to_choose_and_no_records(segment: Path) -> None:
    path = segment.parent / "meta.properties"
    path.write_text("version=1\n")
    done = run("ls", path, "-Y", "number == 1")
    assert done.exit_code == 2
    assert "has none" in done.stderr
    assert run("records", path).exit_code == 2


def test_captures_and_kafkas_files_do_not_mix(segment: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.pcap"
    other.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(20))
    assert run("ls", segment, other).exit_code == 2
