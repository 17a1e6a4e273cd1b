"""Real Kafka brokers: one JVM each, on loopback, from the jars that Maven fetched.

`Cluster` starts nodes together and stops them; `Node` is one process with its folder,
ports and log. What a kind of broker needs before its first start is in a subclass.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from tests.interop.maven import BROKERS, classpath, compiled, jars
from tests.interop.processes import end, listens, ready, run

JVM = (
    "-Xmx400m",
    "-Xms64m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",  # short lives: compiling well costs more than it brings
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
PORTS = range(20_000, 32_000)
SPAN = 400  # how far the nodes behind a base reach
_given: set[int] = set()
CLUSTER_ID = "a2Fma2FzY29wZS10ZXN0cw"  # 16 bytes, URL-safe base64
# Directory ids of a dynamic quorum's first voters, as `StorageTool format` wants them.
DIRECTORY_IDS = ("JEXY6aqzQY-32P5TStzaFg", "MvDxzVmcRsaTz33bUuRU6A", "07R5amHmR32VDA6jHkGbTA")
# Known to the drivers; the names say what each proves.
USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}


def free_ports(count: int) -> list[int]:
    """Ports below the range that the kernel gives to outgoing connections, free at this moment.

    None is given twice: until a broker of three has bound its ports, they look free to the next.
    Workers of pytest-xdist choose from ranges of their own for the same reason.
    """
    mine = _ports()[:-SPAN]
    found = list(islice(_free(random.sample(mine, len(mine))), count))
    if len(found) < count:
        raise RuntimeError("no free ports")
    _given.update(found)
    return found


def _ports() -> range:
    """Those of this worker."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    each = len(PORTS) // workers
    return PORTS[number % workers * each :][:each]


def _free(ports: Iterable[int]) -> Iterator[int]:
    for port in ports:
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        yield port


def free_base(nodes: int) -> int:
    """A port from which `nodes` nodes find theirs, each 100 above the one before."""
    while True:
        (base,) = free_ports(1)
        others = {base + 100 * node + place for node in range(nodes) for place in range(4)} - {base}
        if others <= set(_free(others)):
            _given.update(others)
            return base


class Node:
    """One broker process: `ports` by listener name, `home` with its configuration and log."""

    def __init__(
        self,
        number: int,
        ports: dict[str, int],
        home: Path,
        command: list[str],
        host: str = "127.0.0.1",
    ) -> None:
        self.number = number
        self.host = host
        self.ports = ports
        self.home = home
        self.command = command
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """What the process printed."""
        return self.home / "broker.log"

    def start(self) -> None:
        """Start the process; `wait` says when it serves."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.home, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def wait(self, listeners: Iterable[str] = ("PLAINTEXT",)) -> None:
        """Return when all listeners accept connections; raise with the log's end if not."""
        assert self.process is not None
        ports = [self.ports[name] for name in listeners]
        ready(self.process, self.log, lambda: all(listens(port, self.host) for port in ports))

    @property
    def directory_id(self) -> str:
        """The id that formatting gave to the folder of the metadata log."""
        lines = (self.home / "data-a" / "meta.properties").read_text().splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("directory.id="))

    def stop(self, how: signal.Signals = signal.SIGTERM, seconds: float = 30.0) -> None:
        """Signal the process and wait for its end; kill it when it does not come."""
        process, self.process = self.process, None
        if process is not None:
            end(process, how, seconds)


class Cluster:
    """Nodes of one release that start and stop together; a context manager.

    `home` is where logs, configuration and data go. Its path is on the wire (DescribeLogDirs,
    DescribeConfigs), so captures that are kept want a neutral one.
    """

    listeners: tuple[str, ...] = ("PLAINTEXT",)

    def __init__(
        self,
        version: str,
        nodes: int = 1,
        home: Path | None = None,
        settings: dict[str, str] | None = None,
        base_port: int | None = None,
    ) -> None:
        self.version = version
        self.settings = settings or {}
        self.base_port = base_port
        self.lib = jars(f"broker-{version}", BROKERS[version])
        self._own = home is None
        self.home = home or Path(tempfile.mkdtemp(prefix="kafka-"))
        self.planned = nodes
        self.nodes: list[Node] = []

    # What subclasses say.

    def plan(self) -> list[Node]:
        """The nodes, configured and formatted, not yet started."""
        raise NotImplementedError

    def host(self, number: int) -> str:
        """Address of a node."""
        return "127.0.0.1"

    # What all do.

    def __enter__(self) -> "Cluster":
        try:
            self.nodes = self.plan()
            for node in self.nodes:
                node.start()
            for node in self.nodes:
                node.wait(self.listeners)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop all nodes at once and remove what they wrote, unless the folder was given."""
        for node in self.nodes:
            if node.process is not None:
                node.process.terminate()
        for node in self.nodes:
            node.stop()
        if self._own:
            shutil.rmtree(self.home, ignore_errors=True)

    def bootstrap(self, listener: str = "PLAINTEXT") -> str:
        """Addresses of all nodes, `host:port,host:port`."""
        return ",".join(f"{node.host}:{node.ports[listener]}" for node in self.nodes)

    def ports(self, *listeners: str) -> list[int]:
        """Port numbers of these listeners (default: all) on all nodes."""
        return [
            port
            for node in self.nodes
            for name, port in node.ports.items()
            if not listeners or name in listeners
        ]

    def allot(self, count: int, number: int) -> list[int]:
        """Ports for one node: neighbours of the base port when there is one, else free ones."""
        if self.base_port is None:
            return free_ports(count)
        first = self.base_port + 100 * (number - 1)
        return list(range(first, first + count))

    def java(self, main: str, *arguments: str) -> list[str]:
        """A command that runs a class of the broker's jars."""
        return ["java", *JVM, "-cp", self.classpath(), main, *arguments]

    def classpath(self) -> str:
        """Class path of the brokers."""
        return classpath(self.lib)

    def tool(self, main: str, *arguments: str) -> str:
        """Run a tool of the broker's jars to its end; return what it printed."""
        return run(*self.java(main, *arguments), seconds=300)


class KRaftCluster(Cluster):
    """Combined nodes (broker and controller) with a dynamic quorum, plain and SASL listeners."""

    listeners = ("PLAINTEXT", "INTERNAL", "SASL_PLAINTEXT", "CONTROLLER")
    names = ("PLAINTEXT", "CONTROLLER", "INTERNAL", "SASL_PLAINTEXT")

    def plan(self) -> list[Node]:
        """Write the configuration of each node and format its folders."""
        ports = {
            number: dict(zip(self.names, self.allot(len(self.names), number), strict=True))
            for number in range(1, self.planned + 1)
        }
        controllers = [f"{self.host(n)}:{of['CONTROLLER']}" for n, of in ports.items()]
        if self.planned == 1:
            voters: tuple[str, ...] = ("--standalone",)
        else:
            listed = zip(ports, controllers, DIRECTORY_IDS, strict=True)
            voters = ("--initial-controllers", ",".join(f"{n}@{c}:{d}" for n, c, d in listed))
        with ThreadPoolExecutor() as pool:  # formatting is a JVM each
            return list(pool.map(lambda n: self.node(n, ports[n], controllers, voters), ports))

    def join(self) -> Node:
        """Add a node that did not belong to the first quorum; started, not yet a voter."""
        number = len(self.nodes) + 1
        controllers = self.bootstrap("CONTROLLER").split(",")
        ports = dict(zip(self.names, self.allot(len(self.names), number), strict=True))
        node = self.node(number, ports, controllers, ("--no-initial-controllers",))
        self.nodes.append(node)
        node.start()
        node.wait(self.listeners)
        return node

    def node(
        self, number: int, ports: dict[str, int], controllers: Sequence[str], voters: Sequence[str]
    ) -> Node:
        """One node, configured and formatted."""
        home = self.home / str(number)
        home.mkdir(parents=True, exist_ok=True)
        config = home / "server.properties"
        settings = self.configuration(number, ports, controllers, home) | self.settings
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        users = [f"--add-scram=SCRAM-SHA-256=[name={u},password={p}]" for u, p in USERS.items()]
        format_ = ("format", "-t", CLUSTER_ID, "-c", str(config), *voters, *users)
        self.tool("kafka.tools.StorageTool", *format_)
        command = self.java("kafka.Kafka", str(config))
        return Node(number, ports, home, command, self.host(number))

    def classpath(self) -> str:
        """The jars, and our metrics reporter that makes brokers offer client telemetry."""
        return compiled(self.lib, ["TelemetryReporter"]).path

    def configuration(
        self, number: int, ports: dict[str, int], controllers: Sequence[str], home: Path
    ) -> dict[str, str]:
        """server.properties of one node."""
        host = self.host(number)
        addresses = {name: f"{name}://{host}:{port}" for name, port in ports.items()}
        copies = str(min(3, self.planned))
        users = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        settings = {
            "process.roles": "broker,controller",
            "node.id": str(number),
            "listeners": ",".join(addresses.values()),
            "advertised.listeners": ",".join(a for n, a in addresses.items() if n != "CONTROLLER"),
            "listener.security.protocol.map": (
                "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT,"
                "SASL_PLAINTEXT:SASL_PLAINTEXT"
            ),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "INTERNAL",
            "controller.quorum.bootstrap.servers": ",".join(controllers),
            # Two, so that AlterReplicaLogDirs has somewhere to go.
            "log.dirs": f"{home / 'data-a'},{home / 'data-b'}",
            "metadata.log.dir": str(home / "data-a"),
            "num.partitions": "2",
            "default.replication.factor": copies,
            "offsets.topic.replication.factor": copies,
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "3",
            "group.initial.rebalance.delay.ms": "300",
            # Members of the new groups learn their partitions with a heartbeat.
            "group.consumer.heartbeat.interval.ms": "500",
            "group.consumer.min.heartbeat.interval.ms": "500",
            "log.retention.ms": "-1",  # the known records carry times of long ago
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required "
                f'username="admin" password="admin-secret" {users};'
            ),
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:admin;User:alice",
            "delegation.token.secret.key": "not-a-secret",
            "metric.reporters": "TelemetryReporter",
            "num.network.threads": "2",
            "num.io.threads": "4",
            "log.cleaner.dedupe.buffer.size": "8388608",
        }
        if self.version.startswith("3."):
            settings["group.coordinator.rebalance.protocols"] = "classic,consumer"
        else:
            settings |= {
                "group.share.heartbeat.interval.ms": "500",
                "group.share.min.heartbeat.interval.ms": "500",
                "share.coordinator.state.topic.replication.factor": copies,
                "share.coordinator.state.topic.min.isr": "1",
                "share.coordinator.state.topic.num.partitions": "3",
            }
        return settings
