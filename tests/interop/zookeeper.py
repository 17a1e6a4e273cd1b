"""One broker with ZooKeeper, as all were before KRaft: it still writes the old message formats."""

import socket
import subprocess
import time

from tests.interop.brokers import START_SECONDS, Cluster, Node

__all__ = ["ZooKeeperCluster"]


class ZooKeeperCluster(Cluster):
    """A single broker that speaks to itself as 2.8, so that topics may have magic 0, 1 or 2."""

    def plan(self) -> list[Node]:
        """Start ZooKeeper; the broker, configured."""
        keeper, port = self.allot(2, 1)
        home = self.home / "1"
        home.mkdir(parents=True, exist_ok=True)
        self.keeper = self._zookeeper(keeper)
        settings = {
            "broker.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "log.dirs": str(home / "data"),
            "zookeeper.connect": f"127.0.0.1:{keeper}",
            "zookeeper.connection.timeout.ms": "30000",
            "inter.broker.protocol.version": "2.8",
            "log.message.format.version": "2.8",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "log.cleaner.enable": "false",
            "log.retention.ms": "-1",  # the records carry times of long ago
            "log.index.size.max.bytes": "1048576",
            **self.settings,
        }
        config = home / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return [Node(1, {"PLAINTEXT": port}, home, self.java("kafka.Kafka", str(config)))]

    def _zookeeper(self, port: int) -> subprocess.Popen[bytes]:
        config = self.home / "zookeeper.properties"
        lines = (
            f"dataDir={self.home / 'zookeeper'}",
            f"clientPort={port}",
            "clientPortAddress=127.0.0.1",
            "maxClientCnxns=0",
            "admin.enableServer=false",
        )
        config.write_text("\n".join(lines) + "\n")
        command = self.java("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config))
        with (self.home / "zookeeper.log").open("ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return process
            time.sleep(0.1)
        process.kill()
        raise RuntimeError("ZooKeeper did not start")

    def stop(self) -> None:
        """The broker first, then ZooKeeper."""
        super().stop()
        keeper = getattr(self, "keeper", None)
        if keeper is not None:
            keeper.terminate()
            keeper.wait(30)
