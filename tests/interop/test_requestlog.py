"""Brokers with request loggers of Kafka's own configuration: each line is understood, and says what
a capture of the same minute says."""

import socket
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer

from kafkascope.analyzer.exchanges.offline import open_capture
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.requestlog.model import Address, Completed
from kafkascope.analyzer.requestlog.parsing import parse
from kafkascope.analyzer.requestlog.times import LogClock
from kafkascope.captures.formats.text import is_log
from tests.analyzer.requestlog.samples import lines_of, without
from tests.interop.brokers import USERS, Cluster, Node
from tests.interop.make_findings_kit import read
from tests.interop.maven import BROKERS, LOGGING, Artifact, jars
from tests.interop.needs import need
from tests.interop.processes import until
from tests.interop.proxied import SecuredCluster
from tests.interop.scenarios import make_topics
from tests.interop.sniff import sniff
from tests.interop.zookeeper import ZooKeeperCluster, admin_of, older
from tests.kit.authority import Authority
from tests.kit.run import objects, output

pytestmark = pytest.mark.interop

RELEASES = ("0.9.0.1", "1.1.1", "2.8.2", "3.9.2", "4.4.0")
SOAK = {"1.1.1", "3.9.2"}
SECONDS = 60

_BINDINGS: Final = {
    "2.8.2": Artifact("org.slf4j:slf4j-log4j12:1.7.30"),
    "3.9.2": Artifact("org.slf4j:slf4j-reload4j:1.7.36"),
    "4.4.0": Artifact("org.apache.logging.log4j:log4j-slf4j-impl:2.25.5"),
}

# As config/log4j.properties and config/log4j2.yaml of the releases.
LOG4J: Final = """log4j.rootLogger=WARN, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.appender.requestAppender=org.apache.log4j.DailyRollingFileAppender
log4j.appender.requestAppender.DatePattern='.'yyyy-MM-dd-HH
log4j.appender.requestAppender.File={home}/kafka-request.log
log4j.appender.requestAppender.layout=org.apache.log4j.PatternLayout
log4j.appender.requestAppender.layout.ConversionPattern=[%d] %p %m (%c)%n
log4j.logger.kafka.request.logger={level}, requestAppender
log4j.additivity.kafka.request.logger=false
"""
LOG4J2: Final = """Configuration:
  Appenders:
    Console:
      name: STDOUT
      PatternLayout:
        pattern: "[%d] %p %m (%c)%n"
    RollingFile:
      - name: RequestAppender
        fileName: "{home}/kafka-request.log"
        filePattern: "{home}/kafka-request.log.%d{{yyyy-MM-dd-HH}}"
        PatternLayout:
          pattern: "[%d] %p %m (%c)%n"
        TimeBasedTriggeringPolicy:
          modulate: true
          interval: 1
  Loggers:
    Root:
      level: WARN
      AppenderRef:
        - ref: STDOUT
    Logger:
      - name: kafka.request.logger
        level: {level}
        additivity: false
        AppenderRef:
          ref: RequestAppender
"""


def logging_option(version: str, config: str, level: str) -> str:
    """Write a configuration of loggers beside that of a node; return the option that names it."""
    home = Path(config).parent
    newest = not older(version, "4.0")
    path = home / ("log4j2.yaml" if newest else "request.properties")
    path.write_text((LOG4J2 if newest else LOG4J).format(home=home, level=level))
    return f"-Dlog4j2.configurationFile={path}" if newest else f"-Dlog4j.configuration=file:{path}"


def with_binding(version: str) -> Path:
    """The broker's jars with log4j in the place of what other tests log with."""
    if version not in _BINDINGS:
        return jars(f"broker-{version}", BROKERS[version])
    artifacts = [artifact for artifact in BROKERS[version] if artifact != LOGGING]
    return jars(f"logging-{version}", [*artifacts, _BINDINGS[version]])


class LoggingOld(ZooKeeperCluster):
    """A broker with ZooKeeper that logs requests."""

    def plan(self) -> list[Node]:
        self.lib = with_binding(self.version)
        return super().plan()

    def java(self, main: str, *arguments: str) -> list[str]:
        command = super().java(main, *arguments)
        if main == "kafka.Kafka":
            command[1] = logging_option(self.version, arguments[0], "DEBUG")
        return command


class LoggingNew(SecuredCluster):
    """A node with TLS and SASL listeners that logs requests."""

    level = "DEBUG"

    def plan(self) -> list[Node]:
        self.lib = with_binding(self.version)
        return super().plan()

    def java(self, main: str, *arguments: str) -> list[str]:
        command = super().java(main, *arguments)
        if main == "kafka.Kafka":
            command.insert(1, logging_option(self.version, arguments[0], self.level))
        return command


class Run(NamedTuple):
    """What a broker logged, and what was captured on its plain listener."""

    release: str
    log: Path
    requests: list[Completed]
    wire: dict[tuple[str, int, str], list[tuple[Any, ...]]]


def address(value: Address) -> str:
    return f"{value[0]}:{value[1]}"


def requests_of(log: Path) -> list[Completed]:
    """Return the requests of a log, in which each line is understood."""
    data = log.read_bytes()
    assert is_log(data[: 64 << 10], sure=False)
    clock = LogClock()
    requests = []
    for line in lines_of(data):
        request = parse(line, clock)
        assert isinstance(request, Completed), (request, line)
        requests.append(request)
    return requests


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(each, marks=[pytest.mark.soak] if each in SOAK else []) for each in RELEASES
    ],
)
def run(
    request: pytest.FixtureRequest,
    java: None,
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    need("tcpdump")
    home = tmp_path_factory.mktemp("logging")
    release: str = request.param
    cluster: Cluster
    if older(release, "3.0"):
        cluster = LoggingOld(release, home=home / "kafka", settings={"num.partitions": "2"})
    else:
        cluster = LoggingNew(release, 1, authority)
    with cluster, sniff(home / "plain.pcap", cluster.ports("PLAINTEXT")):
        use(cluster)
        if isinstance(cluster, LoggingNew):
            use_secured(cluster)
        cluster.nodes[0].stop(seconds=60)
        log = home / "kafka-request.log"
        log.write_bytes((cluster.nodes[0].home / "kafka-request.log").read_bytes())
    wire: dict[tuple[str, int, str], list[tuple[Any, ...]]] = defaultdict(list)
    with open_capture([home / "plain.pcap"]) as capture:
        for exchange in capture.exchanges():
            row = row_of(exchange, capture.context.names)
            sides = (exchange.request, exchange.response)
            bodies = tuple(
                None if s is None or s.decoded is None else s.decoded.body for s in sides
            )
            key = (row.client_address, row.correlation_id or 0, row.api)
            wire[key].append((row.api_version, *bodies))
    return Run(release, log, requests_of(log), wire)


def use(cluster: Cluster) -> None:
    """Write, and read with a group that a second member joins and leaves."""
    old = older(cluster.version, "0.10")
    common: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap(),
        "broker.address.family": "v4",
        "log_level": 0,
    }
    if old:
        common |= {"api.version.request": False, "broker.version.fallback": "0.9.0"}
    else:
        from confluent_kafka.admin import NewTopic

        admin = admin_of(cluster.bootstrap())
        (done,) = admin.create_topics([NewTopic("orders", 2, 1)]).values()
        done.result(SECONDS)
    producer = Producer(common | {"client.id": "shop, writer"})
    for number in range(20):
        producer.produce("orders", f"value {number}", f"key {number}")
    assert producer.flush(SECONDS) == 0
    reading = common | {"group.id": "readers", "auto.offset.reset": "earliest"}
    reading["session.timeout.ms"] = 10_000  # 0.9 takes 30 s at most
    one = Consumer(reading | {"client.id": "one"})
    one.subscribe(["orders"])
    records = read(one, 20, SECONDS)
    two = Consumer(reading | {"client.id": "two"})
    two.subscribe(["orders"])
    until(lambda: (one.poll(0.1), two.poll(0.1), two.assignment())[-1], SECONDS)
    two.close()
    one.close()
    assert len(records) == 20


def use_secured(cluster: LoggingNew) -> None:
    """Alice may write, bob may not, a certificate may; a client from before 4.0 is refused."""
    trust = {"ssl.ca.location": str(cluster.authority.certificate), "client.id": "secured"}
    pem = str(cluster.authority.issue("client"))
    login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    visitors = [
        login | {"sasl.username": name, "sasl.password": USERS[name]} for name in ("alice", "bob")
    ]
    visitors.append(
        {
            "security.protocol": "SSL",
            "ssl.certificate.location": pem,
            "ssl.key.location": pem,
        }
    )
    for visitor in visitors:
        where = cluster.bootstrap(visitor["security.protocol"])
        producer = Producer(
            {"bootstrap.servers": where, "message.timeout.ms": 10_000, **trust, **visitor}
        )
        producer.produce("orders", b"secured")
        producer.flush(SECONDS)
    (port,) = cluster.ports("PLAINTEXT")
    with socket.create_connection(("127.0.0.1", port), SECONDS) as old:
        # ApiVersions 0, then a Fetch 0 of no topics.
        for key, body in ((18, b""), (1, struct.pack(">iiii", -1, 0, 0, 0))):
            head = struct.pack(">hhih3s", key, 0, key, 3, b"old")
            old.sendall(struct.pack(">i", len(head + body)) + head + body)
            old.recv(1 << 16)


def test_every_request_of_the_capture_that_the_broker_handled_is_a_line(run: Run) -> None:
    lines = Counter(address(request.connection.client) for request in run.requests)
    seen = [key for key in run.wire if key[2] not in ("SaslHandshake", "SaslAuthenticate")]
    assert len(run.requests) > 30
    assert sum(client in lines for client, _, _ in seen) >= 0.9 * len(seen)


def test_bodies_are_those_of_the_capture(run: Run) -> None:
    compared = 0
    for request in run.requests:
        api = request.request.layout or request.response.layout
        name = (
            "" if api is None else api.message.name.removesuffix("Request").removesuffix("Response")
        )
        found = run.wire.get((address(request.connection.client), request.correlation_id, name), [])
        if len(found) != 1 or request.forwarded:
            continue
        version, *bodies = found[0]
        assert version == request.api_version
        for logged, body in zip((request.request, request.response), bodies, strict=True):
            if logged.body is not None and body is not None:
                unknown = set(logged.unknown) | {"_tagged_fields"}
                assert ordered(without(logged.body, unknown)) == ordered(without(body, unknown))
                compared += 1
    assert compared > 30


def ordered(value: Any) -> Any:
    """Java's maps have an order of their own in text forms."""
    if isinstance(value, dict):
        return {name: ordered(field) for name, field in value.items()}
    return sorted(map(ordered, value), key=repr) if isinstance(value, list) else value


def test_clients_and_groups_are_in_the_log(run: Run) -> None:
    clients = {request.client_id for request in run.requests}
    assert {"shop, writer", "one", "two"} <= clients
    groups = [r for r in run.requests if r.api_key == 11 and r.client_id in ("one", "two")]
    assert {r.request.body["group_id"] for r in groups if r.request.body} == {"readers"}
    assert len(groups) >= 3


def test_principals_and_listeners_are_in_the_log(run: Run) -> None:
    who = {(r.principal, r.security_protocol) for r in run.requests}
    assert ("User:ANONYMOUS", "PLAINTEXT") in who
    if older(run.release, "3.0"):
        return
    assert {("User:alice", "SASL_SSL"), ("User:bob", "SASL_SSL"), ("User:CN=client", "SSL")} <= who
    denied = [r for r in run.requests if r.principal == "User:bob" and r.response.body]
    assert "'error_code': 29" in repr([r.response.body for r in denied])
    old = [(r.api_name, r.level, r.deprecated) for r in run.requests if r.client_id == "old"]
    versions, fetch = ("API_VERSIONS", "DEBUG", False), ("FETCH", "INFO", True)
    assert old == ([versions] if run.release == "4.4.0" else [versions, fetch])


def test_commands_read_the_log(run: Run) -> None:
    rows = objects("ls", "--json", "-q", run.log)
    assert len([row for row in rows if row.get("source") == "request-log"]) == len(run.requests)
    assert "readers" in output("groups", run.log)
    for words in (("check",), ("clients", "--for", "4.0"), ("stats", "latency"), ("cluster",)):
        output(*words, run.log, codes=(0, 1))


@pytest.fixture
def switched_on(java: None, authority: Authority) -> Iterator[LoggingNew]:
    cluster = LoggingNew("3.9.2", 1, authority)
    cluster.level = "WARN"
    with cluster:
        yield cluster


def test_a_logger_that_is_switched_on_in_mid_run(switched_on: LoggingNew) -> None:
    log = switched_on.nodes[0].home / "kafka-request.log"
    assert log.read_bytes() == b""
    switched_on.tool(
        "kafka.admin.ConfigCommand",
        *("--bootstrap-server", switched_on.bootstrap(), "--alter", "--entity-type"),
        *("broker-loggers", "--entity-name", "1", "--add-config", "kafka.request.logger=DEBUG"),
    )
    use(switched_on)
    requests = requests_of(log)
    assert len(requests) > 30
    first = next(r for r in requests if r.api_name == "INCREMENTAL_ALTER_CONFIGS")
    assert (first.request.body, first.request.gap) == (None, "not in the line")


@pytest.mark.soak
def test_three_brokers_of_which_one_stops(java: None, authority: Authority) -> None:
    with LoggingNew("4.4.0", 3, authority) as cluster:
        common = {"bootstrap.servers": cluster.bootstrap(), "broker.address.family": "v4"}
        make_topics(cluster, "orders", copies=3)
        producer = Producer(common | {"log_level": 0, "acks": "all", "client.id": "shop"})
        for number in range(300):
            producer.produce("orders", f"value {number}", partition=number % 2)
            producer.flush(SECONDS)
            if number == 100:
                cluster.nodes[2].stop(seconds=60)
        logs = [requests_of(node.home / "kafka-request.log") for node in cluster.nodes]
    forwarded = [r for log in logs for r in log if r.forwarded and r.api_name == "CREATE_TOPICS"]
    first = [r for log in logs for r in log if not r.forwarded and r.api_name == "CREATE_TOPICS"]
    assert {r.correlation_id for r in forwarded} >= {r.correlation_id for r in first[:1]}
    written = [sum(r.api_name == "PRODUCE" for r in log) for log in logs]
    assert sum(written) >= 300
    assert sum(count > 0 for count in written) >= 2
    errors = {
        partition["error_code"]
        for log in logs
        for r in log
        if r.api_name == "PRODUCE" and r.response.body is not None
        for topic in r.response.body["responses"]
        for partition in topic["partition_responses"]
    }
    assert errors <= {0, 6, 3}  # the leader moved while it stopped
    assert any(
        r.times.remote_ns for log in logs for r in log if r.api_name == "PRODUCE"
    )  # followers' time
