"""Real clients against real brokers: frames decoded, requests paired, records equal."""

from collections import Counter
from collections.abc import Callable

import pytest

from tests.interop.compare import Recording, assert_right
from tests.interop.drivers import CLIENT_LIST
from tests.interop.scenarios import DIAGONAL, marks

pytestmark = pytest.mark.interop

Record = Callable[[str, str], Recording]

# 4.x closes the connection of clients as old as 0.10.
REST = tuple(
    (broker, client)
    for broker in ("3.9.2", "4.4.0")
    for client in CLIENT_LIST
    if (broker, client) not in DIAGONAL and (broker, client) != ("4.4.0", "java-0.10.2.2")
)

# What the clients together have to use; the newest brokers and clients alone do not use all of it.
APIS = {
    *("Produce", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "OffsetFetch"),
    *("FindCoordinator", "JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup", "DescribeGroups"),
    *("ListGroups", "SaslHandshake", "SaslAuthenticate", "ApiVersions", "InitProducerId"),
    *("AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit", "CreateTopics"),
    "GetTelemetrySubscriptions",
}


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(pair, id="-".join(pair), marks=marks(pair[0])) for pair in DIAGONAL),
        *(pytest.param(pair, id="-".join(pair), marks=pytest.mark.soak) for pair in REST),
    ],
)
def recording(request: pytest.FixtureRequest, record: Record) -> Recording:
    return record(*request.param)


def test_all_is_what_the_clients_tell(recording: Recording) -> None:
    # Some seventy for each codec; kafkajs lacks zstd.
    assert len(recording.story.produced) >= 280
    assert len(recording.story.consumed) >= 280
    assert_right(recording)


def test_clients_read_what_they_wrote(recording: Recording) -> None:
    """The harness itself: were it wrong, the comparison above would prove nothing."""
    written = {(r.topic, r.partition, r.time_ms): r[4:] for r in recording.story.produced}
    read = {(r.topic, r.partition, r.time_ms): r[4:] for r in recording.story.consumed}
    assert {place: written.get(place) for place in read} == read


def test_no_secret_is_printed(recording: Recording) -> None:
    printed = repr(recording.exchanges) + repr(recording.records)
    assert "alice-secret" not in printed


def test_the_clients_together_use_every_api_of_everyday(record: Record) -> None:
    seen = Counter(e["api"] for pair in DIAGONAL for e in record(*pair).exchanges)
    assert APIS - set(seen) == set()
