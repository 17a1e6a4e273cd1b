"""Members of a group, and what they send at exact times."""

from fractions import Fraction
from typing import Any, TypeAlias

from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.exchanges.rows import row_of
from kafkascope.analyzer.statistics.exchange_batch import ExchangeBatch
from kafkascope.analyzer.statistics.groups.groups import Groups
from kafkascope.dissectors.registry import encode_body
from tests.kit.wire import MS, SECOND, START, Wire, request, response, told

Seconds: TypeAlias = float | Fraction
"""Fractions are exact to the nanosecond."""


def subscribed(*topics: str) -> bytes:
    body = {"topics": list(topics), "user_data": None, "owned_partitions": []}
    return b"\0\1" + encode_body("ConsumerProtocolSubscription", 1, body)


class Members:
    """Members of one group, each on a connection of its own, at times in seconds. Members `a#1` and
    `a#2` are of one client, `a`."""

    def __init__(self) -> None:
        self.wires: dict[str, Wire] = {}
        self.ids = 0
        self.group = "g"

    def ask(
        self,
        name: str,
        at: Seconds,
        api: str,
        version: int,
        asked: Any,
        answer: Any,
        takes: Seconds,
    ) -> None:
        wire = self.wires.setdefault(name, Wire(number=len(self.wires)))
        self.ids += 1
        wire.time_ns = START + int(at * SECOND) - MS
        client = name.partition("#")[0]
        wire.client(request(api, version, self.ids, client, group_id=self.group, **asked))
        wire.time_ns = START + int(at * SECOND) + int(takes * SECOND) - MS
        wire.broker(response(api, version, self.ids, **answer))

    def join(
        self, name: str, at: Seconds, generation: int, members: tuple[str, ...] = (), **more: Any
    ) -> None:
        takes = more.pop("takes", 0.1)
        topics = more.pop("topics", ("orders",))
        leader = members[0] if members else "other"
        asked: dict[str, Any] = {
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 60_000,
            "member_id": more.pop("asked_id", name),
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": subscribed(*topics)}],
            **more,
        }
        answer = {
            "error_code": 0,
            "generation_id": generation,
            "protocol_name": asked["protocols"][0]["name"],
            "leader": leader,
            "member_id": name,
            "members": [
                {
                    "member_id": each,
                    "group_instance_id": None,
                    "metadata": asked["protocols"][0]["metadata"],
                }
                for each in members
            ],
        }
        self.ask(name, at, "JoinGroup", 8, asked, answer, takes)

    def beat(self, name: str, at: Seconds, generation: int, error: int = 0) -> None:
        asked = {"generation_id": generation, "member_id": name}
        self.ask(name, at, "Heartbeat", 4, asked, {"error_code": error}, 0.01)

    def leave(self, name: str, at: Seconds, reason: str = "") -> None:
        asked = {"members": [{"member_id": name, "group_instance_id": None, "reason": reason}]}
        answer = {"error_code": 0, "members": []}
        self.ask(name, at, "LeaveGroup", 5, asked, answer, 0.01)

    def epoch(self, name: str, at: Seconds, before: int, after: int, **more: Any) -> None:
        given = more.pop("given", None)
        asked = {"member_id": name, "member_epoch": before, **more}
        answer = {
            "error_code": 0 if after or before < 0 else 110,
            "member_id": name,
            "member_epoch": after,
            "assignment": given,
        }
        self.ask(name, at, "ConsumerGroupHeartbeat", 1, asked, answer, 0.01)

    def groups(self) -> Groups:
        found, context = Groups(), Context()
        events = [event for wire in self.wires.values() for event in wire.events]
        for exchange in told(events, context):
            found.add(ExchangeBatch.of(row_of(exchange, context.names), exchange))
        return found

    def causes(self) -> list[tuple[int, str]]:
        return [(each["generation"], each["cause"]) for each in self.groups().rebalances("g")]
