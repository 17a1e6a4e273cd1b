"""The example of the Java binding is one of its tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

JAVA = Path(__file__).parents[2] / "bindings" / "java"


def test_the_example_of_the_readme_is_run() -> None:
    (told,) = re.findall(r"```java\n(.*?)```", (JAVA / "README.md").read_text(), re.DOTALL)
    run = (JAVA / "src" / "test" / "java" / "shop" / "OrdersTest.java").read_text()
    of_tests = [line for line in run.splitlines(keepends=True) if "IfEnvironment" not in line]
    text = "".join(of_tests).removeprefix("package shop;\n\n")
    assert text.replace('System.getenv("KAFKASCOPE_BROKER")', '"localhost:9092"') == told


def test_the_artifact_has_the_version_and_the_licence() -> None:
    project = tomllib.loads((JAVA.parents[1] / "pyproject.toml").read_text())["project"]
    version = f"<version>{project['version']}</version>"
    assert version in (JAVA / "pom.xml").read_text().partition("<dependencies>")[0]
    assert version in (JAVA / "README.md").read_text()
    assert (JAVA / "LICENSE").read_bytes() == (JAVA.parents[1] / "LICENSE").read_bytes()
