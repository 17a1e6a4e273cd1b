"""Runs the scenarios of `bindings/scenarios` in the tests of one binding."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests import control_schema
from tests.interop.maven import CACHE, locked
from tests.interop.processes import running, until
from tests.kit.samples import ROOT

BINDINGS = ROOT / "bindings"
FOLDER = BINDINGS / "scenarios"
CAPTURE = ROOT / "captures" / "samples" / "libraries.pcap"
PAGE = ROOT / "docs" / "bindings.md"
TITLE = "| scenario |"
KAFKASCOPE = Path(sys.executable).with_name("kafkascope")
TAPPED = Path(__file__).with_name("tapped.py")
SCENARIOS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text())
    for path in sorted(FOLDER.glob("*.json"))
    if path.name != "scenario.schema.json"
}
PATIENCE_S = 580.0


class Binding(NamedTuple):
    """How the tests of a binding are run."""

    language: str
    client: str
    needs: tuple[str, ...]
    command: Callable[[Path], list[str]]
    """Given a folder for what it builds."""
    at: Path
    environment: Callable[[Path], dict[str, str]] = lambda _: {}
    prepare: Callable[[Path], list[str]] | None = None
    """A command before the first run."""


def _pytest(folder: Path) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    command += ["-p", "pytest_kafkascope", "--rootdir", str(BINDINGS / "python")]
    return [*command, "--basetemp", str(folder / "base"), "test_conformance.py"]


def _maven(*goals: str) -> Callable[[Path], list[str]]:
    return lambda folder: ["mvn", "-q", "-B", *goals, f"-Dkafkascope.build={folder}/build"]


LANGUAGES = {
    "python": Binding(
        "Python",
        "librdkafka (confluent-kafka)",
        (),
        _pytest,
        BINDINGS / "python" / "conformance",
        lambda _: {"PYTHONPATH": str(BINDINGS / "python")},
    ),
    "java": Binding(
        "Java",
        "kafka-clients",
        ("java", "mvn"),
        # `prepare` has compiled; this is what is left of `test`.
        _maven("-o", "surefire:test"),
        BINDINGS / "java",
        prepare=_maven("test", "-Dtest=ChildTest"),
    ),
    "go": Binding(
        "Go",
        "franz-go",
        ("go",),
        lambda _: ["go", "test", "-count=1", "-timeout=9m", "."],
        BINDINGS / "go" / "conformance",
        prepare=lambda _: ["go", "test", "-count=1", "-run=^$", "."],
    ),
    "node": Binding(
        "Node",
        "kafkajs",
        ("node", "npm"),
        lambda folder: ["node", "--test", str(folder / "conformance" / "scenarios.test.js")],
        BINDINGS / "node" / "conformance",
        prepare=lambda folder: ["node", "prepare.js", str(folder), str(CACHE / "node-binding")],
    ),
}


def once() -> dict[str, dict[str, Any]]:
    """The scenarios, each before one broker only: the real one where it may be."""
    return {
        name: {**each, "before": each["before"][:1]} if "before" in each else each
        for name, each in SCENARIOS.items()
    }


def expected(of: dict[str, dict[str, Any]]) -> set[tuple[str, str | None]]:
    """What a whole run of one language reports, given the scenarios."""
    return {
        (name, before)
        for name, scenario in of.items()
        if "ends" not in scenario
        for before in scenario.get("before", [None])
    }


def table() -> dict[str, dict[str, str]]:
    """The cells of the page's table, by scenario and language."""
    rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in _lines()]
    if not rows:
        return {}
    return {row[0].strip("`"): dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:]}


def column(of: set[tuple[str, str | None]]) -> dict[str, str]:
    """The cells of one language."""
    cells: dict[str, str] = {}
    for name in SCENARIOS:
        passed = {before for scenario, before in of if scenario == name}
        cells[name] = "yes" if None in passed else ", ".join(sorted(map(str, passed)))
    return cells


def update(language: str, cells: dict[str, str]) -> None:
    """Write one column into the page."""
    old, text = table(), PAGE.read_text()
    languages = [each.language for each in LANGUAGES.values()]
    lines = [f"{TITLE} {' | '.join(languages)} |", "| --- |" + " --- |" * len(languages)]
    for name in SCENARIOS:
        row = {**old.get(name, {}), language: cells[name]}
        lines.append(f"| `{name}` | {' | '.join(row.get(each, '') for each in languages)} |")
    there = "\n".join(_lines())
    assert there
    PAGE.write_text(text.replace(there, "\n".join(lines)))


def _lines() -> list[str]:
    lines = PAGE.read_text().split("\n")
    start = next((n for n, line in enumerate(lines) if line.startswith(TITLE)), len(lines))
    end = lines.index("", start) if start < len(lines) else start
    return lines[start:end]


class Conformance:
    """The runs of one binding."""

    def __init__(
        self,
        binding: Binding,
        broker: str,
        folder: Path,
        of: dict[str, dict[str, Any]] = SCENARIOS,
        kafkascope: Path = KAFKASCOPE,
    ) -> None:
        """`folder`: for all that it makes. `of`: the scenarios. `kafkascope`: what the binding
        runs."""
        self.binding = binding
        self._kafkascope = kafkascope
        self.folder = folder
        self.results = folder / "results"
        self.log = folder / "lines"
        self.kept = folder / "kept"
        self._broker = broker
        self._scenarios = folder / "scenarios"
        self._scenarios.mkdir()
        for name, each in of.items():
            (self._scenarios / f"{name}.json").write_text(json.dumps(each))
        # What its children have in their command lines, they are known by.
        self._capture = Path(shutil.copy(CAPTURE, folder / "capture.pcap"))
        if binding.prepare is not None:
            with locked(CACHE / "jars" / "maven"):  # its repository is not for two at a time
                done = self._done(binding.prepare(folder))
            assert done.returncode == 0, done.stdout

    def run(self, scenario: str | None = None) -> subprocess.CompletedProcess[str]:
        """The tests of the binding, of one scenario or all."""
        return self._done(self.binding.command(self.folder), scenario)

    def _done(
        self, command: list[str], scenario: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        env = {
            **os.environ,
            "KAFKASCOPE": f"{sys.executable} {TAPPED} {self.log} {self._kafkascope}",
            "KAFKASCOPE_DIR": str(self.kept),
            "KAFKASCOPE_SCENARIOS": str(self._scenarios),
            "KAFKASCOPE_BROKER": self._broker,
            "KAFKASCOPE_CAPTURE": str(self._capture),
            "KAFKASCOPE_RESULTS": str(self.results),
            **self.binding.environment(self.folder),
        }
        if scenario is not None:
            env["KAFKASCOPE_SCENARIO"] = scenario
        return subprocess.run(
            command,
            cwd=self.binding.at,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
        )

    def reported(self) -> set[tuple[str, str | None]]:
        """Scenarios that were passed, with what they were run before."""
        lines = self.results.read_text().splitlines() if self.results.exists() else []
        return {(each["scenario"], each["before"]) for each in map(json.loads, lines)}

    def check_lines(self) -> int:
        """Hold each line between the binding and kafkascope against the schema; their number."""
        waiting: dict[str, list[dict[str, Any]]] = {}
        count = 0
        for line in self.log.read_text().splitlines():
            pid, mark, text = line.split(" ", 2)
            message = json.loads(text)
            count += 1
            if mark == ">":
                control_schema.check_request(message)
                waiting.setdefault(pid, []).append(message)
            else:
                control_schema.check_answer(waiting[pid].pop(0), message)
        return count

    def kept_capture(self, output: str) -> Path:
        """The capture that a failed test says it has kept."""
        found = re.findall(re.escape(str(self.kept)) + r"[^\s'\"]*\.pcapng", output)
        assert found, output
        return Path(found[0])

    def left_behind(self) -> list[str]:
        """Processes of kafkascope that still run; given some seconds to end."""
        with suppress(TimeoutError):
            until(lambda: not self._processes(), 30)
        return self._processes()

    def _processes(self) -> list[str]:
        return [line for line in running(self.folder) if "kafkascope" in line]
