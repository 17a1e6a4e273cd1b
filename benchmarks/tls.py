"""Decrypted `ls` against the same capture in plain, and against tshark with the same key log.

    python benchmarks/tls.py [--megabytes 100] [--small 10] [--rounds 5] [--floor]

Makes captures of the same traffic in plain and inside TLS 1.3 (AES-128-GCM, records of 16 KB as far
as messages are as long) and 1.2, with large and with small messages, times whole processes in turn,
one of ours, and asserts first that the rows are the same. Targets are about CPU. --floor: exit 1
when a target is missed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import generate
from measuring import ONE_PROCESS, Arguments, Compared, Report, in_turn, kafkascope, run, tshark
from reader import FIELDS

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


def results(megabytes: float, small: float, rounds: int) -> Iterator[Compared]:
    """Yield the cost of `ls` in plain and in each TLS, for large and then for small messages."""
    for word, size, most in (("large", megabytes, 160), ("small", small, 1)):
        with tempfile.TemporaryDirectory() as folder:
            yield from _results(Path(folder), word, size, most, rounds)


def _results(folder: Path, word: str, size: float, most: int, rounds: int) -> Iterator[Compared]:
    out = folder / "out"
    commands: dict[str, list[str]] = {}
    listed: dict[str, list[Any]] = {}
    for kind in ("plain", *SUITES):
        capture, log, more = folder / f"{word} {kind}.pcap", [], []
        # In TLS the same messages: as many bytes more as the records have.
        Sealed.suite, Sealed.logs = SUITES.get(kind, 0), []
        form = generate.Tcp if kind == "plain" else Sealed
        generate.made(capture, size, form, most=most, connections=4)
        if Sealed.logs:
            keys = capture.with_suffix(".keys")
            keys.write_text("".join(Sealed.logs))
            log = ["--keylog", str(keys)]
            more = ["-o", f"tls.keylog_file:{keys}"]
            more += ["-d", f"tcp.port=={PORT},tls", "-d", f"tls.port=={PORT},kafka"]
        commands[f"{kind} ours"] = kafkascope("ls", str(capture), *log, *ONE_PROCESS)
        commands[f"{kind} tshark"] = tshark(capture, FIELDS, *more)
        run([*commands[f"{kind} ours"], "--json"], out)
        listed[kind] = rows(out)
    for kind in SUITES:
        # The capture in TLS is as large, so that its last messages are not there.
        count = len(listed[kind])
        assert count > 0.9 * len(listed["plain"])
        assert listed[kind] == listed["plain"][:count]
    costs = in_turn(commands, rounds, out)
    for kind in ("plain", *SUITES):
        yield Compared(word, kind, costs[f"{kind} ours"], costs[f"{kind} tshark"])


def main() -> int:
    parser = Arguments(__doc__, megabytes=100.0, rounds=5, floor=False)
    parser.add_argument("--small", type=float, default=10, help="megabytes of small messages")
    options = parser.parse_args()
    report = Report(
        "messages|<9 |<9 ours s|8.2f of plain|9.2f cpu|6.2f ours MB|8.0f tshark s|10.2f"
        " ratio|7.2f cpu|6.2f tshark MB|10.0f"
    )
    plain: Compared | None = None
    for found in results(options.megabytes, options.small, options.rounds):
        if plain is None or found.work == "plain":
            plain = found
        ours, theirs = found.ours, found.tshark
        slower, small = ours.cpu / plain.ours.cpu, ours.memory <= theirs.memory / 2
        report.line(
            *(found.capture, found.work, ours.wall, ours.wall / plain.ours.wall, slower),
            *(ours.memory, theirs.wall, found.wall_ratio, found.cpu_ratio, theirs.memory),
            missed=slower > SLOWER or found.cpu_ratio < plain.cpu_ratio or not small,
        )
    return report.end(options.floor)


if __name__ == "__main__":
    sys.exit(main())
