"""Both ways decrypt TLS alike, and as `ls` does, whatever task has which connection."""

import json
import re
import shutil
import sys
from base64 import b64encode
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.pipeline import tasks
from kafkascope.analyzer.pipeline.job import job_of
from kafkascope.analyzer.pipeline.tables.collect import TableOptions
from kafkascope.captures.inputs.keylogs import read_key_logs
from kafkascope.extras import MissingExtra
from tests.analyzer.pipeline import kit
from tests.analyzer.pipeline.encrypted import LOGS, PORTS, encrypted, leaks, packets_of, rotated
from tests.kit.captures import written
from tests.kit.run import lines_of, objects, run
from tests.kit.samples import SAMPLES, TLS
from tests.matrix import each_nth

TRUTHS = sorted(TLS.glob("*.truth.json"))
MORE = {"frames": True, "records": True}


@pytest.mark.parametrize("path", each_nth(TRUTHS, 4), ids=lambda path: path.name.partition(".")[0])
def test_real_traffic(path: Path, tmp_path: Path) -> None:
    truth: dict[str, Any] = json.loads(path.read_text())
    capture = str(TLS / truth["capture"])
    logs = [] if truth.get("keys_inside") else [TLS / truth["keys"]]
    kit.made_alike([capture], tmp_path, keylog=logs, size=5_000, **MORE)


@pytest.mark.parametrize(
    "logs",
    [
        pytest.param([], id="no log", marks=pytest.mark.slow),
        pytest.param(LOGS[:3], id="of others", marks=pytest.mark.slow),
        pytest.param(LOGS, id="all"),
    ],
)
def test_many_captures_at_once(logs: list[Path], tmp_path: Path) -> None:
    captures = encrypted()
    kit.made_alike(captures, tmp_path, keylog=logs, size=9_000)
    answered = [row for row in kit.exchanges(tmp_path / "apart") if row["state"] == "answered"]
    assert len(answered) > 200 if logs == LOGS else 100 > len(answered) > 0


def test_secrets_of_other_traffic_open_nothing(tmp_path: Path) -> None:
    """Under the right names, so that each is tried."""
    wrong = tmp_path / "wrong.keys"
    text = "".join(log.read_text() for log in LOGS)
    wrong.write_text(re.sub(r"[0-9a-fA-F]$", lambda last: "01"[last[0] == "0"], text, flags=re.M))
    captures = [each for each in encrypted() if "dsb" not in each]
    expected, _ = kit.made(captures, tmp_path / "plain", keys=read_key_logs([wrong]))
    kit.check_against_export(tmp_path / "plain", captures, keylog=[wrong])
    found, _ = kit.made(
        captures, tmp_path / "apart", kit.Apart(), 9_000, keys=read_key_logs([wrong])
    )
    assert counted(found) == counted(expected)
    assert kit.exchanges(tmp_path / "apart") == []
    errors = {row["tls_error"] for row in kit.rows_of(tmp_path / "apart", "connections")}
    assert "bad-secret" in errors


def counted(rows: dict[str, list[Any]]) -> str:
    """Rows without what other connections have claimed while bytes were held up."""
    return re.sub(r"\d+ secrets of the key log", "N secrets of the key log", repr(rows))


@pytest.mark.parametrize("seed", each_nth(range(8), 4))
def test_damaged_traffic(seed: int, tmp_path: Path) -> None:
    """Packets that are missing, twice, or in another order, and captures that begin later."""
    random = Random(seed)
    captures = encrypted()
    packets = packets_of(Path(random.choice(captures)).name)
    lost = random.choice([0.01, 0.04])
    packets = [each for each in packets if random.random() > lost]
    packets = [each for each in packets for _ in range(1 + (random.random() < 0.02))]
    for at in range(len(packets) - 3):
        if random.random() < 0.03:
            one, other = packets[at], packets[at + random.randint(1, 3)]
            packets[at] = other._replace(time_ns=one.time_ns)
    names = [str(written(packets, tmp_path / "damaged.pcapng"))]
    size = random.choice([3000, 20_000])
    options = {"keylog": LOGS, "decode_as": PORTS, "size": size, **MORE}
    kit.made_alike(names, tmp_path, 1 + seed % 4, export=False, **options)


RESUMED = ("tls12-tickets", "tls12-session-ids", "tls13-midstream", "tls12-renegotiation-cbc")


@pytest.mark.parametrize("name", each_nth(RESUMED, 2))
def test_what_resumes_or_goes_on_in_another_file(name: str, tmp_path: Path) -> None:
    logs = [TLS / f"{name}.keys"]
    (tmp_path / "in").mkdir()
    paths = rotated(f"{name}.pcap.gz", tmp_path / "in", 23)
    whole = kit.made_alike([str(each) for each in paths], tmp_path, keylog=logs)
    out, random, keys = tmp_path / "out", Random(name), read_key_logs(logs)
    for _ in kit.in_batches(
        paths, tmp_path / "spool", out, lambda: random.choice([1, 2]), keys=keys
    ):
        assert list(leaks(out, logs)) == []
    parts = kit.without(kit.exchanges(out), "number", "file_id")
    assert parts == kit.without(kit.exchanges(tmp_path / "plain"), "number", "file_id")
    assert len(kit.tables(out)["connections"]) == len(whole["connections"])


def test_a_batch_without_the_key_log_says_so(tmp_path: Path) -> None:
    logs = [TLS / "tls13-keyupdate-client.keys"]
    first, *rest = rotated("tls13-keyupdate-client.pcap.gz", tmp_path, 60)
    spool, out = tmp_path / "spool", tmp_path / "out"
    spool.mkdir()
    shutil.copy(first, spool)
    kit.caught(spool, out, kit.NOW, keys=read_key_logs(logs))
    for path in rest:
        shutil.copy(path, spool)
    kit.caught(spool, out, kit.LAST)
    told = {row["tls_error"]: row["exchanges"] for row in kit.rows_of(out, "connections")}
    assert told.keys() == {"no-key-log"}
    assert any(told.values())


def test_the_search_for_leaks_finds_them(tmp_path: Path) -> None:
    secret = LOGS[-1].read_text().split()[2]
    for number, text in enumerate((secret, b64encode(b"xy" + bytes.fromhex(secret)).decode())):
        (tmp_path / f"{number}").write_text(f'{{"x": "{text}"}}')
    (tmp_path / "raw").write_bytes(b"-" + bytes.fromhex(secret))
    assert sorted(leaks(tmp_path, LOGS)) == ["0", "1", "raw"]


@pytest.mark.parametrize("late", [0, 60, 175])
def test_a_key_log_inside_counts_for_all_that_is_converted(late: int, tmp_path: Path) -> None:
    """Whoever reads packets as they come knows nothing of what stands behind them; files that are
    converted have all been looked at before."""
    packets = packets_of("tls13-psk.pcap.gz")
    log = (TLS / "tls13-psk.keys").read_bytes()
    first = written(packets[:late], tmp_path / "0.pcapng")
    second = written(packets[late:], tmp_path / "1.pcapng", log)
    names = [str(first), str(second)] if late else [str(second)]
    kit.made_alike(names, tmp_path, export=False)
    told = [row for row in kit.exchanges(tmp_path / "plain") if row["state"] == "answered"]
    assert len(told) == 24


def test_a_key_log_in_each_of_many_files_is_kept_once(tmp_path: Path) -> None:
    packets = packets_of("tls13-psk.pcap.gz")
    log = (TLS / "tls13-psk.keys").read_bytes()
    parts = [packets[:50], packets[50:100], packets[100:]]
    paths = [written(part, tmp_path / f"{n}.pcapng", log) for n, part in enumerate(parts)]
    names = [str(each) for each in paths]
    job = job_of(names, TableOptions())
    assert [len(file.index.secrets) for file in job.files] == [1, 0, 0]
    kit.made_alike(names, tmp_path, export=False)
    assert len(kit.exchanges(tmp_path / "apart")) == 25


def test_no_secret_is_in_a_text_about_a_job() -> None:
    logs = [TLS / "tls12-tickets.keys"]
    log = read_key_logs(logs)
    job = job_of([str(TLS / "tls12-tickets.pcap.gz")], TableOptions(), keys=log)
    config = tasks.task_config(job)
    secret = logs[0].read_text().split()[2]
    assert secret[:16].encode() in (config.keys or b"")
    for each in (job, config, log):
        assert secret[:16] not in repr(each)


def test_workers_without_the_library_say_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    capture = [str(TLS / "tls13-psk.pcap.gz")]
    keys = read_key_logs(LOGS)
    monkeypatch.setattr(tasks, "installed", lambda extra: True)  # where the job is planned
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtra, match=r"Spark worker needs the extra 'tls'"):
        kit.made(capture, tmp_path / "out", kit.Apart(), keys=keys)


def test_without_tls_a_key_log_changes_nothing(tmp_path: Path) -> None:
    capture = [str(SAMPLES / "sasl-old.pcap")]
    expected, _ = kit.made(capture, tmp_path / "plain")
    found, _ = kit.made(capture, tmp_path / "apart", kit.Apart(), keys=read_key_logs(LOGS))
    assert found == expected


KEYLOG = [word for log in LOGS for word in ("--keylog", str(log))]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of the captures that are not damaged, by the command."""
    out = tmp_path_factory.mktemp("stored")
    result = run("spark", str(TLS), "-o", str(out), "--engine", "plain", *KEYLOG)
    assert result.exit_code == 0, result.output
    return out


@pytest.mark.parametrize("words", each_nth(kit.COMMANDS, 4), ids=" ".join)
def test_commands_say_the_same_of_tables(words: tuple[str, ...], stored: Path) -> None:
    theirs = run(*words, str(TLS), "--json", *KEYLOG)
    ours = run(*words, str(stored), "--json")
    assert ours.exit_code == theirs.exit_code == 0
    assert lines_of(ours) == [ranked(line) for line in lines_of(theirs)]


def ranked(line: dict[str, Any]) -> dict[str, Any]:
    """With the ranks of exchanges in place of numbers in the order in which they came."""
    return {
        name: ranks()[value] if name in ("slowest", "largest") and value else value
        for name, value in line.items()
    }


@cache
def ranks() -> dict[int, int]:
    with open_capture([TLS], keylog=LOGS) as capture:
        found = sorted(capture.exchanges(), key=lambda exchange: exchange.origin)
        return {exchange.number: rank for rank, exchange in enumerate(found, 1)}


def test_tables_are_not_decrypted_again(stored: Path) -> None:
    for words in (("ls",), ("stats", "connections")):
        refused = run(*words, str(stored), *KEYLOG[:2])
        assert refused.exit_code == 2
        assert "holds tables: --keylog applies only when tables are made" in refused.output


def test_connections_say_why_they_cannot_be_read(stored: Path) -> None:
    expected = objects("stats", "connections", stored, "--json")
    found = {row["connection"]: row for row in kit.rows_of(stored, "connections")}
    assert len(found) == len(expected)
    for line in expected:
        mine = found[line["connection"]]
        for name in ("tls", "tls_error", "tls_note"):
            assert (mine[name] or "") == (line[name] or ""), name
    errors = {row["tls_error"] for row in found.values()}
    assert {None, "no-secret", "no-handshake"} < errors


def test_the_command_takes_key_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    capture, out = str(TLS / "tls13-psk.pcap.gz"), str(tmp_path / "out")
    words = ("spark", capture, "-o", out, "--engine", "plain", "--keylog")
    missing = run(*words, str(tmp_path / "none.keys"))
    assert missing.exit_code == 3
    assert "none.keys" in missing.output
    assert not (tmp_path / "out").exists()
    assert "SSLKEYLOGFILE is not set" in run(*words, "env").output
    monkeypatch.setenv("SSLKEYLOGFILE", str(TLS / "tls13-psk.keys"))
    for more in ((), ("--follow", "--last-file-complete")):
        result = run(*words, "env", *more)
        assert (result.exit_code, result.stderr.count("25 exchanges")) == (0, 1), result.output
        for manifest in (tmp_path / "out" / "_manifest").glob("*.json"):
            manifest.unlink()
    assert list(leaks(tmp_path, LOGS)) == []


def test_other_secrets_make_another_batch(tmp_path: Path) -> None:
    capture = [str(TLS / "tls13-psk.pcap.gz")]
    names = {
        kit.made(capture, tmp_path / str(run), keys=read_key_logs(logs))[1].manifest["batch_id"]
        for run, logs in enumerate(([], LOGS[:1], LOGS, LOGS[::-1]))
    }
    assert len(names) == 3
