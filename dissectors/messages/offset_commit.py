"""OffsetCommit (api key 8)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, Uuid, request, response

OFFSET_COMMIT_REQUEST = request("OffsetCommit").of(
    String("group_id", "0+", entity="groupId"),
    Int32("generation_id_or_member_epoch", "1+", default=-1, volatile=True),
    String("member_id", "1+", volatile=True, subject="memberId"),
    String("group_instance_id", "7+", nullable="7+", default=None, subject="memberId"),
    Int64("retention_time_ms", "2-4", default=-1, enum="OffsetCommitRetentionTime"),
    Array("topics", "0+").of(
        String("name", "0-9", entity="topicName"),
        Uuid("topic_id", "10+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int64("committed_offset", "0+"),
            Int64("commit_timestamp", "1", default=-1, unit="time_ms", volatile=True),
            Int32("committed_leader_epoch", "6+", default=-1, volatile=True),
            String("committed_metadata", "0+", nullable="0+", subject="freeText"),
        ),
    ),
)

OFFSET_COMMIT_RESPONSE = response("OffsetCommit").of(
    Int32("throttle_time_ms", "3+", volatile=True),
    Array("topics", "0+").of(
        String("name", "0-9", entity="topicName"),
        Uuid("topic_id", "10+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
        ),
    ),
)
