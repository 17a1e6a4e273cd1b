"""Parts of request logs: lines of chosen exchanges, as they were or printed anew without names."""

import re
from pathlib import Path
from typing import Any

import pytest

from kafkascope.dissectors.registry import example, layout_of
from tests.analyzer.requestlog.kafka_json import line
from tests.analyzer.requestlog.samples import sample_files
from tests.kit import run as kit
from tests.kit.samples import SAMPLES

NEW, TEXT, OLD = "k440-debug", "k272-text", "k010-trace"
NUMBERED = ("number", "connection", "frames", "exchange_id", "counterpart")
PUBLIC = {"__consumer_offsets", "__share_group_state", "__transaction_state", "__cluster_metadata"}


def run(*words: str | Path, code: int = 0) -> str:
    return kit.run("cut", *words, codes=(code,)).output


def listed(command: str, path: Path, *words: str) -> list[dict[str, Any]]:
    return kit.objects(command, "--json", "--time-zone", "UTC", *words, path, codes=range(9))


def log(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(sample_files()[f"{name}-kafka-request.log" if "." not in name else name])
    return path


def rows(path: Path, *words: str) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name not in NUMBERED}
        for row in listed("ls", path, *words)
    ]


@pytest.mark.parametrize("name", [NEW, TEXT, OLD, "k440-container-docker.json"])
def test_chosen_lines_stay_as_they_are(name: str, tmp_path: Path) -> None:
    path, out = log(tmp_path, name), tmp_path / "part.log"
    given = "api in {Metadata, JoinGroup, FindCoordinator, Produce}"
    said = run(path, "--time-zone", "UTC", "-Y", given, "-o", out)
    chosen = rows(path, "-Y", given)
    assert f"{len(chosen)} lines written to {out}" in said
    assert rows(out) == chosen
    if name != "k440-container-docker.json":
        lines = path.read_bytes().splitlines()
        assert [text for text in lines if text in out.read_bytes().splitlines()]
        assert set(out.read_bytes().splitlines()) < set(lines)


def test_a_log_that_is_chosen_whole_is_the_same_file(tmp_path: Path) -> None:
    path, out = log(tmp_path, TEXT), tmp_path / "part.log"
    run(path, "-o", out)
    assert out.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", [NEW, TEXT, OLD])
def test_an_anonymized_log_has_other_names_and_the_same_findings(name: str, tmp_path: Path) -> None:
    path, out = log(tmp_path, name), tmp_path / "part.log"
    said = run(path, "--time-zone", "UTC", "--anonymize", "-o", out)
    assert "left out" not in said
    before, after = rows(path), rows(out)
    same = "time", "api", "api_version", "state", "latency_ms", "broker_times", "records_bytes"
    for given, got in zip(before, after, strict=True):
        assert {x: got.get(x) for x in same} == {
            # The JSON form has a number for each time.
            x: {k: v or 0.0 for k, v in given[x].items()} if x == "broker_times" else given.get(x)
            for x in same
        }
    names = {row[key] for row in before for key in ("client_id", "user") if row[key]}
    names |= {
        name for row in before for key in ("topics", "groups", "members") for name in row[key] or ()
    }
    text = out.read_text()
    assert names
    for each in names - PUBLIC:
        if not each.isdigit():
            assert not re.search(rf"(?<![\w.-]){re.escape(each)}(?![\w.-])", text), each
    found = [[(f["name"], f["count"]) for f in listed("check", each)] for each in (path, out)]
    assert found[0] == found[1]
    verdicts = [
        [row["verdict"] for row in listed("clients", each, "--for", "4.0")] for each in (path, out)
    ]
    assert sorted(map(str, verdicts[0])) == sorted(map(str, verdicts[1]))


def test_addresses_go(tmp_path: Path) -> None:
    out = tmp_path / "part.log"
    run(SAMPLES.parent / "logs" / "demo.log.zst", "--time-zone", "UTC", "--anonymize", "-o", out)
    original = rows(SAMPLES.parent / "logs" / "demo.log.zst")
    hosts = {row["client_address"].rpartition(":")[0] for row in original}
    assert len({row["client_address"].rpartition(":")[0] for row in rows(out)}) == len(hosts)
    pattern = "|".join(map(re.escape, hosts))
    assert not re.search(rf"(?<![\w.])(?:{pattern})(?![\w.])", out.read_text())


def test_principals_listeners_and_wrappings_go(tmp_path: Path) -> None:
    layout = layout_of("HeartbeatRequest", 3)
    path, out = tmp_path / "log", tmp_path / "part.log"
    text = line(layout, example("HeartbeatRequest", 3), stamp="pod-7 [2026-11-28 18:18:52,136]")
    text = text.replace(b"User:ANONYMOUS", b"User:CN=app-client,OU=Orders,O=Example")
    path.write_bytes(text.replace(b'"listener":"PLAINTEXT"', b'"listener":"ACME"'))
    run(path, "--time-zone", "UTC", "--anonymize", "-o", out)
    (row,) = rows(out)
    assert (row["user"], row["listener"], row["client_id"]) == ("user-1", "listener-1", "client-1")
    for name in (b"app-client", b"Orders", b"Example", b"ACME", b"pod-7", b"shop"):
        assert name not in out.read_bytes()


@pytest.mark.parametrize("words", [(), ("--anonymize",)])
def test_secrets_are_masked(words: tuple[str, ...], tmp_path: Path) -> None:
    layout = layout_of("AlterUserScramCredentialsRequest", 0)
    salted = {"name": "alice", "mechanism": 1, "iterations": 4096}
    secrets = {"salt": b"salty-salt", "salted_password": b"hunter2-salted"}
    body = example("AlterUserScramCredentialsRequest", 0)
    body |= {"deletions": [], "upsertions": [salted | secrets]}
    path, out = tmp_path / "log", tmp_path / "part.log"
    path.write_bytes(line(layout, body))
    assert b"c2FsdHktc2FsdA==" in path.read_bytes()
    run(path, "--time-zone", "UTC", *words, "-o", out)
    text = out.read_text()
    assert "c2FsdHktc2FsdA==" not in text
    assert "aHVudGVyMi1zYWx0ZWQ=" not in text
    (row,) = rows(out)
    assert (row["api"], row["time"]) == ("AlterUserScramCredentials", rows(path)[0]["time"])


@pytest.mark.parametrize(
    "words", [("--mss", "100"), ("--secrets",), ("--decrypt",), ("--comments",), ("--keylog", "k")]
)
def test_options_about_packets_are_refused(words: tuple[str, ...], tmp_path: Path) -> None:
    path = log(tmp_path, OLD)
    (tmp_path / "k").write_text("")
    words = tuple(str(tmp_path / "k") if word == "k" else word for word in words)
    said = run(path, *words, "-o", tmp_path / "part.log", code=2)
    assert f"{words[0]} needs packets, and request logs have none" in said


def test_logs_beside_captures_are_refused(tmp_path: Path) -> None:
    paths = log(tmp_path, OLD), SAMPLES / "demo.pcap.zst"
    said = run(*paths, "-o", tmp_path / "part.log", code=2)
    assert "captures and request logs" in said
