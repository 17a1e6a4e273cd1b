"""Both sides of a TCP proxy in one capture: each has rows, and every request counts once."""

from pathlib import Path

import pytest

from tests.kit import wire
from tests.kit.batches import batch
from tests.kit.forwarded import FRONT, forwarded
from tests.kit.run import objects, run

ROUNDS = 6


@pytest.fixture(name="capture")
def _capture(tmp_path: Path) -> str:
    """A producer behind a proxy."""

    def message(number: int, direction: int, _: bytes) -> bytes:
        rows = [{"index": 0, "records": batch([(None, b"%d" % number)])}]
        if not direction:
            topics = [{"name": "orders", "partition_data": rows}]
            return wire.request("Produce", 3, number, acks=-1, topic_data=topics)
        part = {"index": 0, "base_offset": number}
        topics = [{"name": "orders", "partition_responses": [part]}]
        return wire.response("Produce", 3, number, responses=topics)

    path = tmp_path / "both.pcap"
    path.write_bytes(forwarded(rounds=ROUNDS, both=message).pcap())
    return str(path)


def test_both_sides_have_rows(capture: str) -> None:
    rows = objects("ls", "--json", capture)
    assert [row["number"] for row in rows] == list(range(1, 2 * ROUNDS + 1))
    sides = {row["broker_address"]: row["forwarded"] for row in rows}
    assert sides == {str(FRONT): False, "10.3.0.9:19092": True}
    text = run("ls", capture).stdout
    assert text.count("(forwarded)") == ROUNDS
    assert len(objects("ls", "--json", "-Y", "forwarded", capture)) == ROUNDS


def test_every_request_counts_once(capture: str) -> None:
    (topic,) = objects("stats", "topics", "--json", capture)
    assert topic["produced_records"] == ROUNDS
    (latency,) = objects("stats", "latency", "--json", capture)
    assert latency["requests"] == ROUNDS
    assert len(objects("stats", "connections", "--json", capture)) == 1
    assert len(objects("records", "--json", capture)) == ROUNDS
    assert not objects("diff", "--json", capture, capture)
