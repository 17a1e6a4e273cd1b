"""AssignReplicasToDirs (api key 73)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, Uuid, request, response

ASSIGN_REPLICAS_TO_DIRS_REQUEST = request("AssignReplicasToDirs").of(
    Int32("broker_id", "0+", entity="brokerId"),
    Int64("broker_epoch", "0+", default=-1, volatile=True),
    Array("directories", "0+", enum="DirectoryId").of(
        Uuid("id", "0+", volatile=True),
        Array("topics", "0+").of(
            Uuid("topic_id", "0+", volatile=True),
            Array("partitions", "0+").of(Int32("partition_index", "0+")),
        ),
    ),
)

ASSIGN_REPLICAS_TO_DIRS_RESPONSE = response("AssignReplicasToDirs").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("directories", "0+", enum="DirectoryId").of(
        Uuid("id", "0+", volatile=True),
        Array("topics", "0+").of(
            Uuid("topic_id", "0+", volatile=True),
            Array("partitions", "0+").of(
                Int32("partition_index", "0+"),
                Int16("error_code", "0+", enum="ErrorCode"),
            ),
        ),
    ),
)
