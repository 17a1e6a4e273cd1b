"""ReadShareGroupStateSummary (api key 87)."""

from kafkascope.dissectors.messages.common_structs import SHARE_STATE_QUERY
from kafkascope.dissectors.schema import (
    Array,
    Int16,
    Int32,
    Int64,
    String,
    Uuid,
    request,
    response,
    variant,
)

READ_SHARE_GROUP_STATE_SUMMARY_REQUEST = request("ReadShareGroupStateSummary").of(
    String("group_id", "0+", subject="groupId"),
    Array("topics", "0+").of(*SHARE_STATE_QUERY),
)

READ_SHARE_GROUP_STATE_SUMMARY_RESPONSE = (
    response("ReadShareGroupStateSummary")
    .of(
        Array("results", "0+").of(
            Uuid("topic_id", "0+", volatile=True),
            Array("partitions", "0+").of(
                Int32("partition", "0+"),
                Int16("error_code", "0+", enum="ErrorCode"),
                String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
                Int32("state_epoch", "0+", volatile=True),
                Int32("leader_epoch", "0+", volatile=True),
                Int64("start_offset", "0+"),
                Int32("delivery_complete_count", "1+", default=-1),
            ),
        ),
    )
    .but(
        variant(0, releases="3.9.0-4.0.1", flexible=True).of(
            Array("results", "0+").of(
                Uuid("topic_id", "0+", volatile=True),
                Array("partitions", "0+").of(
                    Int32("partition", "0+"),
                    Int16("error_code", "0+", enum="ErrorCode"),
                    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
                    Int32("state_epoch", "0+", volatile=True),
                    Int64("start_offset", "0+"),
                ),
            ),
        ),
    )
)
