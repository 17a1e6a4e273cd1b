"""Part of a capture as a capture: the same exchanges, complete streams, no secrets."""

import json
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from kafkascope.analyzer.commands import cut as cut_command
from kafkascope.analyzer.conversation.detect import is_other
from kafkascope.analyzer.exchanges.rows import Row
from kafkascope.analyzer.transform import cut as cuts
from kafkascope.analyzer.transform import cut_packets
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.analyzer.transform.limits import LIMITS
from kafkascope.captures.build import Composer
from kafkascope.dissectors.records.records import crc_ok
from tests.analyzer.packed import fields_of, told_of, unpacked
from tests.analyzer.transform.cuts import cut_to, messages_of, told
from tests.explosion.many import connections
from tests.explosion.turns import write_capture
from tests.kit.captures import A, B, Tape
from tests.kit.run import objects, output, run
from tests.kit.samples import SAMPLES, capture_of, rows_of
from tests.kit.wire import beat, heartbeat

EVERY = sorted(SAMPLES.glob("*.pcap*"))


def is_written(row: Row) -> bool:
    """Whether it can be: not what nobody can read on a connection of Kafka's."""
    return row.state != "opaque" or is_other(row.reason)


def test_connections_beyond_the_limit_are_left_out_with_a_sentence(tmp_path, monkeypatch):
    path, target = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    write_capture(path, connections(5))
    few = partial(Cutting, limits=LIMITS._replace(connections=3))
    monkeypatch.setattr(cut_command, "Cutting", few)
    said = run("cut", path, "-o", target, codes=(0,)).output
    assert "2 exchanges left out: on connections beyond the first 3\n" in said
    assert len(rows_of(target)) == 3


def test_what_is_known_of_a_connection_goes_with_its_last_packet(tmp_path, monkeypatch):
    """100,000 of them took 650 MB: all began before the first frame was written."""
    path = tmp_path / "a.pcapng"
    write_capture(path, connections(50))
    most = 0
    write = cut_packets.Packets._write

    def noted(packets, packet):
        nonlocal most
        write(packets, packet)
        most = max(most, len(packets._composers) + len(packets._heap))

    monkeypatch.setattr(cut_packets.Packets, "_write", noted)
    cut_to(path, tmp_path / "b.pcapng")
    assert 0 < most < 20


def test_of_very_many_frames_numpy_finds_the_order(tmp_path, monkeypatch):
    path = tmp_path / "a.pcapng"
    write_capture(path, connections(50))
    cut_to(path, tmp_path / "b.pcapng")
    monkeypatch.setattr(cuts, "MANY", 10)
    cut_to(path, tmp_path / "c.pcapng")
    assert (tmp_path / "b.pcapng").read_bytes() == (tmp_path / "c.pcapng").read_bytes()


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_a_cut_of_everything_shows_the_same_exchanges(path, tmp_path):
    target = tmp_path / "cut.pcapng"
    cut_to(path, target)
    whole = [row for row in rows_of(path) if is_written(row)]
    if any("sasl" in part for part in path.parts):
        # Names of users stood in tokens that are hidden now.
        assert len(rows_of(target)) == len(whole)
    else:
        assert sorted(map(told, rows_of(target)), key=str) == sorted(map(told, whole), key=str)


def test_one_client_of_many(tmp_path):
    path = capture_of("cluster", SAMPLES)
    target = tmp_path / "cut.pcapng"
    cutting = cut_to(path, target, keep=lambda each: each.api == "Metadata")
    kept = rows_of(target)
    assert len(kept) == cutting.exchanges > 1
    assert {row.api for row in kept} == {"Metadata"}
    assert all(row.state == "answered" for row in kept)


def opened(path: Path) -> bytes:
    """All bytes of a capture, packed or not: of its streams, and inside its batches."""
    out = [path.read_bytes()]
    for message in messages_of(path):
        out.append(message.frame.payload)
        if message.decoded is not None:
            out += unpacked(message.decoded)
    return b"\n".join(out)


def sure(names: set[str]) -> set[str]:
    """Those that are long enough not to be there by chance, and that not everybody has."""
    return {name for name in names if len(name) > 5 and not name.startswith("__")}


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_nothing_tells_whose_an_anonymous_capture_was(path, tmp_path):
    target = tmp_path / "cut.pcapng"
    cut_to(path, target, anonymous=True)
    before, after = rows_of(path), rows_of(target)
    data = opened(target)
    libraries = {row.software.split(" ")[0] for row in before}
    names = {name for row in before for name in (*row.topics, *row.groups, row.client_id or "")}
    names |= {name for row in before for name in (*row.transactional_ids, row.user or "")}
    assert [name for name in sure(names - libraries) if name.encode() in data] == []
    assert [each for each in (*told_of(path, 4), *told_of(path, 5)) if each in data] == []
    readable = [row for row in before if row.state in ("answered", "no-reply", "lost", "open")]
    assert len(after) >= 0.9 * len(readable)
    assert {row.api for row in after} <= {row.api for row in before}


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.name)
def test_an_anonymous_capture_tells_the_same_story(path, tmp_path):
    """Other names, but one for one; the same shapes, valid batches, the same errors."""
    target = tmp_path / "cut.pcapng"
    cutting = cut_to(path, target, anonymous=True)
    kept = [row for row in rows_of(path) if is_written(row)]
    after = rows_of(target)
    if cutting.left_out:
        return  # what cannot be read is not there: nothing to hold the rest against
    assert shapes(kept) == shapes(after)
    for wanted in ("topics", "groups", "transactional_ids"):
        one, other = (distinct(rows, wanted) for rows in (kept, after))
        assert one == other, wanted
    assert damaged(target) <= damaged(path)


def shapes(rows: list[Row]) -> list[tuple[object, ...]]:
    """What of rows an anonymous capture keeps."""
    return sorted(
        (
            *(row.time_ns, row.api, row.api_version, row.state, row.correlation_id),
            *(row.latency_ns, row.records, row.batches, row.partitions),
            tuple(error.code for error in row.errors),
        )
        for row in rows
    )


def distinct(rows: list[Row], field: str) -> int:
    return len({name for row in rows for name in getattr(row, field)})


def damaged(path: Path) -> int:
    """Batches with a wrong checksum."""
    decoded = [message.decoded for message in messages_of(path) if message.decoded is not None]
    return sum(not crc_ok(field, batch) for each in decoded for field, batch in fields_of(each))


@pytest.mark.parametrize("anonymous", [False, True])
def test_tshark_has_no_complaint(tmp_path, anonymous):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = capture_of("rebalance", SAMPLES)
    target = tmp_path / "cut.pcapng"
    cut_to(path, target, anonymous=anonymous)
    wanted = "tcp.analysis.lost_segment or tcp.analysis.ack_lost_segment or tcp.checksum.status==0"
    wanted += " or ip.checksum.status==0 or tcp.analysis.retransmission"
    run = subprocess.run(
        [
            *("tshark", "-r", target, "--disable-protocol", "kafka", "-Y", wanted),
            *("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout == ""
    assert "cut short" not in run.stderr


@pytest.mark.parametrize(
    "options",
    [
        ["-Y", "api == Fetch and topic ~ group"],
        ["-Y", "conn == 3"],
        ["--from", "2s", "--to", "4s"],
        ["-c", "5"],
    ],
    ids=["filter", "connection", "time", "count"],
)
def test_parts_are_what_ls_shows(tmp_path, options):
    path = capture_of("rebalance", SAMPLES)
    target = tmp_path / "cut.pcapng"
    output("cut", path, *options, "-o", target)
    wanted = sorted(each["correlation_id"] for each in objects("ls", path, *options, "--json"))
    assert wanted
    assert sorted(row.correlation_id for row in rows_of(target)) == wanted


@pytest.mark.parametrize("options", [[], ["--secrets"]])
def test_count_ends_amid_a_connection_that_has_no_exchange_yet(tmp_path, options):
    tape, one, two = Tape(), Composer(A, B), Composer(A._replace(port=A.port + 1), B)
    tape.add(one.open() + two.open() + one.send(0, heartbeat(0)) + one.send(1, beat(0)))
    tape.add(two.send(0, heartbeat(1)[:9]))
    for number in range(1, 60):  # more than one block
        tape.add(one.send(0, heartbeat(number, 30_000 * "x")) + one.send(1, beat(number)))
    tape.add(two.send(0, heartbeat(1)[9:]) + two.send(1, beat(1)))
    path, target = tmp_path / "a.pcap", tmp_path / "cut.pcapng"
    path.write_bytes(tape.pcap())
    output("cut", path, *options, "-c", "1", "-o", target)
    shown = objects("connections", "--json", target)
    assert [line["client_address"] for line in shown] == [str(A)]


def test_the_command(tmp_path):
    path, target = SAMPLES / "transactions.pcap", tmp_path / "cut.pcapng"
    output("cut", path, "-Y", "api == ApiVersions", "-o", target)
    assert {row.api for row in rows_of(target)} == {"ApiVersions"}
    copy = shutil.copy(path, tmp_path / "copy.pcap")
    run("cut", copy, "-o", copy, codes=(2,))
    assert copy.read_bytes() == path.read_bytes()
    run("cut", path, codes=(2,))


def test_marks_of_the_terminal_interface(tmp_path):
    path = tmp_path / "a.pcap"
    shutil.copy(capture_of("rebalance", SAMPLES), path)
    target = tmp_path / "cut.pcapng"
    command = ["cut", path, "-Y", "marked", "-o", target]
    assert "nothing is marked" in run(*command, codes=(2,)).output
    notes = {"schema": "notes/1", "exchanges": [{"id": "0" * 16, "number": 2, "marked": True}]}
    notes["exchanges"].append({"id": "1" * 16, "number": 3, "comment": "odd, that one"})
    (tmp_path / "a.pcap.kafkascope.json").write_text(json.dumps(notes))
    output(*command)
    (kept,) = rows_of(target)
    (wanted,) = (row for row in rows_of(path) if row.number == 2)
    assert (kept.time_ns, kept.api) == (wanted.time_ns, wanted.api)
    output("cut", path, "-Y", "finding", "-o", target)
    assert rows_of(target), "findings are asked for beside marks, too"
    output("cut", path, "-o", target)
    assert b"odd, that one" in target.read_bytes()
    output("cut", path, "--anonymize", "-o", target)
    assert b"odd, that one" not in target.read_bytes()
    (tmp_path / "a.pcap.kafkascope.json").write_text("[")
    run(*command, codes=(2,))
