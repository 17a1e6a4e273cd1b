"""JoinGroup (api key 11)."""

from kafkascope.dissectors.schema import Array, Bool, Bytes, Int16, Int32, String, request, response

JOIN_GROUP_REQUEST = request("JoinGroup").of(
    String("group_id", "0+", entity="groupId"),
    Int32("session_timeout_ms", "0+"),
    Int32("rebalance_timeout_ms", "1+", default=-1),
    String("member_id", "0+", volatile=True, subject="memberId"),
    String("group_instance_id", "5+", nullable="5+", default=None, subject="memberId"),
    String("protocol_type", "0+", enum="ClassicGroupProtocolType"),
    Array("protocols", "0+").of(
        String("name", "0+", map_key=True, word="ProtocolName"),
        Bytes("metadata", "0+"),
    ),
    String("reason", "8+", nullable="8+", default=None, subject="freeText", word="Reason"),
)

JOIN_GROUP_RESPONSE = response("JoinGroup").of(
    Int32("throttle_time_ms", "2+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Int32("generation_id", "0+", default=-1, volatile=True),
    String("protocol_type", "7+", nullable="7+", default=None, enum="ClassicGroupProtocolType"),
    String("protocol_name", "0+", nullable="7+", word="ProtocolName"),
    String("leader", "0+", subject="memberId"),
    Bool("skip_assignment", "9+", default=False),
    String("member_id", "0+", volatile=True, subject="memberId"),
    Array("members", "0+").of(
        String("member_id", "0+", volatile=True, subject="memberId"),
        String("group_instance_id", "5+", nullable="5+", default=None, subject="memberId"),
        Bytes("metadata", "0+"),
    ),
)
