"""A real schema registry on loopback, and serializers that speak to it.

The registry is Apicurio, in memory, from Maven. The serializers are those of Confluent's Python
client, in an environment of their own (what they want conflicts with mitmproxy), of KafkaJS, of
franz-go with hamba/avro, and Apicurio's own for Java.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.asked import Asked
from tests.interop.brokers import free_ports
from tests.interop.maven import CACHE, Artifact, compiled, jars, locked

# Of 3.x the newest that runs on Java 17; it has the paths of 2.x, too.
ARCHIVES = {"2.6.13.Final": "zip", "3.0.9": "tar.gz"}
SERDES: dict[str, tuple[Artifact, ...]] = {
    "2.6.13.Final": tuple(
        Artifact(f"io.apicurio:apicurio-registry-serdes-{format}-serde:2.6.13.Final")
        for format in ("avro", "protobuf", "jsonschema")
    ),
    # Of 3.3.3 not all parts are in Maven Central.
    "3.1.7": tuple(
        Artifact(f"io.apicurio:apicurio-registry-{format}-serde-kafka:3.1.7")
        for format in ("avro", "protobuf", "jsonschema")
    ),
}
"""Apicurio's serializers for Java, by release."""
CLIENT = "confluent-kafka[avro,protobuf,json,schemaregistry]>=2.12"
START_SECONDS = 120.0


class Apicurio:
    """A context manager; `url` speaks Confluent's REST below /apis/ccompat/v7."""

    def __init__(self, home: Path, version: str = "2.6.13.Final") -> None:
        self._home = home
        self._app = _app(version)
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        jar = next(self._app.glob("*-runner.jar"))
        log = self._home / "registry.log"
        environment = os.environ | {
            "QUARKUS_HTTP_HOST": "127.0.0.1",
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_PROFILE": "prod",
        }
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                ["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-jar", str(jar)],
                cwd=self._app,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self._stop()
                raise RuntimeError(f"no registry:\n{log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.3)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/apis/registry/v2/system/info", timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False

    def _stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def _app(version: str) -> Path:
    """The unpacked application, fetched at first use."""
    home = CACHE / f"apicurio-{version}"
    artifact = f"io.apicurio:apicurio-registry-app:{version}:{ARCHIVES[version]}:all"
    with locked(home):
        done = home / "done"
        if not done.exists():
            shutil.rmtree(home / "app", ignore_errors=True)
            _run(
                *("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"),
                f"-DoutputDirectory={home}",
                at=home,
            )
            archive = next(home.glob(f"*.{ARCHIVES[version]}"))
            shutil.unpack_archive(archive, home / "app")
            archive.unlink()
            done.touch()
    return home / "app"


def serializers() -> Path:
    """The Python that has Confluent's serializers, installed at first use."""
    home = CACHE / "serializers"
    with locked(home):
        done = home / "done"
        if not done.exists():
            _run(sys.executable, "-m", "venv", "--clear", str(home / "venv"), at=home)
            _run(str(home / "venv/bin/python"), "-m", "pip", "install", "-q", CLIENT, at=home)
            done.touch()
    return home / "venv" / "bin" / "python"


def java_serializers(version: str) -> Asked:
    """java/Apicurio.java with the serializers of a release."""
    classes = compiled(jars(f"apicurio-serdes-{version}", SERDES[version]), ["Apicurio"])
    return Asked("Apicurio", classes.path)


HERE = Path(__file__).parent


def js_writer() -> list[str]:
    """The command that writes with KafkaJS's serializers, its packages fetched at first use."""
    source = HERE / "schemas_js"
    home = CACHE / "schemas-js"
    with locked(home):
        for name in ("package.json", "main.js"):
            shutil.copy(source / name, home / name)
        if not (home / "node_modules" / "@kafkajs").exists():
            options = ("--no-audit", "--no-fund", "--ignore-scripts")
            _run("npm", "install", *options, at=home)
    return ["node", str(home / "main.js")]


def go_writer() -> list[str]:
    """The command that writes with franz-go's serializers, built at first use."""
    source = HERE / "schemas_go"
    home = CACHE / "schemas-go"
    content = hashlib.sha256(b"".join(p.read_bytes() for p in sorted(source.iterdir())))
    binary = home / content.hexdigest()[:16]
    with locked(home):
        if not binary.exists():
            _run("go", "build", "-o", str(binary), ".", at=source)
    return [str(binary)]


def _run(*command: str, at: Path) -> None:
    done = subprocess.run(command, cwd=at, capture_output=True, text=True, timeout=900)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stderr[-3000:]}")
