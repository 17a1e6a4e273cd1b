"""WriteShareGroupState (api key 85)."""

from kafkascope.dissectors.schema import (
    Array,
    Int8,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    request,
    response,
)

WRITE_SHARE_GROUP_STATE_REQUEST = request(
    "WriteShareGroupState", key=85, versions="0-1", flexible="0+"
).of(
    String("group_id", "0+", subject="groupId"),
    Array("topics", "0+").of(
        Uuid("topic_id", "0+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition", "0+"),
            Int32("state_epoch", "0+", volatile=True),
            Int32("leader_epoch", "0+", volatile=True),
            Int64("start_offset", "0+"),
            Int32("delivery_complete_count", "1+", default=-1),
            Array("state_batches", "0+").of(
                Int64("first_offset", "0+"),
                Int64("last_offset", "0+"),
                Int8("delivery_state", "0+", enum="ShareRecordState"),
                Int16("delivery_count", "0+"),
            ),
        ),
    ),
)

WRITE_SHARE_GROUP_STATE_RESPONSE = response(
    "WriteShareGroupState", key=85, versions="0-1", flexible="0+"
).of(
    Array("results", "0+").of(
        Uuid("topic_id", "0+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
        ),
    ),
)
