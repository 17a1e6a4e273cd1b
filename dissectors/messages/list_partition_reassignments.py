"""ListPartitionReassignments (api key 46)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, String, request, response

LIST_PARTITION_REASSIGNMENTS_REQUEST = request("ListPartitionReassignments").of(
    Int32("timeout_ms", "0+", default=60000),
    Array("topics", "0+", nullable="0+", default=None).of(
        String("name", "0+", entity="topicName"),
        Array("partition_indexes", "0+").of(Int32),
    ),
)

LIST_PARTITION_REASSIGNMENTS_RESPONSE = response("ListPartitionReassignments").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", subject="freeText"),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Array("replicas", "0+", entity="brokerId").of(Int32),
            Array("adding_replicas", "0+", entity="brokerId").of(Int32),
            Array("removing_replicas", "0+", entity="brokerId").of(Int32),
        ),
    ),
)
