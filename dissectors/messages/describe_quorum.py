"""DescribeQuorum (api key 55)."""

from kafkascope.dissectors.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    String,
    Uint16,
    Uuid,
    request,
    response,
)

DESCRIBE_QUORUM_REQUEST = request("DescribeQuorum").of(
    Array("topics", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Array("partitions", "0+").of(Int32("partition_index", "0+")),
    ),
)

REPLICA_STATE = (
    Int32("replica_id", "0+", entity="brokerId"),
    Uuid("replica_directory_id", "2+", volatile=True),
    Int64("log_end_offset", "0+"),
    Int64("last_fetch_timestamp", "1+", default=-1, unit="time_ms", volatile=True),
    Int64("last_caught_up_timestamp", "1+", default=-1, unit="time_ms", volatile=True),
)

DESCRIBE_QUORUM_RESPONSE = response("DescribeQuorum").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "2+", nullable="2+", subject="freeText"),
    Array("topics", "0+").of(
        String("topic_name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "2+", nullable="2+", subject="freeText"),
            Int32("leader_id", "0+", entity="brokerId"),
            Int32("leader_epoch", "0+", volatile=True),
            Int64("high_watermark", "0+"),
            Array("current_voters", "0+").of(*REPLICA_STATE),
            Array("observers", "0+").of(*REPLICA_STATE),
        ),
    ),
    Array("nodes", "2+").of(
        Int32("node_id", "2+", entity="brokerId", map_key=True),
        Array("listeners", "2+").of(
            String("name", "2+", map_key=True, word="Listener"),
            String("host", "2+", subject="address"),
            Uint16("port", "2+"),
        ),
    ),
)
