"""AlterReplicaLogDirs (api key 34)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, String, request, response

ALTER_REPLICA_LOG_DIRS_REQUEST = request("AlterReplicaLogDirs").of(
    Array("dirs", "0+").of(
        String("path", "0+", map_key=True, subject="path"),
        Array("topics", "0+").of(
            String("name", "0+", entity="topicName", map_key=True),
            Array("partitions", "0+").of(Int32),
        ),
    ),
)

ALTER_REPLICA_LOG_DIRS_RESPONSE = response("AlterReplicaLogDirs").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("results", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
        ),
    ),
)
