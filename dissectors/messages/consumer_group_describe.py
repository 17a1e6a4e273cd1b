"""ConsumerGroupDescribe (api key 69)."""

from kafkascope.dissectors.messages.common_structs import DESCRIBED_GROUP, NAMED_TOPIC_PARTITIONS
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Bytes,
    Int8,
    Int32,
    String,
    Struct,
    request,
    response,
    variant,
)

CONSUMER_GROUP_DESCRIBE_REQUEST = request("ConsumerGroupDescribe").of(
    Array("group_ids", "0+", entity="groupId").of(String),
    Bool("include_authorized_operations", "0+"),
)

ASSIGNMENT = (Array("topic_partitions", "0+").of(*NAMED_TOPIC_PARTITIONS),)

MEMBER = (
    String("member_id", "0+", volatile=True, subject="memberId"),
    String("instance_id", "0+", nullable="0+", default=None, subject="memberId"),
    String("rack_id", "0+", nullable="0+", default=None, subject="rack"),
    Int32("member_epoch", "0+", volatile=True),
    String("client_id", "0+", subject="clientId"),
    String("client_host", "0+", subject="address"),
    Array("subscribed_topic_names", "0+", entity="topicName").of(String),
    String("subscribed_topic_regex", "0+", nullable="0+", default=None, subject="topicName"),
)

ASSIGNMENT_OF_3_7 = (
    Array("topic_partitions", "0+").of(*NAMED_TOPIC_PARTITIONS),
    Int8("error", "0+"),
    Int32("metadata_version", "0+"),
    Bytes("metadata_bytes", "0+", subject="freeText"),
)

CONSUMER_GROUP_DESCRIBE_RESPONSE = (
    response("ConsumerGroupDescribe")
    .of(
        Int32("throttle_time_ms", "0+", volatile=True),
        Array("groups", "0+").of(
            *DESCRIBED_GROUP,
            String("assignor_name", "0+", word="Assignor"),
            Array("members", "0+").of(
                *MEMBER,
                Struct("assignment", "0+").of(*ASSIGNMENT),
                Struct("target_assignment", "0+").of(*ASSIGNMENT),
                Int8("member_type", "1+", default=-1, enum="ConsumerGroupMemberType"),
            ),
            Int32("authorized_operations", "0+", default=-2147483648, enum="AuthorizedOperations"),
        ),
    )
    .but(
        variant(0, releases="3.7.0-3.7.1", flexible=True).of(
            Int32("throttle_time_ms", "0+", volatile=True),
            Array("groups", "0+").of(
                *DESCRIBED_GROUP,
                String("assignor_name", "0+", word="Assignor"),
                Array("members", "0+").of(
                    *MEMBER,
                    Struct("assignment", "0+").of(*ASSIGNMENT_OF_3_7),
                    Struct("target_assignment", "0+").of(*ASSIGNMENT_OF_3_7),
                ),
                Int32(
                    "authorized_operations", "0+", default=-2147483648, enum="AuthorizedOperations"
                ),
            ),
        ),
    )
)
