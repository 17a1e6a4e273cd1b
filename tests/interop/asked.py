"""A Java program of ours that answers line by line, in JSON: one child process."""

import json
import subprocess
import tempfile
from typing import Any, Self


class Asked:
    """`java/PROGRAM.java`, compiled, on a class path; a context manager."""

    def __init__(self, program: str, path: str, megabytes: int = 256) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the process
        self._process = subprocess.Popen(
            ["java", f"-Xmx{megabytes}m", "-XX:+UseSerialGC", "-cp", path, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(120)
        self._process.stdout.close()
        self._log.close()

    def ask(self, **question: Any) -> dict[str, Any]:
        """One answer; `ok` says whether the program took the question."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            self._log.seek(0)
            raise RuntimeError(f"no answer: {self._log.read()[-2000:]!r}")
        answer: dict[str, Any] = json.loads(line)
        return answer
