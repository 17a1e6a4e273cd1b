"""DescribeShareGroupOffsets (api key 90)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, Uuid, request, response

DESCRIBE_SHARE_GROUP_OFFSETS_REQUEST = request("DescribeShareGroupOffsets").of(
    Array("groups", "0+").of(
        String("group_id", "0+", entity="groupId"),
        Array("topics", "0+", nullable="0+").of(
            String("topic_name", "0+", entity="topicName"),
            Array("partitions", "0+").of(Int32),
        ),
    ),
)

DESCRIBE_SHARE_GROUP_OFFSETS_RESPONSE = response("DescribeShareGroupOffsets").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("groups", "0+").of(
        String("group_id", "0+", entity="groupId"),
        Array("topics", "0+").of(
            String("topic_name", "0+", entity="topicName"),
            Uuid("topic_id", "0+", volatile=True),
            Array("partitions", "0+").of(
                Int32("partition_index", "0+"),
                Int64("start_offset", "0+"),
                Int32("leader_epoch", "0+", volatile=True),
                Int64("lag", "1+", default=-1, volatile=True),
                Int16("error_code", "0+", enum="ErrorCode"),
                String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
            ),
        ),
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    ),
)
