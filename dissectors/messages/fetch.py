"""Fetch (api key 1)."""

from kafkascope.dissectors.schema import (
    Array,
    Int8,
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

FETCH_REQUEST = request("Fetch").of(
    String(
        "cluster_id", "12+", nullable="12+", tag=0, default=None, volatile=True, subject="clusterId"
    ),
    Int32("replica_id", "0-14", default=-1, entity="brokerId", enum="ReplicaId"),
    Struct("replica_state", "15+", tag=1).of(
        Int32("replica_id", "15+", default=-1, entity="brokerId", enum="ReplicaId"),
        Int64("replica_epoch", "15+", default=-1, volatile=True),
    ),
    Int32("max_wait_ms", "0+"),
    Int32("min_bytes", "0+"),
    Int32("max_bytes", "3+", default=0x7FFFFFFF),
    Int8("isolation_level", "4+", default=0, enum="IsolationLevel"),
    Int32("session_id", "7+", default=0, enum="FetchSessionId", volatile=True),
    Int32("session_epoch", "7+", default=-1, enum="FetchSessionEpoch", volatile=True),
    Array("topics", "0+").of(
        String("topic", "0-12", entity="topicName"),
        Uuid("topic_id", "13+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition", "0+"),
            Int32("current_leader_epoch", "9+", default=-1, volatile=True),
            Int64("fetch_offset", "0+"),
            Int32("last_fetched_epoch", "12+", default=-1, volatile=True),
            Int64("log_start_offset", "5+", default=-1),
            Int32("partition_max_bytes", "0+"),
            Uuid("replica_directory_id", "17+", tag=0, volatile=True),
            Int64("high_watermark", "18+", tag=1, default=0x7FFFFFFFFFFFFFFF),
        ),
    ),
    Array("forgotten_topics_data", "7+").of(
        String("topic", "7-12", entity="topicName"),
        Uuid("topic_id", "13+", volatile=True),
        Array("partitions", "7+").of(Int32),
    ),
    String("rack_id", "11+", default="", subject="rack"),
)

FETCH_RESPONSE = response("Fetch").of(
    Int32("throttle_time_ms", "1+", volatile=True),
    Int16("error_code", "7+", enum="ErrorCode"),
    Int32("session_id", "7+", default=0, enum="FetchSessionId", volatile=True),
    Array("responses", "0+").of(
        String("topic", "0-12", entity="topicName"),
        Uuid("topic_id", "13+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            Int64("high_watermark", "0+"),
            Int64("last_stable_offset", "4+", default=-1),
            Int64("log_start_offset", "5+", default=-1),
            Struct("diverging_epoch", "12+", tag=0).of(
                Int32("epoch", "12+", default=-1, volatile=True),
                Int64("end_offset", "12+", default=-1),
            ),
            Struct("current_leader", "12+", tag=1).of(
                Int32("leader_id", "12+", default=-1, entity="brokerId"),
                Int32("leader_epoch", "12+", default=-1, volatile=True),
            ),
            Struct("snapshot_id", "12+", tag=2).of(
                Int64("end_offset", "12+", default=-1),
                Int32("epoch", "12+", default=-1, volatile=True),
            ),
            Array("aborted_transactions", "4+", nullable="4+").of(
                Int64("producer_id", "4+", entity="producerId", enum="ProducerId", volatile=True),
                Int64("first_offset", "4+"),
            ),
            Int32("preferred_read_replica", "11+", default=-1, entity="brokerId"),
            Records("records", "0+", nullable="0+"),
        ),
    ),
    Array("node_endpoints", "16+", tag=0).of(
        Int32("node_id", "16+", entity="brokerId", map_key=True),
        String("host", "16+", endpoint=True, subject="address"),
        Int32("port", "16+", endpoint=True),
        String("rack", "16+", nullable="16+", default=None, subject="rack"),
    ),
)
