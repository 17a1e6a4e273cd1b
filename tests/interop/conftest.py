"""Brokers that live as long as the test session, and captures made with them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.interop import scenarios
from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.compare import Recording
from tests.interop.drivers import Story, drive
from tests.interop.needs import need
from tests.interop.proxied import SecuredCluster
from tests.interop.sniff import sniff
from tests.kit.authority import Authority

Brokers = Callable[[str], Cluster]

Secured = Callable[[str], SecuredCluster]

CLIENT_PORTS = ("PLAINTEXT", "SASL_PLAINTEXT")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of the proxy that restart brokers come late, those with old brokers last: one cluster
    of three runs at a time, and the others want it whole."""

    def turn(item: pytest.Item) -> int:
        if "clusters" not in getattr(item, "fixturenames", ()):
            return 0
        callspec = getattr(item, "callspec", None)
        if callspec is not None and callspec.params.get("version") == "3.9.2":
            return 2
        return 1 if "restarts" in item.name else 0

    items.sort(key=turn)


_started: dict[str, tuple[ExitStack, dict[str, Any]]] = {}
"""Fixture -> what it has started, by release."""


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Brokers that the next test does not use are stopped: idle ones take CPU from the others."""
    used = getattr(nextitem, "fixturenames", ())
    for name, (stack, running) in _started.items():
        if name not in used and running:
            running.clear()
            stack.close()


@pytest.fixture(scope="session")
def java() -> None:
    """Skips, or fails in CI, without Java and Maven."""
    need("java", "javac", "mvn")


@pytest.fixture(scope="session")
def brokers(java: None) -> Iterator[Brokers]:
    """A running single broker of a release, started at first use."""
    need("tcpdump")
    running: dict[str, Cluster] = {}
    with ExitStack() as stack:
        _started["brokers"] = stack, running

        def of(version: str) -> Cluster:
            if version not in running:
                running[version] = stack.enter_context(KRaftCluster(version))
            return running[version]

        yield of


@pytest.fixture(scope="session")
def clusters(java: None, authority: Authority) -> Iterator[Secured]:
    """Three running nodes of a release, one release at a time."""
    need("tcpdump")
    running: dict[str, SecuredCluster] = {}
    with ExitStack() as stack:
        _started["clusters"] = stack, running

        def of(version: str) -> SecuredCluster:
            if version not in running:
                stack.close()
                running.clear()
                running[version] = stack.enter_context(SecuredCluster(version, 3, authority))
            return running[version]

        yield of


@pytest.fixture(scope="session")
def record(
    brokers: Brokers, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], Recording]:
    """Capture everything that one client can do with one broker, once."""
    made: dict[tuple[str, str], Recording] = {}

    def recording(broker: str, client: str) -> Recording:
        if (broker, client) not in made:
            home = tmp_path_factory.mktemp(f"{client}-{broker}")
            made[broker, client] = _record(brokers(broker), client, home).read()
        return made[broker, client]

    return recording


def _record(cluster: Cluster, client: str, home: Path) -> Recording:
    scenarios.prepare(cluster, client)
    ports = cluster.ports(*CLIENT_PORTS)
    recording = Recording(home / "traffic.pcap", frozenset(ports), Story())
    driving = drive(client, home, cluster.bootstrap())
    with sniff(recording.capture, ports), driving as driver:
        scenarios.everything(driver, recording.story, cluster)
    return recording
