"""Whatever a capture or a target is like, replay ends in its time, with a sentence and a code."""

from __future__ import annotations

import struct
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.proxy.limits import Limits
from kafkascope.tui.cli import main
from tests.analyzer.broken import SAMPLES, broken, heard_from
from tests.proxy.dummy import bad_answer, blank, broker

WRITES = ("--allow-writes", "--group-prefix", "p-")
PATIENT_SECONDS = 300.0
"""Far more than any of these takes, far less than for ever."""


def replay(path: Path, port: int, *options: str, answer_s: float = 30) -> Result:
    begun = time.monotonic()
    arguments = ["replay", str(path), "--to", f"PLAINTEXT://127.0.0.1:{port}", "--speed", "max"]
    arguments += ["--timeout", str(answer_s), *options]
    result = CliRunner().invoke(main, arguments, obj=Limits(pause_s=0.001))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    assert time.monotonic() - begun < PATIENT_SECONDS
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken")


@settings(max_examples=25)
@given(data=broken(), writes=st.booleans())
def test_any_capture_is_replayed_or_refused(folder: Path, data: bytes, writes: bool) -> None:
    path = folder / "a.pcap"
    path.write_bytes(data)
    with broker(blank) as port:
        result = replay(path, port, *(WRITES if writes else ()), answer_s=0.2)
    assert result.exit_code in (0, 1, 2, 3, 4), result.output


def test_answers_that_are_older_than_their_requests_are_not_waited_for(tmp_path: Path) -> None:
    data = bytearray((SAMPLES / "sasl-old.pcap").read_bytes())
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    for number in range(1_000_000):
        if at >= len(data):
            break
        second, _, size = struct.unpack_from(f"{order}III", data, at)
        if number % 3:
            struct.pack_into(f"{order}I", data, at, second - number)  # a clock that runs backwards
        at += 16 + size
    path = tmp_path / "a.pcap"
    path.write_bytes(data)
    with broker(blank) as port:
        result = replay(path, port)
    assert result.exit_code in (0, 1), result.output


@pytest.mark.parametrize("after", [0, 2, 9])
@pytest.mark.parametrize(
    "kind", ["garbage", "huge", "negative", "empty", "other", "silent", "closed"]
)
def test_no_target_keeps_us(kind: str, after: int) -> None:
    with broker(bad_answer(kind, after)) as port:
        result = replay(SAMPLES / "sasl-old.pcap", port, answer_s=0.2)
    assert result.exit_code in (1, 2, 3), result.output
    assert result.output.strip()


def test_answers_without_requests_are_not_sent(tmp_path: Path) -> None:
    sample = (SAMPLES / "transactions.pcap").read_bytes()
    (tmp_path / "one.pcap").write_bytes(heard_from(sample, broker=True))
    with broker(blank) as port:
        result = replay(tmp_path / "one.pcap", port)
    assert "0 requests sent" in result.output
    assert "requests" in result.output.replace("0 requests sent", "")


def test_nobody_listens(tmp_path: Path) -> None:
    kept = tmp_path / "before.txt"
    kept.write_text("what was found the last time")
    result = replay(SAMPLES / "sasl-old.pcap", 1, "-o", str(kept))
    assert result.exit_code == 3
    assert "127.0.0.1:1" in result.output
    assert kept.read_text() == "what was found the last time"
