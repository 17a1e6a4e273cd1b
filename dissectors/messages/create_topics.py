"""CreateTopics (api key 19)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int8,
    Int16,
    Int32,
    String,
    Uuid,
    request,
    response,
)

CREATE_TOPICS_REQUEST = request("CreateTopics").of(
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName", map_key=True),
        Int32("num_partitions", "0+"),
        Int16("replication_factor", "0+"),
        Array("assignments", "0+").of(
            Int32("partition_index", "0+", map_key=True),
            Array("broker_ids", "0+", entity="brokerId").of(Int32),
        ),
        Array("configs", "0+").of(
            String("name", "0+", map_key=True, word="ConfigName"),
            String("value", "0+", nullable="0+", subject="configValue"),
        ),
    ),
    Int32("timeout_ms", "0+", default=60000),
    Bool("validate_only", "1+", default=False),
)

CREATE_TOPICS_RESPONSE = response("CreateTopics").of(
    Int32("throttle_time_ms", "2+", volatile=True),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName", map_key=True),
        Uuid("topic_id", "7+", volatile=True),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "1+", nullable="1+", subject="freeText"),
        Int16("topic_config_error_code", "5+", tag=0, enum="ErrorCode"),
        Int32("num_partitions", "5+", default=-1),
        Int16("replication_factor", "5+", default=-1),
        Array("configs", "5+", nullable="5+").of(
            String("name", "5+", word="ConfigName"),
            String("value", "5+", nullable="5+", subject="configValue"),
            Bool("read_only", "5+"),
            Int8("config_source", "5+", default=-1, enum="ConfigSource"),
            Bool("is_sensitive", "5+"),
        ),
    ),
)
