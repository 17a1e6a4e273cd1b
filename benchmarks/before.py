"""`kafkascope` against an older commit of itself: user time of whole processes, in turn.

    python benchmarks/before.py /path/to/older/checkout [--rounds 7] [--floor]

The older checkout is a `git worktree` with an environment of its own (`make setup` in it). Runs
what changes of findings or statistics can make slower: starts, small and real captures, many small
messages, large batches. Asserts first that both do the work, and prints the least user time of
each and the ratio (now divided by before). --floor: exit 1 when a ratio is above 1.05, which is
what runs differ by on a machine that has other things to do.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import generate
from measuring import Arguments, Report, run

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "captures" / "samples"
MADE = {
    "small": ("3", "--most", "1", "--connections", "50"),
    "batches": ("40",),
    "encoded": ("25", "--encoded"),
}
"""Captures of `generate.py`: megabytes, options."""
RUNS = (
    ("start", ("--version",)),
    ("ls, tiny", ("ls", "tiny")),
    ("check, tiny", ("check", "tiny")),
    ("ls, real", ("ls", "real")),
    ("check, real", ("check", "real")),
    ("ls, small messages", ("ls", "small")),
    ("check, small messages", ("check", "small")),
    ("check, large batches", ("check", "batches")),
    ("ls, values by schema", ("ls", "encoded")),
    ("check, values by schema", ("check", "encoded")),
)
MOST = 1.05


def main() -> int:
    parser = Arguments(__doc__, any_python=True, rounds=7, floor=False)
    parser.add_argument("older", type=Path)
    options = parser.parse_args()
    os.environ["PYTHONHASHSEED"] = "0"  # one order of sets and dicts: else runs of the code differ
    programs = {
        "now": Path(sys.executable).with_name("kafkascope"),
        "before": options.older.resolve() / ".venv" / "bin" / "kafkascope",
    }
    report = Report("run|<24 before s|10.3f now s|8.3f ratio|8.2f")
    with tempfile.TemporaryDirectory() as folder:
        captures = {"tiny": SAMPLES / "sasl-old.pcap", "real": SAMPLES / "libraries.pcap"}
        out = Path(folder, "out")
        for name, (megabytes, *more) in MADE.items():
            captures[name] = Path(folder, f"{name}.pcap")
            words = [str(captures[name]), "--megabytes", megabytes, *more]
            generate.write(captures[name], generate.options_of(words))
        for title, template in RUNS:
            words = [str(captures.get(word, word)) for word in template]
            times: dict[str, list[float]] = {who: [] for who in programs}
            # The first round warms caches up and is not counted.
            for turn in range(options.rounds + 1):
                for who in sorted(programs, reverse=bool(turn % 2)):
                    user = run([str(programs[who]), *words], out, (0, 1)).user
                    assert out.stat().st_size, (who, words)
                    if turn:
                        times[who].append(user)
            before, now = (min(times[who]) for who in ("before", "now"))
            report.line(title, before, now, now / before, missed=now / before > MOST)
    return report.end(options.floor)


if __name__ == "__main__":
    sys.exit(main())
