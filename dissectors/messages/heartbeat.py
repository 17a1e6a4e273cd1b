"""Heartbeat (api key 12)."""

from kafkascope.dissectors.schema import Int16, Int32, String, request, response

HEARTBEAT_REQUEST = request("Heartbeat").of(
    String("group_id", "0+", entity="groupId"),
    Int32("generation_id", "0+", volatile=True),
    String("member_id", "0+", volatile=True, subject="memberId"),
    String("group_instance_id", "3+", nullable="3+", default=None, subject="memberId"),
)

HEARTBEAT_RESPONSE = response("Heartbeat").of(
    Int32("throttle_time_ms", "1+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
)
