"""Replays to a cluster, and what they report."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.interop.brokers import Cluster
from tests.kit.samples import SAMPLES

SAFE = ("--speed", "max", "--create-topics", "--allow-writes", "--group-prefix", "again-")


def replay(name: str, cluster: Cluster, *options: str) -> tuple[int, list[dict], str]:
    """Exit code, lines and remarks."""
    command = [sys.executable, "-m", "kafkascope.tui.cli", "replay", str(SAMPLES / name)]
    command += ["--to", cluster.bootstrap(), "--json", *options]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return run.returncode, [json.loads(line) for line in run.stdout.splitlines()], run.stderr


def found(lines: list[dict]) -> set[tuple[str, str]]:
    """API and path of each difference."""
    return {(e["api"], e["path"]) for e in lines if e["schema"] == "replay-difference/1"}


def summary(lines: list[dict]) -> dict:
    (line,) = (each for each in lines if each["schema"] == "replay/1")
    return line
