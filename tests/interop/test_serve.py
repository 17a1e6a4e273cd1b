"""Captures as brokers, for real clients of several makers."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.interop.drivers import CLIENT_LIST, Driver, Story

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "captures" / "samples"
TRUTH = Path(__file__).parent / "truth"

pytestmark = pytest.mark.interop

OWN = {
    "java-4.4.0": "demo",
    "java-0.10.2.2": "java-old",
    "librdkafka": "librdkafka",
    "kafka-python": "kafka-python",
    "aiokafka": "aiokafka",
}
"""Client -> a capture that it made."""
OTHERS = {"franz-go": "demo", "kafkajs": "demo", "librdkafka": "kafka-python"}
"""Client -> a capture that another one made."""


class Served:
    """A running `kafkascope serve`."""

    def __init__(self, process: "subprocess.Popen[str]", bootstrap: str) -> None:
        self.process = process
        self.bootstrap = bootstrap

    def stop(self) -> str:
        """End it; what it said."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=30)[1]


@contextmanager
def served(name: str) -> Iterator[Served]:
    """A sample as a broker."""
    path = next(SAMPLES.glob(f"{name}.pcap*"))
    process = subprocess.Popen(
        [sys.executable, "-m", "tui.cli", "serve", str(path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield Served(process, process.stdout.readline().strip())
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def truth(name: str) -> Story:
    """What was written while the sample was made."""
    return Story.from_json(json.loads((TRUTH / f"{name}.json").read_text()))


def rows_of(story: Story, topic: str) -> set[tuple[object, ...]]:
    """Partition, offset, key and value of what was written to a topic."""
    return {
        (row.partition, row.offset, repr(row.key), repr(row.value))
        for row in story.produced
        if row.topic == topic
    }


@pytest.mark.parametrize(("client", "name"), [*OWN.items(), *OTHERS.items()])
def test_a_client_joins_its_group_and_reads_what_was_captured(
    client: str, name: str, tmp_path: Path, java: None
) -> None:
    """Bootstrap, join, fetch everything, commit; nothing unexpected is asked."""
    story = truth(name)
    topics = sorted(topic for topic in story.codec_of if topic.endswith((".none", ".gzip")))
    with served(name) as broker:
        common = {"bootstrap": broker.bootstrap}
        with Driver(CLIENT_LIST[client], tmp_path / "client.log", common) as driver:
            for topic in topics[:2]:
                wanted = rows_of(story, topic)
                assert wanted
                told = driver.step(
                    "Consume", topic=topic, count=len(wanted), group=f"{topic}.served"
                )
                found = {(r[1], r[2], repr(r[4]), repr(r[5])) for r in told["consumed"]}
                assert found == wanted
        said = broker.stop()
    assert "cannot be read" not in said
    assert "closed" not in said.replace("closed by", "")


QUIET = """
import sys, time
from confluent_kafka import Consumer
told = []
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "quiet",
    "auto.offset.reset": "earliest", "enable.auto.commit": True, "error_cb": told.append})
consumer.subscribe([sys.argv[2]])
end = time.monotonic() + float(sys.argv[3])
count = 0
while time.monotonic() < end:
    message = consumer.poll(0.2)
    if message is not None:
        told += [message.error()] if message.error() else []
        count += 1
consumer.close()
print(count, len(told), [str(each) for each in told])
"""


@pytest.mark.parametrize("seconds", [8, pytest.param(60, marks=pytest.mark.soak)])
def test_a_client_behind_the_captured_end_idles_quietly(seconds: int) -> None:
    """No errors, and few requests."""
    with served("librdkafka") as broker:
        run = subprocess.run(
            [sys.executable, "-c", QUIET, broker.bootstrap, "librdkafka.none", str(seconds)],
            capture_output=True,
            text=True,
            timeout=seconds + 60,
            env={**os.environ},
        )
        began = time.monotonic()
        said = broker.stop()
    assert run.stdout.split()[1] == "0", run.stdout + run.stderr
    assert int(run.stdout.split()[0]) > 0
    (requests,) = (
        int(line.split()[1]) for line in said.splitlines() if "requests answered" in line
    )
    assert requests / seconds < 20, said
    assert time.monotonic() - began < 10
