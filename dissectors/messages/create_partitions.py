"""CreatePartitions (api key 37)."""

from kafkascope.dissectors.schema import Array, Bool, Int16, Int32, String, request, response

CREATE_PARTITIONS_REQUEST = request("CreatePartitions").of(
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName", map_key=True),
        Int32("count", "0+"),
        Array("assignments", "0+", nullable="0+").of(
            Array("broker_ids", "0+", entity="brokerId").of(Int32),
        ),
    ),
    Int32("timeout_ms", "0+"),
    Bool("validate_only", "0+"),
)

CREATE_PARTITIONS_RESPONSE = response("CreatePartitions").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("results", "0+").of(
        String("name", "0+", entity="topicName"),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    ),
)
