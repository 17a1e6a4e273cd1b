"""Jars from Maven Central, kept in a cache folder: brokers, old and new Java clients.

A class path is a folder of jars named after the pom that asked for it, so a changed pom fetches
again and two versions never mix.
"""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.interop.processes import run
from tests.kit.samples import ROOT

SOURCES = Path(__file__).parent / "java"
CACHE = Path(os.environ.get("KAFKASCOPE_CACHE", ROOT / ".cache"))


@dataclass(frozen=True, slots=True)
class Artifact:
    """`group:name:version[:classifier]` with what must not come along, as `group:name`."""

    name: str
    without: tuple[str, ...] = ()

    def xml(self) -> str:
        """The artifact as a <dependency> of a pom."""
        group, artifact, version, *more = self.name.split(":")
        classifier = "".join(f"<classifier>{each}</classifier>" for each in more)
        exclusions = "".join(
            "<exclusion><groupId>{}</groupId><artifactId>{}</artifactId></exclusion>".format(
                *name.split(":")
            )
            for name in self.without
        )
        return (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>{classifier}"
            f"<exclusions>{exclusions}</exclusions></dependency>"
        )


# slf4j-api is 1.7 in all of them; a binding of 2.x is not found.
LOGGING = Artifact("org.slf4j:slf4j-simple:1.7.36")

# Their log4j 1 asks for what was never published there.
_UNPUBLISHED = ("javax.jms:jms", "com.sun.jdmk:jmxtools", "com.sun.jmx:jmxri")
# Left Java with 11; Kafka 0.10.1 to 1.x want it.
_BINDING = Artifact("javax.xml.bind:jaxb-api:2.3.1")

BROKERS: dict[str, tuple[Artifact, ...]] = {
    "0.8.0": (Artifact("org.apache.kafka:kafka_2.9.2:0.8.0", _UNPUBLISHED),),
    "0.8.1.1": (Artifact("org.apache.kafka:kafka_2.9.2:0.8.1.1", _UNPUBLISHED),),
    "0.8.2.2": (Artifact("org.apache.kafka:kafka_2.11:0.8.2.2"),),
    "0.9.0.1": (Artifact("org.apache.kafka:kafka_2.11:0.9.0.1"),),
    "0.10.2.2": (Artifact("org.apache.kafka:kafka_2.12:0.10.2.2"), _BINDING),
    "1.1.1": (
        Artifact("org.apache.kafka:kafka_2.12:1.1.1"),
        # Its ZooKeeper does not start without log4j.
        Artifact("org.slf4j:slf4j-log4j12:1.7.25"),
        _BINDING,
    ),
    "2.8.2": (Artifact("org.apache.kafka:kafka_2.13:2.8.2"), LOGGING),
    "3.9.2": (Artifact("org.apache.kafka:kafka_2.13:3.9.2"), LOGGING),
    "4.4.0": (
        # Its pom asks for a kafka-tools-api 4.4.0 that was never published.
        Artifact("org.apache.kafka:kafka_2.13:4.4.0", ("org.apache.kafka:kafka-tools-api",)),
        Artifact("org.apache.kafka:kafka-tools-api:4.3.1"),
        LOGGING,
    ),
}

CLIENTS: dict[str, tuple[Artifact, ...]] = {
    version: (Artifact(f"org.apache.kafka:kafka-clients:{version}"), LOGGING)
    for version in ("0.10.2.2", "1.1.1", "2.4.1", "3.9.2", "4.4.0")
}
# Its SCRAM and PLAIN want javax.xml.bind, which left Java with 11.
CLIENTS["0.10.2.2"] += (Artifact("javax.xml.bind:jaxb-api:2.3.1"),)

# What their poms leave to the server's own archive; JSON is for our programs.
_PROVIDED = tuple(
    map(
        Artifact,
        (
            "io.dropwizard.metrics:metrics-core:4.1.12.1",
            "org.xerial.snappy:snappy-java:1.1.10.5",
            "com.fasterxml.jackson.core:jackson-databind:2.16.2",
        ),
    )
)
KEEPERS: dict[str, tuple[Artifact, ...]] = {
    "3.4.14": (Artifact("org.apache.zookeeper:zookeeper:3.4.14"),),
    "3.6.4": (Artifact("org.apache.zookeeper:zookeeper:3.6.4"), *_PROVIDED),
    "3.9.3": (
        Artifact(
            "org.apache.zookeeper:zookeeper:3.9.3", ("io.netty:netty-tcnative-boringssl-static",)
        ),
        *_PROVIDED,
    ),
}
"""Servers and the client of ZooKeeper, by release."""

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>local</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>
{}
</dependencies>
</project>
"""


def jars(name: str, artifacts: Sequence[Artifact]) -> Path:
    """Folder with the jars of these artifacts and all they depend on, fetched at first use."""
    pom = POM.format("\n".join(artifact.xml() for artifact in artifacts))
    home = CACHE / "jars" / f"{name}-{hashlib.sha256(pom.encode()).hexdigest()[:12]}"

    def fetch() -> None:
        shutil.rmtree(home / "lib", ignore_errors=True)
        (home / "pom.xml").write_text(pom)
        goal = "dependency:copy-dependencies"
        with locked(home.parent / "maven"):  # its own repository is not for two at a time
            run("mvn", "-q", "-B", goal, "-DoutputDirectory=lib", cwd=home)

    return once(home, fetch) / "lib"


def classpath(*folders: Path) -> str:
    """A Java class path of folders of jars and folders of classes."""
    return os.pathsep.join(str(f / "*") if f.name == "lib" else str(f) for f in folders)


@dataclass(frozen=True, slots=True)
class JavaClasses:
    """Our compiled Java programs and the jars they were compiled against."""

    classes: Path
    lib: Path

    @property
    def path(self) -> str:
        """The class path to run them with."""
        return classpath(self.classes, self.lib)


def compiled(lib: Path, sources: Sequence[str]) -> JavaClasses:
    """Compile `sources` of `tests/interop/java` against the jars in `lib`, once each content."""
    files = [SOURCES / f"{source}.java" for source in sources]
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()[:12]
    home = lib.parent / f"classes-{digest}"
    command = ("javac", "-nowarn", "-Xlint:none", "--release", "11", "-proc:none")
    once(home, lambda: run(*command, "-cp", lib / "*", "-d", home, *files))
    return JavaClasses(home, lib)


class locked:
    """One process at a time fetches or compiles into a folder."""

    def __init__(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.path = home.with_name(home.name + ".lock")

    def __enter__(self) -> None:
        self.file = self.path.open("w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *failure: object) -> None:
        self.file.close()


def once(home: Path, make: Callable[[], object]) -> Path:
    """Fill a folder at its first use, which the function does; return it."""
    with locked(home):
        done = home / "done"
        if not done.exists():
            make()
            done.touch()
    return home
