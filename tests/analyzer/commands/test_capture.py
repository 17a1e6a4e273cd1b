"""`capture`: what a capturing program writes becomes a file; nothing is left where it may not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.commands.capture import capture
from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.captures.errors import NotAllowed

SAMPLE = Path(__file__).parents[3] / "captures" / "samples" / "libraries.pcap"


def program(monkeypatch: pytest.MonkeyPatch, code: str) -> list[tuple[str, str]]:
    """Stands for tcpdump; what it was asked for."""
    asked: list[tuple[str, str]] = []

    def command(interface: str, capture_filter: str = "") -> list[str]:
        asked.append((interface, capture_filter))
        return [sys.executable, "-c", code]

    monkeypatch.setattr("kafkascope.captures.live.capture_command", command)
    return asked


def test_packets_go_to_the_file_as_they_came(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = f"import sys; sys.stdout.buffer.write(open({str(SAMPLE)!r},'rb').read())"
    asked = program(monkeypatch, code)
    target = tmp_path / "kept.pcap"
    arguments = ["-i", "eth0", "-f", "port 9092", "-w", str(target)]
    done = CliRunner().invoke(capture, arguments)
    assert done.exit_code == 0, done.output
    assert asked == [("eth0", "port 9092")]
    assert target.read_bytes() == SAMPLE.read_bytes()
    with open_capture([target]) as found:
        count = sum(1 for _ in found.exchanges())
    assert f"{count:,} exchanges written" in done.output
    assert CliRunner().invoke(capture, arguments).exit_code == 2


def test_it_stops_after_so_many_exchanges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = f"import sys,time; sys.stdout.buffer.write(open({str(SAMPLE)!r},'rb').read());"
    program(monkeypatch, code + "sys.stdout.flush(); time.sleep(60)")
    target = tmp_path / "kept.pcap"
    done = CliRunner().invoke(capture, ["-i", "eth0", "-w", str(target), "-c", "5"])
    assert "5 exchanges written" in done.output
    assert target.stat().st_size > 1000


def test_a_missing_right_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(monkeypatch, "import sys; sys.exit('you do not have permission to capture')")
    done = CliRunner().invoke(capture, ["-i", "eth0", "-w", str(tmp_path / "kept.pcap")])
    assert isinstance(done.exception, NotAllowed)
    assert "setcap" in str(done.exception)
    assert list(tmp_path.iterdir()) == []
