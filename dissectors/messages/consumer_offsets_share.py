"""Records of `__consumer_offsets`: share groups (KIP-932)."""

from kafkascope.dissectors.messages.common_structs import (
    GROUP_KEY,
    MEMBER_KEY,
    TARGET_ASSIGNMENT_METADATA,
    TOPIC_METADATA,
    TOPIC_PARTITIONS,
)
from kafkascope.dissectors.schema import (
    Array,
    Int8,
    Int32,
    Int64,
    String,
    Uuid,
    coordinator_key,
    coordinator_value,
    variant,
)

SHARE_GROUP_PARTITION_METADATA_KEY = coordinator_key(
    "ShareGroupPartitionMetadataKey", key=9, versions="0"
).of(*GROUP_KEY)

SHARE_GROUP_TOPIC = (
    Uuid("topic_id", "0+", volatile=True),
    String("topic_name", "0+", subject="topicName"),
)

SHARE_GROUP_PARTITIONS = (
    *SHARE_GROUP_TOPIC,
    Array("partitions", "0+").of(Int32),
)

SHARE_GROUP_PARTITION_METADATA_VALUE = (
    coordinator_value("ShareGroupPartitionMetadataValue", key=9, versions="0", flexible="0+")
    .of(Array("topics", "0+").of(*TOPIC_METADATA))
    .but(
        variant(0, releases="3.9.0", flexible=True).of(
            Array("initialized_topics", "0+").of(*SHARE_GROUP_PARTITIONS),
            Array("deleting_topics", "0+").of(*SHARE_GROUP_TOPIC),
        ),
    )
)

SHARE_GROUP_MEMBER_METADATA_KEY = coordinator_key(
    "ShareGroupMemberMetadataKey", key=10, versions="0"
).of(*MEMBER_KEY)

SHARE_GROUP_MEMBER_METADATA_VALUE = coordinator_value(
    "ShareGroupMemberMetadataValue", key=10, versions="0", flexible="0+"
).of(
    String("rack_id", "0+", nullable="0+", subject="rack"),
    String("client_id", "0+", subject="clientId"),
    String("client_host", "0+", subject="address"),
    Array("subscribed_topic_names", "0+", subject="topicName").of(String),
)

SHARE_GROUP_METADATA_KEY = coordinator_key("ShareGroupMetadataKey", key=11, versions="0").of(
    *GROUP_KEY
)

SHARE_GROUP_METADATA_VALUE = (
    coordinator_value("ShareGroupMetadataValue", key=11, versions="0", flexible="0+")
    .of(
        Int32("epoch", "0+", volatile=True),
        Int64("metadata_hash", "0+", volatile=True),
    )
    .but(variant(0, releases="3.9.0-4.0.1", flexible=True).of(Int32("epoch", "0+", volatile=True)))
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = coordinator_key(
    "ShareGroupTargetAssignmentMetadataKey", key=12, versions="0"
).of(*GROUP_KEY)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = coordinator_value(
    "ShareGroupTargetAssignmentMetadataValue", key=12, versions="0", flexible="0+"
).of(*TARGET_ASSIGNMENT_METADATA)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = coordinator_key(
    "ShareGroupTargetAssignmentMemberKey", key=13, versions="0"
).of(*MEMBER_KEY)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = coordinator_value(
    "ShareGroupTargetAssignmentMemberValue", key=13, versions="0", flexible="0+"
).of(Array("topic_partitions", "0+").of(*TOPIC_PARTITIONS))

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = coordinator_key(
    "ShareGroupCurrentMemberAssignmentKey", key=14, versions="0"
).of(*MEMBER_KEY)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = coordinator_value(
    "ShareGroupCurrentMemberAssignmentValue", key=14, versions="0", flexible="0+"
).of(
    Int32("member_epoch", "0+", volatile=True),
    Int32("previous_member_epoch", "0+", volatile=True),
    Int8("state", "0+", enum="ConsumerGroupMemberState"),
    Array("assigned_partitions", "0+").of(*TOPIC_PARTITIONS),
)

SHARE_GROUP_STATE_PARTITION_METADATA_KEY = coordinator_key(
    "ShareGroupStatePartitionMetadataKey", key=15, versions="0"
).of(*GROUP_KEY)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = (
    coordinator_value("ShareGroupStatePartitionMetadataValue", key=15, versions="0", flexible="0+")
    .of(
        Array("initializing_topics", "0+").of(*SHARE_GROUP_PARTITIONS),
        Array("initialized_topics", "0+").of(*SHARE_GROUP_PARTITIONS),
        Array("deleting_topics", "0+").of(*SHARE_GROUP_TOPIC),
    )
    .but(
        variant(0, releases="4.0.0-4.0.1", flexible=True).of(
            Array("initialized_topics", "0+").of(*SHARE_GROUP_PARTITIONS),
            Array("deleting_topics", "0+").of(*SHARE_GROUP_TOPIC),
        ),
    )
)
