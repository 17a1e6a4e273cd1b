"""Brokers that answer anything at all: replay ends with a sentence, never with a fault of ours."""

import struct
import time
from pathlib import Path

import pytest
from click.testing import Result
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.dissectors.registry import read_request_header
from kafkascope.proxy.limits import Limits
from kafkascope.proxy.sasl import MECHANISMS
from tests.analyzer.broken import broken, heard_from
from tests.kit.brokers import bad_answer, blank, broker
from tests.kit.run import run
from tests.kit.samples import SAMPLES
from tests.kit.wire import response
from tests.proxy.mutations import Gatekeeper, Liar

SAMPLE_NAMES = [
    f"{name}.pcap" for name in ("java-old", "transactions", "rebalance", "librdkafka", "sasl")
]

HURRIED = Limits(pause_s=0.001, tries=3)


def replayed(sample: str, seed: int, count: int = 60) -> tuple[int, str]:
    """Lies told, and what was printed."""
    liar = Liar(sample, seed)
    with broker(liar) as port:
        to = f"127.0.0.1:{port}"
        arguments = ["replay", str(SAMPLES / sample), "--to", to, "--speed", "max"]
        arguments += ["--timeout", "0.1", "--create-topics", "-c", str(count)]
        if seed % 2:
            arguments += ["--allow-writes", "--group-prefix", "p-"]
        result = run(*arguments, obj=HURRIED)
    error = result.exception
    assert error is None or isinstance(error, SystemExit), (sample, seed, error)
    assert result.exit_code in (0, 1, 2, 3), (sample, seed, result.output)
    assert "Traceback" not in result.output
    assert result.output.strip()
    return liar.lies, result.output


def logged_in(mechanism: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Lies of a broker that asks for a password, and how often it let us in."""
    monkeypatch.setenv("KAFKASCOPE_PASSWORD", "p")
    keeper = Gatekeeper(seed)
    with broker(keeper) as port:
        arguments = ["replay", str(SAMPLES / "sasl.pcap"), "--to", f"127.0.0.1:{port}"]
        arguments += ["--speed", "max", "--timeout", "0.5", "-c", "5"]
        result = run(*arguments, "--sasl", mechanism, "--user", "u", obj=HURRIED)
    error = result.exception
    assert error is None or isinstance(error, SystemExit), (mechanism, seed, error)
    # 2 would mean that the capture or the command line is wrong.
    assert result.exit_code in (0, 1, 3), (mechanism, seed, result.output)
    assert "Traceback" not in result.output
    assert result.output.replace("\n", "").isprintable(), (mechanism, seed, result.output)
    assert 0 < len(result.output) < 20_000, (mechanism, seed)
    return keeper.lies, keeper.passed


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_login_is_a_fault_of_ours(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = [logged_in(mechanism, seed, monkeypatch) for seed in range(40)]
    assert sum(lies for lies, _ in told) > 40
    assert sum(passed > 0 for _, passed in told) > 5  # else the last token is never judged


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_nor_are_a_thousand_logins(mechanism: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(1_000, 2_000):
        logged_in(mechanism, seed, monkeypatch)


@pytest.mark.parametrize("sample", SAMPLE_NAMES)
def test_no_answer_is_a_fault_of_ours(sample: str) -> None:
    lies = sum(replayed(sample, seed)[0] for seed in range(6))
    assert lies > 20


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_nor_are_ten_thousand() -> None:
    lies, seed = 0, 1_000
    while lies < 10_000:
        lies += replayed(SAMPLE_NAMES[seed % len(SAMPLE_NAMES)], seed, count=200)[0]
        seed += 1


def test_no_coordinator_at_all() -> None:
    """A FindCoordinator response with an empty array was an IndexError."""

    def nobody(payload: bytes, port: int) -> bytes | None:
        head = read_request_header(payload)
        if head.api_key != 10 or head.api_version < 4:
            return blank(payload, port)
        return response("FindCoordinator", head.api_version, head.correlation_id)

    with broker(nobody) as port:
        result = replay(SAMPLES / "transactions.pcap", port, *WRITES, answer_s=1)
    assert "requests sent" in result.output


# --- whatever a capture or a target is like, replay ends in its time, with a sentence -------------


WRITES = ("--allow-writes", "--group-prefix", "p-")
PATIENT_SECONDS = 300.0
"""Far more than any of these takes, far less than for ever."""


def replay(path: Path, port: int, *options: str, answer_s: float = 30) -> Result:
    begun = time.monotonic()
    arguments = ["replay", str(path), "--to", f"PLAINTEXT://127.0.0.1:{port}", "--speed", "max"]
    arguments += ["--timeout", str(answer_s), *options]
    result = run(*arguments, obj=Limits(pause_s=0.001))
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
