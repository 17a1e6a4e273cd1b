"""One broker with ZooKeeper, as all were before KRaft: old releases, and old message formats."""

from typing import Final

from confluent_kafka.admin import AdminClient

from tests.interop.brokers import Cluster, Node
from tests.interop.processes import until

LOG4J: Final = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%p %c{1} %m%n
log4j.logger.org.apache.zookeeper=WARN
log4j.logger.org.I0Itec=WARN
"""


def older(release: str, than: str) -> bool:
    """Whether a release came before another."""
    one, two = ([int(part) for part in each.split(".")] for each in (release, than))
    return one < two


class ZooKeeperCluster(Cluster):
    """A single broker. One of 3.9 speaks to itself as 2.8, so that topics may have magic 0, 1
    or 2."""

    def plan(self) -> list[Node]:
        """Start ZooKeeper; the broker, configured."""
        keeper, port = self.allot(2, 1)
        home = self.home / "1"
        home.mkdir(parents=True, exist_ok=True)
        (self.home / "log4j.properties").write_text(LOG4J)
        self.keeper = self.zookeeper(keeper)
        self.keeper_port = keeper
        settings = {
            "broker.id": "1",
            "log.dirs": str(home / "data"),
            "zookeeper.connect": f"127.0.0.1:{keeper}",
            "zookeeper.connection.timeout.ms": "30000",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "log.cleaner.enable": "false",
            "log.index.size.max.bytes": "1048576",
            **self._of_release(port),
            **self.settings,
        }
        config = home / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return [Node(1, {"PLAINTEXT": port}, home, self.java("kafka.Kafka", str(config)))]

    def _of_release(self, port: int) -> dict[str, str]:
        """Return the settings that releases spell differently."""
        if older(self.version, "0.9"):
            names = ("host.name", "advertised.host.name")
            return {"port": str(port), **dict.fromkeys(names, "127.0.0.1")}
        found = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.retention.ms": "-1",  # the records carry times of long ago
        }
        if not older(self.version, "0.11"):
            # One copy of the topic of transactions.
            found |= {
                "transaction.state.log.replication.factor": "1",
                "transaction.state.log.min.isr": "1",
                "transaction.state.log.num.partitions": "1",
            }
        if not older(self.version, "3.0"):
            found |= dict.fromkeys(
                ("inter.broker.protocol.version", "log.message.format.version"), "2.8"
            )
        return found

    def java(self, main: str, *arguments: str) -> list[str]:
        """A command that runs a class of the broker's jars, with log4j where the release has it."""
        command = super().java(main, *arguments)
        if self.version == "0.8.0":
            # Its snappy loads a class of its own with the loader of Java.
            command.insert(1, "--add-opens=java.base/java.lang=ALL-UNNAMED")
        command.insert(1, f"-Dlog4j.configuration=file:{self.home / 'log4j.properties'}")
        return command

    def zookeeper(self, port: int) -> Node:
        """A server of ZooKeeper that runs."""
        home = self.home / f"zookeeper-{port}"
        home.mkdir(parents=True)
        config = home / "zookeeper.properties"
        lines = (
            f"dataDir={home}",
            f"clientPort={port}",
            "clientPortAddress=127.0.0.1",
            "maxClientCnxns=0",
            "admin.enableServer=false",
            "tickTime=1000",
        )
        config.write_text("\n".join(lines) + "\n")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        keeper = Node(0, {"CLIENT": port}, home, self.java(main, str(config)))
        keeper.start()
        keeper.wait(keeper.ports)
        return keeper

    def stop(self) -> None:
        """The broker first, then ZooKeeper."""
        super().stop()
        if (keeper := getattr(self, "keeper", None)) is not None:
            keeper.stop()


def admin_of(bootstrap: str) -> AdminClient:
    """Return a client that manages topics, once the broker knows its controller: a broker with
    ZooKeeper answers before, and librdkafka gives up a minute later without having asked again."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    until(lambda: admin.list_topics(timeout=180).controller_id >= 0, 180)
    return admin
