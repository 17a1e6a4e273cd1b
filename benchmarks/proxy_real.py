"""Kafka's own performance tools against a real broker, through nothing, relays and the proxy.

Run by `python benchmarks/proxy.py --real`; needs Java and Maven. Relays that know no Kafka cannot
change addresses: for each of them the broker has a listener that advertises the relay's port.
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

from tests.interop.brokers import KRaftCluster, free_base
from tests.interop.maven import LOGGING, Artifact, classpath, jars

RELEASE = "3.9.2"
RECORD_BYTES = 1000
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
JAVA = ("java", "-Xmx400m", QUIET)
BLIND = ("asyncio relay", "mitmdump", "toxiproxy")
"""Relays that forward bytes."""
OWN_PORT, FIRST_PORT, RELAY_PORT = 2, 10, 50
"""Above the broker's first: its listener for all others, those for the blind, and the blind."""


def run(rounds: int, names: list[str], records: int, bench: Any) -> None:
    """Print a table of medians. `bench` is the module of `proxy.py`, which cannot be imported by
    that name: it is a package's."""
    lib = jars(f"tools-{RELEASE}", (Artifact(f"org.apache.kafka:kafka-tools:{RELEASE}"), LOGGING))
    java = [*JAVA, "-cp", classpath(lib)]
    base = free_base(2)
    folder = Path(tempfile.mkdtemp(prefix="bench-"))

    def begin(name: str) -> Any:
        if name in BLIND:
            place = BLIND.index(name)
            port = base + RELAY_PORT + place
            return bench.start(name, base + FIRST_PORT + place, folder, port)
        # Kroxylicious takes the ports behind its own for brokers.
        port = base + RELAY_PORT + 10 if name == "kroxylicious" else 0
        return bench.start(name, base + OWN_PORT, folder, port)

    with KRaftCluster(RELEASE, settings=_listeners(base), base_port=base):
        relays, names = bench.start_all(names, begin)
        results: dict[str, dict[str, list[float]]] = {name: {} for name in names}
        try:
            for turn in range(rounds + 1):
                for name in names:
                    relay = relays.get(name)
                    port = relay.port if relay is not None else base + OWN_PORT
                    topic = f"bench-{turn}-{names.index(name)}"
                    for kind in ("produce", "consume"):
                        before = relay.cpu_s() if relay is not None else 0.0
                        speed = _measure(java, kind, port, topic, records)
                        cpu = relay.cpu_s() - before if relay is not None else 0.0
                        said = f"round {turn}, {name}, {kind}: {speed:.0f} MB/s, CPU {cpu:.2f} s"
                        print(said, file=sys.stderr, flush=True)
                        if turn:
                            results[name].setdefault(kind, []).append(speed)
                            results[name].setdefault(f"{kind} cpu", []).append(
                                cpu / records / RECORD_BYTES * 1e9
                            )
            memory = {name: relay.memory_mb("VmHWM") for name, relay in relays.items()}
        finally:
            for relay in relays.values():
                relay.stop()
            shutil.rmtree(folder, ignore_errors=True)
    _report(results, memory)
    print(f"{RELEASE}, {records} records of {RECORD_BYTES} bytes in a run, {rounds} rounds")
    bench.epilogue(relays)


def _listeners(base: int) -> dict[str, str]:
    """Listeners of the broker: its own, and one for each blind relay."""
    own = {"PLAINTEXT": base, "INTERNAL": base + OWN_PORT, "SASL_PLAINTEXT": base + 3}
    blind = {f"BLIND{place}": base + FIRST_PORT + place for place in range(len(BLIND))}
    told = own | {name: base + RELAY_PORT + place for place, name in enumerate(blind)}
    bound = own | blind | {"CONTROLLER": base + 1}
    protocols = dict.fromkeys(bound, "PLAINTEXT") | {"SASL_PLAINTEXT": "SASL_PLAINTEXT"}
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in bound.items()),
        "advertised.listeners": ",".join(f"{n}://127.0.0.1:{port}" for n, port in told.items()),
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
    }


def _measure(java: list[str], kind: str, port: int, topic: str, records: int) -> float:
    """MB (10**6 bytes) per second, as the tool says."""
    if kind == "produce":
        command = [*java, "org.apache.kafka.tools.ProducerPerformance", "--topic", topic]
        command += ["--num-records", str(records), "--record-size", str(RECORD_BYTES)]
        command += ["--throughput", "-1"]
        command += ["--producer-props", f"bootstrap.servers=127.0.0.1:{port}", "acks=1"]
        command += ["batch.size=65536", "linger.ms=5"]
        told = _told(command)
        return float(re.findall(r"([\d.]+) records/sec", told)[-1]) * RECORD_BYTES / 1e6
    command = [*java, "org.apache.kafka.tools.ConsumerPerformance", "--topic", topic]
    command += ["--messages", str(records), "--bootstrap-server", f"127.0.0.1:{port}"]
    command += ["--timeout", "30000", "--hide-header"]
    fields = [part.strip() for part in _told(command).strip().splitlines()[-1].split(",")]
    return float(fields[8]) * (1 << 20) / 1e6  # while fetching, without joining the group


def _told(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise SystemExit(done.stdout[-1000:] + done.stderr[-2000:])
    return done.stdout


def _report(results: dict[str, dict[str, list[float]]], memory: dict[str, float]) -> None:
    head = f"{'':26}"
    for kind in ("produce", "consume"):
        head += f"{kind + ' MB/s':>14}{'of direct':>10}{'of relay':>9}{'CPU s/GB':>9}"
    print(head + f"{'peak MB':>9}")
    for name, row in results.items():
        line = f"{name:26}"
        for kind in ("produce", "consume"):
            line += f"{statistics.median(row[kind]):14.0f}"
            for other in ("direct", "asyncio relay"):
                if other not in results:
                    other = "direct"
                pairs = zip(row[kind], results[other][kind], strict=True)
                width = 10 if other == "direct" else 9
                line += f"{statistics.median(a / b for a, b in pairs):{width}.2f}"
            line += f"{statistics.median(row[f'{kind} cpu']):9.2f}"
        print(line + f"{memory.get(name, 0):9.0f}")


if __name__ == "__main__":
    print("run `python benchmarks/proxy.py --real`")
