"""`map` and `stats journeys` against `stats topics`, where two groups read all records.

    python benchmarks/journeys.py [--megabytes 60] [--records 5] [--rounds 3] [--make OUT.pcap]

Each record is produced once, fetched by two groups, and committed. Prints the user time of whole
processes in turn (medians, with that of their workers), and the factors that bound it: `map` takes
at most 1.2 of `stats topics`, `journeys` at most 1.3. `--make` only writes the capture. --floor:
exit 1 when a factor is missed.
"""

from __future__ import annotations

import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import generate
from measuring import Arguments, kafkascope

PARTITIONS, PRODUCERS, GROUPS = 6, 4, ("billing", "audit")
COMMIT_EVERY = 8
"""Fetches of a group between its commits."""
WORDS = {"topics": ("stats", "topics"), "map": ("map",), "journeys": ("stats", "journeys")}
FACTORS = {"map": 1.2, "journeys": 1.3}


def produce(partition: int, base: int, records: bytes) -> tuple[int, int, bytes, bytes]:
    ask = struct.pack(">hhi", -1, -1, 30000) + struct.pack(">i", 1) + generate.text("orders")
    ask += struct.pack(">iii", 1, partition, len(records)) + records
    answer = struct.pack(">i", 1) + generate.text("orders")
    answer += struct.pack(">iihqqq", 1, partition, 0, base, -1, 0) + struct.pack(">i", 0)
    return 0, 7, ask, answer


def fetch(partition: int, base: int, records: bytes) -> tuple[int, int, bytes, bytes]:
    ask = struct.pack(">iiiibii", -1, 500, 1, 52428800, 0, 0, -1) + struct.pack(">i", 1)
    ask += generate.text("orders") + struct.pack(">iiiqqi", 1, partition, -1, base, -1, 1 << 20)
    ask += struct.pack(">i", 0)
    answer = struct.pack(">ihi", 0, 0, 0) + struct.pack(">i", 1) + generate.text("orders")
    end = base + 1_000
    answer += struct.pack(">iihqqqii", 1, partition, 0, end, end, 0, 0, len(records)) + records
    return 1, 10, ask, answer


def commit(group: str, partition: int, offset: int) -> tuple[int, int, bytes, bytes]:
    ask = generate.text(group) + struct.pack(">i", 1) + generate.text("member")
    ask += struct.pack(">qi", -1, 1) + generate.text("orders")
    ask += struct.pack(">iiq", 1, partition, offset) + generate.text("")
    answer = struct.pack(">i", 1) + generate.text("orders") + struct.pack(">iih", 1, partition, 0)
    return 8, 2, ask, answer


def write(path: Path, megabytes: float, count: int) -> generate.Truth:
    """Write a capture of so many megabytes, with so many records in a batch."""
    ends = [0] * PARTITIONS
    pending: list[tuple[int, str, tuple[int, int, bytes, bytes]]] = []
    """(connection, client id, message) of the batch that is being read"""

    def turn(number: int, now: int) -> generate.Turn:
        if not pending:
            cycle = number // (1 + len(GROUPS))
            partition = cycle % PARTITIONS
            value = b"%020d" % number * 10
            data = b"".join(generate.record(at, b"k%d" % at, value) for at in range(count))
            base = ends[partition]
            batch = generate.sealed(0, base, count, data, now)
            ends[partition] = base + count
            producer = cycle % PRODUCERS
            pending.append((producer, f"shop-{producer}", produce(partition, base, batch)))
            for place, group in enumerate(GROUPS, PRODUCERS):
                pending.append((place, f"{group}-1", fetch(partition, base, batch)))
                if base // count % COMMIT_EVERY == 0:
                    made = commit(group, partition, base + count)
                    pending.append((place, f"{group}-1", made))
        connection, client_id, (key, version, ask, answer) = pending.pop(0)
        head = struct.pack(">hhi", key, version, number) + generate.text(client_id)
        # Fetch 7 and later begin with the throttle time, Produce and OffsetCommit do not.
        back = struct.pack(">i", number) + answer
        return generate.Turn(connection, generate.frame(head + ask), generate.frame(back), ())

    return generate.traffic(path, turn, PRODUCERS + len(GROUPS), size=int(megabytes * 1e6))


def user_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> int:
    parser = Arguments(__doc__, megabytes=60.0, rounds=3, floor=False)
    parser.add_argument("--records", type=int, default=5, help="of a batch")
    parser.add_argument("--make", type=Path)
    options = parser.parse_args()
    if options.make is not None:
        write(options.make, options.megabytes, options.records)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder, "journeys.pcap")
        write(capture, options.megabytes, options.records)
        times: dict[str, list[float]] = {name: [] for name in WORDS}
        for _ in range(options.rounds):
            for name, words in WORDS.items():
                times[name].append(user_seconds(kafkascope(*words, str(capture), "--jobs", "1")))
    usual = median(times["topics"])
    missed = False
    for name, found in times.items():
        factor, most = median(found) / usual, FACTORS.get(name)
        missed |= most is not None and factor > most
        print(f"{name:<10}{median(found):6.2f} s user  {factor:5.2f} of topics")
    return int(options.floor and missed)


if __name__ == "__main__":
    sys.exit(main())
