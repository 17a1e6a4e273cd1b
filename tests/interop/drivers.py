"""Client programs as child processes: a step goes in as a line, what it did comes back as JSON."""

import hashlib
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.interop.known import Row
from tests.interop.maven import BROKERS, CACHE, CLIENTS, JavaClasses, compiled, jars, locked, once
from tests.interop.needs import need
from tests.interop.processes import run
from tests.kit.samples import ROOT

HERE = Path(__file__).parent
STEP_SECONDS = 240.0
OLD = ("Json", "Stores", "Driver", "Known", "Polling", "Produce", "Consume", "Rebalance")
NEW = (*OLD, "headers/Headers", "Transact", "Administer", "Journey")
NEWEST = (*NEW, "Sweep", "Tokens", "Share", "Member", "Raw", "AddVoter", "Leader", "Whole")
ALL_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True)
class Client:
    """A client library at a version, and what it can do."""

    name: str
    kind: str
    version: str = ""
    codecs: tuple[str, ...] = ALL_CODECS
    headers: bool = True
    transactions: bool = True
    admin: bool = True
    idempotent: bool = True
    scram: bool = True

    def command(self) -> list[str]:
        """How to start its driver."""
        if self.kind == "java":
            classes = java_classes(self.version)
            return ["java", *JVM, "-cp", classes.path, "Driver"]
        if self.kind == "go":
            return [go_program(HERE / "go")]
        if self.kind == "js":
            return js_program(HERE / "js")
        return [sys.executable, "-m", f"tests.interop.clients.with_{self.kind}"]


JVM = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)

OLD_CODECS = ("none", "gzip", "snappy", "lz4")

CLIENT_LIST = {
    client.name: client
    for client in (
        Client("java-4.4.0", "java", "4.4.0"),
        Client("java-3.9.2", "java", "3.9.2"),
        Client("java-2.4.1", "java", "2.4.1", admin=False),
        Client("java-1.1.1", "java", "1.1.1", codecs=OLD_CODECS, admin=False),
        Client(
            "java-0.10.2.2",
            "java",
            "0.10.2.2",
            codecs=OLD_CODECS,
            headers=False,
            transactions=False,
            admin=False,
            idempotent=False,
        ),
        Client("librdkafka", "confluent"),
        Client("kafka-python", "kafka_python"),
        Client("aiokafka", "aiokafka"),
        Client("franz-go", "go"),
        # Other codecs are packages of their own; it has no way to read without a group.
        Client("kafkajs", "js", codecs=("none", "gzip")),
    )
}


def go_program(source: Path) -> str:
    """A program for Go, built once each content."""
    need("go")
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source.iterdir())))
    home = CACHE / f"{source.name}-{digest.hexdigest()[:12]}"
    once(home, lambda: run("go", "build", "-o", home / "program", ".", cwd=source))
    return str(home / "program")


def js_program(source: Path) -> list[str]:
    """How to run a program for Node, with its packages, which are fetched once."""
    need("node", "npm")
    home = CACHE / source.name
    with locked(home):
        for name in ("package.json", "main.js"):
            # At once, or not at all: another process may begin to run it just now.
            shutil.copy(source / name, home / f"{name}.new")
            (home / f"{name}.new").replace(home / name)
        if not (home / "node_modules").exists():
            options = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts")
            run("npm", "install", *options, cwd=home)
    return ["node", str(home / "main.js")]


def java_classes(version: str) -> JavaClasses:
    """Our drivers compiled for one version of kafka-clients."""
    if version == "0.10.2.2":
        sources: tuple[str, ...] = (*OLD, "noheaders/Headers")
    elif version in {"1.1.1", "2.4.1"}:
        sources = (*OLD, "headers/Headers", "Transact")
    else:
        sources = NEWEST if version == "4.4.0" else NEW
    if version in BROKERS:
        return compiled(jars(f"broker-{version}", BROKERS[version]), sources)
    return compiled(jars(f"client-{version}", CLIENTS[version]), sources)


class Driver:
    """A running client program; a context manager."""

    def __init__(
        self,
        client: Client,
        log: Path,
        common: dict[str, str],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.client = client
        self.common = common
        self.log = log
        self._answers: queue.Queue[str] = queue.Queue()
        self._log = log.open("ab")
        self.process = subprocess.Popen(
            client.command(),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=os.environ | (environment or {}),
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> "Driver":
        return self

    def __exit__(self, *failure: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self._log.close()

    def step(self, name: str, **arguments: object) -> dict[str, Any]:
        """Run one step to its end; raises when the client failed, unless it `may_fail`."""
        may_fail = arguments.pop("may_fail", False)
        pairs = self.common | {k: str(v) for k, v in arguments.items()}
        assert self.process.stdin is not None
        print(name, *(f"{k}={v}" for k, v in pairs.items()), file=self.process.stdin, flush=True)
        try:
            line = self._answers.get(timeout=STEP_SECONDS)
        except queue.Empty:
            line = ""
        if not line:
            tail = self.log.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{self.client.name} gave no answer to {name}:\n{tail}")
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer and not may_fail:
            tail = self.log.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"{self.client.name}, {name}: {answer['failed']}\n{tail}")
        return answer

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._answers.put(line)
        self._answers.put("")


def drive(name: str, folder: Path, bootstrap: str, /, **common: str) -> Driver:
    """A client by its name, with arguments for each of its steps; its log is in the folder."""
    common = {"bootstrap": bootstrap, "client": name} | common
    return Driver(CLIENT_LIST[name], folder / f"{common['client']}.log", common)


class Story:
    """What clients did while a capture ran: rows written and read, by what the broker kept."""

    def __init__(self, count: int = 60) -> None:
        self.count = count
        """How many records a scenario writes to a topic."""
        self.produced: list[Row] = []
        self.consumed: list[Row] = []
        self.codec_of: dict[str, str] = {}

    def add(self, answer: dict[str, Any]) -> None:
        """Take in the answer of a step."""
        self.produced += _rows(answer.get("produced", ())) + _rows(answer.get("aborted", ()))
        self.consumed += _rows(answer.get("consumed", ()))

    def to_json(self) -> dict[str, Any]:
        """The story as it is kept beside a sample."""
        return {
            "produced": self.produced,
            "consumed": self.consumed,
            "codec_of": self.codec_of,
        }

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> "Story":
        """The reverse."""
        story = cls()
        story.add(told)
        story.codec_of = told["codec_of"]
        return story


def _rows(told: Sequence[Sequence[Any]]) -> list[Row]:
    return [Row(*row) for row in told]
