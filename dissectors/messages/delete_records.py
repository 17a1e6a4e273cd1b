"""DeleteRecords (api key 21)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, request, response

DELETE_RECORDS_REQUEST = request("DeleteRecords").of(
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int64("offset", "0+"),
        ),
    ),
    Int32("timeout_ms", "0+"),
)

DELETE_RECORDS_RESPONSE = response("DeleteRecords").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+", map_key=True),
            Int64("low_watermark", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
        ),
    ),
)
