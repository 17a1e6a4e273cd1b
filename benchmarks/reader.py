"""`kafkascope ls` and `export` against tshark, on the same capture in the same run.

    python benchmarks/reader.py [--megabytes 100] [--rounds 5] [--floor]

Makes the captures (MTU 1500 and 64 KB segments), times whole processes in turn, and asserts first
that our output holds exactly the records and value bytes that the generator wrote. One process of
ours. Prints ratios (tshark divided by ours, medians) and peak memory; targets are about CPU.
--floor: exit 1 when a target is missed.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import generate
from measuring import (
    ONE_PROCESS,
    Arguments,
    Compared,
    Report,
    in_turn,
    kafkascope,
    tshark,
    tshark_json,
)

FIELDS = ("frame.number", "frame.time_epoch", "ip.src", "ip.dst", "kafka.api_key")
FIELDS += ("kafka.api_version", "kafka.correlation_id", "kafka.client_id")
TARGETS = {"ls": 1.5, "export": 3.0}


def check(export: Path, truth: generate.Truth) -> None:
    """The export holds what the generator wrote: exchanges, records, value bytes."""
    exchanges = records = value_bytes = 0
    with export.open("rb") as lines:
        for line in lines:
            exchanges += 1
            for found in _records(json.loads(line)):
                records += 1
                value_bytes += len(found["value"].encode())
    found = exchanges, records, value_bytes
    assert found == (truth.exchanges, truth.records, truth.value_bytes), (found, vars(truth))


def _records(value: object) -> list[dict[str, str]]:
    """All records of the `batches` anywhere in a row."""
    if isinstance(value, list):
        return [found for each in value for found in _records(each)]
    if isinstance(value, dict):
        if isinstance(value.get("batches"), list):
            return [record for batch in value["batches"] for record in batch["records"]]
        return [found for each in value.values() for found in _records(each)]
    return []


def results(megabytes: float, rounds: int) -> Iterator[Compared]:
    """Yield what `ls` and `export --full` cost, for packets of 1500 bytes and segments of 64 KB."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        for name, mss in (("mtu1500", 1448), ("64k", 65000)):
            capture = Path(folder, f"{name}.pcap")
            truth = generate.made(capture, megabytes, mss=mss)
            export = ("export", str(capture), "--full", "-o", "-", "--format", "jsonl")
            for word, ours, theirs in (
                ("ls", ("ls", str(capture)), tshark(capture, FIELDS)),
                ("export", export, tshark_json(capture)),
            ):

                def proven(who: str, word: str = word, truth: generate.Truth = truth) -> None:
                    if who == "ours" and word == "export":
                        check(out, truth)

                commands = {"ours": kafkascope(*ours, *ONE_PROCESS), "tshark": theirs}
                yield Compared(name, word, **in_turn(commands, rounds, out, proven))


def main() -> int:
    options = Arguments(__doc__, megabytes=100.0, rounds=5, floor=False).parse_args()
    report = Report(
        "capture|<10 run|<8 ours s|9.2f tshark s|10.2f ratio|7.2f cpu ratio|11.2f ours MB|9.0f"
        " tshark MB|11.0f"
    )
    for found in results(options.megabytes, options.rounds):
        ours, theirs = found.ours, found.tshark
        report.line(
            *(found.capture, found.work, ours.wall, theirs.wall, found.wall_ratio),
            *(found.cpu_ratio, ours.memory, theirs.memory),
            missed=found.cpu_ratio < TARGETS[found.work] or ours.memory > theirs.memory / 2,
        )
    return report.end(options.floor)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.exit(main())
