"""`tls-keys`: ways to a key log, as they stand in the documentation, and what is in a key log."""

import json
import re
from pathlib import Path

import pytest
from click.testing import Result

from docs.print_tls import TARGET, document
from kafkascope.analyzer.commands.tls_keys import METHODS
from kafkascope.analyzer.reading.key_logs import connections_opened
from kafkascope.analyzer.reading.limits import LIMITS
from tests.captures.tls.writer import Talk
from tests.explosion.encrypted import Talked, write_encrypted
from tests.kit.run import lines_of, objects, output, run
from tests.kit.samples import TLS


def test_the_table_of_the_documentation_is_what_the_code_says() -> None:
    assert TARGET.read_text() == document()


def test_every_way_is_printed_and_each_alone() -> None:
    whole = run("tls-keys")
    assert whole.exit_code == 0
    for method in METHODS:
        one = run("tls-keys", method.name)
        assert one.exit_code == 0
        assert one.stdout.startswith(f"{method.name}: ")
        assert one.stdout.rstrip("\n") in whole.stdout
        for line in method.steps:
            assert f"    {line}\n" in one.stdout


def test_the_command_that_ways_name_are_commands_with_these_options() -> None:
    named = [line for method in METHODS for line in method.steps if line.startswith("kafkascope ")]
    assert named
    for line in named:
        words = line.partition("    #")[0].split()
        said = output(words[1], "--help")
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", line):
            assert option in said


def test_an_unknown_kind_of_client_is_refused_with_those_there_are() -> None:
    done = run("tls-keys", "erlang")
    assert done.exit_code == 2
    for method in METHODS:
        assert method.name in done.stderr


def counts(done: Result, of: str) -> dict[str, int]:
    return {row["what"]: row["count"] for row in lines_of(done) if row["subject"] == of}


@pytest.mark.parametrize("path", sorted(TLS.glob("*.keys")), ids=lambda path: path.stem)
def test_lines_of_key_logs_that_programs_wrote_are_counted_by_kind(path: Path) -> None:
    lines = path.read_text().splitlines()
    done = run("tls-keys", "check", path, "--json")
    kinds = counts(done, "lines")
    assert sum(kinds.values()) == len(lines)
    assert done.exit_code == (0 if lines else 1)
    sessions = sum(line.startswith("RSA Session-ID:") for line in lines)
    assert kinds.get("RSA Session-ID", 0) == sessions
    assert kinds.get("CLIENT_RANDOM", 0) == sum(line.startswith("CLIENT_RANDOM ") for line in lines)
    assert not [kind for kind in kinds if kind.startswith("not usable")]


def test_damaged_lines_and_other_files_are_told(tmp_path: Path) -> None:
    whole = (TLS / "tls12-cbc-sha256-etm.keys").read_text()
    path = tmp_path / "keys.log"
    path.write_text(f"# of a test\n\n{whole[:-30]}")
    kinds = counts(run("tls-keys", "check", path, "--json"), "lines")
    assert kinds.pop("comment") == 1
    assert kinds.pop("CLIENT_RANDOM") == whole.count("\n") - 1
    assert list(kinds.values()) == [1]
    path.write_bytes(bytes(range(256)) * 1000)
    assert run("tls-keys", "check", path).exit_code == 1
    missing = run("tls-keys", "check", str(tmp_path / "none"))
    assert missing.exit_code == 3
    assert "none: " in missing.stderr


@pytest.mark.parametrize(
    ("name", "log", "expected", "code"),
    [
        ("tls12-tickets", "tls12-tickets", {"opened": 8}, 0),
        ("tls12-session-ids", "tls12-session-ids", {"opened": 5}, 0),
        ("tls13-missing-key", "tls13-missing-key", {"opened": 2, "no-secret": 1}, 1),
        ("tls13-https", "tls13-psk", {"no-secret": 2}, 1),
        ("failed13-expired", "failed13-expired", {"handshake that failed": 1}, 0),
    ],
)
def test_connections_that_a_key_log_opens_are_counted(
    name: str, log: str, expected: dict[str, int], code: int
) -> None:
    done = run(
        "tls-keys", "check", str(TLS / f"{log}.keys"), str(TLS / f"{name}.pcap.gz"), "--json"
    )
    assert counts(done, "connections") == expected
    assert done.exit_code == code


def test_what_a_damaged_line_begins_with_is_not_shown(tmp_path: Path) -> None:
    # A label for each line, in memory and in the table; and a secret may stand in its place.
    path = tmp_path / "keys.log"
    secret = "AB" * 48
    lines = [f"LABEL_{number} {number:064x} {number:064x}\n" for number in range(1000)]
    path.write_text("".join(lines) + f"{secret} {'1' * 64} {'2' * 64}\n")
    done = run("tls-keys", "check", path, "--json")
    assert counts(done, "lines") == {"another label": 1001}
    assert secret not in done.output


def test_connections_are_counted_once_however_many_they_are(tmp_path: Path) -> None:
    path = tmp_path / "in.pcapng"
    refused = Talked([*Talk(0x1301).pairs()[:1], (1, b"\x15\3\3\0\2\2\x28")], closed=True)
    whole = Talked(Talk(0x1301).client(b"a" * 99).server(b"b" * 99).pairs(), closed=True)
    write_encrypted(path, [refused, whole] * 50)
    log = TLS / "tls12-tickets.keys"
    few = LIMITS._replace(ended_connections=10)
    found = connections_opened((str(path),), str(log), few)
    assert found == {"handshake that failed": 50, "no-secret": 50}


# --- encrypted captures tell what the same traffic tells in plain ---------------------------------


NAME = "tls12-tickets"


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str | Path], list[str | Path]]:
    """What names the capture, and its plaintext."""
    encrypted = TLS / f"{NAME}.pcap.gz", "--keylog", TLS / f"{NAME}.keys"
    plain = tmp_path_factory.mktemp("plain") / "plain.pcapng"
    output("cut", *encrypted, "--decrypt", "-o", plain)
    return [*encrypted], [plain]


@pytest.mark.parametrize(
    "command",
    ["stats apis", "stats topics", "stats latency", "clients", "groups --members", "records"],
)
def test_numbers_and_records(both: tuple[list[str | Path], list[str | Path]], command: str) -> None:
    one, two = (objects(*command.split(), *each, "--json") for each in both)
    assert one
    for row in (*one, *two):
        # Where things stand, and what TLS says of itself.
        for name in ("packet", "exchange_id", "connection_id", "file", "user", "tls"):
            row.pop(name, None)
    assert one == two


def test_a_fixture_has_the_same_messages(
    both: tuple[list[str | Path], list[str | Path]], tmp_path: Path
) -> None:
    made = []
    for index, each in enumerate(both):
        folder = tmp_path / str(index)
        output("fixture", *each, "-o", folder)
        made.append({p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.bin")})
    assert len(made[0]) > 10
    assert made[0] == made[1]


def test_a_diff_finds_none(both: tuple[list[str | Path], list[str | Path]]) -> None:
    (capture, *log), (plain,) = both
    assert not output("diff", capture, plain, *log).strip()
    other = TLS / "tls13-mutual.pcap.gz"
    logs = [*log, "--keylog", TLS / "tls13-mutual.keys"]
    assert "only tls12-tickets.pcap.gz" in output("diff", capture, other, *logs, codes=(1,))


def test_a_report_and_an_export_have_all(
    both: tuple[list[str | Path], list[str | Path]], tmp_path: Path
) -> None:
    encrypted, plain = both
    rows = objects("ls", *plain, "--json")
    out = tmp_path / "out.jsonl"
    output("export", *encrypted, "--full", "-o", out)
    found = list(map(json.loads, out.read_text().splitlines()))
    assert [row["correlation_id"] for row in found] == [row["correlation_id"] for row in rows]
    assert all(row["tls"].startswith("TLS 1.2 ") for row in found)
    report = tmp_path / "report.md"
    output("report", *encrypted, "--full", "-o", report)
    text = report.read_text()
    assert f"{len(rows)} exchanges" in text
    for topic in {row["topic"] for row in objects("records", *plain, "--json")}:
        assert topic in text
