"""Topics that a replay creates on its target."""

import asyncio
from collections import Counter
from pathlib import Path

import pytest

from kafkascope.dissectors.registry import APIS, decode_request, read_request_header
from kafkascope.proxy.limits import LIMITS, Limits
from kafkascope.proxy.replay.cluster import LiveCluster
from kafkascope.proxy.replay.peer import Reach
from tests.explosion.declared import often
from tests.explosion.turns import write_capture
from tests.kit.brokers import blank, broker
from tests.kit.run import run
from tests.kit.wire import response

POLICY_VIOLATION = 44


class Reluctant:
    """A broker that does not create what begins with "no", and knows no such topic."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.largest = 0
        self.named: list[int] = []
        """By each Metadata."""

    def __call__(self, payload: bytes, port: int) -> bytes | None:
        head = read_request_header(payload)
        api, version = APIS[head.api_key].name, head.api_version
        self.asked[api] += 1
        body = decode_request(payload).body
        if api == "Metadata":
            self.named.append(len(body["topics"]))
            assert not any(each["name"].startswith("no") for each in body["topics"])
        if api != "CreateTopics":
            return blank(payload, port)
        self.largest = max(self.largest, sum(each["num_partitions"] for each in body["topics"]))
        topics = [
            {"name": each["name"], "error_code": POLICY_VIOLATION * each["name"].startswith("no")}
            for each in body["topics"]
        ]
        return response("CreateTopics", version, head.correlation_id, topics=topics)


def created(peer: Reluctant, topics: dict[str, int], limits: Limits = LIMITS) -> list[str]:
    async def create(port: int) -> list[str]:
        target = LiveCluster([("127.0.0.1", port)], Reach(timeout=10, limits=limits))
        await target.open()
        peer.asked.clear()
        try:
            return await target.create(topics)
        finally:
            await target.close()

    with broker(peer) as port:
        return asyncio.run(create(port))


def test_nobody_waits_for_leaders_of_topics_that_were_refused() -> None:
    # One that was refused: all were asked for forty times, a quarter of a second apart.
    slow = Limits(pause_s=60)
    peer = Reluctant()
    assert created(peer, {"yes": 2, "no": 1}, slow) == ["no (error 44)"]
    assert peer.asked == {"CreateTopics": 1, "Metadata": 1}
    assert created(peer, {"no": 1, "no-2": 1}, slow) == ["no (error 44)", "no-2 (error 44)"]
    assert peer.asked == {"CreateTopics": 1}


def test_very_many_are_created_in_turns() -> None:
    peer = Reluctant()
    assert created(peer, {f"t{n}": 1 + n % 3 for n in range(1_500)}) == []
    assert LIMITS.created_at_once - 3 < peer.largest <= LIMITS.created_at_once
    assert peer.asked["CreateTopics"] == 4  # of 3,000 partitions in topics that stay whole
    assert created(peer, {"large": 9 * LIMITS.created_at_once, "t": 1}) == []
    assert peer.asked["CreateTopics"] == 2


@pytest.mark.parametrize("api", ["CreateTopics", "DeleteTopics", "CreatePartitions"])
def test_the_leaders_of_what_changed_are_asked_for_and_no_others(api: str, tmp_path: Path) -> None:
    """All that the capture made, or all that the target has, was asked for after each change."""
    key = next(key for key, each in APIS.items() if each.name == api)
    path, peer = tmp_path / "changes.pcapng", Reluctant()
    write_capture(path, often(key, APIS[key].versions.high, 40))
    with broker(peer) as port:
        words = ("--to", f"127.0.0.1:{port}", "--speed", "max", "--allow-writes", "--create-topics")
        result = run("replay", path, *words)
    assert "40 requests sent" in result.output
    assert sum(peer.named) <= 40 * 3
