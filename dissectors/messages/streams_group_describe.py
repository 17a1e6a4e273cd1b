"""StreamsGroupDescribe (api key 89)."""

from kafkascope.dissectors.messages.common_structs import (
    CLIENT_TAG,
    DESCRIBED_GROUP,
    STREAMS_ENDPOINT,
    STREAMS_TOPIC,
    TASK_IDS,
    TASK_OFFSET,
)
from kafkascope.dissectors.schema import Array, Bool, Int8, Int32, String, Struct, request, response

STREAMS_GROUP_DESCRIBE_REQUEST = request("StreamsGroupDescribe").of(
    Array("group_ids", "0+", entity="groupId").of(String),
    Bool("include_authorized_operations", "0+"),
    Bool("include_topology_description", "1+", default=False),
)

ASSIGNMENT = (
    Array("active_tasks", "0+").of(*TASK_IDS),
    Array("standby_tasks", "0+").of(*TASK_IDS),
    Array("warmup_tasks", "0+").of(*TASK_IDS),
)

TOPOLOGY_DESCRIPTION_NODE = (
    String("name", "1+", subject="nodeName"),
    Int8("node_type", "1+", enum="StreamsTopologyNodeType"),
    Array("source_topics", "1+", entity="topicName").of(String),
    String("sink_topic", "1+", nullable="1+", default=None, entity="topicName"),
    Array("stores", "1+", subject="storeName").of(String),
    Array("successors", "1+", subject="nodeName").of(String),
)

TOPOLOGY_DESCRIPTION_GLOBAL_STORE = (
    Struct("source", "1+").of(*TOPOLOGY_DESCRIPTION_NODE),
    Struct("processor", "1+").of(*TOPOLOGY_DESCRIPTION_NODE),
)

TOPOLOGY_DESCRIPTION_SUBTOPOLOGY = (
    String("subtopology_id", "1+", subject="subtopologyId"),
    Array("nodes", "1+").of(*TOPOLOGY_DESCRIPTION_NODE),
)

TOPOLOGY_DESCRIPTION = (
    Array("subtopologies", "1+").of(*TOPOLOGY_DESCRIPTION_SUBTOPOLOGY),
    Array("global_stores", "1+").of(*TOPOLOGY_DESCRIPTION_GLOBAL_STORE),
)

STREAMS_GROUP_DESCRIBE_RESPONSE = response("StreamsGroupDescribe").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("groups", "0+").of(
        *DESCRIBED_GROUP,
        Struct("topology", "0+", nullable="0+", default=None).of(
            Int32("epoch", "0+"),
            Array("subtopologies", "0+", nullable="0+", default=None).of(
                String("subtopology_id", "0+", subject="subtopologyId"),
                Array("source_topics", "0+", entity="topicName").of(String),
                Array("repartition_sink_topics", "0+", entity="topicName").of(String),
                Array("state_changelog_topics", "0+").of(*STREAMS_TOPIC),
                Array("repartition_source_topics", "0+").of(*STREAMS_TOPIC),
            ),
        ),
        Array("members", "0+").of(
            String("member_id", "0+", volatile=True, subject="memberId"),
            Int32("member_epoch", "0+", volatile=True),
            String("instance_id", "0+", nullable="0+", default=None, subject="memberId"),
            String("rack_id", "0+", nullable="0+", default=None, subject="rack"),
            String("client_id", "0+", subject="clientId"),
            String("client_host", "0+", subject="address"),
            Int32("topology_epoch", "0+"),
            String("process_id", "0+", subject="memberId"),
            Struct("user_endpoint", "0+", nullable="0+", default=None).of(*STREAMS_ENDPOINT),
            Array("client_tags", "0+").of(*CLIENT_TAG),
            Array("task_offsets", "0+").of(*TASK_OFFSET),
            Array("task_end_offsets", "0+").of(*TASK_OFFSET),
            Struct("assignment", "0+").of(*ASSIGNMENT),
            Struct("target_assignment", "0+").of(*ASSIGNMENT),
            Bool("is_classic", "0+"),
        ),
        Int32("authorized_operations", "0+", default=-2147483648, enum="AuthorizedOperations"),
        Struct("topology_description", "1+", nullable="1+", default=None).of(*TOPOLOGY_DESCRIPTION),
        Int8(
            "topology_description_status", "1+", default=0, enum="StreamsTopologyDescriptionStatus"
        ),
        String("assignor_name", "1+", nullable="1+", default=None, word="Assignor"),
    ),
)
