"""`kafkascope demo`: a capture that is part of the distribution, for a look without broker, root or
network."""

from __future__ import annotations

import shlex
import sys
from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from kafkascope.analyzer.commands.help import command, setting
from kafkascope.analyzer.terminal import out, say, stdout_bytes
from kafkascope.extras import installed, missing, require
from kafkascope.private import PrivateFile

SAMPLE: Final = "samples/demo.pcap.zst"
LOG: Final = "logs/demo.log.zst"
"""What the brokers' request logs hold of the same minute."""
SAVED: Final = "demo.pcap"
SAVED_LOG: Final = "demo.log"
SHOWN: Final = 20
UNREACHABLE: Final = "which listener is unreachable?"
"""A question for packets: a broker logs no attempt to reach another address."""
HINTS: Final = (
    ("which client breaks on 4.0?", "kafkascope clients {} --for 4.0"),
    ("why does the group rebalance?", "kafkascope groups {} billing --timeline"),
    (UNREACHABLE, "kafkascope cluster {} --only nodes"),
    ("who reads from orders-svc?", "kafkascope map {}"),
    ("and what else?", "kafkascope check {}"),
    ("all of it as a page", "kafkascope report {} -o demo.html"),
)

HELLO: Final = (
    "One minute of an online shop. Press\n"
    f"7  {UNREACHABLE}\n"
    "3  which client breaks on Kafka 4.0?\n"
    "5  why does the group rebalance?\n"
    "kafkascope demo --tour: guided tour"
)


def capture(name: str = SAMPLE) -> Path:
    """Return the path of the capture, or of the log."""
    path = Path(str(files("kafkascope.captures"))) / name
    if not path.is_file():
        from kafkascope.captures.errors import NotACapture

        raise NotACapture(f"{path}: the demo capture is missing from this installation")
    return path


@command()
@setting("--tour", "", "Start a guided tour")
@setting("--save", "FILE", "Save the capture to FILE, for use with commands")
@setting("--request-log", "", "Explore the brokers' request log of the same minute")
@setting("--plain", "", "Print ASCII only")
def demo(tour: bool, save: str | None, request_log: bool, plain: bool) -> int:
    """Explore a built-in sample capture.

    One minute of traffic from an online shop, with eight injected problems. Without a terminal it
    lists the first exchanges, and commands that answer common questions.

    \b
      kafkascope demo --tour
      kafkascope demo --save demo.pcap
    """
    from kafkascope.tui.cli import code_of, to_look_at

    if tour and request_log:
        raise click.UsageError("--tour is about the capture: leave out --request-log")
    path = capture(LOG if request_log else SAMPLE)
    if save is not None:
        return _save(path, save)
    if tour:
        require("kafkascope demo --tour", instead="kafkascope demo")
    looks = sys.stdin.isatty() and to_look_at([str(path)])
    if looks and installed("tui"):
        from kafkascope.tui.open import open_

        hello = HELLO.replace(UNREACHABLE, "what is wrong?") if request_log else HELLO
        words = ["--tour"] if tour else ["--hello", hello]
        words += ["--time-zone", "UTC"] if request_log else []
        words += [str(path), *(["--plain"] if plain else [])]
        return code_of(open_.main(words, standalone_mode=False))
    code = _print(path)
    if looks:
        say(missing("kafkascope open"), bare=True)
    return code


def _save(path: Path, target: str) -> int:
    """Write the capture, uncompressed unless the name ends in .zst."""
    from zstandard import ZstdDecompressor

    packed = path.read_bytes()
    data = ZstdDecompressor().decompress(packed)
    if target == "-":
        stdout_bytes().write(data)
        return 0
    where = Path(target)
    with PrivateFile(where, shared=True) as file:
        file.write(packed if where.suffix == ".zst" else data)
    what = "capture" if path.match(SAMPLE) else "request log"
    say(f"the demo {what} is in {where}; next:")
    for line in _hints(str(where), path):
        say(line, bare=True)
    return 0


def _hints(name: str, path: Path) -> list[str]:
    """Return commands to go on with, one a line, and what each answers of the capture or the log at
    a path."""
    lines = [
        (command.format(shlex.quote(name)), question)
        for question, command in HINTS
        if path.match(SAMPLE) or question != UNREACHABLE
    ]
    width = max(len(command) for command, _ in lines)
    return [f"  {command:<{width}}  {question}" for command, question in lines]


def _print(path: Path) -> int:
    """Print some rows and the commands to go on with, for pipes and CI."""
    from kafkascope.analyzer.commands.ls import ls
    from kafkascope.tui.cli import code_of

    code = code_of(
        ls.main([str(path), "-c", str(SHOWN), "-q", "--time-zone", "UTC"], standalone_mode=False)
    )
    out()
    saved = f"--save {SAVED}" if path.match(SAMPLE) else f"--request-log --save {SAVED_LOG}"
    what = "capture" if path.match(SAMPLE) else "log"
    out(f"kafkascope demo {saved}    writes this {what}; then:")
    for line in _hints(saved.rpartition(" ")[2], path):
        out(line)
    return code
