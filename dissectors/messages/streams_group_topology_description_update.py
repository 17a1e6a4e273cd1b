"""StreamsGroupTopologyDescriptionUpdate (api key 93)."""

from kafkascope.dissectors.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    String,
    Struct,
    request,
    response,
)

TOPOLOGY_DESCRIPTION_NODE = (
    String("name", "0+", subject="nodeName"),
    Int8("node_type", "0+", enum="StreamsTopologyNodeType"),
    Array("source_topics", "0+", entity="topicName").of(String),
    String("sink_topic", "0+", nullable="0+", default=None, entity="topicName"),
    Array("stores", "0+", subject="storeName").of(String),
    Array("successors", "0+", subject="nodeName").of(String),
)

TOPOLOGY_DESCRIPTION_GLOBAL_STORE = (
    Struct("source", "0+").of(*TOPOLOGY_DESCRIPTION_NODE),
    Struct("processor", "0+").of(*TOPOLOGY_DESCRIPTION_NODE),
)

TOPOLOGY_DESCRIPTION_SUBTOPOLOGY = (
    String("subtopology_id", "0+", subject="subtopologyId"),
    Array("nodes", "0+").of(*TOPOLOGY_DESCRIPTION_NODE),
)

TOPOLOGY_DESCRIPTION = (
    Array("subtopologies", "0+").of(*TOPOLOGY_DESCRIPTION_SUBTOPOLOGY),
    Array("global_stores", "0+").of(*TOPOLOGY_DESCRIPTION_GLOBAL_STORE),
)

STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_REQUEST = request(
    "StreamsGroupTopologyDescriptionUpdate"
).of(
    String("group_id", "0+", entity="groupId"),
    String("member_id", "0+", volatile=True, subject="memberId"),
    Int32("topology_epoch", "0+"),
    Struct("topology_description", "0+").of(*TOPOLOGY_DESCRIPTION),
)

STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_RESPONSE = response(
    "StreamsGroupTopologyDescriptionUpdate"
).of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
)
