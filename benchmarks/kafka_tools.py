"""Kafka's own performance tools, for benchmarks beside a real broker."""

from __future__ import annotations

import re
import subprocess

from tests.interop.maven import LOGGING, Artifact, classpath, jars

RELEASE = "3.9.2"
RECORD_BYTES = 1000
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"


class Tools:
    """ProducerPerformance and ConsumerPerformance; needs Java and Maven."""

    def __init__(self, records: int) -> None:
        """`records`: of each run."""
        self._records = records
        tools = (Artifact(f"org.apache.kafka:kafka-tools:{RELEASE}"), LOGGING)
        path = classpath(jars(f"tools-{RELEASE}", tools))
        self._java = ["java", "-Xmx400m", QUIET, "-cp", path]

    def produce(self, bootstrap: str, topic: str, settings: tuple[str, ...]) -> float:
        """MB (10**6 bytes) per second, as the tool says."""
        words = ["--num-records", str(self._records), "--record-size", str(RECORD_BYTES)]
        words += ["--throughput", "-1", "--producer-props", f"bootstrap.servers={bootstrap}"]
        said = self._run("ProducerPerformance", topic, *words, *settings)
        return float(re.findall(r"([\d.]+) records/sec", said)[-1]) * RECORD_BYTES / 1e6

    def consume(self, bootstrap: str, topic: str) -> float:
        """MB per second while fetching, without joining the group."""
        words = ["--messages", str(self._records), "--bootstrap-server", bootstrap]
        said = self._run(
            "ConsumerPerformance", topic, *words, "--timeout", "30000", "--hide-header"
        )
        fields = [part.strip() for part in said.strip().splitlines()[-1].split(",")]
        return float(fields[8]) * (1 << 20) / 1e6

    def _run(self, tool: str, topic: str, *words: str) -> str:
        command = [*self._java, f"org.apache.kafka.tools.{tool}", "--topic", topic, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise SystemExit(done.stdout[-1000:] + done.stderr[-2000:])
        return done.stdout
