"""Kafka's own generated message classes as a codec: one child process that answers line by line."""

import json
import subprocess
import tempfile
from typing import Any

from tests.interop.maven import BROKERS, compiled, jars

__all__ = ["Oracle"]


class Oracle:
    """java/Oracle.java with the jars of one broker release; a context manager."""

    def __init__(self, version: str) -> None:
        self.version = version
        classes = compiled(jars(f"broker-{version}", BROKERS[version]), ["Oracle"])
        # It looks for message classes in the jars of its class path, so these are named one by one.
        path = ":".join([str(classes.classes), *map(str, sorted(classes.lib.glob("*.jar")))])
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", path, "Oracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def __enter__(self) -> "Oracle":
        return self

    def __exit__(self, *failure: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()
        self._log.close()

    def ask(self, **question: Any) -> dict[str, Any]:
        """One answer; `ok` says whether Kafka took it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"no answer: {self._log.read()[-2000:]!r}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def messages(self) -> dict[str, tuple[int, int]]:
        """All messages this release has, with their lowest and highest version."""
        told = self.ask(list=True)["messages"]
        return {name: (low, high) for name, (low, high) in told.items()}
