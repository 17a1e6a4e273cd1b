"""A real schema registry on loopback, and serializers that speak to it.

The registry is Apicurio, in memory, from Maven. The serializers are those of Confluent's Python
client, in an environment of their own (what they want conflicts with mitmproxy), of KafkaJS, of
franz-go with hamba/avro, and Apicurio's own for Java.
"""

import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Self

from tests.interop.asked import Asked
from tests.interop.brokers import free_ports
from tests.interop.maven import CACHE, Artifact, compiled, jars, once
from tests.interop.processes import end, ready, run

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
        ready(self._process, log, self._answers)
        return self

    def __exit__(self, *failure: object) -> None:
        assert self._process is not None
        end(self._process)

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/apis/registry/v2/system/info", timeout=2):
                return True
        except (urllib.error.URLError, OSError):
            return False


def _app(version: str) -> Path:
    """The unpacked application, fetched at first use."""
    home = CACHE / f"apicurio-{version}"
    artifact = f"io.apicurio:apicurio-registry-app:{version}:{ARCHIVES[version]}:all"

    def fetch() -> None:
        shutil.rmtree(home / "app", ignore_errors=True)
        goal = ("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}")
        run(*goal, f"-DoutputDirectory={home}", seconds=900)
        archive = next(home.glob(f"*.{ARCHIVES[version]}"))
        shutil.unpack_archive(archive, home / "app")
        archive.unlink()

    return once(home, fetch) / "app"


def serializers() -> Path:
    """The Python that has Confluent's serializers, installed at first use."""
    home = CACHE / "serializers"
    python = home / "venv" / "bin" / "python"

    def install() -> None:
        run(sys.executable, "-m", "venv", "--clear", home / "venv")
        run(python, "-m", "pip", "install", "-q", CLIENT, seconds=900)

    once(home, install)
    return python


def java_serializers(version: str) -> Asked:
    """java/Apicurio.java with the serializers of a release."""
    classes = compiled(jars(f"apicurio-serdes-{version}", SERDES[version]), ["Apicurio"])
    return Asked("Apicurio", classes.path)
