"""SyncGroup (api key 14)."""

from kafkascope.dissectors.schema import Array, Bytes, Int16, Int32, String, request, response

SYNC_GROUP_REQUEST = request("SyncGroup").of(
    String("group_id", "0+", entity="groupId"),
    Int32("generation_id", "0+", volatile=True),
    String("member_id", "0+", volatile=True, subject="memberId"),
    String("group_instance_id", "3+", nullable="3+", default=None, subject="memberId"),
    String("protocol_type", "5+", nullable="5+", default=None, enum="ClassicGroupProtocolType"),
    String("protocol_name", "5+", nullable="5+", default=None, word="ProtocolName"),
    Array("assignments", "0+").of(
        String("member_id", "0+", volatile=True, subject="memberId"),
        Bytes("assignment", "0+"),
    ),
)

SYNC_GROUP_RESPONSE = response("SyncGroup").of(
    Int32("throttle_time_ms", "1+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    String("protocol_type", "5+", nullable="5+", default=None, enum="ClassicGroupProtocolType"),
    String("protocol_name", "5+", nullable="5+", default=None, word="ProtocolName"),
    Bytes("assignment", "0+"),
)
