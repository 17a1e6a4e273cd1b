"""ShareGroupHeartbeat (api key 76)."""

from kafkascope.dissectors.messages.common_structs import TOPIC_PARTITIONS
from kafkascope.dissectors.schema import Array, Int16, Int32, String, Struct, request, response

SHARE_GROUP_HEARTBEAT_REQUEST = request("ShareGroupHeartbeat").of(
    String("group_id", "0+", entity="groupId"),
    String("member_id", "0+", volatile=True, subject="memberId"),
    Int32("member_epoch", "0+", enum="ShareGroupMemberEpoch", volatile=True),
    String("rack_id", "0+", nullable="0+", default=None, subject="rack"),
    Array("subscribed_topic_names", "0+", nullable="0+", default=None, entity="topicName").of(
        String
    ),
)

SHARE_GROUP_HEARTBEAT_RESPONSE = response("ShareGroupHeartbeat").of(
    Int32("throttle_time_ms", "0+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("error_message", "0+", nullable="0+", default=None, subject="freeText"),
    String("member_id", "0+", nullable="0+", default=None, volatile=True, subject="memberId"),
    Int32("member_epoch", "0+", enum="ShareGroupMemberEpoch", volatile=True),
    Int32("heartbeat_interval_ms", "0+"),
    Struct("assignment", "0+", nullable="0+", default=None).of(
        Array("topic_partitions", "0+").of(*TOPIC_PARTITIONS),
    ),
)
