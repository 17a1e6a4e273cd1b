"""Commands say of an encrypted capture what they say of the same traffic in plain."""

import json
from pathlib import Path

import pytest

from tests.kit.run import objects, output
from tests.kit.samples import TLS

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
