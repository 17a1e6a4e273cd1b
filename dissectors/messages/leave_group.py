"""LeaveGroup (api key 13)."""

from kafkascope.dissectors.schema import Array, Int16, Int32, String, request, response

LEAVE_GROUP_REQUEST = request("LeaveGroup").of(
    String("group_id", "0+", entity="groupId"),
    String("member_id", "0-2", volatile=True, subject="memberId"),
    Array("members", "3+").of(
        String("member_id", "3+", volatile=True, subject="memberId"),
        String("group_instance_id", "3+", nullable="3+", default=None, subject="memberId"),
        String("reason", "5+", nullable="5+", default=None, subject="freeText", word="Reason"),
    ),
)

LEAVE_GROUP_RESPONSE = response("LeaveGroup").of(
    Int32("throttle_time_ms", "1+", volatile=True),
    Int16("error_code", "0+", enum="ErrorCode"),
    Array("members", "3+").of(
        String("member_id", "3+", volatile=True, subject="memberId"),
        String("group_instance_id", "3+", nullable="3+", subject="memberId"),
        Int16("error_code", "3+", enum="ErrorCode"),
    ),
)
