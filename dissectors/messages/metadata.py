"""Metadata (api key 3)."""

from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, String, Uuid, request, response

METADATA_REQUEST = request("Metadata").of(
    Array("topics", "0+", nullable="1+").of(
        Uuid("topic_id", "10+", volatile=True),
        String("name", "0+", nullable="10+", entity="topicName"),
    ),
    Bool("allow_auto_topic_creation", "4+", default=True),
    Bool("include_cluster_authorized_operations", "8-10"),
    Bool("include_topic_authorized_operations", "8+"),
)

METADATA_RESPONSE = response("Metadata").of(
    Int32("throttle_time_ms", "3+", volatile=True),
    Array("brokers", "0+").of(
        Int32("node_id", "0+", entity="brokerId", map_key=True),
        String("host", "0+", endpoint=True, subject="address"),
        Int32("port", "0+", endpoint=True),
        String("rack", "1+", nullable="1+", default=None, subject="rack"),
    ),
    String("cluster_id", "2+", nullable="2+", default=None, volatile=True, subject="clusterId"),
    Int32("controller_id", "1+", default=-1, entity="brokerId"),
    Array("topics", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("name", "0+", nullable="12+", entity="topicName", map_key=True),
        Uuid("topic_id", "10+", volatile=True),
        Bool("is_internal", "1+", default=False),
        Array("partitions", "0+").of(
            Int16("error_code", "0+", enum="ErrorCode"),
            Int32("partition_index", "0+"),
            Int32("leader_id", "0+", entity="brokerId", enum="PartitionLeader"),
            Int32("leader_epoch", "7+", default=-1, volatile=True),
            Array("replica_nodes", "0+", entity="brokerId").of(Int32),
            Array("isr_nodes", "0+", entity="brokerId").of(Int32),
            Array("offline_replicas", "5+", entity="brokerId").of(Int32),
        ),
        Int32(
            "topic_authorized_operations", "8+", default=-2147483648, enum="AuthorizedOperations"
        ),
    ),
    Int32(
        "cluster_authorized_operations", "8-10", default=-2147483648, enum="AuthorizedOperations"
    ),
    Int16("error_code", "13+", enum="ErrorCode"),
)
