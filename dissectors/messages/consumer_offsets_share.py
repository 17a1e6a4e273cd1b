"""Records of `__consumer_offsets`: share groups (KIP-932)."""

from dissectors.schema import (
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
).of(
    String("group_id", "0+"),
)

SHARE_GROUP_PARTITION_METADATA_VALUE = (
    coordinator_value("ShareGroupPartitionMetadataValue", key=9, versions="0", flexible="0+")
    .of(
        Array("topics", "0+").of(
            Uuid("topic_id", "0+"),
            String("topic_name", "0+"),
            Int32("num_partitions", "0+"),
            Array("partition_metadata", "0+").of(
                Int32("partition", "0+"),
                Array("racks", "0+").of(String),
            ),
        ),
    )
    .but(
        variant(0, releases="3.9.0", flexible=True).of(
            Array("initialized_topics", "0+").of(
                Uuid("topic_id", "0+"),
                String("topic_name", "0+"),
                Array("partitions", "0+").of(Int32),
            ),
            Array("deleting_topics", "0+").of(
                Uuid("topic_id", "0+"),
                String("topic_name", "0+"),
            ),
        ),
    )
)

SHARE_GROUP_MEMBER_METADATA_KEY = coordinator_key(
    "ShareGroupMemberMetadataKey", key=10, versions="0"
).of(
    String("group_id", "0+"),
    String("member_id", "0+"),
)

SHARE_GROUP_MEMBER_METADATA_VALUE = coordinator_value(
    "ShareGroupMemberMetadataValue", key=10, versions="0", flexible="0+"
).of(
    String("rack_id", "0+", nullable="0+"),
    String("client_id", "0+"),
    String("client_host", "0+"),
    Array("subscribed_topic_names", "0+").of(String),
)

SHARE_GROUP_METADATA_KEY = coordinator_key("ShareGroupMetadataKey", key=11, versions="0").of(
    String("group_id", "0+"),
)

SHARE_GROUP_METADATA_VALUE = (
    coordinator_value("ShareGroupMetadataValue", key=11, versions="0", flexible="0+")
    .of(
        Int32("epoch", "0+"),
        Int64("metadata_hash", "0+"),
    )
    .but(
        variant(0, releases="3.9.0-4.0.1", flexible=True).of(
            Int32("epoch", "0+"),
        ),
    )
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = coordinator_key(
    "ShareGroupTargetAssignmentMetadataKey", key=12, versions="0"
).of(
    String("group_id", "0+"),
)

SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = coordinator_value(
    "ShareGroupTargetAssignmentMetadataValue", key=12, versions="0", flexible="0+"
).of(
    Int32("assignment_epoch", "0+"),
    Int64("assignment_timestamp", "0+", tag=0, default=0),
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = coordinator_key(
    "ShareGroupTargetAssignmentMemberKey", key=13, versions="0"
).of(
    String("group_id", "0+"),
    String("member_id", "0+"),
)

SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = coordinator_value(
    "ShareGroupTargetAssignmentMemberValue", key=13, versions="0", flexible="0+"
).of(
    Array("topic_partitions", "0+").of(
        Uuid("topic_id", "0+"),
        Array("partitions", "0+").of(Int32),
    ),
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = coordinator_key(
    "ShareGroupCurrentMemberAssignmentKey", key=14, versions="0"
).of(
    String("group_id", "0+"),
    String("member_id", "0+"),
)

TOPIC_PARTITIONS = (
    Uuid("topic_id", "0+"),
    Array("partitions", "0+").of(Int32),
)

SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = coordinator_value(
    "ShareGroupCurrentMemberAssignmentValue", key=14, versions="0", flexible="0+"
).of(
    Int32("member_epoch", "0+"),
    Int32("previous_member_epoch", "0+"),
    Int8("state", "0+"),
    Array("assigned_partitions", "0+").of(*TOPIC_PARTITIONS),
)

SHARE_GROUP_STATE_PARTITION_METADATA_KEY = coordinator_key(
    "ShareGroupStatePartitionMetadataKey", key=15, versions="0"
).of(
    String("group_id", "0+"),
)

TOPIC_INFO = (
    Uuid("topic_id", "0+"),
    String("topic_name", "0+"),
)

TOPIC_PARTITIONS_INFO = (
    Uuid("topic_id", "0+"),
    String("topic_name", "0+"),
    Array("partitions", "0+").of(Int32),
)

SHARE_GROUP_STATE_PARTITION_METADATA_VALUE = (
    coordinator_value("ShareGroupStatePartitionMetadataValue", key=15, versions="0", flexible="0+")
    .of(
        Array("initializing_topics", "0+").of(*TOPIC_PARTITIONS_INFO),
        Array("initialized_topics", "0+").of(*TOPIC_PARTITIONS_INFO),
        Array("deleting_topics", "0+").of(*TOPIC_INFO),
    )
    .but(
        variant(0, releases="4.0.0-4.0.1", flexible=True).of(
            Array("initialized_topics", "0+").of(
                Uuid("topic_id", "0+"),
                String("topic_name", "0+"),
                Array("partitions", "0+").of(Int32),
            ),
            Array("deleting_topics", "0+").of(
                Uuid("topic_id", "0+"),
                String("topic_name", "0+"),
            ),
        ),
    )
)
