"""OffsetDelete (api key 47)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, String, request, response

OFFSET_DELETE_REQUEST = request("OffsetDelete").of(
    String("group_id", "0+", entity="groupId"),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(Int32("partition_index", "0+")),
    ),
)

OFFSET_DELETE_RESPONSE = response("OffsetDelete").of(
    Int16("error_code", "0+", enum="ErrorCode"),
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("topics", "0+").of(
        String("name", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+", map_key=True),
            Int16("error_code", "0+", enum="ErrorCode"),
        ),
    ),
)
