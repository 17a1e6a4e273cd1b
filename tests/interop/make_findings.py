"""Makes the captures in `tests/analyzer/captures/`: traffic that shows one trouble each.

    python -m tests.interop.make_findings [NAME...]

Real brokers and clients; faults by the proxy where a cluster would not fail by itself, hand-made
requests where no client of today makes the mistake. Ports and folders are fixed, so that the bytes
on the wire name no machine.
"""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.analyzer import batches
from tests.analyzer.wire import request
from tests.interop.brokers import USERS, KRaftCluster
from tests.interop.maven import ROOT
from tests.interop.sniff import sniff

HOME = Path("/var/tmp/kafka")  # its name is on the wire
TARGET = ROOT / "tests" / "analyzer" / "captures"
PORT, SASL = 9092, 9095
PROXY = 9292
BROKER = f"127.0.0.1:{PORT}"

Scenario = Callable[[KRaftCluster], None]
SCENARIOS: dict[str, tuple[Scenario, tuple[int, ...]]] = {}


def scenario(*ports: int) -> Callable[[Scenario], Scenario]:
    """Register a scenario with the ports that are captured."""

    def register(function: Scenario) -> Scenario:
        SCENARIOS[function.__name__.replace("_", "-")] = (function, ports or (PORT,))
        return function

    return register


# --- helpers ------------------------------------------------------------------------------------


@contextmanager
def proxied(*faults: str) -> Iterator[str]:
    """Our proxy with faults before the broker; where clients connect."""
    command = [sys.executable, "-m", "tui.cli", "proxy", "--upstream", BROKER]
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
        self.ids += 1
        self.socket.sendall(request(api, version, self.ids, self.name, **fields))
        return self.answer()

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


# --- scenarios ----------------------------------------------------------------------------------


@scenario(PROXY, PROXY + 1)
def stale_leader(cluster: KRaftCluster) -> None:
    """A client that repeats a Fetch after NOT_LEADER_OR_FOLLOWER and never asks for metadata."""
    topics("leaders")
    fetch = "api == Fetch -> error NOT_LEADER_OR_FOLLOWER first 6"
    with proxied(fetch), closing(Raw(PROXY, "stubborn")) as raw:
        asked = [
            {
                "topic": "leaders",
                "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}],
            }
        ]
        for _ in range(8):
            raw.ask("Fetch", 4, replica_id=-1, max_wait_ms=10, min_bytes=0, topics=asked)
            time.sleep(0.05)


@scenario(PROXY, PROXY + 1)
def leader_moved(cluster: KRaftCluster) -> None:
    """A producer that meets one such error and asks for metadata."""
    topics("moved")
    with proxied("api == Produce -> error NOT_LEADER_OR_FOLLOWER once") as there:
        out = producer("careful", there)
        out.produce("moved", b"x")
        out.flush(20)


@scenario(PROXY, PROXY + 1)
def lost_answers(cluster: KRaftCluster) -> None:
    """A producer without idempotence whose first answer is lost: it gives up and sends again."""
    topics("lost")
    with proxied("api == Produce -> drop on response once") as there:
        out = producer("impatient", there, acks=1, socket_timeout_ms=1500, message_timeout_ms=15000)
        out.produce("lost", b"once or twice")
        out.flush(20)


@scenario()
def stopped_broker(cluster: KRaftCluster) -> None:
    """A broker that stands still for some seconds: slow answers, and one after its client left."""
    topics("stopped")
    raws = [Raw(PORT, "patient") for _ in range(3)]
    late = Raw(PORT, "hasty")
    process = cluster.nodes[0].process
    assert process is not None
    for raw in (*raws, late):
        raw.ask("ApiVersions", 2)
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.5)  # until all of its threads stand
    try:
        asked = {"topics": [{"name": "stopped"}], "allow_auto_topic_creation": False}
        for raw in (*raws, late):
            raw.ids += 1
            raw.socket.sendall(request("Metadata", 8, raw.ids, raw.name, **asked))
        time.sleep(1.5)
        late.socket.shutdown(socket.SHUT_WR)
        time.sleep(0.5)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    for raw in (*raws, late):
        raw.answer()
        raw.close()


@scenario(PROXY, PROXY + 1)
def black_hole(cluster: KRaftCluster) -> None:
    """A request that stays without an answer for longer than clients wait; the capture ends before
    the connections do."""
    UNTIL_LATER.enter_context(proxied("api == Metadata -> black-hole"))
    raw = UNTIL_LATER.enter_context(closing(Raw(PROXY, "waiting")))
    raw.ask("ApiVersions", 2)
    raw.ids += 1
    raw.socket.sendall(request("Metadata", 8, raw.ids, raw.name, topics=None))
    other = UNTIL_LATER.enter_context(closing(Raw(PROXY, "witness")))
    for _ in range(8):
        other.ask("ApiVersions", 2)
        time.sleep(4)
    other.ask("ApiVersions", 2)


UNTIL_LATER = ExitStack()
"""What is to be closed when nobody captures any longer."""


@scenario()
def too_large(cluster: KRaftCluster) -> None:
    """A topic with a small limit, a producer with larger records."""
    topics("small", max_message_bytes="1000")
    out = producer("generous")
    out.produce("small", os.urandom(2000))
    out.flush(20)


@scenario()
def tiny_batches(cluster: KRaftCluster) -> None:
    """One record for each request, as fast as it goes."""
    topics("tiny")
    out = producer("flusher")
    for number in range(300):
        out.produce("tiny", b"%d" % number)
        out.flush(5)


@scenario()
def eager_fetches(cluster: KRaftCluster) -> None:
    """A consumer with a wait of one millisecond on an empty topic."""
    topics("empty")
    client = consumer("eager", "eager-group", fetch_wait_max_ms=1, fetch_error_backoff_ms=0)
    client.assign([TopicPartition("empty", 0, 0)])
    read(client, 1, 1.8)
    client.close()


@scenario()
def unknown_topic(cluster: KRaftCluster) -> None:
    """A client that asks for a misspelt topic again and again on one connection."""
    with closing(Raw(PORT, "misspelt")) as raw:
        for _ in range(40):
            raw.ask("Metadata", 8, topics=[{"name": "ordres"}], allow_auto_topic_creation=False)
            time.sleep(0.05)


@scenario()
def out_of_range(cluster: KRaftCluster) -> None:
    """A consumer that starts beyond the end of its partition."""
    topics("short")
    fill("short", 10)
    client = consumer("lost-reader", "range-group")
    client.assign([TopicPartition("short", 0, 500)])
    read(client, 10)
    client.close()


@scenario()
def odd_commits(cluster: KRaftCluster) -> None:
    """Commits that skip records, and that go back."""
    topics("commits")
    fill("commits", 20)
    client = consumer("committer", "odd-group", max_poll_interval_ms=60000)
    client.subscribe(["commits"])
    read(client, 20)
    for offset in (8, 3, 50):
        client.commit(offsets=[TopicPartition("commits", 0, offset)], asynchronous=False)
    client.close()


@scenario()
def commit_storm(cluster: KRaftCluster) -> None:
    """A commit for each record."""
    topics("each")
    fill("each", 120)
    client = consumer("by-record", "each-group")
    client.subscribe(["each"])
    for _ in range(120):
        message = client.poll(5)
        if message is not None and not message.error():
            client.commit(message=message, asynchronous=False)
    client.close()


@scenario()
def expired_member(cluster: KRaftCluster) -> None:
    """One of two members is killed."""
    topics("members", partitions=2)
    settings = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}
    code = (
        "from tests.interop.make_findings import consumer, read\n"
        f"c = consumer('killed', 'members-group', **{settings})\n"
        "c.subscribe(['members'])\nread(c, 1, 60)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    client = consumer("survivor", "members-group", **settings)
    client.subscribe(["members"])
    read(client, 1, 6)
    child.kill()
    child.wait()
    read(client, 1, 10)
    client.close()


@scenario()
def fenced_member(cluster: KRaftCluster) -> None:
    """Two members with one instance id."""
    topics("static")
    first = consumer("first", "static-group", group_instance_id="one", heartbeat_interval_ms=500)
    first.subscribe(["static"])
    read(first, 1, 4)
    second = consumer("second", "static-group", group_instance_id="one", heartbeat_interval_ms=500)
    second.subscribe(["static"])
    read(second, 1, 4)
    read(first, 1, 2)
    second.close()
    first.close()


@scenario()
def silent_consumer(cluster: KRaftCluster) -> None:
    """A consumer that is busy for longer than max.poll.interval.ms."""
    topics("busy")
    fill("busy", 50)
    with closing(Raw(PORT, "busy")) as raw:
        raw.ask("OffsetCommit", 2, group_id="busy-group", topics=[])
    client = consumer(
        "busy", "busy-group", session_timeout_ms=6000, max_poll_interval_ms=6000,
        heartbeat_interval_ms=1000,
    )  # fmt: skip
    client.subscribe(["busy"])
    read(client, 10)
    time.sleep(9)
    read(client, 1, 3)
    client.close()


@scenario(PORT, SASL)
def security(cluster: KRaftCluster) -> None:
    """TLS and HTTP to a plain port, no SASL, another mechanism and a wrong password."""
    for _ in range(2):
        with closing(socket.create_connection(("127.0.0.1", PORT))) as plain:
            context = ssl.create_default_context()
            try:
                context.wrap_socket(plain, server_hostname="localhost")
            except OSError:
                pass
    with closing(socket.create_connection(("127.0.0.1", PORT))) as plain:
        plain.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        plain.settimeout(3)
        try:
            plain.recv(10)
        except OSError:
            pass
    good = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    where = f"127.0.0.1:{SASL}"
    ok = producer("right", where, sasl_username="alice", sasl_password=USERS["alice"], **good)
    ok.list_topics(timeout=10)
    with closing(Raw(SASL, "no-sasl")) as raw:
        raw.ask("ApiVersions", 2)
        raw.ask("Metadata", 8, topics=None)
    with closing(Raw(SASL, "wrong-mechanism")) as raw:
        raw.ask("SaslHandshake", 1, mechanism="GSSAPI")
    wrong = producer("wrong", where, sasl_username="alice", sasl_password="no", **good)
    try:
        wrong.list_topics(timeout=1)
    except KafkaException:
        pass


@scenario(SASL)
def denied(cluster: KRaftCluster) -> None:
    """A user without rights."""
    topics("secret")
    out = producer(
        "stranger", f"127.0.0.1:{SASL}", security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN", sasl_username="bob", sasl_password=USERS["bob"],
        message_timeout_ms=3000,
    )  # fmt: skip
    out.produce("secret", b"x")
    out.flush(5)


@scenario()
def sequences(cluster: KRaftCluster) -> None:
    """A producer that asks for an id without a pause until it gets one (an error storm); then it
    repeats a batch, and leaves one out."""
    topics("sequences")
    with closing(Raw(PORT, "gappy")) as raw:
        error = 14
        while error:  # COORDINATOR_LOAD_IN_PROGRESS at first
            asked = {"transactional_id": None, "transaction_timeout_ms": 60000}
            error, number, epoch = struct.unpack_from(
                ">hqh", raw.ask("InitProducerId", 1, **asked), 8
            )
        for sequence in (0, 2, 2, 9):
            data = batch(2, (number, epoch, sequence))
            sent = [{"name": "sequences", "partition_data": [{"index": 0, "records": data}]}]
            raw.ask("Produce", 7, acks=-1, timeout_ms=5000, topic_data=sent)


@scenario()
def fenced_producer(cluster: KRaftCluster) -> None:
    """Two producers with one transactional id; an aborted transaction."""
    topics("tx")
    old = producer("old", transactional_id="shared-id")
    old.init_transactions(20)
    old.begin_transaction()
    old.produce("tx", b"a")
    old.flush(10)
    old.abort_transaction(10)
    old.begin_transaction()
    old.produce("tx", b"b")
    old.flush(10)
    new = producer("new", transactional_id="shared-id")
    new.init_transactions(20)
    try:
        old.commit_transaction(10)
    except KafkaException:
        pass


@scenario()
def open_transaction(cluster: KRaftCluster) -> None:
    """A transaction that stays open, and a read_committed consumer behind it."""
    topics("stuck")
    out = producer("sleeper", transactional_id="sleeper-id", transaction_timeout_ms=60000)
    out.init_transactions(20)
    out.begin_transaction()
    out.produce("stuck", b"held back")
    out.flush(10)
    client = consumer("blocked", "stuck-group", isolation_level="read_committed",
                      fetch_wait_max_ms=2000)  # fmt: skip
    client.subscribe(["stuck"])
    read(client, 1, 17)
    client.close()
    out.abort_transaction(10)


@scenario(PROXY, PROXY + 1)
def wrong_checksum(cluster: KRaftCluster) -> None:
    """A batch that is damaged on its way."""
    topics("damaged")
    fill("damaged", 5)
    with proxied("api == Fetch and records > 0 -> corrupt-crc once") as there:
        client = consumer("checker", "crc-group", there, check_crcs=True)
        client.assign([TopicPartition("damaged", 0, 0)])
        read(client, 5, 6)
        client.close()


@scenario()
def hot_partition(cluster: KRaftCluster) -> None:
    """Four partitions, one key."""
    topics("hot", partitions=4)
    out = producer("one-key", linger_ms=50, compression_type="zstd")
    for number in range(1500):
        out.produce("hot", key=b"same" if number % 10 else b"%d" % number, value=b"x")
    out.flush(20)


@scenario()
def far_racks(cluster: KRaftCluster) -> None:
    """A consumer that says its rack, and a broker in another one."""
    topics("racks")
    fill("racks", 5)
    client = consumer("in-b", "rack-group", client_rack="b")
    client.assign([TopicPartition("racks", 0, 0)])
    read(client, 5)
    client.close()


@scenario()
def short_connections(cluster: KRaftCluster) -> None:
    """A client that connects for each question."""
    for _ in range(104):
        with closing(Raw(PORT, "restless")) as raw:
            raw.ask("ApiVersions", 2)


@scenario()
def old_versions(cluster: KRaftCluster) -> None:
    """A client that never asks for versions and uses old ones; one that uses a version from the
    future."""
    topics("old")
    with closing(Raw(PORT, "legacy")) as raw:
        raw.ask("Metadata", 0, topics=[])
    with closing(Raw(PORT, "future")) as raw:
        raw.ask("ApiVersions", 2)
        raw.socket.sendall(
            struct.pack(">ihhih6s", 16, 2, 0, 7, 6, b"future")  # ListOffsets 0 is gone in 4.0
        )
        raw.answer()


@scenario(9192)
def wrong_answers(cluster: KRaftCluster) -> None:
    """A server (not a broker: none does this) that answers with an id that nobody asked for."""
    server = socket.create_server(("127.0.0.1", 9192))
    with closing(server), closing(Raw(9192, "confused")) as raw:
        raw.socket.settimeout(1)
        there, _ = server.accept()
        with closing(there):
            raw.socket.sendall(request("ApiVersions", 2, 1, "confused"))
            there.recv(1000)
            there.sendall(struct.pack(">iihi", 14, 1, 0, 0) + bytes(4))
            raw.socket.sendall(request("ApiVersions", 2, 2, "confused"))
            there.recv(1000)
            there.sendall(struct.pack(">iihi", 14, 4702, 0, 0) + bytes(4))
            time.sleep(0.3)


@scenario()
def throttled(cluster: KRaftCluster) -> None:
    """A producer with a quota far below what it sends."""
    topics("quota")
    entity = [{"entity_type": "client-id", "entity_name": "greedy"}]
    limits = [{"key": "producer_byte_rate", "value": 1000.0, "remove": False}]
    with closing(Raw(9094, "admin")) as raw:
        raw.ask(
            "AlterClientQuotas",
            0,
            entries=[{"entity": entity, "ops": limits}],
            validate_only=False,
        )
    time.sleep(1)
    out = producer("greedy", compression_type="none")
    for _ in range(6):
        out.produce("quota", bytes(3000))
        out.flush(20)


@scenario()
def healthy(cluster: KRaftCluster) -> None:
    """Nothing is wrong: a producer, a group that commits, a transaction."""
    topics("well", partitions=2)
    out = producer("well-producer", enable_idempotence=True, linger_ms=20)
    for number in range(40):
        out.produce("well", key=b"%d" % number, value=b"v")
    out.flush(20)
    client = consumer("well-consumer", "well-group")
    client.subscribe(["well"])
    read(client, 40)
    client.commit(asynchronous=False)
    client.close()


@scenario(PORT, 9)
def wrong_address(cluster: KRaftCluster) -> None:
    """A broker that advertises a port on which nobody listens."""
    client = producer("misled", message_timeout_ms=4000)
    client.produce("anything", b"x")
    client.flush(6)


@scenario(SASL)
def plain_to_tls(cluster: KRaftCluster) -> None:
    """A client without TLS on a TLS listener."""
    for _ in range(2):
        with closing(Raw(SASL, "plain")) as raw:
            raw.ask("ApiVersions", 2)


ADVERTISED = ",".join(
    f"{name}://127.0.0.1:{port}"
    for name, port in (("PLAINTEXT", 9), ("INTERNAL", 9094), ("SASL_PLAINTEXT", SASL))
)
TLS = {
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SSL"
    ),
    "listener.name.sasl_plaintext.ssl.keystore.type": "PEM",
    "listener.name.sasl_plaintext.ssl.keystore.location": str(HOME / "key.pem"),
}
COMMON = {"auto.create.topics.enable": "false", "broker.rack": "a"}
SETTINGS: dict[str, dict[str, str]] = {
    "wrong-address": {"advertised.listeners": ADVERTISED},
    "plain-to-tls": TLS,
    "tls-only": TLS,
}
"""Scenarios that need a broker of their own."""


# --- making -------------------------------------------------------------------------------------

LARGE = 20_000
"""Larger captures are compressed."""


def make(name: str, cluster: KRaftCluster, folder: Path) -> None:
    """One capture."""
    function, ports = SCENARIOS[name]
    raw = folder / f"{name}.pcap"
    with sniff(raw, ports):
        function(cluster)
    UNTIL_LATER.close()
    data = raw.read_bytes()
    for suffix in (".pcap", ".pcap.gz"):
        (TARGET / f"{name}{suffix}").unlink(missing_ok=True)
    if len(data) > LARGE:
        target = TARGET / f"{name}.pcap.gz"
        target.write_bytes(gzip.compress(data, 9, mtime=0))
    else:
        target = TARGET / f"{name}.pcap"
        target.write_bytes(data)
    print(f"{target.name}: {target.stat().st_size} bytes", flush=True)


def keystore() -> None:
    """A key and its certificate for a TLS listener."""
    HOME.mkdir(parents=True, exist_ok=True)
    key, cert = HOME / "key", HOME / "cert"
    words = "openssl req -x509 -newkey rsa:2048 -nodes -days 9999 -subj /CN=localhost"
    subprocess.run(
        [*words.split(), "-keyout", str(key), "-out", str(cert)],
        check=True,
        capture_output=True,
    )
    (HOME / "key.pem").write_bytes(key.read_bytes() + cert.read_bytes())


def run(names: list[str], settings: dict[str, str]) -> None:
    """Make captures with one broker."""
    shutil.rmtree(HOME, ignore_errors=True)
    keystore()
    settings = {**COMMON, **settings}
    with (
        tempfile.TemporaryDirectory() as folder,
        KRaftCluster("4.4.0", 1, HOME, base_port=PORT, settings=settings) as cluster,
    ):
        for name in names:
            try:
                make(name, cluster, Path(folder))
            except Exception as error:  # the others are to be made all the same
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)


def main(names: list[str]) -> None:
    """Make all of them, or those named."""
    from tests.interop import make_groups, make_records

    assert make_records
    COMMON.update(make_groups.FAST)
    TARGET.mkdir(exist_ok=True)
    wanted = names or list(SCENARIOS)
    common = [name for name in wanted if name not in SETTINGS]
    if common:
        run(common, {})
    for name in wanted:
        if name in SETTINGS:
            run([name], SETTINGS[name])


if __name__ == "__main__":
    from tests.interop import make_findings  # scenarios are registered there, not here

    make_findings.main(sys.argv[1:])
