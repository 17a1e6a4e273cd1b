"""An encrypted capture with its key log is served, and replayed, as the same traffic in plain."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.transform.cut import Cutting
from kafkascope.private import PrivateFile
from tests.kit.samples import TLS

KAFKASCOPE = [sys.executable, "-m", "kafkascope.tui.cli"]


def in_plain(capture: Path, keys: Path, path: Path) -> None:
    """Write the traffic as it would have been without TLS."""
    with open_capture([capture], keylog=[keys]) as opened, PrivateFile(path) as file:
        cutting = Cutting(opened.plaintext)
        opened.listener = cutting
        for exchange in opened.exchanges():
            cutting.add(exchange)
        cutting.write(file, opened.source.read)


@contextmanager
def served(*arguments: str | Path) -> Iterator[str]:
    """Serve a capture; the address."""
    with subprocess.Popen(
        [*KAFKASCOPE, "serve", *arguments, "-q", "--until-eof"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process.stdout.readline().strip()


def replayed(address: str, *arguments: str | Path) -> list[dict[str, Any]]:
    """What replaying a capture says about each answer, and in all."""
    options = ["--to", address, "--speed=max", "--allow-writes", "--json"]
    done = subprocess.run(
        [*KAFKASCOPE, "replay", *arguments, *options],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stderr
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1].pop("seconds") >= 0
    return lines


@pytest.mark.parametrize("name", ["tls12-tickets", "tls13-mutual"])
def test_answers_are_those_of_the_plain_capture(name: str, tmp_path: Path) -> None:
    capture, keys = TLS / f"{name}.pcap.gz", TLS / f"{name}.keys"
    plain = tmp_path / "plain.pcapng"
    in_plain(capture, keys, plain)
    found = []
    for arguments in ((capture, "--keylog", keys), (plain, "-d", "tcp.port==9093,kafka")):
        with served(*arguments) as address:
            found.append(replayed(address, *arguments))
    assert found[0] == found[1]
    assert found[0][-1]["sent"] > 10


def test_what_cannot_be_read_is_told() -> None:
    name = TLS / "tls13-missing-key"
    arguments = [f"{name}.pcap.gz", "--keylog", f"{name}.keys", "--until-eof"]
    done = subprocess.run(
        [*KAFKASCOPE, "serve", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "1 TLS connection to brokers cannot be decrypted" in done.stderr
