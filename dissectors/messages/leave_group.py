"""LeaveGroup (api key 13)."""

from dissectors.schema import Array, Int16, Int32, String, request, response

LEAVE_GROUP_REQUEST = request("LeaveGroup", key=13, versions="0-5", flexible="4+").of(
    String("group_id", "0+", entity="groupId"),
    String("member_id", "0-2"),
    Array("members", "3+").of(
        String("member_id", "3+"),
        String("group_instance_id", "3+", nullable="3+", default=None),
        String("reason", "5+", nullable="5+", default=None),
    ),
)

LEAVE_GROUP_RESPONSE = response("LeaveGroup", key=13, versions="0-5", flexible="4+").of(
    Int32("throttle_time_ms", "1+"),
    Int16("error_code", "0+"),
    Array("members", "3+").of(
        String("member_id", "3+"),
        String("group_instance_id", "3+", nullable="3+"),
        Int16("error_code", "3+"),
    ),
)
