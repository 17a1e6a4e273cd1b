"""The example of the Java binding is one of its tests."""

from __future__ import annotations

import re
import tomllib

from tests.kit.samples import ROOT

JAVA = ROOT / "bindings" / "java"
EXAMPLES = re.findall(r"```java\n(.*?)```", (JAVA / "README.md").read_text(), re.DOTALL)


def test_the_example_of_the_readme_is_run() -> None:
    told, *_ = EXAMPLES
    run = (JAVA / "src" / "test" / "java" / "shop" / "OrdersTest.java").read_text()
    of_tests = [line for line in run.splitlines(keepends=True) if "IfEnvironment" not in line]
    text = "".join(of_tests).removeprefix("package shop;\n\n")
    assert text.replace('System.getenv("KAFKASCOPE_BROKER")', '"localhost:9092"') == told


def test_what_it_shows_beside_other_extensions_is_in_their_tests() -> None:
    sources = (JAVA / "embedded").glob("*/src/test/java/shop/*.java")
    run = " ".join("".join(path.read_text() for path in sorted(sources)).split())
    _, *pieces = EXAMPLES
    assert len(pieces) == 3
    for piece in pieces:
        told = re.findall(
            r"(?:KafkascopeExtension\.proxy|properties\.add)\(.*?\);", piece, re.DOTALL
        )
        assert told
        for each in told:
            assert " ".join(each.split()) in run


def test_the_artifact_has_the_version_and_the_licence() -> None:
    project = tomllib.loads((JAVA.parents[1] / "pyproject.toml").read_text())["project"]
    version = f"<version>{project['version']}</version>"
    assert version in (JAVA / "pom.xml").read_text().partition("<dependencies>")[0]
    assert version in (JAVA / "README.md").read_text()
    assert (JAVA / "LICENSE").read_bytes() == (JAVA.parents[1] / "LICENSE").read_bytes()
