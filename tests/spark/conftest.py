"""One Spark session for all tests: starting one takes longer than most of what is tested."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.needs import need

SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "768m",
    # Python and the JVM find each other late on a busy machine; 15 s are usual.
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Short code paths of the JVM: what is tested is Python."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What runs on Spark is `slow`: its JVM takes half a minute of two cores before the first test,
    and some seconds for each. `tests/analyzer/pipeline` cuts the same work without it."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark writes what it does."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="session")
def spark(events: Path) -> Iterator[Any]:
    need("java")
    from kafkascope.analyzer.spark.session import session

    log = {"enabled": "true", "compress": "false", "dir": events.as_uri()}
    settings = {f"spark.eventLog.{name}": value for name, value in log.items()}
    with session(master="local[2]", settings={**SETTINGS, **settings}) as found:
        yield found
