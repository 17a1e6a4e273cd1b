"""Every API that a client may call: the whole Admin client, then each API in each version, raw."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkascope.dissectors.registry import APIS
from tests.interop import scenarios
from tests.interop.brokers import Cluster, KRaftCluster
from tests.interop.compare import Recording, assert_right
from tests.interop.drivers import Story, drive
from tests.interop.needs import need
from tests.interop.sniff import sniff

pytestmark = pytest.mark.interop

# Brokers and controllers call these among themselves; test_cluster.py sees them.
INTERNAL = {
    *("LeaderAndIsr", "StopReplica", "UpdateMetadata", "ControlledShutdown"),
    *("Vote", "BeginQuorumEpoch", "EndQuorumEpoch", "FetchSnapshot", "UpdateRaftVoter"),
    *("AlterPartition", "Envelope", "BrokerRegistration", "BrokerHeartbeat"),
    *("AllocateProducerIds", "ControllerRegistration", "AssignReplicasToDirs"),
}

NOT_IN_3_9 = {
    *("listConfigResources", "describeShareGroups", "alterShareGroupOffsets"),
    *("listShareGroupOffsets", "deleteShareGroupOffsets", "describeStreamsGroups"),
    "unregisterController",
}
# Calls whose error is the right answer: nothing to do, nobody there.
REFUSED = {
    "electLeaders": "ElectionNotNeededException",
    "cancelReassignment": "NoReassignmentInProgressException",
    "unregisterBroker": "BrokerIdNotRegisteredException",
    "removeRaftVoter": "VoterNotFoundException",
}
REFUSED_BY = {
    "3.9.2": REFUSED
    | dict.fromkeys(NOT_IN_3_9, "UnsupportedVersionException")
    | {
        "describeConfigs logger": "UnknownServerException",
        "groupConfig": "InvalidRequestException",
        "deleteShareGroups": "GroupIdNotFoundException",
        "updateFeatures": "InvalidUpdateVersionException",
    },
    "4.4.0": REFUSED
    | {
        "describeShareGroups": "GroupIdNotFoundException",
        "describeStreamsGroups": "GroupIdNotFoundException",
        "unregisterController": "ControllerIdNotRegisteredException",
    },
}


@dataclass
class Sweep:
    """A recording, and how the broker took each call and each raw request."""

    version: str
    recording: Recording
    calls: dict[str, str]
    raw: dict[tuple[str, str], str]


@pytest.fixture(scope="module", params=["3.9.2", "4.4.0"])
def sweep(
    request: pytest.FixtureRequest, java: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Sweep]:
    need("tcpdump")
    version: str = request.param
    home = tmp_path_factory.mktemp("sweep")
    unstable = {"unstable.api.versions.enable": "true"}
    with KRaftCluster(version, settings=unstable) as cluster:
        yield _sweep(version, cluster, home)


def _sweep(version: str, cluster: Cluster, home: Path) -> Sweep:
    ports = cluster.ports("PLAINTEXT", "SASL_PLAINTEXT")
    recording = Recording(home / "traffic.pcap", frozenset(ports), Story(20))
    raw: dict[tuple[str, str], str] = {}
    driving = drive("java-4.4.0", home, cluster.bootstrap())
    with sniff(recording.capture, ports), driving as driver:
        calls = scenarios.administration(driver, recording.story, cluster)
        for api in APIS.values():
            if api.name not in INTERNAL:
                told = driver.step("Raw", api=constant(api.name))["versions"]
                raw |= {(api.name, number): result for number, result in told.items()}
    return Sweep(version, recording.read(), calls, raw)


def constant(name: str) -> str:
    """An API's name as Kafka's Java code spells it."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def test_the_admin_client_gets_the_answers_it_should(sweep: Sweep) -> None:
    refused = {call: result for call, result in sweep.calls.items() if result != "ok"}
    refused.pop("addRaftVoter")  # the broker tries to reach a voter that is not there
    assert refused == REFUSED_BY[sweep.version]
    assert len(sweep.calls) > 50


def test_the_broker_answers_every_version_that_it_has(sweep: Sweep) -> None:
    """3.9 closes the connection on versions newer than itself."""
    silent = {which for which, result in sweep.raw.items() if result != "ok"}
    # Versions of brokers only: without a transaction in them they are not answered.
    silent -= {("AddPartitionsToTxn", "4"), ("AddPartitionsToTxn", "5")}
    if sweep.version == "4.4.0":
        assert silent == set()
    else:
        assert 0 < len(silent) < 60


def test_all_is_what_the_client_tells(sweep: Sweep) -> None:
    assert_right(sweep.recording)
    seen = {(e["api"], e["api_version"]) for e in sweep.recording.exchanges}
    print(f"{len(seen)} pairs of API and version with Kafka {sweep.version}")
    assert len(seen) > 280
    assert {api.name for api in APIS.values()} - INTERNAL <= {api for api, _ in seen}
