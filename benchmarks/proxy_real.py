"""Kafka's own performance tools against a real broker, through nothing, relays and the proxy.

Run by `python benchmarks/proxy.py --real`; needs Java and Maven. Relays that know no Kafka cannot
change addresses: for each of them the broker has a listener that advertises the relay's port.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.kafka_tools import RECORD_BYTES, RELEASE, Tools
from benchmarks.measuring import Report
from tests.interop.brokers import KRaftCluster, free_base

SETTINGS = ("acks=1", "batch.size=65536", "linger.ms=5")
BLIND = ("asyncio relay", "haproxy", "mitmdump", "toxiproxy")
"""Relays that forward bytes."""
OWN_PORT, FIRST_PORT, RELAY_PORT = 2, 10, 50
"""Above the broker's first: its listener for all others, those for the blind, and the blind."""


def run(rounds: int, names: list[str], records: int, bench: Any) -> None:
    """Print a table of medians. `bench` is the module of `proxy.py`, which cannot be imported by
    that name: it is a package's."""
    tools = Tools(records)
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

    def measured(name: str, kind: str, turn: int, port: int) -> dict[str, float]:
        bootstrap, topic = f"127.0.0.1:{port}", f"bench-{turn}-{names.index(name)}"
        if kind == "consume":
            return {kind: tools.consume(bootstrap, topic)}
        return {kind: tools.produce(bootstrap, topic, SETTINGS)}

    with KRaftCluster(RELEASE, settings=_listeners(base), base_port=base):
        relays, names = bench.start_all(names, begin)
        kinds = dict.fromkeys(("produce", "consume"), records * RECORD_BYTES / 1000000000.0)
        found = bench.in_rounds(rounds, names, relays, base + OWN_PORT, kinds, measured)
        shutil.rmtree(folder, ignore_errors=True)
    _report(*found)
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


def _report(results: dict[str, dict[str, list[float]]], memory: dict[str, float]) -> None:
    one = "{0} MB/s|14.0f of direct|10.2f of relay|9.2f CPU s/GB|9.2f"
    report = Report(f"|<26 {one.format('produce')} {one.format('consume')} peak MB|9.0f")
    for name, row in results.items():
        values: list[float] = []
        for kind in ("produce", "consume"):
            values.append(statistics.median(row[kind]))
            for other in ("direct", "asyncio relay"):
                pairs = zip(row[kind], results.get(other, results["direct"])[kind], strict=True)
                values.append(statistics.median(a / b for a, b in pairs))
            values.append(statistics.median(row[f"{kind} cpu"]))
        report.line(name, *values, memory.get(name, 0))


if __name__ == "__main__":
    print("run `python benchmarks/proxy.py --real`")
