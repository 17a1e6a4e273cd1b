"""DeleteShareGroupState (api key 86)."""

from kafkascope.dissectors.messages.common_structs import SHARE_STATE_RESULT
from kafkascope.dissectors.schema import Array, Int32, String, Uuid, request, response

DELETE_SHARE_GROUP_STATE_REQUEST = request("DeleteShareGroupState").of(
    String("group_id", "0+", subject="groupId"),
    Array("topics", "0+").of(
        Uuid("topic_id", "0+", volatile=True),
        Array("partitions", "0+").of(Int32("partition", "0+")),
    ),
)

DELETE_SHARE_GROUP_STATE_RESPONSE = response("DeleteShareGroupState").of(
    Array("results", "0+").of(*SHARE_STATE_RESULT),
)
