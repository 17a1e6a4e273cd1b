"""`capture`: what a capturing program writes becomes a file; nothing is left where it may not."""

import gzip
import os
import signal
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from kafkascope.analyzer.exchanges.offline import open_capture
from tests.kit.captures import capture_file
from tests.kit.run import run
from tests.kit.samples import SAMPLES, TLS
from tests.kit.wire import beat, heartbeat

SAMPLE = SAMPLES / "libraries.pcap"


def program(monkeypatch: pytest.MonkeyPatch, code: str, *more: Path) -> list[tuple[str, str]]:
    """Stands for tcpdump; what it was asked for."""
    asked: list[tuple[str, str]] = []

    def command(interface: str, capture_filter: str = "") -> list[str]:
        asked.append((interface, capture_filter))
        return [sys.executable, "-c", code, *map(str, more)]

    monkeypatch.setattr("kafkascope.captures.live.capture_command", command)
    return asked


def test_packets_go_to_the_file_as_they_came(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    code = f"import sys; sys.stdout.buffer.write(open({str(SAMPLE)!r},'rb').read())"
    asked = program(monkeypatch, code)
    target = tmp_path / "kept.pcap"
    arguments = ["-i", "eth0", "-f", "port 9092", "-w", target]
    done = run("capture", *arguments)
    assert done.exit_code == 0, done.output
    assert asked == [("eth0", "port 9092")]
    assert target.read_bytes() == SAMPLE.read_bytes()
    with open_capture([target]) as found:
        count = sum(1 for _ in found.exchanges())
    assert f"{count:,} exchanges written" in done.output
    assert run("capture", *arguments).exit_code == 2


def test_it_stops_after_so_many_exchanges(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = f"import sys,time; sys.stdout.buffer.write(open({str(SAMPLE)!r},'rb').read());"
    program(monkeypatch, code + "sys.stdout.flush(); time.sleep(60)")
    target = tmp_path / "kept.pcap"
    done = run("capture", "-i", "eth0", "-w", target, "-c", "5")
    assert "5 exchanges written" in done.output
    assert target.stat().st_size > 1000


def test_the_count_has_requests_without_response(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # The first request never gets one: in the order of numbers the others would wait for it.
    path = capture_file(tmp_path / "sent.pcapng", [("client", heartbeat(1))])
    answered = [("client", heartbeat(1)), ("broker", beat(1))]
    other = capture_file(tmp_path / "other.pcapng", answered, port=9093)
    code = "import sys,time; [sys.stdout.buffer.write(open(p,'rb').read()) for p in sys.argv[1:]];"
    program(monkeypatch, code + "sys.stdout.flush(); time.sleep(60)", path, other)
    target = tmp_path / "kept.pcap"
    done = run("capture", "-i", "lo", "-w", target, "--for", "0.5")
    assert "2 exchanges written" in done.output, done.output


def test_a_missing_right_leaves_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program(monkeypatch, "import sys; sys.exit('you do not have permission to capture')")
    done = run("capture", "-i", "eth0", "-w", tmp_path / "kept.pcap")
    assert done.exit_code == 5
    assert "setcap" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_time_ends_a_job_in_the_background(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A shell starts such jobs with SIGINT ignored."""
    program(monkeypatch, "import time; time.sleep(60)")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        began = time.monotonic()
        arguments = ["-i", "eth0", "-w", tmp_path / "kept.pcap", "--for", "0.2"]
        assert run("capture", *arguments).exit_code == 0
        assert time.monotonic() - began < 30
    finally:
        signal.signal(signal.SIGINT, before)


def test_it_ends_with_the_reader_of_its_pipe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without packets nothing is written that would fail."""
    program(monkeypatch, "import time; time.sleep(60)")
    fifo = tmp_path / "packets"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    timer = threading.Timer(0.3, os.close, [reader])
    timer.start()
    begun = time.monotonic()
    before = signal.getsignal(signal.SIGALRM)
    run("capture", "-i", "eth0", "-w", fifo)
    assert time.monotonic() - begun < 20
    assert signal.getsignal(signal.SIGALRM) is before
    assert fifo.exists()


FOREIGN = b"CLIENT_TRAFFIC_SECRET_0 " + b"ab" * 32 + b" " + b"cd" * 32 + b"\n"
LATE = """
import sys, time
packets = open(sys.argv[1], "rb").read()
sys.stdout.buffer.write(packets[: len(packets) // 3])
sys.stdout.flush()
time.sleep(0.4)
with open(sys.argv[3], "ab") as log:
    log.write(open(sys.argv[2], "rb").read())
sys.stdout.buffer.write(packets[len(packets) // 3 :])
"""


@pytest.mark.parametrize("name", ["tls13-mutual", "tls12-tickets"])
def test_secrets_stand_before_the_packets_that_need_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """Also those that the key log gets when the packets have come; and no others."""
    packets = tmp_path / "packets.pcap"
    packets.write_bytes(gzip.decompress((TLS / f"{name}.pcap.gz").read_bytes()))
    keys, log, kept = TLS / f"{name}.keys", tmp_path / "log", tmp_path / "kept.pcapng"
    log.write_bytes(FOREIGN)
    program(monkeypatch, LATE, packets, keys, log)
    arguments = ["-i", "eth0", "-w", kept, "--keylog", log, "--secrets"]
    done = run("capture", *arguments)
    assert done.exit_code == 0, done.output
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with open_capture([kept]) as one, open_capture([packets], keylog=[keys]) as other:
        wanted = sum(1 for _ in other.exchanges())
        assert sum(1 for _ in one.exchanges()) == wanted > 0
        assert one.source.statistics.packets == other.source.statistics.packets
        blocks = one.source.secrets
    assert f"{wanted:,} exchanges written" in done.output
    written = b"".join(each.data for each in blocks).splitlines()
    assert written
    assert len(written) == len(set(written))
    assert FOREIGN.strip() not in written
    everything = kept.read_bytes()
    for line in written:
        random = line.split()[1]
        hello = everything.find(bytes.fromhex(random.decode()))
        assert hello == -1 or everything.index(line) < hello


def test_secrets_need_a_key_log(tmp_path: Path) -> None:
    done = run("capture", "-i", "lo", "-w", tmp_path / "x", "--secrets")
    assert done.exit_code == 2
    assert "--keylog FILE" in done.output
