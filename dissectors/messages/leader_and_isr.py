"""LeaderAndIsr (api key 4)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    request,
    response,
)

LEADER_AND_ISR_PARTITION_STATE = (
    String("topic_name", "0-1", entity="topicName"),
    Int32("partition_index", "0+"),
    Int32("controller_epoch", "0+", volatile=True),
    Int32("leader", "0+", entity="brokerId", enum="PartitionLeader"),
    Int32("leader_epoch", "0+", volatile=True),
    Array("isr", "0+", entity="brokerId").of(Int32),
    Int32("partition_epoch", "0+", volatile=True),
    Array("replicas", "0+", entity="brokerId").of(Int32),
    Array("adding_replicas", "3+", entity="brokerId").of(Int32),
    Array("removing_replicas", "3+", entity="brokerId").of(Int32),
    Bool("is_new", "1+", default=False),
    Int8("leader_recovery_state", "6+", default=0, enum="LeaderRecoveryState"),
)

LEADER_AND_ISR_REQUEST = request("LeaderAndIsr").of(
    Int32("controller_id", "0+", entity="brokerId"),
    Bool("is_kraft_controller", "7+", default=False),
    Int32("controller_epoch", "0+", volatile=True),
    Int64("broker_epoch", "2+", default=-1, volatile=True),
    Int8("type", "5+", enum="UpdateMetadataType"),
    Array("ungrouped_partition_states", "0-1").of(*LEADER_AND_ISR_PARTITION_STATE),
    Array("topic_states", "2+").of(
        String("topic_name", "2+", entity="topicName"),
        Uuid("topic_id", "5+", volatile=True),
        Array("partition_states", "2+").of(*LEADER_AND_ISR_PARTITION_STATE),
    ),
    Array("live_leaders", "0+").of(
        Int32("broker_id", "0+", entity="brokerId"),
        String("host_name", "0+", subject="address"),
        Int32("port", "0+"),
    ),
)

LEADER_AND_ISR_PARTITION_ERROR = (
    String("topic_name", "0-4", entity="topicName"),
    Int32("partition_index", "0+"),
    Int16("error_code", "0+", enum="ErrorCode"),
)

LEADER_AND_ISR_RESPONSE = response("LeaderAndIsr").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("partition_errors", "0-4").of(*LEADER_AND_ISR_PARTITION_ERROR),
    Array("topics", "5+").of(
        Uuid("topic_id", "5+", map_key=True, volatile=True),
        Array("partition_errors", "5+").of(*LEADER_AND_ISR_PARTITION_ERROR),
    ),
)
