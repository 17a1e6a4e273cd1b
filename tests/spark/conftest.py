"""One Spark session for all tests: starting one takes longer than most of what is tested."""

from __future__ import annotations

from collections.abc import Iterator
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


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    need("java")
    from kafkascope.analyzer.spark.session import session

    with session(master="local[2]", settings=SETTINGS) as found:
        yield found
