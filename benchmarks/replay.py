"""How fast `kafkascope replay --speed max` is, of the original client's own maximum.

    python benchmarks/replay.py [--records 200000] [--rounds 3]

Needs Java, Maven and tcpdump. In one run: Kafka's performance tools against a fresh broker, some
rounds alone and once with tcpdump beside; then their captures are replayed to another fresh broker.
First it is asserted that all requests were answered and all records are there.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.kafka_tools import RECORD_BYTES, RELEASE, Tools  # noqa: E402
from benchmarks.measuring import Arguments, kafkascope  # noqa: E402
from tests.interop.brokers import KRaftCluster  # noqa: E402
from tests.interop.sniff import sniff  # noqa: E402

GOAL: Final = 0.5
PRODUCERS: Final = {
    "producer, defaults (acks=all, idempotent, 16 KB)": ("acks=all",),
    "producer, acks=1, 64 KB, linger 5 ms": ("acks=1", "batch.size=65536", "linger.ms=5"),
}


def _cpu() -> float:
    """Seconds of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def replay(capture: Path, bootstrap: str, *options: str) -> dict[str, Any]:
    """The summary of a replay in which everything came out as captured."""
    command = kafkascope("replay", str(capture), "--to", bootstrap, "--speed", "max")
    command += ["--allow-writes", "--json", *options]
    before = _cpu()
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    (summary,) = (line for line in lines if line["schema"] == "replay/1")
    summary["cpu"] = _cpu() - before
    odd = [line for line in lines if line["schema"] == "replay-difference/1"]
    if odd or summary["unanswered"] or run.returncode:
        raise SystemExit(f"{odd[:5]} {summary} {run.stderr[-1000:]}")
    return dict(summary)


def main() -> None:
    """Print a table."""
    wish = Arguments(__doc__, any_python=True, records=200_000, rounds=3).parse_args()
    tools, size = Tools(wish.records), wish.records * RECORD_BYTES / 1e6
    original: dict[str, list[float]] = {}
    replayed: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    captures: dict[str, Path] = {}
    topics = {name: f"bench-{index}" for index, name in enumerate(PRODUCERS)}
    consumer = "consumer, defaults"
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        with KRaftCluster(RELEASE) as cluster:
            bootstrap, ports = cluster.bootstrap(), cluster.ports("PLAINTEXT")
            for turn in range(wish.rounds + 1):
                for name, settings in PRODUCERS.items():
                    speed = tools.produce(bootstrap, f"own-{turn}-{topics[name]}", settings)
                    _note(original, name, speed, turn)
            for name, settings in PRODUCERS.items():
                captures[name] = Path(folder) / f"{topics[name]}.pcap"
                with sniff(captures[name], ports):
                    tools.produce(bootstrap, topics[name], settings)
            topic = topics[next(iter(PRODUCERS))]
            for turn in range(wish.rounds + 1):
                _note(original, consumer, tools.consume(bootstrap, topic), turn)
            captures[consumer] = Path(folder) / "consumer.pcap"
            with sniff(captures[consumer], ports):
                tools.consume(bootstrap, topic)
        for turn in range(wish.rounds):
            with KRaftCluster(RELEASE) as cluster:
                for name, capture in captures.items():
                    options = ("--create-topics",)
                    if name == consumer:
                        options = ("-Y", "api == Fetch")
                    told = replay(capture, cluster.bootstrap(), *options)
                    _note(replayed, name, size / told["seconds"], turn + 1)
                    cpu.setdefault(name, []).append(told["cpu"] / size * 1e3)
                    print(f"{name}: {told}", file=sys.stderr, flush=True)
    for name, speeds in original.items():
        own, again = statistics.median(speeds), statistics.median(replayed[name])
        verdict = "" if again >= GOAL * max(speeds) else "  MISSED"
        print(
            f"{name:<50} own {own:6.0f} MB/s (best {max(speeds):.0f}), replayed {again:6.0f} MB/s"
            f" (best {max(replayed[name]):.0f}): {again / own:.2f}{verdict}, whole command"
            f" {statistics.median(cpu[name]):.1f} CPU s/GB"
        )
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"{wish.records} records of {RECORD_BYTES} bytes, {wish.rounds} rounds, load {load}")


def _note(table: dict[str, list[float]], name: str, speed: float, turn: int) -> None:
    print(f"round {turn}, {name}: {speed:.0f} MB/s", file=sys.stderr, flush=True)
    if turn:
        # The first warms the broker.
        table.setdefault(name, []).append(speed)


if __name__ == "__main__":
    main()
