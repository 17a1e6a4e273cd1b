"""ListOffsets (api key 2)."""

from kafkascope.dissectors.schema import Array, Int8, Int16, Int32, Int64, String, request, response

LIST_OFFSETS_REQUEST = request("ListOffsets").of(
    Int32("replica_id", "0+", entity="brokerId", enum="ReplicaId"),
    Int8("isolation_level", "2+", enum="IsolationLevel"),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int32("current_leader_epoch", "4+", default=-1, volatile=True),
            Int64("timestamp", "0+", enum="ListOffsetsTimestamp", unit="time_ms"),
            Int32("max_num_offsets", "0", default=1),
        ),
    ),
    Int32("timeout_ms", "10+"),
)

LIST_OFFSETS_RESPONSE = response("ListOffsets").of(
    Int32("throttle_time_ms", "2+", volatile=True),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            Array("old_style_offsets", "0").of(Int64),
            Int64("timestamp", "1+", default=-1, unit="time_ms", volatile=True),
            Int64("offset", "1+", default=-1),
            Int32("leader_epoch", "4+", default=-1, volatile=True),
        ),
    ),
)
