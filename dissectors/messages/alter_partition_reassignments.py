"""AlterPartitionReassignments (api key 45)."""

from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, String, request, response

ALTER_PARTITION_REASSIGNMENTS_REQUEST = request("AlterPartitionReassignments").of(
    Int32("timeout_ms", "0+", default=60000),
    Bool("allow_replication_factor_change", "1+", default=True),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Array("replicas", "0+", nullable="0+", default=None, entity="brokerId").of(Int32),
        ),
    ),
)

ALTER_PARTITION_REASSIGNMENTS_RESPONSE = response("AlterPartitionReassignments").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Bool("allow_replication_factor_change", "1+", default=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
    Array("responses", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", subject="freeText"),
        ),
    ),
)
