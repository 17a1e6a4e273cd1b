"""What a capture has, a proxy's recording of the same bytes has: one path, live and from a file."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from kafkascope.analyzer.conversation.tampering import ADDRESSES
from kafkascope.captures.merge.inputs import open_inputs
from kafkascope.captures.model import Chunk
from kafkascope.captures.streams.streams import streams
from tests.explosion.again import SAMPLES
from tests.explosion.live import through_a_proxy
from tests.kit.run import objects
from tests.matrix import mostly_slow

OTHERS = {
    *("number", "exchange_id", "connection", "client_address", "broker_address", "frames"),
    *("time", "latency_ms", "latency_ns", "server_ns", "wait_ms"),
    "response_bytes",
    *("request_transfer_ms", "server_ms", "response_transfer_ms", "rtt_ms", "retransmissions"),
    *("zero_window_ms", "stalled_by", "capture_point"),
}
"""Who is where, what came when, and the size of answers in which addresses are replaced; and what
only packets of a network tell."""
FAST = {"java-old", "sasl", "transactions"}
HIDDEN = {"user"}
"""What a login says, which is asterisks in a recording."""


def exchanges(path: Path, *but: str) -> Counter[str]:
    """Return the lines of `ls --json`, as often as each is there, without some fields."""
    lines = objects("ls", path, "--json", "--quiet")
    for line in lines:
        # Of a recording alone: which addresses the proxy replaced.
        line["notes"] = [each for each in line["notes"] if ADDRESSES not in each["text"]]
    return Counter(
        json.dumps({name: value for name, value in line.items() if name not in {*OTHERS, *but}})
        for line in lines
        if line["api"]
    )


@pytest.mark.parametrize("sample", mostly_slow(SAMPLES, FAST.__contains__))
def test_a_recording_has_what_the_capture_has(sample: str, tmp_path: Path) -> None:
    again = tmp_path / "again.pcapng"
    asyncio.run(through_a_proxy(str(SAMPLES[sample]), again, "--with-secrets"))
    assert exchanges(again) == exchanges(SAMPLES[sample])


@pytest.mark.parametrize(
    "sample", mostly_slow(["sasl", "sasl-old", "libraries", "demo"], FAST.__contains__)
)
def test_a_recording_without_secrets_lacks_nothing_else(sample: str, tmp_path: Path) -> None:
    again = tmp_path / "again.pcapng"
    asyncio.run(through_a_proxy(str(SAMPLES[sample]), again))
    assert exchanges(again, *HIDDEN) == exchanges(SAMPLES[sample], *HIDDEN)


def test_zookeepers_bytes_pass_and_are_not_recorded(tmp_path: Path) -> None:
    """Its nodes hold passwords, and its requests look like Kafka's."""
    again = tmp_path / "again.pcapng"
    asyncio.run(through_a_proxy(str(SAMPLES["zookeeper"]), again))
    with open_inputs([again]) as source:
        chunks = [event for event in streams(source) if isinstance(event, Chunk)]
    assert sum(len(chunk.data) for chunk in chunks) > 10_000
    assert {*b"".join(chunk.data for chunk in chunks)} == {*b"*"}
