"""Records of `__consumer_offsets`: consumer groups (KIP-848)."""

from kafkascope.dissectors.messages.common_structs import (
    GROUP_KEY,
    MEMBER_KEY,
    TARGET_ASSIGNMENT_METADATA,
    TOPIC_METADATA,
    TOPIC_PARTITIONS,
)
from kafkascope.dissectors.schema import (
    Array,
    Bytes,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Struct,
    Uuid,
    coordinator_key,
    coordinator_value,
    variant,
)

CONSUMER_GROUP_METADATA_KEY = coordinator_key("ConsumerGroupMetadataKey", key=3, versions="0").of(
    *GROUP_KEY
)

CONSUMER_GROUP_METADATA_VALUE = coordinator_value(
    "ConsumerGroupMetadataValue", key=3, versions="0", flexible="0+"
).of(
    Int32("epoch", "0+", volatile=True),
    Int64("metadata_hash", "0+", tag=0, default=0, volatile=True),
)

CONSUMER_GROUP_PARTITION_METADATA_KEY = coordinator_key(
    "ConsumerGroupPartitionMetadataKey", key=4, versions="0"
).of(*GROUP_KEY)

CONSUMER_GROUP_PARTITION_METADATA_VALUE = (
    coordinator_value("ConsumerGroupPartitionMetadataValue", key=4, versions="0", flexible="0+")
    .of(Array("topics", "0+").of(*TOPIC_METADATA))
    .but(
        variant(0, releases="3.6.0-3.7.1", flexible=True).of(
            Int32("epoch", "0+", volatile=True),
            Array("topics", "0+").of(*TOPIC_METADATA),
        ),
        variant(0, releases="3.5.0-3.5.2", flexible=True).of(
            Int32("epoch", "0+", volatile=True),
            Array("topics", "0+").of(
                Uuid("topic_id", "0+", volatile=True),
                Int32("num_partitions", "0+"),
            ),
        ),
    )
)

CONSUMER_GROUP_MEMBER_METADATA_KEY = coordinator_key(
    "ConsumerGroupMemberMetadataKey", key=5, versions="0"
).of(*MEMBER_KEY)

MEMBER_IDENTITY = (
    String("instance_id", "0+", nullable="0+", subject="memberId"),
    String("rack_id", "0+", nullable="0+", subject="rack"),
    String("client_id", "0+", subject="clientId"),
    String("client_host", "0+", subject="address"),
    Array("subscribed_topic_names", "0+", subject="topicName").of(String),
    String("subscribed_topic_regex", "0+", nullable="0+", subject="topicName"),
)

CLIENT_ASSIGNOR = (
    String("name", "0+", word="Assignor"),
    Int16("minimum_version", "0+"),
    Int16("maximum_version", "0+"),
    Int8("reason", "0+"),
    Int16("version", "0+"),
    Bytes("metadata", "0+", subject="freeText"),
)

CONSUMER_GROUP_MEMBER_METADATA_VALUE = (
    coordinator_value("ConsumerGroupMemberMetadataValue", key=5, versions="0", flexible="0+")
    .of(
        *MEMBER_IDENTITY,
        Int32("rebalance_timeout_ms", "0+", default=-1),
        String("server_assignor", "0+", nullable="0+", word="Assignor"),
        Struct("classic_member_metadata", "0+", nullable="0+", tag=0).of(
            Int32("session_timeout_ms", "0+"),
            Array("supported_protocols", "0+").of(
                String("name", "0+", word="Assignor"),
                Bytes("metadata", "0+", subject="freeText"),
            ),
        ),
    )
    .but(
        variant(0, releases="3.6.0-3.7.1", flexible=True).of(
            *MEMBER_IDENTITY,
            Int32("rebalance_timeout_ms", "0+", default=-1),
            String("server_assignor", "0+", nullable="0+", word="Assignor"),
            Array("assignors", "0+").of(*CLIENT_ASSIGNOR),
        ),
        variant(0, releases="3.5.0-3.5.2", flexible=True).of(
            Int32("group_epoch", "0+", volatile=True),
            *MEMBER_IDENTITY,
            Array("assignors", "0+").of(*CLIENT_ASSIGNOR),
        ),
    )
)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_KEY = coordinator_key(
    "ConsumerGroupTargetAssignmentMetadataKey", key=6, versions="0"
).of(*GROUP_KEY)

CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE = coordinator_value(
    "ConsumerGroupTargetAssignmentMetadataValue", key=6, versions="0", flexible="0+"
).of(*TARGET_ASSIGNMENT_METADATA)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_KEY = coordinator_key(
    "ConsumerGroupTargetAssignmentMemberKey", key=7, versions="0"
).of(*MEMBER_KEY)

CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_VALUE = (
    coordinator_value(
        "ConsumerGroupTargetAssignmentMemberValue", key=7, versions="0", flexible="0+"
    )
    .of(Array("topic_partitions", "0+").of(*TOPIC_PARTITIONS))
    .but(
        variant(0, releases="3.5.0-3.7.1", flexible=True).of(
            Int8("error", "0+"),
            Array("topic_partitions", "0+").of(*TOPIC_PARTITIONS),
            Int16("metadata_version", "0+"),
            Bytes("metadata_bytes", "0+", subject="freeText"),
        ),
    )
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_KEY = coordinator_key(
    "ConsumerGroupCurrentMemberAssignmentKey", key=8, versions="0"
).of(*MEMBER_KEY)

ASSIGNED_PARTITIONS = (
    *TOPIC_PARTITIONS,
    Array("assignment_epochs", "0+", nullable="0+", tag=0, volatile=True).of(Int32),
)

CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE = (
    coordinator_value(
        "ConsumerGroupCurrentMemberAssignmentValue", key=8, versions="0", flexible="0+"
    )
    .of(
        Int32("member_epoch", "0+", volatile=True),
        Int32("previous_member_epoch", "0+", volatile=True),
        Int8("state", "0+", enum="ConsumerGroupMemberState"),
        Array("assigned_partitions", "0+").of(*ASSIGNED_PARTITIONS),
        Array("partitions_pending_revocation", "0+").of(*ASSIGNED_PARTITIONS),
    )
    .but(
        variant(0, releases="3.6.0-3.7.1", flexible=True).of(
            Int32("member_epoch", "0+", volatile=True),
            Int32("previous_member_epoch", "0+", volatile=True),
            Int32("target_member_epoch", "0+", volatile=True),
            Array("assigned_partitions", "0+").of(*TOPIC_PARTITIONS),
            Array("partitions_pending_revocation", "0+").of(*TOPIC_PARTITIONS),
            Array("partitions_pending_assignment", "0+").of(*TOPIC_PARTITIONS),
            Int8("error", "0+"),
            Int16("metadata_version", "0+"),
            Bytes("metadata_bytes", "0+", subject="freeText"),
        ),
        variant(0, releases="3.5.0-3.5.2", flexible=True).of(
            Int32("member_epoch", "0+", volatile=True),
            Int8("error", "0+"),
            Array("topic_partitions", "0+").of(*TOPIC_PARTITIONS),
            Int16("metadata_version", "0+"),
            Bytes("metadata_bytes", "0+", subject="freeText"),
        ),
    )
)

CONSUMER_GROUP_REGULAR_EXPRESSION_KEY = coordinator_key(
    "ConsumerGroupRegularExpressionKey", key=16, versions="0"
).of(
    *GROUP_KEY,
    String("regular_expression", "0+", subject="topicName"),
)

CONSUMER_GROUP_REGULAR_EXPRESSION_VALUE = coordinator_value(
    "ConsumerGroupRegularExpressionValue", key=16, versions="0", flexible="0+"
).of(
    Array("topics", "0+", subject="topicName").of(String),
    Int64("version", "0+"),
    Int64("timestamp", "0+", unit="time_ms", volatile=True),
)
