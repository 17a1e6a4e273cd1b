"""InitializeShareGroupState (api key 83)."""

from kafkascope.dissectors.messages.common_structs import SHARE_STATE_RESULT
from kafkascope.dissectors.schema import Array, Int32, Int64, String, Uuid, request, response

INITIALIZE_SHARE_GROUP_STATE_REQUEST = request("InitializeShareGroupState").of(
    String("group_id", "0+", subject="groupId"),
    Array("topics", "0+").of(
        Uuid("topic_id", "0+", volatile=True),
        Array("partitions", "0+").of(
            Int32("partition", "0+"),
            Int32("state_epoch", "0+", volatile=True),
            Int64("start_offset", "0+"),
        ),
    ),
)

INITIALIZE_SHARE_GROUP_STATE_RESPONSE = response("InitializeShareGroupState").of(
    Array("results", "0+").of(*SHARE_STATE_RESULT),
)
