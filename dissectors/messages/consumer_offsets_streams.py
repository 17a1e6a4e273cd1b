"""Records of `__consumer_offsets`: streams groups (KIP-1071)."""

from kafkascope.dissectors.messages.common_structs import (
    CLIENT_TAG,
    COPARTITION_GROUP,
    GROUP_KEY,
    MEMBER_KEY,
    STREAMS_ENDPOINT,
    TARGET_ASSIGNMENT_METADATA,
    TASK_IDS,
    TOPIC_CONFIG,
)
from kafkascope.dissectors.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    coordinator_key,
    coordinator_value,
)

STREAMS_GROUP_METADATA_KEY = coordinator_key("StreamsGroupMetadataKey", key=17, versions="0").of(
    *GROUP_KEY
)

STREAMS_GROUP_METADATA_VALUE = coordinator_value(
    "StreamsGroupMetadataValue", key=17, versions="0", flexible="0+"
).of(
    Int32("epoch", "0+", volatile=True),
    Int64("metadata_hash", "0+", volatile=True),
    Int32("validated_topology_epoch", "0+", tag=0, default=-1),
    Array("last_assignment_configs", "0+", nullable="0+", tag=1).of(*TOPIC_CONFIG),
    Int32("stored_description_topology_epoch", "0+", tag=2, default=-1),
    Int32("failed_description_topology_epoch", "0+", tag=3, default=-1),
)

STREAMS_GROUP_MEMBER_METADATA_KEY = coordinator_key(
    "StreamsGroupMemberMetadataKey", key=19, versions="0"
).of(*MEMBER_KEY)

STREAMS_GROUP_MEMBER_METADATA_VALUE = coordinator_value(
    "StreamsGroupMemberMetadataValue", key=19, versions="0", flexible="0+"
).of(
    String("instance_id", "0+", nullable="0+", subject="memberId"),
    String("rack_id", "0+", nullable="0+", subject="rack"),
    String("client_id", "0+", subject="clientId"),
    String("client_host", "0+", subject="address"),
    Int32("rebalance_timeout_ms", "0+", default=-1),
    Int32("topology_epoch", "0+"),
    String("process_id", "0+", subject="memberId"),
    Struct("user_endpoint", "0+", nullable="0+", default=None).of(*STREAMS_ENDPOINT),
    Array("client_tags", "0+").of(*CLIENT_TAG),
)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = coordinator_key(
    "StreamsGroupTargetAssignmentMetadataKey", key=20, versions="0"
).of(*GROUP_KEY)

STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = coordinator_value(
    "StreamsGroupTargetAssignmentMetadataValue", key=20, versions="0", flexible="0+"
).of(*TARGET_ASSIGNMENT_METADATA)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = coordinator_key(
    "StreamsGroupTargetAssignmentMemberKey", key=21, versions="0"
).of(*MEMBER_KEY)

STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = coordinator_value(
    "StreamsGroupTargetAssignmentMemberValue", key=21, versions="0", flexible="0+"
).of(
    Array("active_tasks", "0+").of(*TASK_IDS),
    Array("standby_tasks", "0+").of(*TASK_IDS),
    Array("warmup_tasks", "0+").of(*TASK_IDS),
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = coordinator_key(
    "StreamsGroupCurrentMemberAssignmentKey", key=22, versions="0"
).of(*MEMBER_KEY)

ASSIGNED_TASKS = (
    *TASK_IDS,
    Array("assignment_epochs", "0+", nullable="0+", tag=0, volatile=True).of(Int32),
)

STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = coordinator_value(
    "StreamsGroupCurrentMemberAssignmentValue", key=22, versions="0", flexible="0+"
).of(
    Int32("member_epoch", "0+", volatile=True),
    Int32("previous_member_epoch", "0+", volatile=True),
    Int8("state", "0+", enum="StreamsGroupMemberState"),
    Array("active_tasks", "0+").of(*ASSIGNED_TASKS),
    Array("standby_tasks", "0+").of(*ASSIGNED_TASKS),
    Array("warmup_tasks", "0+").of(*ASSIGNED_TASKS),
    Array("active_tasks_pending_revocation", "0+").of(*ASSIGNED_TASKS),
    Array("standby_tasks_pending_revocation", "0+").of(*ASSIGNED_TASKS),
    Array("warmup_tasks_pending_revocation", "0+").of(*ASSIGNED_TASKS),
)

STREAMS_GROUP_TOPOLOGY_KEY = coordinator_key("StreamsGroupTopologyKey", key=23, versions="0").of(
    *GROUP_KEY
)

TOPIC_INFO = (
    String("name", "0+", subject="topicName"),
    Int32("partitions", "0+"),
    Int16("replication_factor", "0+"),
    Array("topic_configs", "0+").of(*TOPIC_CONFIG),
)

STREAMS_GROUP_TOPOLOGY_VALUE = coordinator_value(
    "StreamsGroupTopologyValue", key=23, versions="0", flexible="0+"
).of(
    Int32("epoch", "0+"),
    Array("subtopologies", "0+").of(
        String("subtopology_id", "0+", subject="subtopologyId"),
        Array("source_topics", "0+", subject="topicName").of(String),
        Array("source_topic_regex", "0+", subject="topicName").of(String),
        Array("state_changelog_topics", "0+").of(*TOPIC_INFO),
        Array("repartition_sink_topics", "0+", subject="topicName").of(String),
        Array("repartition_source_topics", "0+").of(*TOPIC_INFO),
        Array("copartition_groups", "0+").of(*COPARTITION_GROUP),
    ),
)
