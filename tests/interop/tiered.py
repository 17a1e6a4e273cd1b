"""A broker whose segments move to a folder: tiered storage with `LocalTieredStorage`."""

from pathlib import Path
from typing import Final

from tests.interop.brokers import KRaftCluster
from tests.interop.maven import Artifact, classpath, compiled, jars

# Kafka's test jars; 4.4.0 has none among its artifacts. What they ask for is with the broker.
_STORAGE: Final = {
    "3.9.2": Artifact("org.apache.kafka:kafka-storage:3.9.2:test", ("*:*",)),
    "4.4.0": Artifact("org.apache.kafka:kafka-storage:4.3.1:test", ("*:*",)),
}


class TieredCluster(KRaftCluster):
    """One node with a folder `remote`, to which closed segments are copied within a second."""

    @property
    def data(self) -> Path:
        """Its only log directory."""
        return self.home / "1" / "data"

    @property
    def remote(self) -> Path:
        """Where segments go to."""
        return self.home / "remote" / "kafka-tiered-storage"

    def classpath(self) -> str:
        """The jars of the broker and of the storage."""
        storage = jars(f"storage-{self.version}", (_STORAGE[self.version],))
        moved = (
            [] if self.version.startswith("3.") else [compiled(self.lib, ["LogContext"]).classes]
        )
        return f"{super().classpath()}:{classpath(storage, *moved)}"

    def configuration(self, *of: object) -> dict[str, str]:
        """server.properties of the node."""
        storage = "org.apache.kafka.server.log.remote.storage.LocalTieredStorage"
        return super().configuration(*of) | {  # type: ignore[arg-type]
            "log.dirs": str(self.data),
            "metadata.log.dir": str(self.data),
            "remote.log.storage.system.enable": "true",
            "remote.log.storage.manager.class.name": storage,
            "rsm.config.dir": str(self.home / "remote"),
            "remote.log.metadata.manager.listener.name": "INTERNAL",
            "rlmm.config.remote.log.metadata.topic.replication.factor": "1",
            "rlmm.config.remote.log.metadata.topic.num.partitions": "2",
            "remote.log.manager.task.interval.ms": "200",
            "log.retention.check.interval.ms": "300",
            "log.initial.task.delay.ms": "300",
            "log.segment.delete.delay.ms": "100",
            "log.index.interval.bytes": "200",
        }
