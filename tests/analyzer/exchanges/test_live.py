"""Encrypted traffic is read while it comes, and its key log is written after the packets."""

import gzip
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from tests.kit.samples import TLS

NAME = "tls13-mutual"
WAIT = 40.0


def packets(name: str = NAME) -> bytes:
    return gzip.decompress((TLS / f"{name}.pcap.gz").read_bytes())


def secrets(name: str = NAME) -> str:
    return (TLS / f"{name}.keys").read_text()


def expected(name: str = NAME) -> list[str]:
    """The rows, by what a stream has in common with a file."""
    with open_capture([TLS / f"{name}.pcap.gz"], keylog=[TLS / f"{name}.keys"]) as found:
        return sorted(f"{each.api} {each.correlation_id}" for each in found.exchanges() if each.api)


class Listing:
    """`kafkascope ls -` with a pipe, and its lines."""

    def __init__(self, log: Path) -> None:
        command = [sys.executable, "-P", "-m", "kafkascope.tui.cli", "ls", "-", "--json"]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([*command, "--keylog", str(log)], **pipes)
        self.timer = threading.Timer(WAIT, self.process.kill)
        self.timer.start()
        self.rows: list[dict[str, Any]] = []

    def send(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def take(self, count: int) -> None:
        """Wait for so many rows."""
        for _ in range(count):
            line = self.process.stdout.readline()
            if not line:
                said = self.process.communicate()[1].decode()
                raise AssertionError(f"ended with {self.process.returncode}: {said} {self.rows}")
            self.rows.append(json.loads(line))

    def end(self, *, interrupt: bool = False) -> str:
        """End the input; return what was said."""
        if interrupt:
            time.sleep(1)  # it is told a row at a time, and then waits for packets
            self.process.send_signal(signal.SIGINT)
        out, said = self.process.communicate()
        self.rows += map(json.loads, out.splitlines())
        return said.decode()

    def close(self) -> None:
        self.timer.cancel()
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The key log, which is not there yet."""
    return tmp_path / "keys.log"


@pytest.fixture
def listing(log: Path) -> Iterator[Listing]:
    made = Listing(log)
    yield made
    made.close()


def told(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(f"{row['api']} {row['correlation_id']}" for row in rows if row["api"])


def test_rows_come_when_the_secrets_do_though_nothing_else_comes(
    log: Path, listing: Listing
) -> None:
    listing.send(packets())
    lines = secrets().splitlines(keepends=True)
    for begin, end in ((0, 1), (1, 2), (2, len(lines))):
        with log.open("a") as file:
            file.write("".join(lines[begin:end]))
    wanted = expected()
    listing.take(len(wanted))  # the pipe is open, and silent
    assert listing.process.poll() is None
    assert told(listing.rows) == wanted
    numbers = [row["number"] for row in listing.rows]
    assert sorted(numbers) == sorted(set(numbers))
    assert "no such file" not in listing.end()


@pytest.mark.parametrize("interrupt", [False, True])
def test_what_still_waits_at_the_end_is_told(log: Path, listing: Listing, interrupt: bool) -> None:
    log.write_text(secrets("tls13-missing-key"))
    listing.send(packets("tls13-missing-key"))
    wanted = expected("tls13-missing-key")
    listing.take(len(wanted))
    assert told(listing.rows) == wanted
    listing.end(interrupt=interrupt)
    left = [row for row in listing.rows if not row["api"]]
    assert left
    assert all("waited for until the capture ended" in row["reason"] for row in left)


def test_a_key_log_that_never_came_is_named(log: Path, listing: Listing) -> None:
    listing.send(packets())
    assert f"{log}: no such file or folder" in listing.end()


def test_of_a_file_on_disk_the_log_is_read_once(log: Path) -> None:
    with pytest.raises(Exception, match="no such file"):
        open_capture([TLS / f"{NAME}.pcap.gz"], keylog=[log])
    with open_capture([TLS / f"{NAME}.pcap.gz"], keylog=[TLS / f"{NAME}.keys"]) as capture:
        assert not capture.context.keys.growing
        assert capture.source.patience is None
