"""Commands say of an encrypted capture what they say of the same traffic in plain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kafkascope.tui.cli import main
from tests.kit.samples import TLS

NAME = "tls12-tickets"


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code in (0, 1), done.output
    return done.stdout


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str | Path], list[str | Path]]:
    """What names the capture, and its plaintext."""
    encrypted = TLS / f"{NAME}.pcap.gz", "--keylog", TLS / f"{NAME}.keys"
    plain = tmp_path_factory.mktemp("plain") / "plain.pcapng"
    run("cut", *encrypted, "--decrypt", "-o", plain)
    return [*encrypted], [plain]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    "command",
    ["stats apis", "stats topics", "stats latency", "clients", "groups --members", "records"],
)
def test_numbers_and_records(both: tuple[list[str | Path], list[str | Path]], command: str) -> None:
    one, two = (lines(run(*command.split(), *each, "--json")) for each in both)
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
        run("fixture", *each, "-o", folder)
        made.append({p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.bin")})
    assert len(made[0]) > 10
    assert made[0] == made[1]


def test_a_diff_finds_none(both: tuple[list[str | Path], list[str | Path]]) -> None:
    (capture, *log), (plain,) = both
    assert [line for line in run("diff", capture, plain, *log).splitlines() if line] == []
    other = TLS / "tls13-mutual.pcap.gz"
    logs = [*log, "--keylog", TLS / "tls13-mutual.keys"]
    assert "only tls12-tickets.pcap.gz" in run("diff", capture, other, *logs)


def test_a_report_and_an_export_have_all(
    both: tuple[list[str | Path], list[str | Path]], tmp_path: Path
) -> None:
    encrypted, plain = both
    rows = lines(run("ls", *plain, "--json"))
    out = tmp_path / "out.jsonl"
    run("export", *encrypted, "--full", "-o", out)
    found = lines(out.read_text())
    assert [row["correlation_id"] for row in found] == [row["correlation_id"] for row in rows]
    assert all(row["tls"].startswith("TLS 1.2 ") for row in found)
    report = tmp_path / "report.md"
    run("report", *encrypted, "--full", "-o", report)
    text = report.read_text()
    assert f"{len(rows)} exchanges" in text
    for topic in {row["topic"] for row in lines(run("records", *plain, "--json"))}:
        assert topic in text
