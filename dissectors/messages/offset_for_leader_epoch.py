"""OffsetForLeaderEpoch (api key 23)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, request, response

OFFSET_FOR_LEADER_EPOCH_REQUEST = request("OffsetForLeaderEpoch").of(
    Int32("replica_id", "3+", default=-2, entity="brokerId", enum="ReplicaId"),
    Array("topics", "0+").of(
        String("topic", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(
            Int32("partition", "0+"),
            Int32("current_leader_epoch", "2+", default=-1, volatile=True),
            Int32("leader_epoch", "0+", volatile=True),
        ),
    ),
)

OFFSET_FOR_LEADER_EPOCH_RESPONSE = response("OffsetForLeaderEpoch").of(
    Int32("throttle_time_ms", "2+", volatile=True),
    Array("topics", "0+").of(
        String("topic", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(
            Int16("error_code", "0+", enum="ErrorCode"),
            Int32("partition", "0+"),
            Int32("leader_epoch", "1+", default=-1, volatile=True),
            Int64("end_offset", "0+", default=-1),
        ),
    ),
)
