"""StopReplica (api key 5)."""

from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, Int64, String, request, response

STOP_REPLICA_REQUEST = request("StopReplica").of(
    Int32("controller_id", "0+", entity="brokerId"),
    Bool("is_kraft_controller", "4+", default=False),
    Int32("controller_epoch", "0+", volatile=True),
    Int64("broker_epoch", "1+", default=-1, volatile=True),
    Bool("delete_partitions", "0-2"),
    Array("ungrouped_partitions", "0").of(
        String("topic_name", "0+", entity="topicName"),
        Int32("partition_index", "0+"),
    ),
    Array("topics", "1-2").of(
        String("name", "1+", entity="topicName"),
        Array("partition_indexes", "1+").of(Int32),
    ),
    Array("topic_states", "3+").of(
        String("topic_name", "3+", entity="topicName"),
        Array("partition_states", "3+").of(
            Int32("partition_index", "3+"),
            Int32("leader_epoch", "3+", default=-1, volatile=True),
            Bool("delete_partition", "3+"),
        ),
    ),
)

STOP_REPLICA_RESPONSE = response("StopReplica").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("partition_errors", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Int32("partition_index", "0+"),
        Int16("error_code", "0+", enum="ErrorCode"),
    ),
)
