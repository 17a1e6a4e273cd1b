"""Compare what two checkouts print of the same captures: stdout, stderr, exit code, written files.

    python -m tests.contract BEFORE AFTER [CAPTURE...]

BEFORE and AFTER are checkouts with an environment in `.venv`. Without captures it takes all
samples, those of `tests/analyzer/captures`, damaged copies of three, and a log folder. Prints each
command whose outcome differs, and a count; exits with 1 when there is one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

from tests.analyzer.logdir.test_opening import SEGMENT, batch

__all__ = ["COMMANDS", "main"]

COMMANDS: Final = """
ls @ --json
ls @
ls @ --connects --json
ls @ --connects --plain --sort latency
ls @ -Y 'latency > 1ms and not wait' -v
ls @ --format csv --columns number,api,client,latency,wait,error,topic,group
ls @ -T fields -e kafka.api_key -e kafka.topic_name -e frame.number
ls @ -Y 'records > 0 or error' --json
show @ 1 --hex
show @ 3 --json
show @ --packets 2
show @ 5 7 11
export @ -o OUT/all.jsonl --full
export @ -o OUT/rows.csv
export @ -o OUT/rows.parquet
export @ -o OUT/records.jsonl --table records
records @ --json
records @
check @ --json
check @
check @ --all -v
check @ -Y 'client != nobody' --json
stats apis @
stats connections @ --json
stats connections @
stats errors @ --json
stats latency @ --json
stats latency @
stats partitions @ --json
stats rates @ --json
stats sizes @ --json
stats topics @ --json
clients @ --json
clients @
groups @ --json
groups @
cluster @ --json
cluster @
producers @ --json
producers @
groups @ --delivery --json
groups @ --delivery
diff @#2 @#3
diff @ @
cut @ -o OUT/part.pcapng -Y 'number < 20'
cut @ -o OUT/anonymous.pcapng --anonymize
fixture @ -Y 'number < 30' -o OUT/fixtures
fixture @ -Y 'number < 30' -o OUT/redacted --redact all
report @ -o OUT/report.md
report @ -o OUT/full.md --full
report @ -o OUT/report.html
report @ -o OUT/redacted.md --redact all
spark @ -o OUT/tables --engine plain
""".strip().splitlines()
"""For each capture; `@` is the capture, OUT an empty folder: files written there count as well."""

OF_LOGS: Final = """
ls @ --json
ls @
ls @ -Y 'records > 1' --json
records @ --json
records @
records @ -o OUT/records.csv --format csv
check @
""".strip().splitlines()
"""For each folder of a partition."""

ONCE: Final = """
grammar all
grammar Fetch 17
fields
fields latency
errors
faults
--version
--help
""".strip().splitlines()
"""Without a capture."""

ON_SPARK: Final = "spark @ -o OUT/tables --engine spark"
"""Takes ten seconds; for the first three captures only."""

DAMAGED: Final = ("sasl-old.pcap", "rebalance.pcap", "transactions.pcap")
ROOT: Final = Path(__file__).parents[1]

SERVER: Final = """
import json, os, sys
sys.argv = ["kafkascope"]
try:
    from kafkascope.tui.cli import main
except ImportError:
    from tui.cli import main
for line in sys.stdin:
    words, folder = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        for number, name in ((1, ".stdout"), (2, ".stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
        sys.argv[1:] = words
        main()
        os._exit(70)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs commands in forks of a process that has loaded the command line: its path comes first."""


class Outcome(NamedTuple):
    """What a command left."""

    code: int
    files: dict[str, str]
    """Name -> hash; `.stdout` and `.stderr` among them."""


class Program:
    """The command line of a checkout, ready to run."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        self._process = subprocess.Popen(
            [checkout / ".venv/bin/python", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=checkout,
        )

    def run(self, words: list[str], folder: Path) -> Outcome:
        """Run a command in an empty folder."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([words, str(folder)]) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        names = sorted(path for path in folder.rglob("*") if path.is_file())
        return Outcome(code, {str(path.relative_to(folder)): _digest(path) for path in names})

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


VARIES: Final = re.compile(rb'"(job_id|started|written|took_s|created)": ?"?[^,"}]*|\b[\d.]+ s\b')
"""What differs between two runs of one checkout: times of day, and how long it took."""


def _digest(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(path)
        data = repr((table.schema, table.to_pylist())).encode()
    return hashlib.sha256(VARIES.sub(b"", data)).hexdigest()


def _words(line: str, capture: Path | None) -> list[str]:
    return [word.replace("@", str(capture)).replace("OUT/", "") for word in shlex.split(line)]


def _damaged(folder: Path) -> Iterator[Path]:
    """Copies that are cut off, have a wrong length in the middle, and begin in the middle."""
    for name in DAMAGED:
        data = (ROOT / "captures/samples" / name).read_bytes()
        middle = len(data) // 2
        head, body, tail = data[:24], data[24:middle], data[middle:]
        for kind, made in (
            ("cut", data[:middle]),
            ("wrong", data[:middle] + b"\xff" * 16 + data[middle + 16 :]),
            (
                "holes",
                head + body.replace(b"\0\0\0\x12", b"\0\0\0\x7f") + tail,
            ),
        ):
            path = folder / f"{kind}-{name}"
            path.write_bytes(made)
            yield path


def _log(folder: Path) -> Path:
    """A partition of a broker: two batches, and one with a wrong checksum."""
    partition = folder / "orders-7"
    partition.mkdir()
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: KWi75OKBTsmLA8uTl4S1FA\n")
    parts = [batch(0, producer_id=5, producer_epoch=1, attributes=16), batch(3, 2, codec=4)]
    parts.append(batch(5, 1)[:-2] + b"??")
    (partition / SEGMENT).write_bytes(b"".join(parts))
    return partition


def _captures() -> Iterator[Path]:
    for folder in ("captures/samples", "tests/analyzer/captures", "tests/analyzer/captures/causes"):
        yield from sorted(path for path in (ROOT / folder).iterdir() if ".pcap" in path.name)


def _compared(pair: tuple[Program, Program], words: list[str]) -> list[str]:
    """Names of what differs after a command."""
    with tempfile.TemporaryDirectory() as folder:
        outcomes = []
        for program in pair:
            # The same name for both: it may be printed.
            place = Path(folder) / "work"
            place.mkdir()
            outcomes.append(program.run(words, place))
            place.rename(Path(folder) / f"kept-{len(outcomes)}")
        before, after = outcomes
        differing = sorted(
            name
            for name in before.files.keys() | after.files.keys()
            if before.files.get(name) != after.files.get(name)
        )
        if before.code != after.code:
            differing.insert(0, f"exit code {before.code}, now {after.code}")
        return differing


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("captures", type=Path, nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        captures = [path.resolve() for path in given.captures]
        captures = captures or [*_captures(), *_damaged(Path(folder)), _log(Path(folder))]
        work = [_words(line, None) for line in ONCE]
        for path in captures:
            work += [_words(line, path) for line in (OF_LOGS if path.is_dir() else COMMANDS)]
        first = [path for path in captures if not path.is_dir()][:3]
        work += [_words(ON_SPARK, path) for path in first]
        pairs: SimpleQueue[tuple[Program, Program]] = SimpleQueue()
        for _ in range(given.jobs):
            pairs.put((Program(given.before.resolve()), Program(given.after.resolve())))

        def compared(words: list[str]) -> tuple[list[str], list[str]]:
            pair = pairs.get()
            try:
                return words, _compared(pair, words)
            finally:
                pairs.put(pair)

        different = 0
        with ThreadPoolExecutor(given.jobs) as pool:
            for words, names in pool.map(compared, work):
                if names:
                    different += 1
                    print(f"kafkascope {' '.join(words)}: {', '.join(names)}", flush=True)
        while not pairs.empty():
            for program in pairs.get():
                program.close()
    print(f"{len(work)} commands over {len(captures)} captures, {different} differ")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
