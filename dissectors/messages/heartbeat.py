"""Heartbeat (api key 12)."""

from dissectors.schema import Int16, Int32, String, request, response

HEARTBEAT_REQUEST = request("Heartbeat", key=12, versions="0-4", flexible="4+").of(
    String("group_id", "0+", entity="groupId"),
    Int32("generation_id", "0+"),
    String("member_id", "0+"),
    String("group_instance_id", "3+", nullable="3+", default=None),
)

HEARTBEAT_RESPONSE = response("Heartbeat", key=12, versions="0-4", flexible="4+").of(
    Int32("throttle_time_ms", "1+"),
    Int16("error_code", "0+"),
)
