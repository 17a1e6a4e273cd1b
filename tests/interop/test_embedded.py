"""The extension for JUnit beside what starts brokers in tests of Java: Kafka's own test kit,
Testcontainers, Spring."""

import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.interop.bound import BINDINGS, KAFKASCOPE
from tests.interop.maven import CACHE, locked
from tests.interop.needs import need

pytestmark = pytest.mark.interop

PATIENCE_S = 580.0


def passed(folder: Path, module: str, tests: str, *options: str) -> set[str]:
    """Run tests of a module of bindings/java/embedded; the names of those that passed."""
    need("java", "mvn")
    command = ["mvn", "-q", "-B", "--projects", module, "--also-make", "test", f"-Dtest={tests}"]
    command += ["-Dsurefire.failIfNoSpecifiedTests=false", f"-Dkafkascope.build={folder}"]
    env = {**os.environ, "KAFKASCOPE": str(KAFKASCOPE), "KAFKASCOPE_DIR": str(folder / "kept")}
    with locked(CACHE / "jars" / "maven"):  # its repository is not for two at a time
        done = subprocess.run(
            [*command, *options],
            cwd=BINDINGS / "java" / "embedded",
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 0, done.stdout
    found = set()
    for report in (folder / module / "surefire-reports").glob("*.xml"):
        for case in ElementTree.parse(report).iter("testcase"):
            assert not list(case.iter("skipped")), report
            found.add(case.attrib["name"].partition("(")[0])
    return found


def test_beside_testcontainers(tmp_path: Path) -> None:
    """Its real extension starts brokers; without Docker, as they run in the tests' own process."""
    assert passed(tmp_path, "kafka", "TestcontainersTest") == {
        "allTrafficTakesTheProxy",
        "aLeaderThatMovesCostsNoOrder",
    }


@pytest.mark.soak
def test_beside_brokers_that_start_for_each_test(tmp_path: Path) -> None:
    assert passed(tmp_path, "kafka", "KafkasTestKitTest,ContainerForEachTest") == {
        "eachBrokerHasAListenerOfTheProxy",
        "aLeaderThatMovesCostsNoOrder",
        "startsWithNothing",
    }


@pytest.mark.soak
@pytest.mark.parametrize(
    "versions",
    [
        (),  # those of the module: Spring 7, JUnit 6
        ("-Dspring-kafka.version=3.3.10", "-Djunit.version=5.12.2"),
    ],
    ids=["spring7", "spring6"],
)
def test_beside_springs_broker(versions: tuple[str, ...], tmp_path: Path) -> None:
    found = passed(tmp_path, "spring", "SpringContextTest,WithoutContextTest*", *versions)
    assert found == {"anOrderIsSentOnce", "aLeaderThatMovesCostsNoOrder"}
