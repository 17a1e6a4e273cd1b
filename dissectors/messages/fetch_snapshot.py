"""FetchSnapshot (api key 59)."""

from kafkascope.dissectors.messages.common_structs import QUORUM_NODE_ENDPOINT
from kafkascope.dissectors.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    Struct,
    Uuid,
    request,
    response,
)

FETCH_SNAPSHOT_REQUEST = request("FetchSnapshot").of(
    String(
        "cluster_id", "0+", nullable="0+", tag=0, default=None, volatile=True, subject="clusterId"
    ),
    Int32("replica_id", "0+", default=-1, entity="brokerId", enum="ReplicaId"),
    Int32("max_bytes", "0+", default=0x7FFFFFFF),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition", "0+"),
            Int32("current_leader_epoch", "0+", volatile=True),
            Struct("snapshot_id", "0+").of(
                Int64("end_offset", "0+"),
                Int32("epoch", "0+", volatile=True),
            ),
            Int64("position", "0+"),
            Uuid("replica_directory_id", "1+", tag=0, volatile=True),
        ),
    ),
)

FETCH_SNAPSHOT_RESPONSE = response("FetchSnapshot").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            Struct("snapshot_id", "0+").of(
                Int64("end_offset", "0+"),
                Int32("epoch", "0+", volatile=True),
            ),
            Struct("current_leader", "0+", tag=0).of(
                Int32("leader_id", "0+", entity="brokerId"),
                Int32("leader_epoch", "0+", volatile=True),
            ),
            Int64("size", "0+"),
            Int64("position", "0+"),
            Records("unaligned_records", "0+"),
        ),
    ),
    Array("node_endpoints", "1+", tag=0).of(*QUORUM_NODE_ENDPOINT),
)
