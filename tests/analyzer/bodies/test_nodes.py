"""Addresses of nodes: what messages pair, and what stays unknown."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkascope.analyzer.bodies import nodes
from kafkascope.analyzer.bodies.limits import LIMITS
from kafkascope.analyzer.bodies.nodes import NodeAddresses, teaches
from kafkascope.analyzer.conversation.context import Context
from kafkascope.analyzer.conversation.conversations import Conversations
from kafkascope.analyzer.render.values import PLAIN, Labels
from kafkascope.analyzer.topics import TopicNames
from kafkascope.dissectors import schema
from kafkascope.dissectors.registry import APIS, example, layout_of, message
from kafkascope.dissectors.values import Uuid
from tests.kit.wire import Wire, full_body, request, response
from tests.strategies import bodies

BROKER = {"node_id": 7, "host": "b7", "port": 9092, "rack": None}


def test_metadata_tells_addresses() -> None:
    context = Context()
    conversations = Conversations(context)
    wire = Wire().client(request("Metadata", 1, 1))
    for event in wire.broker(response("Metadata", 1, 1, brokers=[BROKER])).events:
        conversations.feed(event)
    assert context.nodes.get(7) == "b7:9092"
    assert context.nodes.get(8) is None


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_coordinators_have_addresses(version: int) -> None:
    body: Any = {"node_id": 3, "host": "::1", "port": 9093}
    if version > 3:
        nobody = {"key": "h", "error_code": 15, "node_id": -1, "port": -1}
        body = {"coordinators": [{"key": "g", **body}, nobody]}
    body = full_body("FindCoordinatorResponse", version, body)
    found = NodeAddresses()
    nodes.learn(layout_of("FindCoordinatorResponse", version), body, found)
    assert (found.get(3), found.get(-1), len(found)) == ("[::1]:9093", None, 1)


def test_an_address_for_clients_is_not_replaced_by_that_of_some_listener() -> None:
    found = NodeAddresses()
    body = example("DescribeQuorumResponse", 2)
    listener = {"name": "CONTROLLER", "host": "inside", "port": 9093}
    body["nodes"] = [{"node_id": 7, "listeners": [listener]}]
    layout = layout_of("DescribeQuorumResponse", 2)
    nodes.learn(layout, body, found)
    assert found.get(7) == "inside:9093"
    metadata = example("MetadataResponse", 1) | {"brokers": [BROKER]}
    nodes.learn(layout_of("MetadataResponse", 1), metadata, found)
    nodes.learn(layout, body, found)
    assert found.get(7) == "b7:9092"


def test_messages_without_addresses_are_not_walked() -> None:
    assert not teaches(layout_of("HeartbeatResponse", 4))
    assert not teaches(layout_of("StreamsGroupHeartbeatResponse", 0))
    assert teaches(layout_of("FetchResponse", 16))


def test_what_is_remembered_is_bounded() -> None:
    found = NodeAddresses(LIMITS._replace(nodes=2))
    for node in (1, 2, 3):
        found.learn(node, "b", node)
    found.learn(1, "c", 9)
    assert [found.get(node) for node in (1, 2, 3)] == ["c:9", "b:2", None]


def test_a_host_that_is_too_long_for_a_name_is_no_address() -> None:
    """There is room for 32 KB on the wire: 4,000 of them took `spark` 880 MB."""
    found = NodeAddresses()
    found.learn(1, "b" * 255, 9)
    found.learn(2, "b" * 256, 9)
    assert [found.get(node) for node in (1, 2)] == ["b" * 255 + ":9", None]


TEACHING = [
    (f"{api.name}{side}", version)
    for api in APIS.values()
    for side in ("Request", "Response")
    for version in (api.versions.low, api.versions.high)
    if version in message(f"{api.name}{side}").versions
    and teaches(layout_of(f"{api.name}{side}", version))
]


@pytest.mark.parametrize(("name", "version"), TEACHING)
@given(data=st.data())
@settings(max_examples=8)
def test_every_body_is_taken(name: str, version: int, data: st.DataObject) -> None:
    layout = layout_of(name, version)
    nodes.learn(layout, data.draw(bodies(layout)), NodeAddresses())


def test_labels_join_ids_with_what_is_known() -> None:
    names, addresses = TopicNames(), NodeAddresses()
    topic = Uuid(bytes(range(16)))
    names.learn(topic, "orders")
    addresses.learn(1, "b1", 9092)
    labels = Labels(names, addresses)
    leader = schema.Int32("leader_id", "0+", entity="brokerId", enum="PartitionLeader")
    assert labels.of(leader, 1, {}) == "b1:9092"
    assert labels.of(leader, -1, {}) == "NO_LEADER"
    assert labels.of(leader, 2, {}) == ""
    assert labels.of(schema.Uuid("topic_id", "0+"), topic, {}) == "orders"
    assert labels.of(schema.Uuid("topic_id", "0+"), Uuid(16), {}) == ""
    assert labels.of(schema.Array("isr", "0+", entity="brokerId"), [1], {}) == ""
    assert PLAIN.of(leader, 1, {}) == ""
