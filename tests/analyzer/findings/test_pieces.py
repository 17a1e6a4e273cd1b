"""A piece of a capture supports no error or warning that the whole does not support."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from analyzer.findings import Finding
from tests.analyzer.findings.test_captures import HERE, SAMPLES, judged
from tui.cli import main

QUICK: Final = (
    "acl-denied-java",
    "advertised-port-java",
    "broker-down-java",
    "broker-killed-java",
    "client-per-message-librdkafka",
    "commit-ahead-java",
    "firewall-idle-drop-librdkafka",
    "group-shared-mixed-topics",
    "healthy-idle-java",
    "healthy-java",
    "healthy-rolling-restart-librdkafka",
    "idle-closed-java",
    "max-poll-java",
    "min-isr-java",
    "out-of-order-sequence-librdkafka",
    "rebalance-storm-librdkafka",
    "sasl-expired-aiokafka",
    "session-timeout-librdkafka",
    "static-conflict-java",
    "topic-deleted-java",
)
"""Captures of which a few pieces are tried; of all captures, many in the soak."""
LOUD: Final = ("error", "warning")
ALIKE: Final = {"address-unreachable": "broker-down"}
"""A piece without the time in which a broker worked shows the same refused connects, and cannot
tell that its address is right."""


def unsupported(path: Path, tmp_path: Path, pieces: int) -> list[str]:
    """What pieces of a capture say that the whole does not: neither the same rule nor of the same
    subject."""
    whole, pairs = judged(path)
    times = [row.time_ns for row, _ in pairs]
    if len(times) < 2:
        return []
    chance = random.Random(path.name)
    length = (max(times) - min(times)) / 1e9
    wrong = []
    for number in range(pieces):
        begin, end = sorted(chance.uniform(0, length) for _ in range(2))
        piece = tmp_path / f"{number}.pcapng"
        span = ("--from", f"{begin:.3f}", "--to", f"{end:.3f}")
        done = CliRunner().invoke(main, ["cut", str(path), *span, "-q", "-o", str(piece)])
        if done.exit_code or not piece.exists():
            continue
        found, _ = judged.__wrapped__(piece)
        wrong += [
            f"{begin:.3f} to {end:.3f}: {each.name}: {each.text}"
            for each in found
            if each.severity in LOUD and not supported(each, whole)
        ]
    return wrong


def supported(finding: Finding, whole: list[Finding]) -> bool:
    """Whether the whole tells the same of one of the same."""
    mine = set(finding.entities)
    return any(
        each.name in (finding.name, ALIKE.get(finding.name))
        and (not mine or mine & set(each.entities))
        for each in whole
    )


@pytest.mark.parametrize("name", QUICK)
def test_a_piece_tells_no_more_than_the_whole(name: str, tmp_path: Path) -> None:
    path = next((HERE / "causes").glob(f"{name}.pcap*"))
    assert not unsupported(path, tmp_path, pieces=2)


@pytest.mark.soak
@pytest.mark.parametrize(
    "path",
    [*sorted(HERE.glob("**/*.pcap*")), *sorted(SAMPLES.glob("*.pcap*"))],
    ids=lambda path: path.name,
)
def test_no_piece_of_any_capture_tells_more(path: Path, tmp_path: Path) -> None:
    assert not unsupported(path, tmp_path, pieces=10)
