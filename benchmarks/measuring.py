"""What benchmarks share: which Python runs, what whole processes cost, and the table of results.

A Python built without profile-guided optimization is slower; Debian builds Python and tshark with
it. Else ratios of two machines would say more about builds of Python than about us.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
SYSTEM: Final = Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}")
ONE_PROCESS: Final = ("--jobs", "1")
TICKS: Final = os.sysconf("SC_CLK_TCK")
LOOK_S: Final = 0.1
"""Between two looks at a process and its children."""


def is_optimized() -> bool:
    """Whether this Python was built with profile-guided optimization."""
    # Debian and Ubuntu do it by `make profile-opt`: their configure options do not have it.
    configured = sysconfig.get_config_var("CONFIG_ARGS") or ""
    return "--enable-optimizations" in configured or "deb_system" in sysconfig.get_scheme_names()


class Arguments(argparse.ArgumentParser):
    """Options of a benchmark, which runs in an optimized Python unless --any-python is given."""

    def __init__(self, doc: str | None, any_python: bool = False, **defaults: Any) -> None:
        """`any_python`: no Python is refused. `defaults`: options with their default values, which
        have their types; False makes a flag."""
        formatter = argparse.RawDescriptionHelpFormatter
        super().__init__(description=doc, formatter_class=formatter)
        self._any_python = any_python
        if not any_python:
            text = "measure a Python without optimization, too"
            self.add_argument("--any-python", action="store_true", help=text)
        for name, value in defaults.items():
            kind = {"action": "store_true"} if value is False else {"type": type(value)}
            self.add_argument(f"--{name}", default=value, **kind)  # type: ignore[arg-type]

    def parse_args(self, *given: Any) -> argparse.Namespace:  # type: ignore[override]
        """Parse, and go on in the system's Python of this version where only that is optimized."""
        options: argparse.Namespace = super().parse_args(*given)
        if self._any_python:
            return options
        if not is_optimized() and not options.any_python:
            if not SYSTEM.exists() or os.environ.get("KAFKASCOPE_BENCH_PYTHON"):
                self.error(
                    f"{sys.executable} is built without optimization: install {SYSTEM}, "
                    "or use --any-python"
                )
            # The packages of this environment fit: it is the same version.
            path = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])
            environment = os.environ | {"PYTHONPATH": path, "KAFKASCOPE_BENCH_PYTHON": "1"}
            os.execve(SYSTEM, [str(SYSTEM), *sys.argv], environment)
        kind = "optimized" if is_optimized() else "NOT optimized"
        print(f"{sys.executable} {sys.version.split()[0]}, {kind}; load {os.getloadavg()[0]:.1f}")
        # What installing a program does, a checkout does at the first run, unless it may not.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        # One order of sets: else runs of the same code differ.
        os.environ["PYTHONHASHSEED"] = "0"
        return options


class Report:
    """A table on stdout, a line as soon as it is measured, and what has missed its target."""

    def __init__(self, columns: str) -> None:
        """`columns`: a heading and a format for each, as in "work|<9 CPU s|8.2f"; the heading is
        what stands between the formats."""
        found = re.findall(r"([^|]*)\|(\S+)\s?", columns)
        self._formats = [form for _, form in found]
        self._missed: list[str] = []
        widths = [re.sub(r"[.,].*", "", form) for form in self._formats]
        heads = (
            f"{head:{width if width[0] in '<>' else '>' + width}}"
            for (head, _), width in zip(found, widths, strict=True)
        )
        print("".join(heads), flush=True)

    def line(self, *values: Any, missed: bool = False) -> None:
        """Print a line; texts at its beginning name what missed the target."""
        print("".join(map(format, values, self._formats)), flush=True)
        if missed:
            self._missed.append(" ".join(each for each in values if isinstance(each, str)))

    def end(self, floor: bool) -> int:
        """Print what missed its target; return the exit code, 0 unless `floor`."""
        print("missed: " + ", ".join(self._missed) if self._missed else "all targets met")
        return int(floor and bool(self._missed))


def kafkascope(*words: str) -> list[str]:
    """The command line of this checkout, in this Python."""
    return [sys.executable, "-m", "kafkascope", *words]


def tshark(capture: Path, fields: tuple[str, ...], *more: str) -> list[str]:
    """tshark's command line for Kafka's fields of a capture."""
    words = (word for field in fields for word in ("-e", field))
    return ["tshark", "-n", "-r", str(capture), "-Y", "kafka", *more, "-T", "fields", *words]


def tshark_json(capture: Path) -> list[str]:
    """tshark's command line for Kafka's messages as JSON."""
    return ["tshark", "-n", "-r", str(capture), "-Y", "kafka", "-T", "json", "-J", "kafka"]


class Cost(NamedTuple):
    """What a process took: wall seconds, CPU seconds, peak megabytes, CPU seconds of the user."""

    wall: float
    cpu: float
    memory: float
    user: float = 0


class Compared(NamedTuple):
    """A kind of work, what it costs us, and what it costs tshark."""

    capture: str
    work: str
    ours: Cost
    tshark: Cost

    @property
    def cpu_ratio(self) -> float:
        """tshark's CPU seconds divided by ours."""
        return self.tshark.cpu / self.ours.cpu

    @property
    def wall_ratio(self) -> float:
        """tshark's wall seconds divided by ours."""
        return self.tshark.wall / self.ours.wall


def run(command: list[str], output: Path, may_end_with: tuple[int, ...] = (0,)) -> Cost:
    """Run a process; its stdout goes to `output`."""
    start = time.perf_counter()
    with output.open("wb") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL, cwd=ROOT)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in may_end_with:
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")
    wall, cpu = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
    return Cost(wall, cpu, usage.ru_maxrss / 1024, usage.ru_utime)


def in_turn(
    commands: dict[str, list[str]],
    rounds: int,
    output: Path,
    check: Callable[[str], None] = lambda name: None,
) -> dict[str, Cost]:
    """Run commands in turn, so that a busy machine hurts all alike: the medians of each.

    `check` is called with the name of a command when `output` has what it printed. `check` of
    kafkascope ends with 1 when it finds something.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            costs[name].append(run(command, output, (0, 1) if "check" in command else (0,)))
            check(name)
    return {
        name: Cost(*map(statistics.median, zip(*of_one, strict=True)))
        for name, of_one in costs.items()
    }


def calls_in_turn(
    calls: dict[str, Callable[[], object]], rounds: int, times: int = 1
) -> dict[str, list[float]]:
    """Call functions in turn: microseconds of a call, by round, of this process alone."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            begun = time.process_time_ns()
            for _ in range(times):
                call()
            found[name].append((time.process_time_ns() - begun) / times / 1000)
    return found


# --- running processes


def tree(pid: int) -> list[int]:
    """A process and all below it: a JVM starts its own from any of its threads."""
    found = [pid]
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [each for word in path.read_text().split() for each in tree(int(word))]
    return found


def looks(command: list[str], **environment: str) -> Iterator[list[int]]:
    """Run a command, and yield its processes again and again while it runs."""
    null = subprocess.DEVNULL
    env = os.environ | environment
    child = subprocess.Popen(command, stdout=null, stderr=null, cwd=ROOT, env=env)
    while child.poll() is None:
        yield tree(child.pid)
        time.sleep(LOOK_S)
    if child.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {child.returncode}")


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name; none when the process is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return []


def cpu_s(pids: list[int]) -> float:
    """CPU seconds of processes."""
    return sum(int(tick) for pid in pids for tick in stat(pid)[11:13]) / TICKS


def megabytes(pids: list[int], what: str = "Pss:", file: str = "smaps_rollup") -> float:
    """Memory of processes, by the name that /proc has for it; of Pss what they share counts
    once."""
    kilobytes = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
                if line.startswith(what):
                    kilobytes += int(line.split()[1])
    return kilobytes / 1024
