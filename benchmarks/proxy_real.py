"""Kafka's own performance tools against a real broker, through nothing, a relay and the proxy.

Run by `python benchmarks/proxy.py --real`; needs Java and Maven. The bare relay cannot change
addresses: one listener of the broker advertises the relay's port for it.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.interop.brokers import KRaftCluster, free_ports
from tests.interop.maven import LOGGING, Artifact, classpath, jars

RELEASE = "3.9.2"
RECORDS = 300_000
BYTES = RECORDS * 1000
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
JAVA = ("java", "-Xmx400m", QUIET)
ROTATION = ("--rotate-bytes", "256MB", "--keep-bytes", "512MB")
NAMES = ("direct", "asyncio relay", "kafkascope", "kafkascope, recording", "kafkascope, a rule")


def run(rounds: int, bench: Any) -> None:
    """Print a table of medians. `bench` is the module of `proxy.py`, which cannot be imported by
    that name: it is a package's."""
    lib = jars(f"tools-{RELEASE}", (Artifact(f"org.apache.kafka:kafka-tools:{RELEASE}"), LOGGING))
    java = [*JAVA, "-cp", classpath(lib)]
    base = free_ports(1)[0] // 100 * 100
    relay_port = base + 50
    advertised = {
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{relay_port},"
        f"INTERNAL://127.0.0.1:{base + 2},SASL_PLAINTEXT://127.0.0.1:{base + 3}"
    }
    folder = Path(tempfile.mkdtemp(prefix="bench-"))
    results: dict[str, dict[str, list[float]]] = {name: {} for name in NAMES}
    with KRaftCluster(RELEASE, settings=advertised, base_port=base) as cluster:
        relays = _relays(bench, folder, base, relay_port, base + 2)
        try:
            for turn in range(rounds + 1):
                for name in NAMES:
                    relay = relays.get(name)
                    port = relay.port if relay is not None else base + 2
                    topic = f"bench-{turn}-{NAMES.index(name)}"
                    for kind in ("produce", "consume"):
                        before = relay.cpu_s() if relay is not None else 0.0
                        speed = _measure(java, kind, port, topic)
                        cpu = relay.cpu_s() - before if relay is not None else 0.0
                        if turn:
                            results[name].setdefault(kind, []).append(speed)
                            results[name].setdefault(f"{kind} cpu", []).append(cpu / BYTES * 1e9)
            del cluster
        finally:
            for relay in relays.values():
                relay.stop()
            shutil.rmtree(folder, ignore_errors=True)
    _report(results)


def _relays(bench: Any, folder: Path, upstream: int, port: int, own: int) -> dict[str, Any]:
    here = Path(__file__).with_name("proxy.py")
    file = folder / "relay-port"
    command = [sys.executable, str(here), "--as", "relay", str(upstream), str(file), str(port)]
    found = {"asyncio relay": bench.Running("asyncio relay", command, file)}
    more = {
        "kafkascope": [],
        "kafkascope, recording": ["-w", str(folder / "r.pcapng"), *ROTATION],
        "kafkascope, a rule": ["--fault", "api == Metadata and topic == nothing -> delay 1ms"],
    }
    for name, options in more.items():
        ready = folder / f"ready-{len(found)}"
        command = [sys.executable, "-m", "tui.cli", "proxy", "--quiet", "--control", "none"]
        command += ["--upstream", f"127.0.0.1:{own}", "--listen", "127.0.0.1:0"]
        command += ["--ready-file", str(ready), *options]
        process = bench.Running.__new__(bench.Running)
        process.name = name
        process.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        process.port = _ready_port(bench, ready, process.process)
        found[name] = process
    return found


def _ready_port(bench: Any, file: Path, process: subprocess.Popen[bytes]) -> int:
    digits = file.with_suffix(".port")
    for _ in range(600):
        if file.exists() and file.read_text().endswith("\n"):
            digits.write_text(file.read_text().rpartition(":")[2])
            break
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    return int(bench.port_of(digits, process))


def _measure(java: list[str], kind: str, port: int, topic: str) -> float:
    """MB (10**6 bytes) per second, as the tool says."""
    if kind == "produce":
        command = [*java, "org.apache.kafka.tools.ProducerPerformance", "--topic", topic]
        command += ["--num-records", str(RECORDS), "--record-size", "1000", "--throughput", "-1"]
        command += ["--producer-props", f"bootstrap.servers=127.0.0.1:{port}", "acks=1"]
        command += ["batch.size=65536", "linger.ms=5"]
        told = _told(command)
        return float(re.findall(r"([\d.]+) records/sec", told)[-1]) * 1000 / 1e6
    command = [*java, "org.apache.kafka.tools.ConsumerPerformance", "--topic", topic]
    command += ["--messages", str(RECORDS), "--bootstrap-server", f"127.0.0.1:{port}"]
    command += ["--timeout", "30000", "--hide-header"]
    fields = [part.strip() for part in _told(command).strip().splitlines()[-1].split(",")]
    return float(fields[8]) * (1 << 20) / 1e6  # while fetching, without joining the group


def _told(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(done.stdout[-1000:] + done.stderr[-2000:])
    return done.stdout


def _report(results: dict[str, dict[str, list[float]]]) -> None:
    head = f"{'':26}"
    for kind in ("produce", "consume"):
        head += f"{kind + ' MB/s':>14}{'of direct':>10}{'of relay':>9}{'CPU s/GB':>9}"
    print(head)
    for name, row in results.items():
        line = f"{name:26}"
        for kind in ("produce", "consume"):
            line += f"{statistics.median(row[kind]):14.0f}"
            for other in ("direct", "asyncio relay"):
                pairs = zip(row[kind], results[other][kind], strict=True)
                width = 10 if other == "direct" else 9
                line += f"{statistics.median(a / b for a, b in pairs):{width}.2f}"
            line += f"{statistics.median(row[f'{kind} cpu']):9.2f}"
        print(line)


if __name__ == "__main__":
    print("run `python benchmarks/proxy.py --real`")
