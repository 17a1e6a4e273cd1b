"""AlterPartition (api key 56)."""

from kafkascope.dissectors.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    request,
    response,
)

ALTER_PARTITION_REQUEST = request("AlterPartition").of(
    Int32("broker_id", "0+", entity="brokerId"),
    Int64("broker_epoch", "0+", default=-1, volatile=True),
    Array("topics", "0+").of(
        String("topic_name", "0-1", entity="topicName"),
        Uuid("topic_id", "2+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int32("leader_epoch", "0+", volatile=True),
            Array("new_isr", "0-2", entity="brokerId").of(Int32),
            Array("new_isr_with_epochs", "3+").of(
                Int32("broker_id", "3+", entity="brokerId"),
                Int64("broker_epoch", "3+", default=-1, volatile=True),
            ),
            Int8("leader_recovery_state", "1+", default=0, enum="LeaderRecoveryState"),
            Int32("partition_epoch", "0+", volatile=True),
        ),
    ),
)

ALTER_PARTITION_RESPONSE = response("AlterPartition").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("topics", "0+").of(
        String("topic_name", "0-1", entity="topicName"),
        Uuid("topic_id", "2+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            Int32("leader_id", "0+", entity="brokerId"),
            Int32("leader_epoch", "0+", volatile=True),
            Array("isr", "0+", entity="brokerId").of(Int32),
            Int8("leader_recovery_state", "1+", default=0, enum="LeaderRecoveryState"),
            Int32("partition_epoch", "0+", volatile=True),
        ),
    ),
)
