"""Decrypted `ls` against the same capture in plain, and against tshark with the same key log.

    python benchmarks/tls.py [--megabytes 100] [--small 10] [--rounds 3] [--floor]

Makes captures of the same traffic in plain and inside TLS 1.3 (AES-128-GCM, records of 16 KB as far
as messages are as long) and 1.2, with large and with small messages, times whole processes in turn,
and asserts first that the rows are the same. --floor: exit 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, BinaryIO, Final

import generate
from reader import FIELDS, kafkascope, run

from tests.captures.tls.writer import CLIENT, Talk

SLOWER: Final = 1.4
"""Of the time in plain, at most."""
PORT: Final = 9092
SUITES: Final = {"TLS 1.3": 0x1301, "TLS 1.2": 0xC02F}
"""AES-128-GCM of both."""


class Sealed(generate.Tcp):
    """A connection whose bytes go in TLS."""

    suite = 0x1301
    logs: list[str]

    def __init__(self, out: BinaryIO, number: int, mss: int, truth: generate.Truth) -> None:
        super().__init__(out, number, mss, truth)
        self.talk = Talk(self.suite, seed=number + 1)
        self.logs.append(self.talk.keylog())

    def open(self, now: int) -> None:
        super().open(now)
        self._pass_on(now + 3000)

    def send(self, side: int, data: bytes, now: int) -> int:
        (self.talk.client if side == CLIENT else self.talk.server)(data)
        return self._pass_on(now)

    def _pass_on(self, now: int) -> int:
        """Send the records made so far; those of one side go together."""
        flight: list[bytes] = []
        side = CLIENT
        for record in self.talk.sent:
            if record.direction != side and flight:
                now = super().send(side, b"".join(flight), now)
                flight = []
            side = record.direction
            flight.append(record.data)
        now = super().send(side, b"".join(flight), now)
        self.talk.sent.clear()
        for plain in self.talk.plain:
            plain.clear()
        return now


def rows(output: Path) -> list[Any]:
    """What lines say, but for what encryption changes: places, times of bytes."""
    kept = ("api", "api_version", "correlation_id", "request_bytes", "response_bytes", "records")
    with output.open() as lines:
        return [[value[name] for name in kept] for value in map(json.loads, lines)]


def medians(commands: dict[str, list[str]], rounds: int, out: Path) -> dict[str, list[float]]:
    """Wall and CPU seconds and megabytes of each, which run in turn."""
    taken: dict[str, list[tuple[float, ...]]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(run(command, out))
    return {
        name: [statistics.median(column) for column in zip(*each, strict=True)]
        for name, each in taken.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--small", type=float, default=10, help="megabytes of small messages")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--floor", action="store_true")
    options = parser.parse_args()
    program, missed = kafkascope(), []
    print(f"{'messages':<9}{'':<9}{'ours s':>8}{'of plain':>9}{'cpu':>6}{'ours MB':>8}", end="")
    print(f"{'tshark s':>10}{'ratio':>7}{'tshark MB':>10}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        out = folder / "out"
        # Modules are compiled once, as where a program is installed.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
        for word, megabytes, most in (
            ("large", options.megabytes, 160),
            ("small", options.small, 1),
        ):
            sizes = ["--most", str(most), "--connections", "4", "--megabytes", str(megabytes)]
            settings = generate.options_of([str(out), *sizes])
            commands: dict[str, list[str]] = {}
            plain = folder / f"{word}.pcap"
            generate.write(plain, settings)
            told: dict[str, list[Any]] = {}
            for kind in ("plain", *SUITES):
                capture, log = plain, []
                if kind != "plain":
                    capture = folder / f"{word} {kind}.pcap"
                    Sealed.suite, Sealed.logs = SUITES[kind], []
                    # The same messages: as many bytes more as the records have.
                    generate.write(capture, settings, Sealed)
                    keys = capture.with_suffix(".keys")
                    keys.write_text("".join(Sealed.logs))
                    log = ["--keylog", str(keys)]
                commands[f"{kind} ours"] = [program, "ls", str(capture), *log]
                tshark = ["tshark", "-n", "-r", str(capture), "-Y", "kafka"]
                if log:
                    tshark += ["-o", f"tls.keylog_file:{log[1]}"]
                    tshark += ["-d", f"tcp.port=={PORT},tls", "-d", f"tls.port=={PORT},kafka"]
                fields = (each for field in FIELDS for each in ("-e", field))
                commands[f"{kind} tshark"] = [*tshark, "-T", "fields", *fields]
                run([*commands[f"{kind} ours"], "--json"], out)
                told[kind] = rows(out)
            for kind in SUITES:
                # The capture in TLS is as large, so that its last messages are not there.
                count = len(told[kind])
                assert count > 0.9 * len(told["plain"])
                assert told[kind] == told["plain"][:count]
            found = medians(commands, options.rounds, out)
            for kind in ("plain", *SUITES):
                ours, theirs = found[f"{kind} ours"], found[f"{kind} tshark"]
                base, rival = found["plain ours"], found["plain tshark"]
                slower, ratio = ours[0] / base[0], theirs[0] / ours[0]
                print(f"{word:<9}{kind:<9}{ours[0]:>8.2f}{slower:>9.2f}", end="")
                print(f"{ours[1] / base[1]:>6.2f}{ours[2]:>8.0f}{theirs[0]:>10.2f}", end="")
                print(f"{ratio:>7.2f}{theirs[2]:>10.0f}", flush=True)
                if slower > SLOWER or ratio < rival[0] / base[0] or ours[2] > theirs[2] / 2:
                    missed.append(f"{word} {kind}")
    print("missed: " + ", ".join(missed) if missed else "all targets met")
    return int(options.floor and bool(missed))


if __name__ == "__main__":
    sys.exit(main())
