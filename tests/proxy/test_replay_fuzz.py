"""Brokers that answer anything at all: replay ends with a sentence, never with a fault of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from proxy.replay import cluster, run
from tests.analyzer.broken import SAMPLES
from tests.proxy.dummy import blank, broker
from tests.proxy.mutations import Liar
from tui.cli import main

SAMPLE_NAMES = (
    "java-old.pcap",
    "transactions.pcap",
    "rebalance.pcap",
    "librdkafka.pcap",
    "sasl.pcap",
)


@pytest.fixture(scope="module", autouse=True)
def hurried() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (cluster, run):
            patch.setattr(module, "PAUSE", 0.001)
            patch.setattr(module, "TRIES", 3)
        yield


def replayed(sample: str, seed: int, count: int = 60) -> tuple[int, str]:
    """Lies told, and what was printed."""
    liar = Liar(sample, seed)
    with broker(liar) as port:
        to = f"127.0.0.1:{port}"
        arguments = ["replay", str(SAMPLES / sample), "--to", to, "--speed", "max"]
        arguments += ["--timeout", "0.1", "--create-topics", "-c", str(count)]
        if seed % 2:
            arguments += ["--allow-writes", "--group-prefix", "p-"]
        result = CliRunner().invoke(main, arguments)
    error = result.exception
    assert error is None or isinstance(error, SystemExit), (sample, seed, error)
    assert result.exit_code in (0, 1, 2, 3), (sample, seed, result.output)
    assert "Traceback" not in result.output
    assert result.output.strip()
    return liar.lies, result.output


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
    import struct

    from dissectors.registry import example, layout_of, read_request_header, write_layout

    def nobody(payload: bytes, port: int) -> bytes | None:
        head = read_request_header(payload)
        if head.api_key != 10 or head.api_version < 4:
            return blank(payload, port)
        body = example("FindCoordinatorResponse", head.api_version)
        answer = struct.pack(">iB", head.correlation_id, 0)
        answer += write_layout(layout_of("FindCoordinatorResponse", head.api_version), body)
        return struct.pack(">i", len(answer)) + answer

    with broker(nobody) as port:
        to = f"127.0.0.1:{port}"
        options = ["--speed", "max", "--timeout", "1", "--allow-writes", "--group-prefix", "p-"]
        path = str(SAMPLES / "transactions.pcap")
        result = CliRunner().invoke(main, ["replay", path, "--to", to, *options])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "requests sent" in result.output
