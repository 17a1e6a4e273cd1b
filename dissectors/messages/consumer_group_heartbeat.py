"""ConsumerGroupHeartbeat (api key 68)."""

from kafkascope.dissectors.messages.common_structs import TOPIC_PARTITIONS
from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Bytes,
    Int8,
    Int16,
    Int32,
    String,
    Struct,
    request,
    response,
    variant,
)

MEMBER = (
    String("group_id", "0+", entity="groupId"),
    String("member_id", "0+", volatile=True, subject="memberId"),
    Int32("member_epoch", "0+", enum="ConsumerGroupMemberEpoch", volatile=True),
    String("instance_id", "0+", nullable="0+", default=None, subject="memberId"),
    String("rack_id", "0+", nullable="0+", default=None, subject="rack"),
    Int32("rebalance_timeout_ms", "0+", default=-1),
    Array("subscribed_topic_names", "0+", nullable="0+", default=None, entity="topicName").of(
        String
    ),
)

CONSUMER_GROUP_HEARTBEAT_REQUEST = (
    request("ConsumerGroupHeartbeat")
    .of(
        *MEMBER,
        String("subscribed_topic_regex", "1+", nullable="1+", default=None, subject="topicName"),
        String("server_assignor", "0+", nullable="0+", default=None, word="Assignor"),
        Array("topic_partitions", "0+", nullable="0+", default=None).of(*TOPIC_PARTITIONS),
    )
    .but(
        variant(0, releases="3.5.0-3.6.2", flexible=True).of(
            *MEMBER,
            String(
                "subscribed_topic_regex", "0+", nullable="0+", default=None, subject="topicName"
            ),
            String("server_assignor", "0+", nullable="0+", default=None, word="Assignor"),
            Array("client_assignors", "0+", nullable="0+", default=None).of(
                String("name", "0+", word="Assignor"),
                Int16("minimum_version", "0+"),
                Int16("maximum_version", "0+"),
                Int8("reason", "0+"),
                Int16("metadata_version", "0+"),
                Bytes("metadata_bytes", "0+", subject="freeText"),
            ),
            Array("topic_partitions", "0+", nullable="0+", default=None).of(*TOPIC_PARTITIONS),
        ),
    )
)

RESULT = (
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    String("member_id", "0+", nullable="0+", default=None, volatile=True, subject="memberId"),
    Int32("member_epoch", "0+", enum="ConsumerGroupMemberEpoch", volatile=True),
)

CONSUMER_GROUP_HEARTBEAT_RESPONSE = (
    response("ConsumerGroupHeartbeat")
    .of(
        *RESULT,
        Int32("heartbeat_interval_ms", "0+"),
        Struct("assignment", "0+", nullable="0+", default=None).of(
            Array("topic_partitions", "0+").of(*TOPIC_PARTITIONS),
        ),
    )
    .but(
        variant(0, releases="3.5.0-3.6.2", flexible=True).of(
            *RESULT,
            Bool("should_compute_assignment", "0+"),
            Int32("heartbeat_interval_ms", "0+"),
            Struct("assignment", "0+", nullable="0+", default=None).of(
                Int8("error", "0+"),
                Array("assigned_topic_partitions", "0+").of(*TOPIC_PARTITIONS),
                Array("pending_topic_partitions", "0+").of(*TOPIC_PARTITIONS),
                Int16("metadata_version", "0+"),
                Bytes("metadata_bytes", "0+", subject="freeText"),
            ),
        ),
    )
)
