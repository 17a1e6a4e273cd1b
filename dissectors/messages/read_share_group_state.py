"""ReadShareGroupState (api key 84)."""

from kafkascope.dissectors.messages.common_structs import SHARE_STATE_BATCH, SHARE_STATE_QUERY
from kafkascope.dissectors.schema import Array, Int16, Int32, Int64, String, Uuid, request, response

READ_SHARE_GROUP_STATE_REQUEST = request("ReadShareGroupState").of(
    String("group_id", "0+", subject="groupId"),
    Array("topics", "0+").of(*SHARE_STATE_QUERY),
)

READ_SHARE_GROUP_STATE_RESPONSE = response("ReadShareGroupState").of(
    Array("results", "0+").of(
        Uuid("topic_id", "0+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition", "0+"),
            Int16("error_code", "0+", enum="ErrorCode"),
            String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
            Int32("state_epoch", "0+", volatile=True),
            Int64("start_offset", "0+"),
            Array("state_batches", "0+").of(*SHARE_STATE_BATCH),
        ),
    ),
)
