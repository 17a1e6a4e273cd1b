"""What the scenarios of `make_findings` share: where they run, clients, hand-made requests, and the
table in which they are registered."""

import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import KRaftCluster
from tests.interop.processes import end, listens, until
from tests.kit import batches
from tests.kit.samples import ROOT
from tests.kit.wire import request

HOME = Path("/var/tmp/kafka")  # its name is on the wire
TARGET = ROOT / "tests" / "analyzer" / "captures"
PORT, SASL = 9092, 9095
PROXY = 9292
BROKER = f"127.0.0.1:{PORT}"
INSIDE = f"127.0.0.1:{PORT + 2}"
"""A listener that is not captured."""

Scenario = Callable[[KRaftCluster], None]
SCENARIOS: dict[str, tuple[Scenario, tuple[int, ...]]] = {}
UNTIL_LATER = ExitStack()
"""What is to be closed when nobody captures any longer."""


class Network(NamedTuple):
    """Where a scenario runs that needs machines of its own."""

    addresses: tuple[Any, ...]
    """What `network` takes."""
    settings: dict[str, str]
    """Of the broker."""
    spaces: dict[str, str]
    """Name of a client -> its namespace, while the network is there."""


NETWORKS: dict[str, Network] = {}
"""Scenario -> its network; it is captured on the bridge."""


def scenario(*ports: int) -> Callable[[Scenario], Scenario]:
    """Register a scenario with the ports that are captured."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__.replace("_", "-")] = (function, ports or (PORT,))
        return function

    return register


@contextmanager
def proxied(*faults: str) -> Iterator[str]:
    """Our proxy with faults before the broker; where clients connect."""
    command = [sys.executable, "-m", "kafkascope.tui.cli", "proxy", "--upstream", BROKER]
    command += ["--listen", f"127.0.0.1:{PROXY}", "--port-base", str(PROXY)]
    for fault in faults:
        command += ["--fault", fault]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=sys.stderr)
    try:
        until(lambda: listens(PROXY))
        yield f"127.0.0.1:{PROXY}"
    finally:
        end(process, signal.SIGINT)


@contextmanager
def standing(cluster: KRaftCluster) -> Iterator[None]:
    """Its broker stands still meanwhile."""
    process = cluster.nodes[0].process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


class Raw:
    """A connection that sends hand-made requests."""

    def __init__(
        self, port: int = PORT, name: str = "raw", connected: socket.socket | None = None
    ) -> None:
        self.socket = connected or socket.create_connection(("127.0.0.1", port), 5)
        self._file = self.socket.makefile("rb")
        self.name = name
        self.ids = 0

    def ask(self, api: str, version: int, **fields: Any) -> bytes:
        """Send a request; the frame of its answer, empty when the connection ends."""
        self.tell(api, version, **fields)
        return self.answer()

    def tell(self, api: str, version: int, **fields: Any) -> None:
        """Send a request, and wait for nothing."""
        self.ids += 1
        self.socket.sendall(request(api, version, self.ids, self.name, **fields))

    def answer(self) -> bytes:
        with suppress(OSError):
            if head := self._file.read(4):
                return self._file.read(struct.unpack(">i", head)[0])
        return b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()


def producer(name: str, bootstrap: str = BROKER, **settings: Any) -> Producer:
    return Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": name,
            "linger.ms": 0,
            "log_level": 0,
            "enable.metrics.push": False,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def consumer(name: str, group: str, bootstrap: str = BROKER, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": name,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "log_level": 0,
            "enable.metrics.push": False,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def admin(**settings: Any) -> AdminClient:
    return AdminClient({"bootstrap.servers": INSIDE, **settings})


def topics(*names: str, partitions: int = 1, **config: str) -> None:
    """Make topics, over a listener that is not captured."""
    new = [
        NewTopic(name, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()})
        for name in names
    ]
    client = admin()  # its futures end with it
    for future in client.create_topics(new).values():
        try:
            future.result(20)
        except KafkaException as error:
            if "ALREADY_EXISTS" not in str(error):
                raise
    time.sleep(0.3)


def fill(topic: str, count: int, partition: int = 0) -> None:
    """Records, over a listener that is not captured."""
    out = producer("fill", INSIDE)
    for number in range(count):
        out.produce(topic, value=b"record %d" % number, partition=partition)
    out.flush(20)


def write(out: Producer, topic: str, *values: bytes, seconds: float = 20) -> None:
    """Records, each when the one before it is acknowledged."""
    for value in values:
        out.produce(topic, value)
        out.flush(seconds)


def read(client: Consumer, count: int, seconds: float = 20) -> list[Any]:
    """So many records."""
    end, found = time.monotonic() + seconds, []
    while len(found) < count and time.monotonic() < end:
        message = client.poll(0.3)
        if message is not None and not message.error():
            found.append(message)
    return found


def read_from(topic: str, offset: int, count: int, client: Consumer, seconds: float = 20) -> None:
    """So many records from an offset on; then the consumer is closed."""
    client.assign([TopicPartition(topic, 0, offset)])
    read(client, count, seconds)
    client.close()


def batch(count: int, producer: tuple[int, int, int]) -> bytes:
    """A record batch; `producer` is id, epoch, sequence."""
    pairs: list[tuple[bytes | None, bytes | None]] = [(None, b"%d" % n) for n in range(count)]
    return batches.batch(pairs, producer=producer, time_ms=1_790_000_000_000)
