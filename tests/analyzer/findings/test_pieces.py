"""A piece of a capture supports no error or warning that the whole does not support."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from kafkascope.analyzer.findings import Finding
from kafkascope.captures import open_inputs
from kafkascope.captures.formats.write import PcapngWriter
from kafkascope.captures.model import Packet
from kafkascope.tui.cli import main
from tests.analyzer.findings.test_captures import HERE, SAMPLES, judged

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
ALIKE: Final = {
    "address-unreachable": "broker-down",
    "offset-out-of-range": "retention-overtook",
    "reader-stuck": "fetched-repeatedly",
    "sequence-gap": "sequence-refused",
    "unanswered": "late-answer",
    "version-refused": "proxy-protocol",
}
"""What is seen of one trouble, where a piece ends or begins too early to tell the whole of it: the
same connects are refused before the cluster says that the broker is gone, when its better days came
before the piece; the same offset is out of range when the reads up to it did; numbers are missing
before the broker says so; a reader that goes in circles stands at one offset for a while; an answer
that comes after the piece is none yet; and a piece lacks the header before the first request."""


def cut_out(path: Path, pieces: int, folder: Path) -> Iterator[tuple[str, Path]]:
    """Pieces as `kafkascope cut` makes them of random times: with handshakes, without half
    exchanges."""
    _, pairs = judged(path)
    times = [row.time_ns for row, _ in pairs]
    length = (max(times, default=0) - min(times, default=0)) / 1e9
    chance = random.Random(path.name)
    for number in range(pieces):
        begin, end = sorted(chance.uniform(0, length) for _ in range(2))
        piece = folder / f"cut{number}.pcapng"
        span = ("--from", f"{begin:.3f}", "--to", f"{end:.3f}")
        done = CliRunner().invoke(main, ["cut", str(path), *span, "-q", "-o", str(piece)])
        if done.exit_code == 0 and piece.exists():
            yield f"{begin:.3f} to {end:.3f} s", piece


def captured(path: Path, pieces: int, folder: Path) -> Iterator[tuple[str, Path]]:
    """Pieces as one who captures later, or not as long, would have them: packets in a row."""
    with open_inputs([path]) as source:
        packets = list(source.packets())
    chance = random.Random(path.name)
    for number in range(pieces):
        begin, end = sorted(chance.randrange(len(packets) + 1) for _ in range(2))
        # Every other one begins or ends with the capture.
        begin, end = ((0, end), (begin, end), (begin, len(packets)), (begin, end))[number % 4]
        if begin < end:
            piece = folder / f"captured{number}.pcapng"
            yield f"packets {begin + 1} to {end}", written(packets[begin:end], piece)


def written(packets: Iterable[Packet], piece: Path) -> Path:
    """A capture of packets as they are."""
    known: dict[int, int] = {}
    with piece.open("wb") as file:
        writer = PcapngWriter(file)
        for each in packets:
            if each.link_type not in known:
                known[each.link_type] = writer.interface("lo", link_type=each.link_type)
            interface = known[each.link_type]
            writer.packet(each.data, each.time_ns, interface=interface, length=each.length)
    return piece


def unsupported(path: Path, folder: Path, pieces: int) -> list[str]:
    """What pieces of a capture say that the whole does not: neither the same rule nor of the same
    subject. What is folded into a cause is no claim of its own."""
    whole, _ = judged(path)
    wrong = []
    for span, piece in (*cut_out(path, pieces, folder), *captured(path, pieces, folder)):
        found, _ = judged.__wrapped__(piece)
        sound = {each.id for each in found if supported(each, whole)}
        wrong += [
            f"{span}: {each.name}: {each.text}"
            for each in found
            if each.severity in LOUD and each.id not in sound and not sound & set(each.because)
        ]
    return wrong


def supported(finding: Finding, whole: list[Finding]) -> bool:
    """Whether the whole tells the same of one of the same, or of all."""
    mine = set(finding.entities)
    return any(
        each.name in (finding.name, ALIKE.get(finding.name))
        and (not mine or not each.entities or mine & set(each.entities))
        for each in whole
    )


@pytest.mark.parametrize("name", QUICK)
def test_a_piece_tells_no_more_than_the_whole(name: str, tmp_path: Path) -> None:
    path = next((HERE / "causes").glob(f"{name}.pcap*"))
    assert not unsupported(path, tmp_path, pieces=2)


CHOSEN: Final = ("api == ApiVersions", "api == FindCoordinator", "api in {Metadata, Fetch}")


@pytest.mark.parametrize("text", CHOSEN)
@pytest.mark.parametrize(
    "path",
    [SAMPLES / "aiokafka.pcap", SAMPLES / "cluster.pcap.gz", HERE / "restarted-member.pcap.gz"],
    ids=lambda path: path.name,
)
def test_what_is_chosen_tells_no_more_than_the_whole(path: Path, text: str) -> None:
    """Of exchanges that a filter leaves out nobody may say that they are missing: a client that
    connects only to ask for versions, or never to the addresses that it is told."""
    every = {(each["name"], each["key"]) for each in said("check", str(path))}
    chosen = said("check", str(path), "-Y", text)
    assert {(each["name"], each["key"]) for each in chosen} <= every


def test_tables_and_reports_of_what_is_chosen_tell_no_more(tmp_path: Path) -> None:
    path, chosen = str(SAMPLES / "cluster.pcap.gz"), ("-q", "-Y", "api == FindCoordinator")
    tables = str(tmp_path / "tables")
    assert CliRunner().invoke(main, ["spark", path, "-o", tables, *chosen]).exit_code == 0
    assert not said("check", tables)
    page = tmp_path / "page.md"
    done = CliRunner().invoke(main, ["report", path, *chosen, "-o", str(page)])
    assert (done.exit_code, "never connected there" in page.read_text()) == (0, False)


def said(*words: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, [*words, "--json", "-q"])
    assert done.exit_code in (0, 1)
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.soak
@pytest.mark.parametrize(
    "path",
    [*sorted(HERE.glob("**/*.pcap*")), *sorted(SAMPLES.glob("*.pcap*"))],
    ids=lambda path: path.name,
)
def test_no_piece_of_any_capture_tells_more(path: Path, tmp_path: Path) -> None:
    assert not unsupported(path, tmp_path, pieces=10)
