"""OffsetFetch (api key 9)."""

from kafkascope.dissectors.schema import (
    Array,
    Bool,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    request,
    response,
)

OFFSET_FETCH_REQUEST = request("OffsetFetch").of(
    String("group_id", "0-7", entity="groupId"),
    Array("topics", "0-7", nullable="2+").of(
        String("name", "0+", entity="topicName"),
        Array("partition_indexes", "0+").of(Int32),
    ),
    Array("groups", "8+").of(
        String("group_id", "8+", entity="groupId"),
        String("member_id", "9+", nullable="9+", default=None, volatile=True, subject="memberId"),
        Int32("member_epoch", "9+", default=-1, volatile=True),
        Array("topics", "8+", nullable="8+").of(
            String("name", "8-9", entity="topicName"),
            Uuid("topic_id", "10+", volatile=True),
            Array("partition_indexes", "8+").of(Int32),
        ),
    ),
    Bool("require_stable", "7+", default=False),
)

OFFSET_FETCH_RESPONSE = response("OffsetFetch").of(
    Int32("throttle_time_ms", "3+", volatile=True),
    Array("topics", "0-7").of(
        String("name", "0+", entity="topicName"),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int64("committed_offset", "0+"),
            Int32("committed_leader_epoch", "5+", default=-1, volatile=True),
            String("metadata", "0+", nullable="0+", subject="freeText"),
            Int16("error_code", "0+", enum="ErrorCode"),
        ),
    ),
    Int16("error_code", "2-7", default=0, enum="ErrorCode"),
    Array("groups", "8+").of(
        String("group_id", "8+", entity="groupId"),
        Array("topics", "8+").of(
            String("name", "8-9", entity="topicName"),
            Uuid("topic_id", "10+", volatile=True),
            Array("partitions", "8+").of(
                Int32("partition_index", "8+"),
                Int64("committed_offset", "8+"),
                Int32("committed_leader_epoch", "8+", default=-1, volatile=True),
                String("metadata", "8+", nullable="8+", subject="freeText"),
                Int16("error_code", "8+", enum="ErrorCode"),
            ),
        ),
        Int16("error_code", "8+", default=0, enum="ErrorCode"),
    ),
)
