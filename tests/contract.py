"""Compare what two checkouts print and write of the same captures.

    python -m tests.contract BEFORE AFTER [--captures FOLDER...] [--only COMMAND] [--json]

Both run with this interpreter, their own code first on the path, and the key log beside a capture
(`NAME.keys`). The captures are BEFORE's samples and test captures, damaged copies of three, a log
folder, and those of FOLDER. Prints how many captures differ for each command, and the first
difference, by kind: `order` (the same lines), `numbers` (the same but for numbers of exchanges and
connections, which are matched by `exchange_id`), `else`. What BEFORE leaves is kept in its folder
`.cache/contract`, by commit. Exits with 1 when a command differs.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from tests.outcomes import KINDS, Difference, Numbers, Outcome, compare, matched

LIST: Final = "ls @ --json"
COMMANDS: Final = f"""
{LIST}
ls @ --json --jobs 2
ls @
ls @ --connects --json --sort latency
ls @ -Y 'latency > 1ms and not wait' -v
ls @ -Y 'records > 0 or error' --json
ls @ --format csv --columns number,api,client,latency,wait,error,topic,group
ls @ -T fields -e kafka.api_key -e kafka.topic_name -e frame.number
show @ %1 %2 %3 %5 --hex
show @ %3 --json
export @ -o OUT/all.jsonl --full
export @ -o OUT/rows.parquet
export @ -o OUT/records.jsonl --table records
records @ --json
check @ --all --json
check @ -Y 'client != nobody'
stats apis @ --json
stats connections @ --json
stats errors @ --json
stats latency @ --json
stats partitions @ --json
stats rates @ --json
stats sizes @ --json
stats topics @ --json
stats zookeeper @ --json
clients @ --json
groups @ --json
groups @ --delivery --json
cluster @ --json
producers @ --json
schemas @ --json
diff @#%2 @#%3
cut @ -o OUT/part.pcapng -Y 'api == Metadata'
cut @ -o OUT/anonymous.pcapng --anonymize
fixture @ -Y 'api in {{ApiVersions, Metadata}}' -o OUT/fixtures --redact all
report @ -o OUT/report.md --full
spark @ -o OUT/tables --engine plain --full --records
""".strip().splitlines()
"""For each capture `@`: OUT is an empty folder, %3 BEFORE's exchange 3 (in AFTER: the same one)."""

ONCE: Final = ["grammar all", "fields", "fields latency", "error", "--version", "--help"]
DAMAGED: Final = ("sasl-old.pcap", "rebalance.pcap", "transactions.pcap")
SUFFIXES: Final = (".pcap", ".pcapng", ".gz", ".zst")

# Times of day, how long it took, and ids of a run: what differs between runs of one checkout.
VARIES: Final = re.compile(r'("(?:job_id|started|written|took_s|created)": ?"?)[^,"}]*')

SERVER: Final = """
import importlib, json, os, sys
from kafkascope.tui.cli import main
sys.argv = ["kafkascope"]
for line in sys.stdin:
    words, folder, os.environ["SSLKEYLOGFILE"] = json.loads(line)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.chdir(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
        sys.argv[1:] = words
        try:
            main()
        finally:
            loaded = [name for name in sys.modules if name.startswith("kafkascope.")]
            os.write(writer, " ".join(loaded).encode())
        os._exit(70)
    os.close(writer)
    with os.fdopen(reader) as loaded:
        names = loaded.read().split()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    for name in names:
        importlib.import_module(name)
    print(code, flush=True)
"""
"""Runs commands in forks of a process that has loaded what the commands before had to load."""


class Checkout:
    """The command line of a checkout, ready to run."""

    def __init__(self, folder: Path, cache: Path | None) -> None:
        self.folder, self.cache = folder, cache
        git = ["git", "-C", str(folder)]
        changed = _printed([*git, "status", "--porcelain", "--untracked-files=no"])
        if changed:
            self.cache = None
        self.commit = _printed([*git, "rev-parse", "HEAD"])
        self._process: subprocess.Popen[str] | None = None

    def outcome(self, words: list[str], capture: Path | None) -> Outcome:
        """Run a command, or give what it left before."""
        keys, status = "", None
        if capture:
            status, log = capture.stat(), capture.parent / f"{capture.name.split('.pcap')[0]}.keys"
            keys = str(log) if log.exists() else ""
        if self.cache is None:
            return self._run(words, keys)
        seen = (status.st_size, status.st_mtime_ns) if status else ()
        key = repr((self.commit, sys.version, seen, words, keys))
        key = hashlib.sha256(key.encode()).hexdigest()
        kept = self.cache / key[:2] / key
        if kept.exists():
            return dict(json.loads(zlib.decompress(kept.read_bytes())))
        outcome = self._run(words, keys)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as out:
            out.write(zlib.compress(json.dumps(outcome).encode(), 1))
        Path(out.name).rename(kept)
        return outcome

    def _run(self, words: list[str], keys: str) -> Outcome:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", SERVER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=self.folder,
                # One thread, for the process forks; one order of sets, for all runs.
                env=os.environ
                | {"PYTHONPATH": str(self.folder), "PYTHONHASHSEED": "0"}
                | {"OPENBLAS_NUM_THREADS": "1", "TZ": "UTC"},
            )
        assert self._process.stdin
        assert self._process.stdout
        with tempfile.TemporaryDirectory() as name:
            work = Path(name, "work")
            work.mkdir()
            self._process.stdin.write(json.dumps([words, str(work), keys]) + "\n")
            self._process.stdin.flush()
            outcome = {"exit code": self._process.stdout.readline().strip()}
            for path in sorted(path for path in work.rglob("*") if path.is_file()):
                part = re.sub("batch_id=[^/]*/", "", str(path.relative_to(work)))
                text = _text(path)
                outcome[part] = VARIES.sub(r"\1", text.replace(name, "FOLDER"))
            return outcome

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()


def _printed(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _text(path: Path) -> str:
    """A file as lines: rows of Parquet sorted by id, other binary data by its hash."""
    if path.suffix == ".parquet":
        import pyarrow.parquet

        table = pyarrow.parquet.ParquetFile(path).read()
        rows = table.drop_columns({"state", "batch_id"} & {*table.column_names}).to_pylist()
        rows.sort(key=lambda row: (str(row.get("exchange_id")), str(row)))
        return "\n".join([str(table.schema), *(json.dumps(row, default=str) for row in rows)])
    data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"{len(data)} bytes, {hashlib.sha256(data).hexdigest()}"


def _made(samples: Path, folder: Path) -> Iterator[Path]:
    """Captures cut off, with a wrong length, with holes; a partition with a wrong checksum."""
    from tests.analyzer.logdir.segments import SEGMENT, batch

    def kept(path: Path, data: bytes) -> Path:
        # What is there stays: the cache knows it by its time.
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
        return path

    for name in DAMAGED:
        data = (samples / name).read_bytes()
        half = len(data) // 2
        holes = data[:24] + data[24:half].replace(b"\0\0\0\x12", b"\0\0\0\x7f") + data[half:]
        yield kept(folder / f"cut-{name}", data[:half])
        yield kept(folder / f"wrong-{name}", data[:half] + b"\xff" * 16 + data[half + 16 :])
        yield kept(folder / f"holes-{name}", holes)
    parts = [batch(0, producer_id=5, producer_epoch=1, attributes=16), batch(3, 2, codec=4)]
    parts.append(batch(5, 1)[:-2] + b"??")
    yield kept(folder / "orders-7" / SEGMENT, b"".join(parts)).parent


def _captures(checkout: Path) -> Iterator[Path]:
    for name in ("captures/samples", "tests/analyzer/captures"):
        yield from _inside(checkout / name)


def _inside(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--captures", type=Path, nargs="+", default=[], help="more files, folders")
    parser.add_argument("--no-samples", action="store_true", help="only --captures")
    parser.add_argument(
        "--only", action="append", default=[], help="commands with this text in them"
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each Nth capture only")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default: 2)")
    parser.add_argument("--json", action="store_true", help="print a line for each difference")
    given = parser.parse_args()
    before, after = given.before.resolve(), given.after.resolve()
    cache = before / ".cache/contract"
    captures: list[Path | None] = [None]
    if not given.no_samples:
        captures += [*_captures(before), *_made(before / "captures/samples", cache / "made")]
    for path in given.captures:
        captures += [path.resolve()] if path.is_file() else _inside(path.resolve())
    captures = captures[:: given.every]
    pairs: SimpleQueue[tuple[Checkout, Checkout]] = SimpleQueue()
    for _ in range(given.jobs):
        pairs.put((Checkout(before, cache), Checkout(after, None)))

    def compared(capture: Path | None) -> list[tuple[str, Difference]]:
        pair = pairs.get()
        try:
            lines = COMMANDS if capture else ONCE
            lines = [line for line in lines if any(text in line for text in given.only or [""])]
            return list(_compared(*pair, lines, capture))
        finally:
            pairs.put(pair)

    table: dict[str, Counter[str]] = {}
    different: dict[tuple[str, str], list[tuple[str, str]]] = {}
    with ThreadPoolExecutor(given.jobs) as pool:
        for capture, found in zip(captures, pool.map(compared, captures), strict=True):
            for line, (kind, diff) in found:
                table.setdefault(line, Counter())[kind] += 1
                if kind != "same":
                    name = str(capture or "").removeprefix(f"{before}/")
                    different.setdefault((line, kind), []).append((name, diff))
                    if given.json:
                        row = {"command": line, "capture": name, "kind": kind, "diff": diff}
                        print(json.dumps(row), flush=True)
    while not pairs.empty():
        for checkout in pairs.get():
            checkout.close()
    if not given.json:
        _print(table, different)
    return int(bool(different))


def _compared(
    before: Checkout, after: Checkout, lines: list[str], capture: Path | None
) -> Iterator[tuple[str, Difference]]:
    numbers = Numbers({}, {})
    if capture and lines:
        listed = [each.outcome(_words(LIST, capture), capture) for each in (before, after)]
        numbers = matched(*(outcome.get("stdout", "") for outcome in listed))
    back = {old: new for new, old in numbers.exchanges.items()}
    for line in lines:
        old = before.outcome(_words(line, capture), capture)
        new = after.outcome(_words(line, capture, lambda n: back.get(n, n)), capture)
        yield line, compare(old, new, numbers)


def _words(
    line: str, capture: Path | None, number: Callable[[int], int] = lambda number: number
) -> list[str]:
    line = re.sub(r"%(\d+)", lambda match: str(number(int(match[1]))), line)
    return [word.replace("@", str(capture)).replace("OUT/", "") for word in shlex.split(line)]


def _print(
    table: dict[str, Counter[str]], different: dict[tuple[str, str], list[tuple[str, str]]]
) -> None:
    print(f"{'':<72}" + "".join(f"{kind:>9}" for kind in KINDS))
    for line, counts in table.items():
        print(f"{line:<72}" + "".join(f"{counts[kind]:>9}" for kind in KINDS))
    for kind in KINDS[1:]:
        for line in (line for line in table if (line, kind) in different):
            found = different[line, kind]
            print(f"\n{kind}: kafkascope {line}: {', '.join(name for name, _ in found)}")
            print("\n".join(diff for _, diff in found[:3]))
    total = Counter[str]()
    for counts in table.values():
        total += counts
    print(f"\n{total.total()} comparisons: {', '.join(f'{total[k]} {k}' for k in KINDS)}")


if __name__ == "__main__":
    sys.exit(main())
