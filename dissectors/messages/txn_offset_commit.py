"""TxnOffsetCommit (api key 28)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, Uuid, request, response

TXN_OFFSET_COMMIT_REQUEST = request("TxnOffsetCommit").of(
    String("transactional_id", "0+", entity="transactionalId"),
    String("group_id", "0+", entity="groupId"),
    Int64("producer_id", "0+", entity="producerId", enum="ProducerId", volatile=True),
    Int16("producer_epoch", "0+", volatile=True),
    Int32("generation_id_or_member_epoch", "3+", default=-1, volatile=True),
    String("member_id", "3+", default="", volatile=True, subject="memberId"),
    String("group_instance_id", "3+", nullable="3+", default=None, subject="memberId"),
    Array("topics", "0+").of(
        String("name", "0-5", entity="topicName"),
        Uuid("topic_id", "6+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int64("committed_offset", "0+"),
            Int32("committed_leader_epoch", "2+", default=-1, volatile=True),
            String("committed_metadata", "0+", nullable="0+", subject="freeText"),
        ),
    ),
)

TXN_OFFSET_COMMIT_RESPONSE = response("TxnOffsetCommit").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("topics", "0+").of(
        String("name", "0-5", entity="topicName"),
        Uuid("topic_id", "6+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition_index", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
        ),
    ),
)
