"""A piece of a capture supports no error or warning that the whole does not support."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.captures.merge.inputs import open_inputs
from tests.analyzer.findings.judging import capture_of, found, judged, states
from tests.kit.batches import batch
from tests.kit.captures import written
from tests.kit.run import lines_of, run
from tests.kit.samples import CAPTURES, SAMPLES
from tests.kit.wire import Wire, metadata, request, response

QUICK: Final = (
    *("acl-denied-java", "advertised-port-java", "broker-down-java", "broker-killed-java"),
    *("client-per-message-librdkafka", "commit-ahead-java", "firewall-idle-drop-librdkafka"),
    *("group-shared-mixed-topics", "healthy-idle-java", "healthy-java"),
    *("healthy-rolling-restart-librdkafka", "idle-closed-java", "max-poll-java", "min-isr-java"),
    *("out-of-order-sequence-librdkafka", "rebalance-storm-librdkafka", "sasl-expired-aiokafka"),
    *("session-timeout-librdkafka", "static-conflict-java", "topic-deleted-java"),
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
        done = run("cut", path, *span, "-q", "-o", piece)
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
    path = next((CAPTURES / "causes").glob(f"{name}.pcap*"))
    assert not unsupported(path, tmp_path, pieces=2)


CHOSEN: Final = ("api == ApiVersions", "api == FindCoordinator", "api in {Metadata, Fetch}")


@pytest.mark.parametrize("text", CHOSEN)
@pytest.mark.parametrize(
    "path",
    [SAMPLES / "aiokafka.pcap", SAMPLES / "cluster.pcap.gz", CAPTURES / "restarted-member.pcap.gz"],
    ids=lambda path: path.name,
)
def test_what_is_chosen_tells_no_more_than_the_whole(path: Path, text: str) -> None:
    """Of exchanges that a filter leaves out nobody may say that they are missing: a client that
    connects only to ask for versions, or never to the addresses that it is told."""
    every = {(each["name"], each["key"]) for each in said("check", str(path))}
    chosen = said("check", str(path), "-Y", text)
    assert {(each["name"], each["key"]) for each in chosen} <= every


def test_connections_outside_of_a_time_range_are_not_judged() -> None:
    path = SAMPLES / "demo.pcap.zst"
    during = lines_of(run("check", path, "--from", "60", "--to", "70", "--json"))
    assert "broker-down" in {each["name"] for each in during}
    before = run("check", path, "--from", "60", "--to", "62", "--json")
    assert "broker-down" not in before.output
    after = run("check", path, "--from", "100000")
    assert (after.exit_code, after.stdout) == (0, "")
    assert "the capture lasts from 2026-11-21 " in after.stderr


def test_tables_and_reports_of_what_is_chosen_tell_no_more(tmp_path: Path) -> None:
    path, chosen = str(SAMPLES / "cluster.pcap.gz"), ("-q", "-Y", "api == FindCoordinator")
    tables = str(tmp_path / "tables")
    assert run("spark", path, "-o", tables, *chosen).exit_code == 0
    assert not said("check", tables)
    page = tmp_path / "page.md"
    done = run("report", path, *chosen, "-o", page)
    assert (done.exit_code, "never connected there" in page.read_text()) == (0, False)


def said(*words: str) -> list[dict[str, Any]]:
    done = run(*words, "--json", "-q")
    assert done.exit_code in (0, 1)
    return lines_of(done)


@pytest.mark.soak
@pytest.mark.parametrize(
    "path",
    [*sorted(CAPTURES.glob("**/*.pcap*")), *sorted(SAMPLES.glob("*.pcap*"))],
    ids=lambda path: path.name,
)
def test_no_piece_of_any_capture_tells_more(path: Path, tmp_path: Path) -> None:
    assert not unsupported(path, tmp_path, pieces=10)


def piece(name: str, first: int, last: int, folder: Path) -> list[Finding]:
    """The findings in some packets of a capture."""
    with open_inputs([capture_of(name)]) as source:
        packets = list(source.packets())
    return judged.__wrapped__(written(packets[first - 1 : last], folder / "piece.pcapng"))[0]


@pytest.mark.parametrize(
    ("name", "first", "last", "rule"),
    [
        pytest.param("forgotten-producer", 1, 38, "address-unanswered", id="SYN at the end"),
        pytest.param("sasl-missing-java", 1, 282, "broker-down", id="SYN at the end, worked"),
        pytest.param("tls-expired-java", 1, 16, "tls-to-plain", id="TLS hello at the end"),
        pytest.param("client-too-old-kafkapython", 486, 522, "sasl-missing", id="refused version"),
        pytest.param("poison-librdkafka", 156, 332, "commits-lost", id="commit before the capture"),
        pytest.param("poison-librdkafka", 134, 306, "commits-lost", id="told of it in the middle"),
        pytest.param("long-minute", 41, 173, "transaction-hangs", id="timeout is not known"),
        pytest.param(
            "healthy-rolling-restart-librdkafka", 1254, 2823, "eager-fetches", id="followers away"
        ),
        pytest.param("broker-killed-java", 221, 1131, "address-unreachable", id="node is gone"),
        pytest.param("assignors", 565, 709, "owned-by-none", id="owners before the capture"),
        pytest.param("advertised-port-java", 54, 185, "broker-down", id="RST of an earlier SYN"),
    ],
)
def test_what_a_piece_cannot_know(
    name: str, first: int, last: int, rule: str, tmp_path: Path
) -> None:
    loud = [each for each in piece(name, first, last, tmp_path) if each.name == rule]
    assert not [each.text for each in loud if each.severity in ("error", "warning")]


def test_a_broker_that_was_down_before_the_capture_is_no_wrong_address(tmp_path: Path) -> None:
    """Its cluster does not list it any more; what is left of its connections are their last
    segments."""
    told = {each.name: each for each in piece("broker-killed-java", 221, 1131, tmp_path)}
    assert ("node", "3") in told["broker-down"].entities
    assert ("client", "lead-cons") in told["broker-down"].entities
    assert told["lookup-storm"].because == (told["broker-down"].id,)


def test_a_node_that_is_not_listed_any_more_was_up(tmp_path: Path) -> None:
    """Nothing of it is in the piece but refused connects."""
    down = [each for each in piece("broker-killed-java", 300, 1253, tmp_path) if each.count > 9]
    text = next(each.text for each in down if each.name == "broker-down")
    assert states(text, "127.0.0.1:9292 (node 3)", "down for 24 s", "out of its cluster")


def test_a_reader_that_was_not_seen_to_stop_may_read_on(tmp_path: Path) -> None:
    every = piece("retention-ahead-of-reader-java", 31, 68, tmp_path)
    (finding,) = (each for each in every if each.name == "offset-out-of-range")
    assert "auto.offset.reset=none" not in finding.text
    assert "holds" not in finding.text  # what it held before the deletion


@pytest.mark.parametrize(
    ("size", "again", "handshake", "severity"),
    [
        (5_000, 1, False, "note"),
        (70_000, 1, False, "warning"),
        (5_000, 0, False, "warning"),
        (5_000, 1, True, "warning"),
    ],
)
def test_bytes_under_way_when_the_capture_began(
    size: int, again: int, handshake: bool, severity: str
) -> None:
    """Of a network that loses some, they were sent before it, and again behind it."""
    wire = Wire(handshake=handshake)
    wire.exchange("Metadata", 12, 1, metadata((1, "10.0.1.2", 9092)))
    wire.connection.gap_bytes, wire.connection.retransmissions = (0, size), (0, again)
    assert found([wire.close()])["capture-gaps"].severity == severity


@pytest.mark.parametrize(
    ("batches", "others", "told"),
    [(9, 84, False), (54, 84, True), (9, 40, True)],
)
def test_batches_of_a_producer_without_keys_fall_on_one_partition(
    batches: int, others: int, told: bool
) -> None:
    """It fills one after the other; those of other partitions are as full. `others`: records of
    theirs."""
    wire = Wire()
    kept = [(partition, others) for partition in (0, 2, 3)] + [(1, 130)] * batches
    for number, (partition, count) in enumerate(kept, 1):
        records = batch([(None, b"value")] * count)
        part = {"index": partition, "records": records}
        topics = [{"name": "t", "partition_data": [part]}]
        wire.client(request("Produce", 7, number, acks=-1, topic_data=topics))
        answer = {"index": partition, "error_code": 0, "base_offset": 0}
        answer |= {"log_append_time_ms": -1, "log_start_offset": 0}
        topics = [{"name": "t", "partition_responses": [answer]}]
        wire.broker(response("Produce", 7, number, responses=topics))
    assert ("hot-partition" in found([wire])) == told


@pytest.mark.parametrize(
    ("client", "api", "refused"), [("2", "StopReplica", False), ("app", "Fetch", True)]
)
def test_brokers_are_not_refused_by_one_that_stops(client: str, api: str, refused: bool) -> None:
    """They do not ask for versions, and a piece shows nothing else of them."""
    wire = Wire().client(request(api, 1, 2, client)).close("broker")
    assert ("version-refused" in found([wire])) == refused
