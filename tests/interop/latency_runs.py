"""Runs of `test_latency.py`: what a client does over which network, and what a reader has to see of
it at each capture point.
"""

import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, Final, NamedTuple

from tests.interop.brokers import KRaftCluster
from tests.interop.drivers import drive
from tests.interop.make_findings_kit import Raw, producer
from tests.interop.network import BROKER, POINTS, Half, Network, Path
from tests.kit import batches
from tests.kit.wire import request

CLIENT_ID: Final = "shop"
PRODUCE, FETCH = 0, 1
PAUSE_SECONDS: Final = 0.15
STALL_SECONDS: Final = 1.0
LARGE_BYTES: Final = 60_000
FIRST_PIECE: Final = 40
"""Bytes of the first of two pieces: the header, and some of the body."""


class DistantCluster(KRaftCluster):
    """A broker at its end of the network."""

    def host(self, number: int) -> str:
        return BROKER


class Bench(NamedTuple):
    """What clients of a run work with."""

    network: Network
    cluster: DistantCluster
    folder: File
    topic: str = ""
    """Each run has its own, so that its offsets begin at 0."""

    @property
    def port(self) -> int:
        return self.cluster.nodes[0].ports["PLAINTEXT"]

    @property
    def bootstrap(self) -> str:
        return f"{BROKER}:{self.port}"

    def produce(
        self, values: Sequence[bytes], before: Callable[[bytes], None] = lambda value: None
    ) -> None:
        """Send one request of librdkafka for each value, and wait for its response."""
        with self.network.inside("client"):
            out = producer(CLIENT_ID, self.bootstrap)
            for value in values:
                before(value)
                out.produce(self.topic, value, partition=0)
                assert out.flush(20) == 0

    def fill(self, value: bytes) -> None:
        """Write a record at the broker's own end, where no capture point is."""
        with self.network.inside("broker"):
            out = producer("filler", self.bootstrap)
            out.produce(self.topic, value, partition=0)
            assert out.flush(20) == 0

    def connect(self, receive_buffer: int = 0) -> Raw:
        """Return a connection for requests of our own; `receive_buffer` in bytes, 0: as the kernel
        chooses."""
        with self.network.inside("client"):
            link = socket.socket()
            if receive_buffer:
                link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
            link.settimeout(20)
            link.connect((BROKER, self.port))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw = Raw(self.port, CLIENT_ID, link)
        raw.ask("ApiVersions", 0)
        return raw


def order(number: int) -> bytes:
    return b"order-%03d" % number


def produced_at(offset: int) -> bytes:
    """Return what the response to one record holds: partition 0, no error, its offset, no time."""
    return struct.pack(">ihqq", 0, 0, offset, -1)


ORDERS: Final = [order(number) for number in range(20)]
AFFECTED: Final = (5, 9, 13)
"""Numbers of the orders to whose requests or responses something happens."""
REQUESTS: Final = tuple(map(order, AFFECTED))
RESPONSES: Final = tuple(map(produced_at, AFFECTED))


def small_requests(bench: Bench) -> None:
    bench.produce(ORDERS)


def large_requests(bench: Bench) -> None:
    bench.produce([value * (LARGE_BYTES // len(value)) for value in ORDERS[:3]])


def java_producers(bench: Bench) -> None:
    """Java producers, one small request each."""
    how = {"client": CLIENT_ID, "topic": bench.topic}
    with (
        bench.network.inside("client"),
        drive("java-4.4.0", bench.folder, bench.bootstrap, **how) as driver,
    ):
        for number in range(6):
            driver.step("Produce", first=number, count=1)


def requests_in_pieces(bench: Bench) -> None:
    """A client that writes each request in two pieces, with a pause between them."""
    with bench.connect() as raw:
        for value in ORDERS[:6]:
            raw.ids += 1
            partition = {"index": 0, "records": batches.batch([(None, value)])}
            topics = [{"name": bench.topic, "partition_data": [partition]}]
            fields = {"acks": -1, "timeout_ms": 5000, "topic_data": topics}
            frame = request("Produce", 7, raw.ids, raw.name, **fields)
            raw.socket.sendall(frame[:FIRST_PIECE])
            time.sleep(PAUSE_SECONDS)
            raw.socket.sendall(frame[FIRST_PIECE:])
            assert raw.answer()


def unread_responses(bench: Bench) -> None:
    """A client with a small receive buffer that reads nothing of a large response at first."""
    bench.fill(ORDERS[0] * (LARGE_BYTES // len(ORDERS[0])))
    with bench.connect(receive_buffer=8192) as raw:
        for _ in range(2):
            limit = 2 * LARGE_BYTES
            partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": limit}
            topics = [{"topic": bench.topic, "partitions": [partition]}]
            fields = {"max_wait_ms": 500, "min_bytes": 1, "max_bytes": limit, "topics": topics}
            raw.tell("Fetch", 4, replica_id=-1, **fields)
            time.sleep(STALL_SECONDS)
            assert len(raw.answer()) > LARGE_BYTES * 0.9


def stopped_broker(bench: Bench) -> None:
    """A broker that is stopped before some requests arrive, and continued later."""
    process = bench.cluster.nodes[0].process
    timers = []

    def stop(value: bytes) -> None:
        if value in REQUESTS:
            process.send_signal(signal.SIGSTOP)
            timers.append(threading.Timer(STALL_SECONDS, process.send_signal, [signal.SIGCONT]))
            timers[-1].start()

    try:
        bench.produce(ORDERS, stop)
    finally:
        for timer in timers:
            timer.join()


@dataclass(frozen=True)
class Run:
    """What a client does over which network, and what has to be seen of it where."""

    act: Callable[[Bench], None]
    client_half: Half
    broker_half: Half
    injected: Mapping[str, Mapping[str, tuple[float, float]]]
    """Point -> what is measured there -> from and to what the median has to be."""
    markers: tuple[bytes, ...] = ()
    """What the affected exchanges hold; without, all are affected."""
    api_key: int = PRODUCE
    stalled_by: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    """Point -> the values that are right; without, null."""
    unknown: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Point -> columns that are not compared."""
    at_most: Mapping[str, float] = field(default_factory=dict)
    """Column -> its largest median, where a point cannot know more."""
    cause: str | None = None
    """What the first finding about latency has to match; none: there must be no such finding."""
    visible_at: tuple[str, ...] = ()
    """Points where a finding has to name the cause."""
    innocent: tuple[str, ...] = ()
    """Sides that no finding may blame."""


def both(delay_ms: float, rate_kbit: float = 0) -> Half:
    return Half(Path(delay_ms, rate_kbit), Path(delay_ms, rate_kbit))


def everywhere(value: Any) -> dict[str, Any]:
    return dict.fromkeys(POINTS, value)


RETRANSMISSION_MS: Final = (195.0, 450.0)
"""Linux sends again after 200 ms and some round trips, when there is nothing else to send."""
LOSS: Final = r"network-loss|sent again|retransmi|\blost\b|loses"

RUNS: Final = {
    "healthy": Run(
        small_requests,
        both(1),
        both(1),
        {
            "client": {"rtt_ms": (4, 25), "request_transfer_ms": (0, 5)},
            "between": {"rtt_ms": (2, 20)},
            "broker": {"rtt_ms": (0, 5), "server_ms": (0, 60), "response_transfer_ms": (0, 5)},
        },
        innocent=("client", "broker", "network"),
    ),
    "doubled": Run(
        small_requests,
        Half(Path(4, double=REQUESTS), Path(4, double=RESPONSES)),
        both(1),
        {
            "client": {"rtt_ms": (10, 30)},
            "between": {"rtt_ms": (2, 20)},
            "broker": {"rtt_ms": (0, 5), "server_ms": (0, 60)},
        },
        innocent=("client", "broker"),
    ),
    "far": Run(
        java_producers,
        both(10),
        both(30),
        {
            "client": {"rtt_ms": (80, 110), "server_ms": (80, 150)},
            "between": {"rtt_ms": (60, 90), "server_ms": (60, 130)},
            "broker": {"rtt_ms": (0, 5), "server_ms": (0, 60)},
        },
        cause=r"round.?trip|network-far",
        visible_at=("client", "between"),
        innocent=("client", "broker", "loss"),
    ),
    "thin": Run(
        large_requests,
        both(3, rate_kbit=1000),
        both(1),
        {
            "client": {"request_transfer_ms": (300, 700)},
            "between": {"request_transfer_ms": (470, 700)},
            "broker": {"request_transfer_ms": (470, 700), "server_ms": (0, 60)},
        },
        stalled_by=everywhere((None, "network")),
        at_most={"server_ms": 75},
        cause=r"transfer|bandwidth|throughput|[kM]bit|B/s",
        visible_at=POINTS,
        innocent=("client", "broker"),
    ),
    "lost-request": Run(
        small_requests,
        both(1),
        Half(Path(5, drop=REQUESTS), Path(5)),
        {
            "client": {"request_transfer_ms": RETRANSMISSION_MS, "retransmissions": (1, 1)},
            "between": {"request_transfer_ms": RETRANSMISSION_MS, "retransmissions": (1, 1)},
            "broker": {"request_transfer_ms": (0, 5), "retransmissions": (0, 0)},
        },
        markers=REQUESTS,
        stalled_by=everywhere(("network",)),
        cause=LOSS,
        visible_at=("client", "between"),
        innocent=("client", "broker"),
    ),
    "lost-response": Run(
        small_requests,
        Half(Path(5), Path(5, drop=RESPONSES)),
        both(1),
        {
            "client": {"server_ms": RETRANSMISSION_MS, "retransmissions": (0, 1)},
            "between": {"response_transfer_ms": RETRANSMISSION_MS, "retransmissions": (1, 2)},
            "broker": {"response_transfer_ms": RETRANSMISSION_MS, "retransmissions": (1, 2)},
        },
        markers=RESPONSES,
        stalled_by=everywhere(("network",)),
        # The client sends its request again, too, if the lost segment held its acknowledgement: a
        # broker that needs more than 40 ms has sent that before.
        unknown=everywhere(("request_transfer_ms",))
        | {"client": ("request_transfer_ms", "server_ms")},
        cause=LOSS,
        visible_at=("between", "broker"),
        innocent=("client", "broker"),
    ),
    "pieces": Run(
        requests_in_pieces,
        both(2),
        both(1),
        everywhere({"request_transfer_ms": (150, 200), "retransmissions": (0, 0)}),
        stalled_by=everywhere(("client",)),
        cause=r"^(?!network)(.*(pause|piece|sen[dt]\w* [^.]*slow|writ)|client-)",
        visible_at=POINTS,
        innocent=("broker", "network"),
    ),
    "unread": Run(
        unread_responses,
        both(2),
        both(1),
        everywhere({"zero_window_ms": (700, 1200), "response_transfer_ms": (900, 1400)}),
        api_key=FETCH,
        stalled_by=everywhere(("client",)),
        cause=r"^(?!network).*(not read|reads? slow|window|client-read)",
        visible_at=POINTS,
        innocent=("broker", "network"),
    ),
    "stopped": Run(
        stopped_broker,
        both(5),
        both(5),
        {
            "client": {"rtt_ms": (20, 45), "server_ms": (900, 1300)},
            "between": {"rtt_ms": (10, 30), "server_ms": (900, 1300)},
            "broker": {"server_ms": (900, 1300), "retransmissions": (0, 0)},
        },
        markers=REQUESTS,
        stalled_by=everywhere((None, "broker")),
        cause=r"^(?!network).*(broker[^.]*(took|takes|slow|paus|wait|stop|stall)|broker-|slow-)",
        visible_at=POINTS,
        innocent=("client", "loss"),
    ),
}
