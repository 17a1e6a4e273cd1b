"""Inputs that are still written, files without an end, and a reader that is stopped."""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from kafkascope.captures.errors import NotACapture
from kafkascope.captures.inputs import time_order
from kafkascope.captures.inputs.files import Source
from kafkascope.captures.inputs.growing import Pace, being_written
from kafkascope.captures.inputs.keylogs import KeyLogFollower, read_key_logs
from kafkascope.captures.inputs.small import read_limited
from kafkascope.captures.limits import LIMITS
from kafkascope.proxy.cli import proxy
from kafkascope.proxy.rules.faults import FaultError, load_rules
from kafkascope.proxy.rules.scripts.script import Script, ScriptError
from kafkascope.proxy.serve.cli import serve
from tests.kit.samples import SAMPLES

SAMPLE = SAMPLES / "libraries.pcap"


def _source(paths: list[Path]) -> tuple[Pace, Source]:
    names = [str(path) for path in paths]
    pace = Pace(len(names) - 1)
    source = Source(names)
    source.opener = pace.open
    return pace, source


def _count(source: Source) -> int:
    return sum(len(block.positions) for block in source.blocks())


def test_the_system_tells_who_writes(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.write(b"x")
        file.flush()
        assert being_written(str(path))
    past = time.time() - 1000
    os.utime(path, (past, past))
    assert not being_written(str(path))
    assert not being_written(str(tmp_path / "nothing"))


def test_a_file_that_is_written_is_followed_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    data = SAMPLE.read_bytes()
    pace, source = _source([path])
    counts: list[int] = []
    with path.open("wb") as file:
        file.write(data[:50_001])  # inside a record
        file.flush()
        reader = threading.Thread(target=lambda: counts.append(_count(source)), daemon=True)
        reader.start()
        until = time.monotonic() + 60
        while not pace.following:
            assert time.monotonic() < until
            time.sleep(0.01)
        file.write(data[50_001:])
    reader.join(60)
    assert counts == [_count(Source([str(SAMPLE)]))]
    assert not source.statistics.damage


def test_who_is_stopped_ends_behind_what_was_read_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_order, "AHEAD_BYTES", 20_000)
    path = tmp_path / "a.pcap"
    path.write_bytes(SAMPLE.read_bytes())
    pace, source = _source([path, path])
    source.block_bytes = 10_000
    blocks = source._blocks()
    seen = len(next(blocks).positions)
    pace.stopped = True
    source.upto = pace.begun
    seen += sum(len(block.positions) for block in blocks)
    assert pace.begun == 1
    assert 0 < seen < _count(Source([str(path)]))


ZERO = Path("/dev/zero")


def test_a_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(bytes(1000))
    assert read_limited(file, 1000) == bytes(1000)
    with pytest.raises(OSError, match="larger than"):
        read_limited(file, 999)


def test_rules_scripts_and_key_logs_without_an_end() -> None:
    with pytest.raises(FaultError, match="larger than 16 MB"):
        load_rules(ZERO)
    with pytest.raises(ScriptError, match="/dev/zero: larger than 16 MB"):
        Script(ZERO)
    with pytest.raises(NotACapture, match="no line of its first 16 MB"):
        read_key_logs([ZERO])


def test_a_key_log_that_is_followed_and_has_no_end() -> None:
    now = 0.0
    follower = KeyLogFollower([ZERO], lambda: now)
    for _ in range(2 * LIMITS.keylog_useless_bytes // (4 << 20)):
        now += 1
        follower.poll()
    (error,) = follower.errors()
    assert "no line of its first 16 MB" in str(error)
    follower.close()


def test_a_script_may_have_any_name(tmp_path: Path) -> None:
    file = tmp_path / "script.txt"
    file.write_text("def request(frame): pass\n")
    assert set(Script(file).functions) == {"request"}


@pytest.mark.parametrize("option", ["--rules", "--script", "--tls-cert"])
def test_devices_are_no_files_of_the_proxy(option: str) -> None:
    done = CliRunner().invoke(proxy, ["--upstream", "b:1", option, str(ZERO)])
    assert done.exit_code == 2
    assert "is a device" in done.output


def test_users_of_a_pipe_without_an_end(tmp_path: Path) -> None:
    fifo = tmp_path / "users"
    os.mkfifo(fifo)

    def write() -> None:
        descriptor = os.open(fifo, os.O_WRONLY)
        with suppress(BrokenPipeError):
            while True:
                os.write(descriptor, b"a:b\n" * 10_000)
        os.close(descriptor)

    writer = threading.Thread(target=write)
    writer.start()
    done = CliRunner().invoke(serve, ["missing.pcap", "--users", str(fifo)])
    writer.join(10)
    assert done.exit_code == 2
    assert "larger than 16 MB" in done.output
