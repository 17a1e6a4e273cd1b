"""AlterShareGroupOffsets (api key 91)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, Uuid, request, response

ALTER_SHARE_GROUP_OFFSETS_REQUEST = request("AlterShareGroupOffsets").of(
    String("group_id", "0+", entity="groupId"),
    Array("topics", "0+").of(
        String("topic_name", "0+", entity="topicName", map_key=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int64("start_offset", "0+"),
        ),
    ),
)

ALTER_SHARE_GROUP_OFFSETS_RESPONSE = response("AlterShareGroupOffsets").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    Array("responses", "0+").of(
        String("topic_name", "0+", entity="topicName", map_key=True),
        Uuid("topic_id", "0+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
        ),
    ),
)
