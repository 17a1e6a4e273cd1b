"""Produce (api key 0)."""

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

PRODUCE_REQUEST = request("Produce").of(
    String("transactional_id", "3+", nullable="3+", default=None, entity="transactionalId"),
    Int16("acks", "0+", enum="RequiredAcks"),
    Int32("timeout_ms", "0+"),
    Array("topic_data", "0+").of(
        String("name", "0-12", entity="topicName", map_key=True),
        Uuid("topic_id", "13+", map_key=True, volatile=True),
        Array("partition_data", "0+").of(
            Int32("index", "0+"),
            Records("records", "0+", nullable="0+"),
        ),
    ),
)

PRODUCE_RESPONSE = response("Produce").of(
    Array("responses", "0+").of(
        String("name", "0-12", entity="topicName", map_key=True),
        Uuid("topic_id", "13+", map_key=True, volatile=True),
        Array("partition_responses", "0+").of(
            Int32("index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            Int64("base_offset", "0+"),
            Int64("log_append_time_ms", "2+", default=-1, unit="time_ms", volatile=True),
            Int64("log_start_offset", "5+", default=-1),
            Array("record_errors", "8+").of(
                Int32("batch_index", "8+"),
                String(
                    "batch_index_error_message",
                    "8+",
                    nullable="8+",
                    default=None,
                    subject="freeText",
                ),
            ),
            String("error_message", "8+", nullable="8+", default=None, subject="freeText"),
            Struct("current_leader", "10+", tag=0).of(
                Int32("leader_id", "10+", default=-1, entity="brokerId"),
                Int32("leader_epoch", "10+", default=-1, volatile=True),
            ),
        ),
    ),
    Int32("throttle_time_ms", "1+", default=0, volatile=True),
    Array("node_endpoints", "10+", tag=0).of(
        Int32("node_id", "10+", entity="brokerId", map_key=True),
        String("host", "10+", endpoint=True, subject="address"),
        Int32("port", "10+", endpoint=True),
        String("rack", "10+", nullable="10+", default=None, subject="rack"),
    ),
)
