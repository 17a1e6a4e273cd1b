"""DescribeGroups (api key 15)."""

from kafkascope.dissectors.schema import Array, Bool, Bytes, Int16, Int32, String, request, response

DESCRIBE_GROUPS_REQUEST = request("DescribeGroups").of(
    Array("groups", "0+", entity="groupId").of(String),
    Bool("include_authorized_operations", "3+"),
)

DESCRIBE_GROUPS_RESPONSE = response("DescribeGroups").of(
    Int32("throttle_time_ms", "1+", volatile=True),
    Array("groups", "0+").of(
        Int16("error_code", "0+", enum="ErrorCode"),
        String("error_message", "6+", nullable="6+", default=None, subject="freeText"),
        String("group_id", "0+", entity="groupId"),
        String("group_state", "0+", enum="GroupState"),
        String("protocol_type", "0+", enum="ClassicGroupProtocolType"),
        String("protocol_data", "0+", word="ProtocolName"),
        Array("members", "0+").of(
            String("member_id", "0+", volatile=True, subject="memberId"),
            String("group_instance_id", "4+", nullable="4+", default=None, subject="memberId"),
            String("client_id", "0+", subject="clientId"),
            String("client_host", "0+", subject="address"),
            Bytes("member_metadata", "0+"),
            Bytes("member_assignment", "0+"),
        ),
        Int32("authorized_operations", "3+", default=-2147483648, enum="AuthorizedOperations"),
    ),
)
