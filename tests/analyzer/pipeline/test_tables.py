"""What tables hold, each by itself; those that are made on request too."""

from pathlib import Path

from kafkascope.captures.inputs.files import Source
from kafkascope.captures.packets.tcp import Segment, segment_of
from tests.analyzer.pipeline.kit import Apart, made, rows_of
from tests.analyzer.requestlog.samples import sample_files
from tests.kit.run import objects, run
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "sasl-old.pcap"


def test_messages_have_their_places(tmp_path: Path) -> None:
    """Each side of an exchange, with what the exchange says of it."""
    run("spark", SAMPLE, "-o", tmp_path, "--tables", "frames", codes=[0])
    found = rows_of(tmp_path, "frames")
    sides = {(row["exchange_id"], row["kind"] == "response"): row for row in found}
    assert {row["kind"] for row in found} >= {"request", "response", "token"}
    for each in rows_of(tmp_path, "exchanges"):
        mine = [row for row in found if row["exchange_id"] == each["exchange_id"]]
        assert sorted(row["packet"] for row in mine) == sorted(each["frames"])
        assert all(row["connection_id"] == each["connection_id"] for row in mine)
        assert min(row["first_ns"] for row in mine) == each["time_ns"]
        if each["state"] != "answered" or each["api"] == "SaslToken":
            continue
        asked, answer = sides[each["exchange_id"], False], sides[each["exchange_id"], True]
        assert asked["size_bytes"] == each["request_bytes"]
        assert answer["size_bytes"] == each["response_bytes"]
        assert answer["last_ns"] == each["response_end_ns"]
        for name in ("file_id", "record_offset"):
            assert asked[name] == each[name]
    assert not (tmp_path / "segments").exists()


def test_segments_are_those_of_the_capture(tmp_path: Path) -> None:
    words = ("--tables", "segments, records", "--split-size", "20KB")
    run("spark", SAMPLE, "-o", tmp_path, *words, codes=[0])
    with Source([str(SAMPLE)]) as source:
        expected = {
            segment.packet: (segment.seq, segment.ack, segment.flags, segment.length, segment.at)
            for segment in map(segment_of, source.packets())
            if isinstance(segment, Segment)
        }
    names = ("seq", "ack", "flags", "payload_bytes", "record_offset")
    found = rows_of(tmp_path, "segments")
    assert {row["packet"]: tuple(row[name] for name in names) for row in found} == expected
    assert len(found) == len(expected)
    ends = {frozenset((row["source_address"], row["target_address"])) for row in found}
    assert len({row["flow_id"] for row in found}) == len(ends)
    assert not (tmp_path / "frames").exists()


def test_rebalances_are_those_of_groups(tmp_path: Path) -> None:
    sample = str(SAMPLES / "rebalance.pcap")
    for engine in (None, Apart()):
        out = tmp_path / str(engine is None)
        made([sample], out, engine)
        found = {
            (row["group"], row["generation"], row["number"]): row
            for row in rows_of(out, "rebalances")
        }
        told = objects("groups", sample, "--rebalances", "--json")
        assert {(row["group"], row["generation"], row["number"]) for row in told} == found.keys()
        for row in told:
            mine = found[row["group"], row["generation"], row["number"]]
            assert [mine[name] for name in ("cause", "members", "text")] == [
                row[name] for name in ("cause", "members", "text")
            ]
        assert told


def test_verdicts_are_those_of_clients(tmp_path: Path) -> None:
    sample = str(SAMPLES / "java-old.pcap")
    run("spark", sample, "-o", tmp_path, codes=[0])
    for release in ("2.8.0", "4.0.0"):
        told = objects("clients", sample, "--for", release, "--json")
        mine = [row for row in rows_of(tmp_path, "verdicts") if row["release"] == release]
        assert sorted(row["verdict"] for row in mine) == sorted(row["verdict"] for row in told)
    assert {row["verdict"] for row in rows_of(tmp_path, "verdicts")} >= {"ok", "breaks"}


def test_batches_of_records_name_their_topics(tmp_path: Path) -> None:
    run("spark", SAMPLES, "-o", tmp_path, "--records", codes=[0])
    around = {row["exchange_id"]: row for row in rows_of(tmp_path, "exchanges")}
    batches = rows_of(tmp_path, "record_batches")
    for each in batches:
        whole = around[each["exchange_id"]]
        assert each["topic"] in whole["topics"]
        assert each["topic_id"] is None or each["topic_id"] in whole["topic_ids"]
        assert each["ts"] == whole["ts"]
    assert any(each["topic_id"] for each in batches)
    keys = {row["key"] for row in rows_of(tmp_path, "records")}
    assert any(key and key.isalnum() for key in keys)


def test_captures_and_request_logs_are_converted_apart(tmp_path: Path) -> None:
    log = SAMPLES.parent / "logs" / "demo.log.zst"
    result = run("spark", SAMPLE, log, "-o", tmp_path, codes=[3])
    assert "convert captures and request logs to tables in separate runs" in result.output
    assert not list(tmp_path.rglob("*.parquet"))


def test_request_logs_have_the_tables_of_captures(tmp_path: Path) -> None:
    """Of brokers in a folder, where another file comes later."""
    names = ("k440-debug", "k272-text", "k392-cluster")
    words = ("--time-zone", "UTC", "-o", tmp_path / "tables", "--follow", "--available-now")
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in names:
        log = folder / f"{name}.log"
        log.write_bytes(sample_files()[f"{name}-kafka-request.log"])
        told = run("spark", folder, *words, "--settle", "0s", codes=[0]).stderr
        lines = len(objects("ls", "--json", "-q", log))
        assert f"{lines} exchanges from {lines} lines in 1 file written" in told
    found = {row["exchange_id"]: row for row in rows_of(tmp_path / "tables", "exchanges")}
    expected = objects("ls", "--json", "-q", "--time-zone", "UTC", folder)
    assert found.keys() == {row["exchange_id"] for row in expected}
    for row in expected:
        mine = found[row["exchange_id"]]
        same = (
            "source",
            "listener",
            "api",
            "api_version",
            "client_id",
            "user",
            "latency_ns",
            "groups",
        )
        assert [mine[name] for name in same] == [row[name] for name in same]
        assert mine["source"] == "request-log"


def test_other_tables_are_refused(tmp_path: Path) -> None:
    run("spark", SAMPLE, "-o", tmp_path, "--tables", "frames,packets", codes=[2])
