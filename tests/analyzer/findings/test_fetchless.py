"""Group members with partitions and no Fetch."""

from __future__ import annotations

import pytest

from kafkascope.analyzer.findings import Finding
from kafkascope.analyzer.findings.rules import SECOND
from kafkascope.dissectors.registry import encode_body
from tests.analyzer.findings import sides
from tests.analyzer.findings.stating import states
from tests.analyzer.statistics.cluster.test_cluster import metadata
from tests.analyzer.wire import MS, Wire, request, response

RULE = "fetches-nothing"
HERE = (1, "10.0.1.2", 9092)
ELSEWHERE = (2, "10.0.1.3", 9092)


def member(
    lasts_ns: int = 60 * SECOND,
    *nodes: tuple[int, str, int],
    fetches: bool = False,
    least: int = 4,
    kind: str = "consumer",
    parts: tuple[int, ...] = (0, 1),
    handshake: bool = True,
) -> Finding | None:
    """A group of one that lives so long."""
    wire = Wire(handshake=handshake)
    keys = [{"api_key": 1, "min_version": least, "max_version": 17}]
    wire.client(request("ApiVersions", 0, 1)).broker(
        response("ApiVersions", 0, 1, error_code=0, api_keys=keys)
    )
    told = metadata(*(nodes or (HERE,)))
    wire.client(request("Metadata", 8, 2)).broker(response("Metadata", 8, 2, **told))
    begin = wire.time_ns
    asked = {"group_id": "g", "member_id": "m", "protocol_type": kind, "session_timeout_ms": 9}
    asked["protocols"] = [{"name": "range", "metadata": b""}]
    wire.client(request("JoinGroup", 5, 3, **asked))
    answer = {"error_code": 0, "generation_id": 1, "protocol_name": "range", "leader": "m"}
    answer |= {"member_id": "m", "members": []}
    wire.broker(response("JoinGroup", 5, 3, **answer))
    mine = {"topic": "orders", "partitions": list(parts)}
    assignment = b"\0\0" + encode_body(
        "ConsumerProtocolAssignment", 0, {"assigned_partitions": [mine], "user_data": None}
    )
    plan = [{"member_id": "m", "assignment": assignment}]
    wire.client(
        request("SyncGroup", 3, 4, group_id="g", generation_id=1, member_id="m", assignments=plan)
    )
    wire.broker(response("SyncGroup", 3, 4, error_code=0, assignment=assignment))
    if fetches:
        wire.client(request("Fetch", 11, 5)).broker(response("Fetch", 11, 5, responses=[]))
    for number in range(6, 10):
        wire.time_ns = begin + lasts_ns * (number - 5) // 4 - (MS if number == 9 else 0)
        beat = {"group_id": "g", "generation_id": 1, "member_id": "m"}
        wire.client(request("Heartbeat", 3, number, **beat))
        wire.broker(response("Heartbeat", 3, number, error_code=0))
    return sides.found([wire], RULE).get(RULE)


def lives(lasts_ns: int) -> bool:
    return member(lasts_ns) is not None


@pytest.mark.parametrize("least", [0, 4])
def test_a_member_that_never_fetches(least: int) -> None:
    finding = member(least=least)
    assert finding is not None
    assert states(finding.text, "app", "owned 2 partitions", "group g", "60 s", "no Fetch")
    assert states(finding.text, "orders-0", "orders-1", f"Fetch v{least} to v17")


@pytest.mark.parametrize(
    "finding",
    [
        member(fetches=True),
        member(60 * SECOND, HERE, ELSEWHERE),
        member(kind="connect"),
        member(parts=()),
        member(handshake=False),
    ],
    ids=["fetches", "at another broker", "a worker of Connect", "owns nothing", "midstream"],
)
def test_members_that_may_fetch(finding: Finding | None) -> None:
    assert finding is None
