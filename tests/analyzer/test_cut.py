"""Part of a capture as a capture: the same exchanges, complete streams, no secrets."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer.commands.cut import cut
from analyzer.cut import Anonymous, Cutting
from analyzer.offline import open_capture
from analyzer.rows import Row, row_of
from captures.spool import Spool

SAMPLES = sorted((Path(__file__).parents[2] / "captures" / "samples").glob("*.pcap*"))


def rows_of(path: Path) -> list[Row]:
    with open_capture([path]) as capture:
        return [row_of(each, capture.context.names) for each in capture.exchanges()]


def told(row: Row) -> tuple[object, ...]:
    """What has to stay, apart from numbers of connections and packets."""
    return (
        row.time_ns,
        row.state,
        row.api_key,
        row.api_version,
        row.correlation_id,
        row.client_id,
        row.software,
        row.request_bytes,
        row.response_bytes,
        row.latency_ns,
        row.topics,
        row.groups,
        row.errors,
        row.records,
        str(row.client_address),
        str(row.broker_address),
    )


def cut_to(path: Path, target: Path, *, anonymous: bool = False, keep=lambda each: True) -> Cutting:
    cutting = Cutting()
    with open_capture([path], spool=Spool()) as capture, target.open("wb") as file:
        capture.watch = cutting.watch
        for exchange in capture.exchanges():
            if keep(exchange):
                cutting.add(exchange)
        rewrite = Anonymous() if anonymous else None
        cutting.write(file, capture.source.read, rewrite=rewrite)
    return cutting


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_cut_of_everything_shows_the_same_exchanges(path, tmp_path):
    target = tmp_path / "cut.pcapng"
    cut_to(path, target)
    whole = [row for row in rows_of(path) if row.state not in ("opaque", "orphan")]
    if any("sasl" in part for part in path.parts):
        # Names of users stood in tokens that are hidden now.
        assert len(rows_of(target)) == len(whole)
    else:
        assert sorted(map(told, rows_of(target)), key=str) == sorted(map(told, whole), key=str)


def test_one_client_of_many(tmp_path):
    path = next(path for path in SAMPLES if path.name.startswith("cluster"))
    target = tmp_path / "cut.pcapng"
    cutting = cut_to(path, target, keep=lambda each: each.api == "Metadata")
    kept = rows_of(target)
    assert len(kept) == cutting.exchanges > 1
    assert {row.api for row in kept} == {"Metadata"}
    assert all(row.state == "answered" for row in kept)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_nothing_tells_whose_an_anonymous_capture_was(path, tmp_path):
    target = tmp_path / "cut.pcapng"
    cut_to(path, target, anonymous=True)
    before, after = rows_of(path), rows_of(target)
    data = target.read_bytes()
    libraries = {row.software.split(" ")[0] for row in before}
    names = {name for row in before for name in (*row.topics, *row.groups, row.client_id or "")}
    for name in names - libraries:
        if len(name) > 5 and not name.startswith("__"):
            assert name.encode() not in data
    readable = [row for row in before if row.state in ("answered", "no-reply", "lost", "open")]
    assert len(after) >= 0.9 * len(readable)
    assert {row.api for row in after} <= {row.api for row in before}


def test_tshark_sees_no_hole(tmp_path):
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path = next(path for path in SAMPLES if path.name.startswith("rebalance"))
    target = tmp_path / "cut.pcapng"
    cut_to(path, target)
    wanted = "tcp.analysis.lost_segment or tcp.analysis.ack_lost_segment or tcp.checksum.status==0"
    run = subprocess.run(
        ["tshark", "-r", target, "-o", "tcp.check_checksum:TRUE", "-Y", wanted],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert run.stdout == ""


def test_the_command(tmp_path):
    path = str(SAMPLES[-1])
    target = tmp_path / "cut.pcapng"
    run = CliRunner().invoke(cut, [path, "-Y", "api == ApiVersions", "-o", str(target)])
    assert run.exit_code == 0, run.output
    assert {row.api for row in rows_of(target)} == {"ApiVersions"}
    copy = tmp_path / "copy.pcap"
    shutil.copy(path, copy)
    run = CliRunner().invoke(cut, [str(copy), "-o", str(copy)])
    assert run.exit_code == 2
    assert copy.read_bytes() == Path(path).read_bytes()
    assert CliRunner().invoke(cut, [path]).exit_code == 2
