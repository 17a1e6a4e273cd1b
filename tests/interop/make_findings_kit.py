"""What the scenarios of `make_findings` share: where they run, clients, hand-made requests, and the
table in which they are registered."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.brokers import KRaftCluster
from tests.kit import batches
from tests.kit.samples import ROOT
from tests.kit.wire import request

HOME = Path("/var/tmp/kafka")  # its name is on the wire
TARGET = ROOT / "tests" / "analyzer" / "captures"
PORT, SASL = 9092, 9095
PROXY = 9292
BROKER = f"127.0.0.1:{PORT}"

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
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", PROXY), 0.5).close()
                break
            except OSError:
                time.sleep(0.1)
        yield f"127.0.0.1:{PROXY}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(20)


class Raw:
    """A connection that sends hand-made requests."""

    def __init__(self, port: int = PORT, name: str = "raw") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.socket.settimeout(5)
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
        head = self._read(4)
        return head and self._read(struct.unpack(">i", head)[0])

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            try:
                more = self.socket.recv(size - len(data))
            except OSError:
                return b""
            if not more:
                return b""
            data += more
        return data

    def close(self) -> None:
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
    return AdminClient({"bootstrap.servers": f"127.0.0.1:{9094}", **settings})


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
    out = producer("fill", "127.0.0.1:9094")
    for number in range(count):
        out.produce(topic, value=b"record %d" % number, partition=partition)
    out.flush(20)


def read(client: Consumer, count: int, seconds: float = 20) -> list[Any]:
    """So many records."""
    end, found = time.monotonic() + seconds, []
    while len(found) < count and time.monotonic() < end:
        message = client.poll(0.3)
        if message is not None and not message.error():
            found.append(message)
    return found


def batch(count: int, producer: tuple[int, int, int]) -> bytes:
    """A record batch; `producer` is id, epoch, sequence."""
    pairs: list[tuple[bytes | None, bytes | None]] = [(None, b"%d" % n) for n in range(count)]
    return batches.batch(pairs, producer=producer, time_ms=1_790_000_000_000)
