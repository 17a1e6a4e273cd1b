"""DescribeTopicPartitions (api key 75)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    String,
    Struct,
    Uuid,
    request,
    response,
)

DESCRIBE_TOPIC_PARTITIONS_REQUEST = request("DescribeTopicPartitions").of(
    Array("topics", "0+").of(String("name", "0+", entity="topicName")),
    Int32("response_partition_limit", "0+", default=2000),
    Struct("cursor", "0+", nullable="0+", default=None).of(
        String("topic_name", "0+", entity="topicName"),
        Int32("partition_index", "0+"),
    ),
)

DESCRIBE_TOPIC_PARTITIONS_RESPONSE = response("DescribeTopicPartitions").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("topics", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("name", "0+", nullable="0+", entity="topicName", map_key=True),
        Uuid("topic_id", "0+", volatile=True),
        Bool("is_internal", "0+", default=False),
        Array("partitions", "0+").of(
            Int16("error_code", "0+", enum="ErrorCode"),
            Int32("partition_index", "0+"),
            Int32("leader_id", "0+", entity="brokerId", enum="PartitionLeader"),
            Int32("leader_epoch", "0+", default=-1, volatile=True),
            Array("replica_nodes", "0+", entity="brokerId").of(Int32),
            Array("isr_nodes", "0+", entity="brokerId").of(Int32),
            Array(
                "eligible_leader_replicas", "0+", nullable="0+", default=None, entity="brokerId"
            ).of(Int32),
            Array("last_known_elr", "0+", nullable="0+", default=None, entity="brokerId").of(Int32),
            Array("offline_replicas", "0+", entity="brokerId").of(Int32),
        ),
        Int32(
            "topic_authorized_operations", "0+", default=-2147483648, enum="AuthorizedOperations"
        ),
    ),
    Struct("next_cursor", "0+", nullable="0+", default=None).of(
        String("topic_name", "0+", entity="topicName"),
        Int32("partition_index", "0+"),
    ),
)
