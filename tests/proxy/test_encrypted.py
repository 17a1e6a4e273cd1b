"""An encrypted capture with its key log is served, and replayed, as the same traffic in plain."""

import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.private import PrivateFile
from tests.kit.run import objects
from tests.kit.samples import TLS

SERVE = [sys.executable, "-m", "kafkascope.tui.cli", "serve"]


def in_plain(capture: Path, keys: Path, path: Path) -> None:
    """Write the traffic as it would have been without TLS."""
    with open_capture([capture], keylog=[keys]) as opened, PrivateFile(path) as file:
        cutting = Cutting(opened.plaintext)
        opened.listener = cutting
        for exchange in opened.exchanges():
            cutting.add(exchange)
        cutting.write(file, opened.source.read)


def replayed(*arguments: str | Path) -> list[dict[str, Any]]:
    """Serve a capture and replay it to that: what is said about each answer, and in all."""
    program = [*SERVE, *map(str, arguments), "-q", "--until-eof"]
    with subprocess.Popen(program, stdin=PIPE, stdout=PIPE, text=True) as process:
        options = ("--to", process.stdout.readline().strip(), "--speed=max", "--allow-writes")
        lines = objects("replay", *arguments, *options, "--json", codes=[0, 1])
    assert lines[-1].pop("seconds") >= 0
    return lines


@pytest.mark.parametrize("name", ["tls12-tickets", "tls13-mutual"])
def test_answers_are_those_of_the_plain_capture(name: str, tmp_path: Path) -> None:
    capture, keys = TLS / f"{name}.pcap.gz", TLS / f"{name}.keys"
    plain = tmp_path / "plain.pcapng"
    in_plain(capture, keys, plain)
    found = replayed(capture, "--keylog", keys)
    assert found == replayed(plain, "-d", "tcp.port==9093,kafka")
    assert found[-1]["sent"] > 10


def test_what_cannot_be_read_is_told() -> None:
    name = TLS / "tls13-missing-key"
    arguments = [f"{name}.pcap.gz", "--keylog", f"{name}.keys", "--until-eof"]
    options = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([*SERVE, *arguments], **options)
    assert "1 TLS connection to brokers cannot be decrypted" in done.stderr
