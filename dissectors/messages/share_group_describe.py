"""ShareGroupDescribe (api key 77)."""

from kafkascope.dissectors.messages.common_structs import DESCRIBED_GROUP, NAMED_TOPIC_PARTITIONS
from kafkascope.dissectors.schema import Array, Bool, Int32, String, Struct, request, response

SHARE_GROUP_DESCRIBE_REQUEST = request("ShareGroupDescribe").of(
    Array("group_ids", "0+", entity="groupId").of(String),
    Bool("include_authorized_operations", "0+"),
)

ASSIGNMENT = (Array("topic_partitions", "0+").of(*NAMED_TOPIC_PARTITIONS),)

SHARE_GROUP_DESCRIBE_RESPONSE = response("ShareGroupDescribe").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Array("groups", "0+").of(
        *DESCRIBED_GROUP,
        String("assignor_name", "0+", word="Assignor"),
        Array("members", "0+").of(
            String("member_id", "0+", volatile=True, subject="memberId"),
            String("rack_id", "0+", nullable="0+", default=None, subject="rack"),
            Int32("member_epoch", "0+", volatile=True),
            String("client_id", "0+", subject="clientId"),
            String("client_host", "0+", subject="address"),
            Array("subscribed_topic_names", "0+", entity="topicName").of(String),
            Struct("assignment", "0+").of(*ASSIGNMENT),
        ),
        Int32("authorized_operations", "0+", default=-2147483648, enum="AuthorizedOperations"),
    ),
)
